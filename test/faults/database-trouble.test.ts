import knex, { type Knex } from 'knex'
import type supertest from 'supertest'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { newAddress, password, signedIn } from '../local/people'
import { rowCounts } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'
import { mailbox } from '../support/mailbox'
import { acts, sending } from './acts'
import { asking, atRest } from './at-rest'
import { type CutRig, cutRig } from './cut-rig'
import { faultyApp } from './faulty-app'
import { type WellHost, wellHost } from './well-host'

const unavailable = { code: 'SERVICE_UNAVAILABLE', detail: expect.any(String), details: {} }

const turn = () => new Promise((resolve) => setImmediate(resolve))

function expectUnavailable({ status, body, headers }: supertest.Response): void {
  expect([status, body]).toEqual([503, unavailable])
  expect(headers['retry-after']).toBe('1')
  expect(String(headers['set-cookie'] ?? '')).not.toMatch(/(access_token|refresh_token|auth_session)=[^;]/)
}

for (const database of await databases()) {
  const { name } = database

  describe(`${name} in trouble`, () => {
    let host: WellHost
    const closing: (() => unknown)[] = []
    beforeAll(async () => {
      host = await wellHost(database)
    })
    afterEach(async () => {
      vi.useRealTimers()
      for (const close of closing.splice(0).reverse()) await close()
    })
    afterAll(() => host?.close())

    async function behindProxy(options: Partial<Knex.Config>): Promise<CutRig> {
      if (name === 'sqlite') throw new Error('SQLite has no server')
      const rig = await cutRig(host, name, options)
      closing.push(() => rig.close())
      await rig.knex.raw('select 1')
      return rig
    }

    /** Refreshes of so many people. */
    const refreshes = (people: number) =>
      Promise.all(Array.from({ length: people }, async () => sending('/refresh', { refresh_token: (await signedIn(host)).refreshToken })))

    test('F07: a pool that is exhausted is 503 when knex gives up, and for nobody longer', async () => {
      const own = knex({ ...host.opened.config, pool: { min: 0, max: 1 }, acquireConnectionTimeout: 300, log: { warn() {} } })
      closing.push(() => own.destroy())
      const { app, auth } = faultyApp({ knex: own, clients: host.clients, mailer: mailbox(), logger: logTap() })
      await auth.ready() // a check of the tables that finds no connection says 60 seconds
      const sent = await refreshes(10)
      const connection = await vi.waitFor(() => own.client.acquireConnection(), { timeout: 10_000 }) // the first is opened
      const began = performance.now()

      const answers = await Promise.all(sent.map((send) => send(app)))

      expect(performance.now() - began).toBeLessThan(5_000)
      answers.forEach(expectUnavailable)
      await own.client.releaseConnection(connection)
      for (const send of sent) expect((await send(app)).status).toBe(200)
      await atRest(own)
    })

    const slowly = async () => {
      const rig = await behindProxy({ pool: { min: 0, max: 3 }, acquireConnectionTimeout: 5_000 })
      const [first, ...sent] = await refreshes(21)
      expect((await first?.(rig.app))?.status).toBe(200) // the tables are checked before
      rig.proxy.delay(60_000)
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      const seconds: number[] = []
      let now = 0
      const all = Promise.all(
        sent.map(async (send) => {
          const answer = await send(rig.app)
          seconds.push(now)
          return answer
        }),
      )
      while (asking(rig.knex) < sent.length) await turn() // the clock begins when all have arrived
      let most = 0
      for (; seconds.length < sent.length && now < 60; now += 0.5) {
        await vi.advanceTimersByTimeAsync(500)
        await turn()
        most = Math.max(most, rig.proxy.open)
      }

      expect(seconds).toHaveLength(sent.length)
      for (const answer of await all) expectUnavailable(answer)
      expect(most).toBeLessThanOrEqual(3)
      expect(seconds.filter((second) => second <= 10).length).toBeGreaterThanOrEqual(17)
      expect(Math.max(...seconds)).toBeLessThanOrEqual(45)
      vi.useRealTimers()
      rig.proxy.delay(0)
      rig.proxy.down()
      rig.proxy.up()
      await atRest(rig.knex)
      const [again] = await refreshes(1)
      expect((await again?.(rig.app))?.status).toBe(200)
    }
    if (name !== 'sqlite')
      test(
        'F08: statements that take a minute hold no more connections than the pool has and nobody longer than 40 s; then all is well',
        slowly,
      )

    test('F09: without the right or the room to write, a login and a signup are 503, and no row is written', async () => {
      const { knex: own, close } = await readOnly(host.opened, name)
      closing.push(close)
      const logs = logTap()
      const { app } = faultyApp({ knex: own, clients: host.clients, mailer: mailbox(), logger: logs })
      const { email, refreshToken } = await signedIn(host)
      const before = await rowCounts(host.knex)

      for (const send of [
        sending('/login', { email, password }),
        sending('/session/login', { email, password }),
        sending('/signup', { email: newAddress(), password: `${password} and in spring` }),
        sending('/refresh', { refresh_token: refreshToken }),
        await acts['GET /oauth/corp/callback of a new identity'].prepare(host),
      ])
        expectUnavailable(await send(app))

      expect(await rowCounts(host.knex)).toEqual(before)
      expect((await sending('/refresh', { refresh_token: refreshToken })(host.app)).status).toBe(200)
      expect((await sending('/login', { email, password })(host.app)).status).toBe(200)
    })
  })
}

/** A pool that may change rows, though none of a session, but insert none; of SQLite, one whose file may not grow. */
async function readOnly({ knex: admin, config, connect }: OpenDatabase, name: string): Promise<{ knex: Knex; close(): Promise<unknown> }> {
  if (name === 'sqlite') {
    const full = connect({
      min: 1,
      max: 1,
      afterCreate(connection: { pragma(text: string): unknown }, done: (error: null, connection: unknown) => void) {
        connection.pragma('query_only = on')
        done(null, connection)
      },
    })
    return { knex: full, close: async () => undefined }
  }
  const changeable = ['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_recovery_codes']
  const user = `doorward_reader_${Math.random().toString(36).slice(2, 8)}`
  if (name === 'postgres') {
    const [schema = ''] = (config?.searchPath ?? []) as string[]
    await admin.raw(`create role ${user} login`)
    await admin.raw(`grant usage on schema ${schema} to ${user}`)
    await admin.raw(`grant select, delete on all tables in schema ${schema} to ${user}`)
    for (const table of changeable) await admin.raw(`grant update on ${schema}.${table} to ${user}`)
    const url = new URL(String(config?.connection))
    url.username = user
    const own = knex({ ...config, connection: url.href })
    return { knex: own, close: () => own.destroy().then(() => admin.raw(`drop owned by ${user}; drop role ${user}`)) }
  }
  const connection = config?.connection as { database: string } // what databases.ts makes for MariaDB
  await admin.raw(`create user ${user}@'%'`)
  await admin.raw(`grant select, delete on ${connection.database}.* to ${user}@'%'`)
  for (const table of changeable) await admin.raw(`grant update on ${connection.database}.${table} to ${user}@'%'`)
  const own = knex({ ...config, connection: { ...connection, user } })
  return { knex: own, close: () => own.destroy().then(() => admin.raw(`drop user ${user}@'%'`)) }
}
