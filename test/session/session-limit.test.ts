import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createAuthRouter, createKnexStore } from '../../src'
import { password } from '../local/people'
import { ask, isIn, logIn as logInByCookie, member, sessionCookie } from '../server-session/devices'
import { newSession } from '../store/contract'
import { memoryStore } from '../store/memory-store'
import { baseUrl, type Mounted, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { testClock } from '../support/clock'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

type Person = Awaited<ReturnType<typeof member>>

describe.each(await databases())('24.7: maxSessionsPerUser on $name', (database) => {
  const start = appPerTest(database)

  /** A refresh token. Each login is a second after the one before. */
  async function tokens(host: Mounted, { email }: Person): Promise<string> {
    host.clock.advance(1)
    const { status, body } = await ask(host, 'post', '/login', {}, { email, password })
    expect(status).toBe(200)
    return body.refresh_token
  }
  async function cookie(host: Mounted, person: Person): Promise<{ cookie: string }> {
    host.clock.advance(1)
    return sessionCookie(await logInByCookie(host, person))
  }
  const refresh = async (host: Mounted, refresh_token: string) => ask(host, 'post', '/refresh', {}, { refresh_token })
  const living = async (host: Mounted, { userId }: Person) =>
    (await createKnexStore({ knex: host.knex }).sessions.listForUser(userId, host.clock.now())).map(({ id }) => id)
  const told = (host: Mounted) => {
    const events: object[] = []
    host.auth.events.on('session.revoked', (payload) => events.push(payload))
    return events
  }

  test('a login beyond it ends the session that was unused longest, of either kind, and no other', async () => {
    const host = await start({ settings: { maxSessionsPerUser: 3 } })
    const [ana, bea] = [await member(host), await member(host)]
    const events = told(host)
    const [oldest, browser, phone, others] = [
      await tokens(host, ana),
      await cookie(host, ana),
      await tokens(host, ana),
      await tokens(host, bea),
    ]
    host.clock.advance(61)
    const used = (await refresh(host, oldest)).body.refresh_token // the oldest, and now not unused
    expect(events).toEqual([])

    const laptop = await cookie(host, ana)
    expect(await isIn(host, browser)).toBe(false)
    expect(await isIn(host, laptop)).toBe(true)
    expect(events).toEqual([{ userId: ana.userId, count: 1, reason: 'limit' }])

    const tablet = await tokens(host, ana)
    expect((await refresh(host, phone)).body.code).toBe('INVALID_TOKEN')
    for (const token of [used, tablet, others]) expect((await refresh(host, token)).status).toBe(200)
    expect(await living(host, ana)).toHaveLength(3)
    expect(events).toHaveLength(2)
  })

  test('1 means one session, the newest; 0 means no limit; expired and ended sessions take no room', async () => {
    const one = await start({ settings: { maxSessionsPerUser: 1 } })
    const ana = await member(one)
    const first = await tokens(one, ana)
    const second = await tokens(one, ana)
    expect([(await refresh(one, first)).status, (await refresh(one, second)).status]).toEqual([401, 200])

    const none = await start({ settings: { maxSessionsPerUser: 0 } })
    const bea = await member(none)
    for (let session = 0; session < 101; session++) await createKnexStore({ knex: none.knex }).sessions.insert(sessionOf(none, bea))
    await tokens(none, bea)
    expect(await living(none, bea)).toHaveLength(102)

    const two = await start({ settings: { maxSessionsPerUser: 2 } })
    const eve = await member(two)
    const events = told(two)
    const [ended, kept] = [await tokens(two, eve), await tokens(two, eve)]
    await ask(two, 'post', '/logout', {}, { refresh_token: ended })
    await tokens(two, eve)
    expect((await refresh(two, kept)).status).toBe(200)
    two.clock.advance(30 * 86_400)
    await tokens(two, eve)
    await tokens(two, eve)
    expect(events).toEqual([])
  })

  test('an account with more, after the limit was lowered, comes down to it with the next login, the unused first', async () => {
    const host = await start() // 100
    const ana = await member(host)
    const store = createKnexStore({ knex: host.knex })
    for (let session = 0; session < 112; session++) await store.sessions.insert(sessionOf(host, ana, session))
    const byUse = (await store.sessions.listForUser(ana.userId, host.clock.now()))
      .toSorted((one, other) => one.lastSeenAt.getTime() - other.lastSeenAt.getTime())
      .map(({ id }) => id)
    const events = told(host)
    await tokens(host, ana)
    expect(await living(host, ana)).toHaveLength(100)

    expect(events).toMatchObject([{ count: 13 }])
    const ids = new Set(await living(host, ana))
    expect(byUse.filter((id) => !ids.has(id))).toEqual(byUse.slice(0, 13))
  })

  test('holds where a host renames the columns of every answer', async () => {
    const host = await start({ settings: { maxSessionsPerUser: 2 } })
    const ana = await member(host)
    const { config } = host.knex.client
    const store = createKnexStore({ knex: host.knex })
    for (let session = 0; session < 2; session++) await store.sessions.insert(sessionOf(host, ana, session + 1))
    config.postProcessResponse = (rows: unknown) => (Array.isArray(rows) ? rows.map(({ sessionsfull, ...row }) => row) : rows)
    expect(await store.sessions.insertWithin?.(sessionOf(host, ana), 2)).toBe(1)
  })

  test.each([0, 1])(
    'deletes twenty of the sessions that ended, the oldest first, also where a host renames every column (%i)',
    async (renames) => {
      const host = await start({ settings: { maxSessionsPerUser: 2 } })
      const ana = await member(host)
      const { config } = host.knex.client
      const store = createKnexStore({ knex: host.knex })
      const now = host.clock.now().getTime()
      const ended = Array.from({ length: 25 }, (_, age) => ({
        ...sessionOf(host, ana, 1),
        id: randomUUID(),
        expiresAt: new Date(now - (age + 1) * 1_000),
      }))
      for (const [number, session] of ended.entries()) await store.sessions.insert({ ...session, tokenHash: `${number}`.padStart(64, '0') })
      for (let session = 0; session < 2; session++) await store.sessions.insert(sessionOf(host, ana, session + 1))
      const camel = (row: object) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name.replaceAll(/_[a-z]/g, (text) => (text[1] ?? '').toUpperCase()), value]),
        )
      if (renames === 1) config.postProcessResponse = (rows: unknown) => (Array.isArray(rows) ? rows.map(camel) : rows)
      await store.sessions.insertWithin?.(sessionOf(host, ana), 2)
      config.postProcessResponse = undefined
      const left = await host
        .knex('auth_sessions')
        .whereIn(
          'id',
          ended.map(({ id }) => id),
        )
        .pluck('id')
      expect(left.toSorted()).toEqual(
        ended
          .slice(0, 5)
          .map(({ id }) => id)
          .toSorted(),
      )
    },
  )

  test('a login costs two statements more only where the person has as many sessions as allowed: it revokes one, and deletes what has ended', async () => {
    const host = await start({ settings: { maxSessionsPerUser: 3 } })
    const ana = await member(host)
    const statementsOf = async () => {
      const statements = recordQueries(host.knex)
      await tokens(host, ana)
      return statements.stop().filter((sql) => sql.includes('auth_sessions'))
    }
    const [first, second, , fourth] = [await statementsOf(), await statementsOf(), await statementsOf(), await statementsOf()]
    expect([first, second, fourth].map(({ length }) => length)).toEqual(database.name === 'mariadb' ? [2, 2, 4] : [1, 1, 3])
  })
})

