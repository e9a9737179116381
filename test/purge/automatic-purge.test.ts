import { afterEach, describe, expect, test, vi } from 'vitest'
import { type AuthRouterOptions, auditLog, ConfigurationError, createAuthRouter, createKnexStore, knexCounters } from '../../src'
import { purgeStateOf } from '../../src/store/knex/purge-state'
import { newSession, newUserToken, withUser } from '../store/contract'
import { signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'

const minute = 60
const day = 86_400

afterEach(() => {
  vi.useRealTimers()
})

type Changes = Partial<AuthRouterOptions>

/** A router on a database, whose first purge begins at once. */
function routerOn(knex: OpenDatabase['knex'], now: () => Date, changes: Changes = {}) {
  if (!vi.isFakeTimers()) vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const logs = logTap()
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, publicUrl: 'https://app.example.test', autoActivate: true },
    store: createKnexStore({ knex }),
    environment: 'test',
    purge: { everyMinutes: 60 },
    checkTables: false,
    logger: logs,
    now,
    ...changes,
  })
  const done: object[] = []
  auth.events.on('purge.done', (payload) => done.push(payload))
  const afterFirstMinute = () => {
    vi.advanceTimersByTime(minute * 1_000)
    vi.useRealTimers()
  }
  return { auth, logs, done, afterFirstMinute }
}

