import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { auditLog, createAuthTables, createKnexStore, purgeExpired } from '../../src'
import { createEvents } from '../../src/core/events'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { testClock } from '../support/clock'
import { databases, type OpenDatabase } from '../support/databases'
import { logTap } from '../support/log-tap'

const everyDatabase = await databases()
let opened: OpenDatabase | undefined
afterEach(async () => {
  vi.useRealTimers()
  await opened?.close()
  opened = undefined
})

async function startLog(options: Parameters<typeof auditLog>[1] = {}, database?: Awaited<ReturnType<typeof databases>>[number]) {
  const chosen = database ?? (await databases())[0]
  opened = await chosen?.open(database ? {} : { memory: true })
  if (!opened) throw new Error('no database answers')
  const { knex } = opened
  await createAuthTables(knex)
  const logs = logTap()
  const events = createEvents(logs)
  const log = auditLog(knex, { logger: logs, now: testClock().now, ...options })
  const stop = log.watch(events)
  const outage = {
    begin: () => knex.schema.renameTable('auth_audit_log', 'away'),
    end: () => knex.schema.renameTable('away', 'auth_audit_log'),
  }
  return { knex, logs, events, log, stop, outage, rows: () => knex('auth_audit_log') }
}

const told = () => new Promise((resolve) => setImmediate(resolve))