test('an adapter without insertWithin is asked for all sessions: the one unused longest ends there too', async () => {
  const store = memoryStore()
  const clock = testClock()
  const { service } = createAuthRouter({
    settings: { jwtSecret: testSecret, oauthRedirectBaseUrl: baseUrl, autoActivate: true, maxSessionsPerUser: 2 },
    store,
    environment: 'test',
    passwordHasher: fastHasher(),
    logger: logTap(),
    now: clock.now,
  })
  const email = 'ana@example.test'
  await service.signUp({ email, password, name: 'Ana' })
  const logIn = async () => {
    clock.advance(1)
    const login = await service.logIn({ email, password })
    if (login.kind !== 'session') throw new Error('no second factor was enrolled')
    return login
  }
  const first = await logIn()
  const second = await logIn()
  const third = await logIn()

  expect([first.endedByLimit, second.endedByLimit, third.endedByLimit]).toEqual([undefined, undefined, 1])
  await expect(service.refresh(first.refreshToken)).rejects.toThrow()
  for (const { refreshToken } of [second, third]) expect((await service.refresh(refreshToken)).kind).toBe('session')
})

function sessionOf(host: Mounted, { userId }: Person, secondsAgo = 0) {
  const [at, lastSeenAt] = [host.clock.now(), new Date(host.clock.now().getTime() - secondsAgo * 1000)]
  const endsAt = new Date(at.getTime() + 86_400_000)
  return newSession(userId, { createdAt: lastSeenAt, lastSeenAt, expiresAt: endsAt, endsAt })
}
