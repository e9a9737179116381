import { afterEach, describe, expect, test, vi } from 'vitest'
import { type AuthRouterOptions, auditLog, ConfigurationError, createAuthRouter, createKnexStore, knexCounters } from '../../src'
import { newSession, newUserToken, withUser } from '../store/contract'
import { type Mounted, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'

const minute = 60
const day = 86_400
const interval = 60 * minute

afterEach(() => {
  vi.useRealTimers()
})

type Changes = Partial<AuthRouterOptions>

/** A router on a database, whose first purge begins with `afterFirstWait`. */
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
  const afterFirstWait = () => {
    vi.advanceTimersByTime(interval * 1_000)
    vi.useRealTimers()
  }
  return { auth, logs, done, afterFirstWait }
}

type Host = Pick<Mounted, 'knex' | 'clock'>

const leaseOf = ({ knex }: Host) => createKnexStore({ knex }).leases.find('purge')

async function manySessions({ knex, clock }: Host, many: number): Promise<void> {
  const store = createKnexStore({ knex })
  const { id } = await withUser(store)
  await store.transaction(async ({ sessions }) => {
    for (let number = 0; number < many; number += 1) await sessions?.insert(newSession(id, { expiresAt: clock.now() }))
  })
}

describe.each(await databases())('25.8 and 32.5: the automatic purge on $name', (database) => {
  const start = appPerTest(database)

  const oldEvent = ({ knex }: Host) =>
    knex('auth_audit_log').insert({
      id: crypto.randomUUID(),
      name: 'login',
      payload: '{}',
      created_at: database.name === 'sqlite' ? 1_000 : '2020-01-01 00:00:00',
    })

  test('deletes sessions, counters and old events within the first interval, and says how many', async () => {
    const host = await start()
    await signIn(host)
    await knexCounters(host.knex, { now: () => host.clock.now().getTime() }).increment('a key', 1)
    const log = auditLog(host.knex, { now: host.clock.now })
    const { auth, done, afterFirstWait } = routerOn(host.knex, host.clock.now)
    log.watch(auth.events)
    await oldEvent(host)
    host.clock.advance(60 * day)
    afterFirstWait()
    await vi.waitFor(() => expect(done).toHaveLength(1), 5_000)

    expect(done).toEqual([{ rows: 3, accounts: 0, failed: 0, durationMs: expect.any(Number) }])
    expect(await host.knex('auth_sessions').pluck('id')).toEqual([])
    expect(await leaseOf(host)).toEqual({ id: 'purge', holder: expect.any(String), leasedUntil: null, ranAt: host.clock.now() })
    await auth.drain()
  })

  test('runs in one of several routers, and in another one when the interval is over', async () => {
    const host = await start()
    const routers = [routerOn(host.knex, host.clock.now), routerOn(host.knex, host.clock.now)]
    routers[0]?.afterFirstWait()
    const count = () => routers.reduce((sum, { done }) => sum + done.length, 0)
    await vi.waitFor(() => expect(count()).toBe(1), 5_000)
    await Promise.all(routers.map(({ auth }) => auth.drain()))
    expect(count()).toBe(1)

    host.clock.advance(interval)
    const later = routerOn(host.knex, host.clock.now)
    later.afterFirstWait()
    await vi.waitFor(() => expect(later.done).toHaveLength(1), 5_000)
    await later.auth.drain()
  })

  test('a lease of another process keeps it from running, until ten minutes after the last batch', async () => {
    const host = await start()
    const { leases } = createKnexStore({ knex: host.knex })
    const until = new Date(host.clock.now().getTime() + 600_000)
    await leases.take({ id: 'purge', holder: 'another', now: host.clock.now(), until, ranBefore: new Date(0) })
    const first = routerOn(host.knex, host.clock.now)
    const asked = new Promise((resolve) => host.knex.once('query-response', resolve))
    first.afterFirstWait()
    await asked
    await first.auth.drain()
    expect([first.done, (await leaseOf(host))?.holder]).toEqual([[], 'another'])

    host.clock.advance(600)
    const next = routerOn(host.knex, host.clock.now)
    next.afterFirstWait()
    await vi.waitFor(() => expect(next.done).toHaveLength(1), 5_000)
    await next.auth.drain()
  })

  test('each batch renews the lease, and a process that lost it stops', async () => {
    const host = await start()
    await manySessions(host, 200)
    const { auth, done, afterFirstWait } = routerOn(host.knex, host.clock.now)
    const { leases } = createKnexStore({ knex: host.knex })
    const ends: unknown[] = []
    let batches = 0
    const stolen = new Promise<void>((resolve) => {
      host.knex.on('query-response', (_, { sql }: { sql: string }) => {
        if (!/^delete from .auth_sessions/.test(sql)) return
        batches += 1
        host.clock.advance(minute)
        if (batches === 2)
          void leaseOf(host).then(async (lease) => {
            ends.push(lease?.leasedUntil?.getTime())
            host.clock.advance(20 * minute)
            const [now, until] = [host.clock.now(), new Date(host.clock.now().getTime() + 600_000)]
            await leases.take({ id: 'purge', holder: 'another', now: new Date(now.getTime() + 86_400_000), until, ranBefore: new Date(0) })
            resolve()
          })
      })
    })
    const begun = host.clock.now().getTime()
    afterFirstWait()
    await stolen
    await vi.waitFor(async () => expect((await host.knex('auth_sessions').pluck('id')).length).toBeGreaterThan(0), 5_000)
    await auth.drain()
    expect(ends[0]).toBeGreaterThanOrEqual(begun + 600_000 + 60_000)
    expect([done, (await leaseOf(host))?.holder]).toEqual([[], 'another'])
  })

  test('a table that fails is one warning, the others are purged, and the event follows', async () => {
    const host = await start()
    await manySessions(host, 3)
    const broken = createKnexStore({ knex: host.knex, emailLogins: { table: 'no_such_table' } })
    const { auth, done, logs, afterFirstWait } = routerOn(host.knex, host.clock.now, { store: broken })
    afterFirstWait()
    await vi.waitFor(() => expect(done).toHaveLength(1), 5_000)
    await auth.drain()
    expect(done).toMatchObject([{ rows: 3 }])
    expect(logs.entries.filter(({ message }) => message.startsWith('doorward: the purge of a table failed.'))).toMatchObject([
      { fields: { table: 'emailLogins' } },
    ])
    expect((await signIn(host)).status).toBe(200)
  })

  test('service.purge() does the same at once, whoever has the lease, and writes when it ran', async () => {
    const host = await start()
    await manySessions(host, 30)
    await knexCounters(host.knex, { now: () => host.clock.now().getTime() }).increment('a key', 1)
    const { leases } = createKnexStore({ knex: host.knex })
    const until = new Date(host.clock.now().getTime() + 600_000)
    await leases.take({ id: 'purge', holder: 'another', now: host.clock.now(), until, ranBefore: new Date(0) })
    host.clock.advance(2 * minute)
    const done: object[] = []
    host.auth.events.on('purge.done', (payload) => done.push(payload))
    await oldEvent(host)
    auditLog(host.knex, { now: host.clock.now, keepDays: false }).watch(host.auth.events)
    expect(await host.auth.service.purge()).toEqual({
      users: 0,
      userTokens: 0,
      sessions: 30,
      emailLogins: 0,
      trustedDevices: 0,
      outbox: 0,
      invitations: 0,
      counters: 1,
      auditLog: 0,
    })
    expect(done).toEqual([{ rows: 31, accounts: 0, failed: 0, durationMs: expect.any(Number) }])
    expect(await host.knex('auth_audit_log').where({ name: 'login' }).pluck('payload')).toEqual(['{}']) // `keepDays: false`
    expect(await leaseOf(host)).toMatchObject({ holder: 'another', ranAt: host.clock.now() })
    await host.knex.transaction(async (trx) => {
      await expect(host.auth.service.using(createKnexStore({ knex: host.knex }).using(trx)).purge()).rejects.toThrow(ConfigurationError)
    })
  })

  test('without the table of leases nothing runs by itself, boot says so once, and service.purge() works', async () => {
    const host = await start()
    await manySessions(host, 2)
    await host.knex.schema.dropTable('auth_leases')
    const { auth, done, logs, afterFirstWait } = routerOn(host.knex, host.clock.now)
    const said = () => logs.entries.filter(({ message }) => message.includes('no table of leases'))
    await vi.waitFor(() => expect(said()).toHaveLength(1), 5_000)
    const asked = new Promise((resolve) => host.knex.once('query-response', resolve))
    afterFirstWait()
    await asked
    await auth.drain()
    expect([done, said().length, (await host.knex('auth_sessions').pluck('id')).length]).toEqual([[], 1, 2])
    expect(await auth.service.purge()).toMatchObject({ sessions: 2 })
  })

  test('drain() ends it after its current batch, and no statement follows', async () => {
    const host = await start()
    await manySessions(host, 200)
    const { auth, done, logs, afterFirstWait } = routerOn(host.knex, host.clock.now)
    const firstBatch = new Promise((resolve) => {
      host.knex.on('query-response', (_, { sql }: { sql: string }) => void (/^delete from .auth_sessions/.test(sql) && resolve(null)))
    })
    afterFirstWait()
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
    next.afterFirstWait()
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
      vi.advanceTimersByTime((rounds === 0 ? interval : minute) * 1_000)
      await begun
      await auth.drain()
    }
    expect([done, await host.knex('auth_user_tokens').pluck('id')]).toEqual([[expect.anything()], []])
    expect(rounds).toBeGreaterThan(5)
  })

  test('a process that drains tries again a minute later, and not only after the interval', async () => {
    const host = await start()
    await manySessions(host, 100)
    const { auth, done, afterFirstWait } = routerOn(host.knex, host.clock.now)
    const taken = new Promise((resolve) => host.knex.once('query', resolve))
    vi.advanceTimersByTime(interval * 1_000)
    await taken
    await auth.drain()
    expect([done, vi.getTimerCount()]).toEqual([[], 1])
    afterFirstWait()
    await vi.waitFor(() => expect(done).toHaveLength(1), 5_000)
    await auth.drain()
  })

  test('a purge whose every table fails is one warning, and no event', async () => {
    const host = await start()
    const { leases, transaction, users, userTokens } = createKnexStore({ knex: host.knex })
    const broken = { ...userTokens, deleteExpired: () => Promise.reject(new Error('broken')) }
    const { deleteAbandoned: _, ...others } = users
    const store = { leases, transaction, users: others, userTokens: broken }
    const { auth, done, logs, afterFirstWait } = routerOn(host.knex, host.clock.now, { store })
    afterFirstWait()
    const warnings = () => logs.entries.filter(({ message }) => message.startsWith('doorward: the purge failed.'))
    await vi.waitFor(() => expect(warnings()).toHaveLength(1), 5_000)
    await auth.drain()
    expect([done, (await leaseOf(host))?.ranAt, (await leaseOf(host))?.leasedUntil]).toEqual([[], null, null])
  })
})