describe('the audit log', () => {
  const start = appPerTest()

  test('lists its rows newest first, by page and by what was asked, and a second watch of the same events does nothing', async () => {
    let at = 0
    const { events, log } = await startLog({ now: () => new Date(1_000_000 + Math.floor(at / 2) * 1_000) })
    const stop = log.watch(events)
    for (at = 0; at < 5; at += 1) {
      events.emit('logout', { userId: at % 2 === 0 ? 'ana' : 'ben', allSessions: at > 2 })
      await told()
    }
    await log.flush()
    const all = (await log.list()).items
    expect(all).toHaveLength(5)
    expect(all[0]).toEqual({
      id: expect.any(String),
      name: 'logout',
      userId: 'ana',
      payload: { userId: 'ana', allSessions: true },
      requestId: null,
      createdAt: new Date(1_002_000),
    })
    const paged: unknown[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: Awaited<ReturnType<typeof log.list>> = await log.list({ limit: 2, ...(cursor !== '' && { cursor }) })
      paged.push(...page.items)
      cursor = page.nextCursor
    }
    expect(paged).toEqual(all)
    const counts = [
      { userId: 'ben' },
      { name: 'login' },
      { from: new Date(1_001_000) },
      { to: new Date(1_001_000) },
      { userId: 'nobody' },
      { userId: 'ben', except: ['login', 'logout'] },
      { userId: 'ben', except: ['login'] },
    ] as const
    expect(await Promise.all(counts.map(async (query) => (await log.list(query)).items.length))).toEqual([2, 0, 3, 2, 0, 0, 2])
    for (const query of [{ cursor: 'x' }, { limit: 0 }, { limit: 501 }]) await expect(log.list(query)).rejects.toThrow(TypeError)
    stop()
    events.emit('logout', { userId: 'ana', allSessions: false })
    await log.flush()
    expect((await log.list()).items).toHaveLength(5)
  })

  test('has a row for every event of a login that failed and one that did not, and no address, token or name in it', async () => {
    const mounted = await start()
    const log = auditLog(mounted.knex)
    log.watch(mounted.auth.events)
    await mounted.browser().post('/auth/login').send({ email: 'ana@example.com', password: 'not the password' })
    const { body } = await signIn(mounted)
    await log.flush()

    const rows = await mounted.knex('auth_audit_log')
    expect(rows.map(({ name, user_id: userId }) => [name, userId])).toEqual([
      ['login.failed', null],
      ['signup', body.user_id],
      ['identity.linked', body.user_id],
      ['login', body.user_id],
    ])
    expect(rows.map(({ payload }) => JSON.parse(payload))).toEqual([
      { reason: 'UNAUTHORIZED', userId: null, addressDigest: expect.stringMatching(/^[\w-]{43}$/), clientKey: '127.0.0.1' },
      { userId: body.user_id, by: 'ext', provider: 'corp' },
      { userId: body.user_id, provider: 'corp' },
      { userId: body.user_id, amr: ['ext'], provider: 'corp' },
    ])
    for (const secret of ['ana@example.com', 'Ana Souza', 'subject-1', body.access_token, body.refresh_token])
      expect(JSON.stringify(rows)).not.toContain(secret)
  })

  test.each(everyDatabase)('keeps the instant, the payload and the request on $name; stop ends it', async (database) => {
    const requests = new AsyncLocalStorage<string>()
    const { knex, events, log, stop, rows } = await startLog({ requestId: () => requests.getStore() }, database)
    requests.run('req-1', () => events.emit('mfa.failed', { userId: 'ana' }))
    requests.run('x'.repeat(129), () => events.emit('logout', { userId: 'u'.repeat(65), allSessions: true }))
    await log.flush()
    stop()
    events.emit('mfa.failed', { userId: 'late' })
    await log.flush()

    const at = testClock().now()
    expect(await rows().where('created_at', '<=', at).where('created_at', '>=', at).orderBy('name')).toHaveLength(2)
    expect(await rows().orderBy('name').select('name', 'user_id', 'request_id')).toEqual([
      { name: 'logout', user_id: null, request_id: null },
      { name: 'mfa.failed', user_id: 'ana', request_id: 'req-1' },
    ])
    await knex.schema.alterTable('auth_audit_log', (table) => table.dropIndex([], 'auth_audit_log_created')) // it is there
    await knex.schema.alterTable('auth_audit_log', (table) => table.dropIndex([], 'auth_audit_log_user'))
  })

  test('writes down only declared fields of a payload, whatever else a caller put in it', async () => {
    const { events, log, rows } = await startLog()
    events.emit('mfa.failed', { userId: 'ana', password: 'secret', code: '123456' } as { userId: string })
    await log.flush()

    expect((await rows()).map(({ payload }) => payload)).toEqual(['{"userId":"ana"}'])
  })

  test('survives an outage: says so once, keeps as many as fit, counts the others, and writes each kept one once', async () => {
    const { logs, events, log, outage, rows } = await startLog({ capacity: 150 })
    await outage.begin()
    for (let sent = 0; sent < 200; sent++) events.emit('mfa.failed', { userId: `user-${sent}` })
    await told()
    await expect(log.flush()).rejects.toThrow()
    await expect(log.flush()).rejects.toThrow()
    events.emit('mfa.failed', { userId: 'one more' })
    await told()

    expect([log.waiting, log.dropped]).toEqual([150, 51])
    expect(logs.entries.map(({ level, message }) => [level, message.replace(/^doorward: /, '')])).toEqual([
      ['error', expect.stringContaining('full')],
      ['error', expect.stringContaining('cannot be written')],
    ])
    await outage.end()
    await log.flush()
    expect([log.waiting, log.dropped]).toEqual([0, 51])
    expect((await rows()).map(({ user_id: userId }) => userId)).toEqual(Array.from({ length: 150 }, (_, sent) => `user-${sent}`))
    expect(logs.entries.at(-1)).toMatchObject({ level: 'info', fields: { dropped: 51 } })
  })

  test('tries again by itself, and an operation never waits for it', async () => {
    const { events, log, outage, rows } = await startLog()
    await outage.begin()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    events.emit('mfa.failed', { userId: 'ana' })
    await expect(log.flush()).rejects.toThrow()
    await outage.end()
    events.emit('mfa.failed', { userId: 'bea' }) // waits behind the first one
    await told()
    expect(log.waiting).toBe(2)
    await vi.advanceTimersByTimeAsync(30_000)
    vi.useRealTimers()

    await vi.waitFor(async () => expect(await rows()).toHaveLength(2), { timeout: 10_000 })
    expect(log.waiting).toBe(0)
  })

  test('a database that is silent holds up no shutdown, and the event is written once it answers', async () => {
    const { knex, events, log, rows } = await startLog()
    const trx = await knex.transaction() // the one connection of the pool
    events.emit('mfa.failed', { userId: 'ana' })
    await expect(log.flush({ timeoutMs: 1 })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    await trx.rollback()
    await log.flush()

    expect(await rows()).toHaveLength(1)
  })

  test('a host that cannot say which request it is has its event all the same', async () => {
    const { events, log, rows } = await startLog({
      requestId: () => {
        throw new Error('no request')
      },
    })
    events.emit('mfa.failed', { userId: 'ana' })
    await log.flush()

    expect(await rows()).toMatchObject([{ user_id: 'ana', request_id: null }])
  })

  test('refuses at boot what cannot be meant', async () => {
    const { knex } = await startLog()

    expect(() => auditLog(undefined as never)).toThrow(/needs the instance/)
    expect(() => auditLog(knex, { capacity: 0 })).toThrow(/capacity must be a whole number/)
    for (const keepDays of [0, 1.5, 36_501]) expect(() => auditLog(knex, { keepDays })).toThrow(/keepDays must be a whole number/)
    expect(() => auditLog(knex, { requestId: 'id' as never })).toThrow(/requestId must be a function/)
    await knex.transaction(async (trx) => expect(() => auditLog(trx)).toThrow(/not a transaction/))
  })
})

describe('24.7: refusals in the audit log', () => {
  const start = appPerTest()
  const refusal = (keyDigest: string, retryAfterSeconds = 60) => ({
    code: 'TOO_MANY_REQUESTS',
    route: 'refresh',
    keyDigest,
    retryAfterSeconds,
  })
  const payloadsOf = (rows: { payload: string }[]): { count: number; keyDigest: string | null }[] =>
    rows.map(({ payload }) => JSON.parse(payload))

  test('10,000 refused requests of one client leave one row a window, which says how many there were since the row before', async () => {
    const clock = testClock()
    const { events, log, rows } = await startLog({ now: clock.now })
    const refuse = async (times: number) => {
      for (let request = 0; request < times; request++) events.emit('throttled', refusal('one'))
      await told()
    }
    await refuse(10_000)
    expect(log.waiting).toBeLessThanOrEqual(1)
    clock.advance(59)
    await refuse(1)
    clock.advance(1)
    await refuse(10)
    await log.flush()

    expect(payloadsOf(await rows().orderBy('created_at'))).toEqual([
      { ...refusal('one'), count: 1 },
      { ...refusal('one'), count: 10_001 },
      { code: 'TOO_MANY_REQUESTS', route: 'refresh', keyDigest: null, count: 9 }, // what flush() found counted
    ])
    await log.flush()
    expect(await rows(), 'nothing is written twice').toHaveLength(3)
  })

  test('requests to a route: 1,000 refused ones leave one row, and the sum of `count` is their number', async () => {
    const mounted = await start({ options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
    const log = auditLog(mounted.knex)
    log.watch(mounted.auth.events)
    const request = () => mounted.browser().get('/auth/oauth/corp/callback').query({ code: 'a', state: 'unknown' })
    expect((await request()).status).toBe(401)
    for (let round = 0; round < 50; round++) {
      const answers = await Promise.all(Array.from({ length: 20 }, request))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([429]))
    }
    await told()
    const rows = () => mounted.knex('auth_audit_log').where({ name: 'throttled' })
    await vi.waitFor(async () => expect(await rows()).toHaveLength(1))
    await log.flush()

    const counts = payloadsOf(await rows()).map(({ count }) => count)
    expect(counts.sort((one, other) => one - other)).toEqual([1, 999])
  })

  test('30,000 keys take the memory and the rows of 10,000, and no refusal is lost from the counts', async () => {
    const clock = testClock()
    const { events, log, rows } = await startLog({ now: clock.now, capacity: 20_000 })
    for (let key = 0; key < 30_000; key++) events.emit('throttled', refusal(`key-${key}`))
    await log.flush()
    clock.advance(60)
    events.emit('throttled', refusal('after the window'))
    await log.flush()

    const payloads = payloadsOf(await rows())
    expect(payloads.length).toBeGreaterThan(10_000)
    expect(payloads.length).toBeLessThan(10_010)
    expect(payloads.reduce((sum, { count }) => sum + count, 0)).toBe(30_001)
  })

  test.each(everyDatabase)('rows older than keepDays go with purgeExpired, no others, on $name', async (database) => {
    const clock = testClock()
    const { knex, events, log, rows } = await startLog({ now: clock.now, keepDays: 30 }, database)
    for (let event = 0; event < 250; event++) events.emit('mfa.failed', { userId: 'old' })
    await log.flush()
    clock.advance(30 * 86_400)
    events.emit('mfa.failed', { userId: 'new' })
    await log.flush()
    const purge = (auditLog: { purge(): Promise<number> }) => purgeExpired(createKnexStore({ knex }), { before: clock.now(), auditLog })

    expect(await purge(auditLogOf(knex, clock.now))).toMatchObject({ auditLog: 0 })
    expect(await purge(log)).toMatchObject({ auditLog: 250 })
    expect((await rows()).map(({ user_id: userId }) => userId)).toEqual(['new'])
  })

  /** One that keeps everything. */
  const auditLogOf = (knex: OpenDatabase['knex'], now: () => Date) => auditLog(knex, { now })
})

describe('24.7: what the row of a failed login says', () => {
  const start = appPerTest()

  test('the account where there is one, the same digest for the same address, and the client', async () => {
    const mounted = await start({ options: { throttle: { login: false } } })
    const log = auditLog(mounted.knex)
    log.watch(mounted.auth.events)
    const logIn = (email: string) => mounted.browser().post('/auth/login').send({ email, password: 'not the password' })
    const { body } = await mounted
      .browser()
      .post('/auth/signup')
      .send({ email: 'ana@example.test', password: 'a quiet harbour', name: 'Ana' })
    await logIn('ana@example.test')
    await logIn('ANA@example.test')
    await logIn('nobody@example.test')
    await log.flush()

    const rows = await mounted.knex('auth_audit_log').where({ name: 'login.failed' }).orderBy('created_at')
    const payloads = rows.map(({ payload }) => JSON.parse(payload))
    const [known, again, unknown] = payloads.map(({ addressDigest }) => addressDigest)
    expect(rows.map(({ user_id: userId }) => userId)).toEqual([body.user_id, body.user_id, null])
    expect(payloads.map(({ clientKey }) => clientKey)).toEqual(Array(3).fill('127.0.0.1'))
    expect(known).toMatch(/^[\w-]{43}$/)
    expect([again === known, unknown === known]).toEqual([true, false])
    expect(known, 'no digest that anybody can make without the secret').not.toBe(
      createHash('sha256').update('ana@example.test').digest('base64url'),
    )
    expect(JSON.stringify(payloads)).not.toContain('example.test')
  })
})