describe.each(await databases())('25.8: the automatic purge on $name', (database) => {
  const start = appPerTest(database)

  test('deletes sessions, counters and old events after a minute, and says how many', async () => {
    const host = await start()
    await signIn(host)
    await knexCounters(host.knex, { now: () => host.clock.now().getTime() }).increment('a key', 1)
    const log = auditLog(host.knex, { now: host.clock.now })
    const { auth, done, afterFirstMinute } = routerOn(host.knex, host.clock.now)
    log.watch(auth.events)
    await host.knex('auth_audit_log').insert({
      id: crypto.randomUUID(),
      name: 'login',
      payload: '{}',
      created_at: database.name === 'sqlite' ? 1_000 : '2020-01-01 00:00:00',
    })
    host.clock.advance(60 * day)
    afterFirstMinute()
    await vi.waitFor(() => expect(done).toHaveLength(1), 5_000)

    expect(done).toEqual([
      {
        users: 0,
        userTokens: 0,
        sessions: 1,
        emailLogins: 0,
        trustedDevices: 0,
        outbox: 0,
        invitations: 0,
        counters: 1,
        auditLog: 1,
        milliseconds: expect.any(Number),
      },
    ])
    expect(await (await purgeStateOf(createKnexStore({ knex: host.knex })))?.lastEnd()).toEqual(host.clock.now())
    await auth.drain()
  })

  test('runs in one of several routers, and in another one when the interval is over', async () => {
    const host = await start()
    const routers = [routerOn(host.knex, host.clock.now), routerOn(host.knex, host.clock.now)]
    routers[0]?.afterFirstMinute()
    const count = () => routers.reduce((sum, { done }) => sum + done.length, 0)
    await vi.waitFor(() => expect(count()).toBe(1), 5_000)
    await Promise.all(routers.map(({ auth }) => auth.drain()))
    expect(count()).toBe(1)

    host.clock.advance(60 * minute)
    const later = routerOn(host.knex, host.clock.now)
    later.afterFirstMinute()
    await vi.waitFor(() => expect(later.done).toHaveLength(1), 5_000)
    await later.auth.drain()
  })

  test('a process that extends its lease keeps it; after its end another process takes it, and the first one cannot extend it', async () => {
    const { knex } = await start()
    const state = await purgeStateOf(createKnexStore({ knex }))
    expect(await state?.take(1_000, 2_000)).toBe(true)
    expect(await state?.extend(2_000, 3_000)).toBe(true)
    expect(await state?.take(2_500, 4_000)).toBe(false)
    expect(await state?.take(3_000, 4_000)).toBe(true)
    expect(await state?.extend(3_000, 5_000)).toBe(false)
  })

  test('drain() ends it after its current batch, and no statement follows', async () => {
    const host = await start()
    const store = createKnexStore({ knex: host.knex })
    const { id } = await withUser(store)
    await store.transaction(async ({ sessions }) => {
      for (let number = 0; number < 200; number += 1) await sessions?.insert(newSession(id, { expiresAt: host.clock.now() }))
    })
    const { auth, done, logs, afterFirstMinute } = routerOn(host.knex, host.clock.now)
    const firstBatch = new Promise((resolve) => {
      host.knex.on('query-response', (_, { sql }: { sql: string }) => void (/^delete from .auth_sessions/.test(sql) && resolve(null)))
    })
    afterFirstMinute()
    await firstBatch
    await auth.drain()
    const late: string[] = []
    host.knex.on('query', ({ sql }: { sql: string }) => late.push(sql))
    await new Promise((resolve) => setTimeout(resolve, 50))

    expect(late).toEqual([])
    expect(done).toEqual([])
    expect((await host.knex('auth_sessions').pluck('id')).length).toBeGreaterThan(0)
    expect(logs.entries.map(({ message }) => message)).not.toContainEqual(expect.stringContaining('the purge failed'))

    // A serverless platform drains after every request. The purge still ends in the end.
    const next = routerOn(host.knex, host.clock.now)
    next.afterFirstMinute()
    await vi.waitFor(() => expect(next.done).toHaveLength(1), 5_000)
    expect(await host.knex('auth_sessions').pluck('id')).toEqual([])
    await next.auth.drain()
  })

  test('a process that drains again and again comes to the end of links that stay, and of what follows them', async () => {
    const host = await start()
    const store = createKnexStore({ knex: host.knex })
    const { id } = await withUser(store) // active, so that the purge of accounts passes over these links
    const expiresAt = new Date(host.clock.now().getTime() - 10 * day * 1_000)
    await store.transaction(async ({ userTokens }) => {
      for (let number = 0; number < 150; number += 1)
        await userTokens.insert(newUserToken(id, { purpose: 'ACTIVATION', expiresAt, usedAt: expiresAt }))
    })
    const { auth, done } = routerOn(host.knex, host.clock.now)
    let rounds = 0
    for (; done.length === 0 && rounds < 60; rounds += 1) {
      const begun = new Promise((resolve) => host.knex.once('query', resolve))
      vi.advanceTimersByTime(minute * 1_000)
      await begun
      await auth.drain()
    }
    expect([done, await host.knex('auth_user_tokens').pluck('id')]).toEqual([[expect.anything()], []])
    expect(rounds).toBeGreaterThan(5)
  })

  test('a process that drains tries again a minute later, and not only after the interval', async () => {
    const host = await start()
    const store = createKnexStore({ knex: host.knex })
    const { id } = await withUser(store)
    await store.transaction(async ({ sessions }) => {
      for (let number = 0; number < 100; number += 1) await sessions?.insert(newSession(id, { expiresAt: host.clock.now() }))
    })
    const { auth, done, afterFirstMinute } = routerOn(host.knex, host.clock.now)
    const taken = new Promise((resolve) => host.knex.once('query', resolve))
    vi.advanceTimersByTime(minute * 1_000)
    await taken
    await auth.drain()
    expect([done, vi.getTimerCount()]).toEqual([[], 1])
    afterFirstMinute()
    await vi.waitFor(() => expect(done).toHaveLength(1), 5_000)
    await auth.drain()
  })

  test('a purge that fails is one warning, and the app goes on', async () => {
    const host = await start()
    const broken = createKnexStore({ knex: host.knex, emailLogins: { table: 'no_such_table' } })
    const { auth, done, logs, afterFirstMinute } = routerOn(host.knex, host.clock.now, { store: broken })
    afterFirstMinute()
    const warnings = () => logs.entries.filter(({ message }) => message.startsWith('doorward: the purge failed.'))
    await vi.waitFor(() => expect(warnings()).toHaveLength(1), 5_000)
    await auth.drain()
    expect(done).toEqual([])
    expect((await signIn(host)).status).toBe(200)
  })
})

test('is off in environment test, unless it is asked for, and with `false` everywhere', async () => {
  const [database] = await databases()
  const opened = await database?.open()
  if (!opened) throw new Error('no database')
  const now = () => new Date()
  const timersOf = (changes: Changes) => {
    routerOn(opened.knex, now, changes)
    const count = vi.getTimerCount()
    vi.useRealTimers()
    return count
  }
  const unset = { purge: undefined } as unknown as Changes
  expect(timersOf(unset)).toBe(0)
  expect(timersOf({ purge: false, environment: 'development' })).toBe(0)
  expect(timersOf({ ...unset, environment: 'development' })).toBe(1)
  expect(timersOf({ purge: { everyMinutes: 1 } })).toBe(1)
  await opened.close()
})

test.each([
  true,
  {},
  { everyMinutes: 0 },
  { everyMinutes: 1.5 },
  { everyMinutes: 10_081 },
  { everyMinutes: '60' },
  { everyMinutes: 60, hours: 1 },
])('the option purge: %j is refused at boot', async (purge) => {
  const [database] = await databases()
  const opened = await database?.open()
  if (!opened) throw new Error('no database')
  expect(() => routerOn(opened.knex, () => new Date(), { purge: purge as never })).toThrow(ConfigurationError)
  await opened.close()
})