test.each([0, 0.5, 0.99])('the first purge comes at a random moment of the first interval: %d of it', async (part) => {
  const [database] = await databases()
  const opened = await database?.open()
  if (!opened) throw new Error('no database')
  const random = vi.spyOn(Math, 'random').mockReturnValue(part)
  const store = createKnexStore({ knex: opened.knex })
  const isPresent = vi.fn(async () => false)
  const { afterFirstWait } = routerOn(opened.knex, () => new Date(), { store: { ...store, leases: { ...store.leases, isPresent } } })
  random.mockRestore()
  expect(isPresent).toHaveBeenCalledTimes(1) // at boot
  if (part > 0) await vi.advanceTimersByTimeAsync(part * interval * 1_000 - 1)
  expect(isPresent).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1)
  await vi.waitFor(() => expect(isPresent).toHaveBeenCalledTimes(2), 5_000)
  afterFirstWait()
  await opened.close()
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
  expect(timersOf({ purge: { everyMinutes: 5 } })).toBe(1)
  await opened.close()
})

test.each([
  true,
  {},
  { everyMinutes: 4 },
  { everyMinutes: 5.5 },
  { everyMinutes: 1_441 },
  { everyMinutes: '60' },
  { everyMinutes: 60, hours: 1 },
])('the option purge: %j is refused at boot', async (purge) => {
  const [database] = await databases()
  const opened = await database?.open()
  if (!opened) throw new Error('no database')
  expect(() => routerOn(opened.knex, () => new Date(), { purge: purge as never })).toThrow(ConfigurationError)
  await opened.close()
})
