import { describe, expect, test, vi } from 'vitest'
import { createGuards, createKnexStore, errors, type Guards } from '../../src'
import { callAt } from '../../src/guards/live-session/timer'
import { withUser } from '../../src/testing/records'
import { onLocal, openAs, post, signedIn } from '../local/people'
import { memoryStore } from '../store/memory-store'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'
import { claimsAt, makeKey, tokenUnder } from '../support/signing-keys'
import { endOf, handshakeOf, holding, pause, stateOf } from './handshakes'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const hold = holding()

/** The system's clock, which a test can set ahead: timers run in real time. */
function movedClock() {
  let aheadMs = 0
  return {
    now: () => new Date(Date.now() + aheadMs),
    advance(seconds: number) {
      aheadMs += seconds * 1000
    },
  }
}

async function startHost(settings: object = {}, options: object = {}) {
  const moved = movedClock()
  const host = await start({ settings: { liveSessionPollSeconds: 0, ...settings }, options: { now: moved.now, ...options } })
  return { host, moved }
}

describe('the end of the access token', () => {
  test('aborts the signal with TokenExpiredError, also without a session and without polls', async () => {
    const { host, moved } = await startHost()
    const ada = await signedIn(host)
    const bare = createGuards({ settings: { jwtSecret: testSecret, liveSessionPollSeconds: 0 }, now: moved.now })
    moved.advance(898.5)
    const [inRouter, alone] = [hold(await host.auth.guards.verifyToken(ada.token)), hold(await bare.verifyToken(ada.token))]
    expect([stateOf(inRouter.signal), stateOf(alone.signal)]).toEqual(['open', 'open'])
    expect([await endOf(inRouter.signal, 3_000), await endOf(alone.signal, 3_000)]).toEqual(['TOKEN_EXPIRED', 'TOKEN_EXPIRED'])
    expect(inRouter.signal.reason).toBeInstanceOf(errors.TokenExpiredError)
    expect(moved.now().getTime()).toBeGreaterThanOrEqual(inRouter.expiresAt.getTime())
  })

  test('counts at a poll too, if the clock has moved on', async () => {
    const { host, moved } = await startHost({ liveSessionPollSeconds: 1 })
    const { signal } = hold(await host.auth.guards.verifyToken((await signedIn(host)).token))
    expect(stateOf(signal)).toBe('open')
    moved.advance(901)
    expect(await endOf(signal, 2_000)).toBe('TOKEN_EXPIRED')
  })

  test('that has passed before the first reading of the signal aborts it right after, so that a listener hears it', async () => {
    const { host, moved } = await startHost()
    const found = hold(await host.auth.guards.verifyToken((await signedIn(host)).token))
    moved.advance(901)
    const { signal } = found
    expect(stateOf(signal)).toBe('open')
    expect(await endOf(signal, 500)).toBe('TOKEN_EXPIRED')
  })
})

describe('the end of a session', () => {
  test('in delivery session: at expires_at the row is read again; a session that was used meanwhile goes on', async () => {
    const { host, moved } = await startHost({ tokenDelivery: 'session', sessionTtlSeconds: 62 })
    const ada = await signedIn(host)
    const headers = handshakeOf('session', ada)
    moved.advance(60.5)
    const { signal, expiresAt } = hold(await host.auth.guards.verify({ headers }))
    expect(stateOf(signal)).toBe('open')
    host.app.get('/used', host.auth.guards.requireAuth(), (_req, res) => void res.end())
    const queries = recordQueries(host.knex)
    await host
      .browser()
      .get('/used')
      .set('Cookie', headers['cookie'] ?? '')
    const used = queries.stop().length
    const again = recordQueries(host.knex)
    await pause(expiresAt.getTime() - moved.now().getTime() + 300)
    expect([used, stateOf(signal), again.stop().length]).toEqual([2, 'open', 1])
  })

  test('in delivery session: an open signal is no use, so an unused session ends at its expires_at', async () => {
    const { host, moved } = await startHost({ tokenDelivery: 'session', sessionTtlSeconds: 62, liveSessionPollSeconds: 1 })
    const ada = await signedIn(host)
    moved.advance(60)
    const { signal, expiresAt } = hold(await host.auth.guards.verify({ headers: handshakeOf('session', ada) }))
    expect(await endOf(signal, 4_000)).toBe('INVALID_TOKEN')
    expect(moved.now().getTime() - expiresAt.getTime()).toBeGreaterThanOrEqual(0)
  })

  test('before the end of the token aborts with InvalidTokenError at that time', async () => {
    const { host } = await startHost()
    const ada = await signedIn(host)
    const { sessionId } = await host.auth.guards.verifyToken(ada.token)
    await host
      .knex('auth_sessions')
      .update({ expires_at: new Date(Date.now() + 1_000).toISOString() })
      .where({ id: sessionId })
    const { signal } = hold(await host.auth.guards.verifyToken(ada.token))
    expect(stateOf(signal)).toBe('open')
    expect(await endOf(signal, 2_500)).toBe('INVALID_TOKEN')
  })

  test('between the check and the first reading of the signal aborts it, also without polls', async () => {
    const { host } = await startHost()
    const [ada, bob] = [await signedIn(host), await signedIn(host)]
    const found = [hold(await host.auth.guards.verifyToken(ada.token)), hold(await host.auth.guards.verifyToken(bob.token))]
    await post(host, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    const [left, stays] = found.map(({ signal }) => signal)
    if (!left || !stays) throw new Error('two signals')
    expect(await endOf(left, 1_000)).toBe('INVALID_TOKEN')
    expect(stateOf(stays)).toBe('open')
  })

  test('while a poll waits for its answer is seen by the next statement', async () => {
    const { host } = await startHost()
    const ada = await signedIn(host)
    const store = createKnexStore({ knex: host.knex })
    let answer: () => void = () => undefined
    let isFirst = true
    const findMany = async (ids: readonly string[]) => {
      const rows = (await store.sessions.findMany?.(ids)) ?? []
      if (isFirst) await new Promise<void>((resolve) => (answer = resolve))
      isFirst = false
      return rows
    }
    const slow = await start({
      settings: { liveSessionPollSeconds: 1 },
      options: { store: { ...store, sessions: { ...store.sessions, findMany } } },
    })
    const { signal } = hold(await slow.auth.guards.verifyToken(ada.token))
    expect(stateOf(signal)).toBe('open')
    await pause(1_200)
    await post(slow, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    answer()
    expect(await endOf(signal, 500)).toBe('INVALID_TOKEN')
  })

  test('of sixty days does not abort the signal at once', async () => {
    const sixtyDays = 60 * 86_400
    const { host } = await startHost({ tokenDelivery: 'session', sessionTtlSeconds: sixtyDays })
    const { signal, expiresAt } = hold(await host.auth.guards.verify({ headers: handshakeOf('session', await signedIn(host)) }))
    expect(expiresAt.getTime() - Date.now()).toBeGreaterThan(2 ** 31)
    expect(stateOf(signal)).toBe('open')
    await pause(100)
    expect(stateOf(signal)).toBe('open')
  })

  test('callAt() calls once at the instant, however far it is, and never before it by the clock', () => {
    vi.useFakeTimers({ now: 0 })
    try {
      const calls: number[] = []
      const sixtyDays = 60 * 86_400_000
      callAt(
        new Date(sixtyDays),
        () => new Date(),
        () => calls.push(Date.now()),
      )
      const stop = callAt(
        new Date(5_000),
        () => new Date(),
        () => calls.push(-1),
      )
      stop()
      vi.advanceTimersByTime(sixtyDays - 1)
      expect(calls).toEqual([])
      vi.advanceTimersByTime(10)
      expect(calls).toEqual([sixtyDays])
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('release()', () => {
  test('in the abort listener of another socket of the session ends the watch without an abort too', async () => {
    const { host } = await startHost()
    const ada = await signedIn(host)
    const [first, second] = [hold(await host.auth.guards.verifyToken(ada.token)), hold(await host.auth.guards.verifyToken(ada.token))]
    first.signal.addEventListener('abort', () => second.release())
    const { signal } = second
    await post(host, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    expect(await endOf(first.signal, 2_000)).toBe('INVALID_TOKEN')
    await pause(50)
    expect(stateOf(signal)).toBe('open')
  })

  test('ends the watch without an abort, before and after the first reading, and more than once', async () => {
    const { host } = await startHost()
    const ada = await signedIn(host)
    const [never, early, late] = [
      await host.auth.guards.verifyToken(ada.token),
      await host.auth.guards.verifyToken(ada.token),
      await host.auth.guards.verifyToken(ada.token),
    ]
    early.release()
    const signals = [early.signal, late.signal]
    late.release()
    late.release()
    never.release()
    await post(host, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    await pause(50)
    expect(signals.map(stateOf)).toEqual(['open', 'open'])
    expect(late.signal).toBe(signals[1])
  })

  test('1,000 sockets in a second leave nothing to ask, no timer of a signal, and no process alive', async () => {
    const { host } = await startHost({ liveSessionPollSeconds: 1 })
    const ada = await signedIn(host)
    const timersBefore = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    for (let socket = 0; socket < 1_000; socket++) {
      const { signal, release } = await host.auth.guards.verifyToken(ada.token)
      expect(signal.aborted).toBe(false)
      release()
    }
    const queries = recordQueries(host.knex)
    await pause(2_200)
    expect(queries.stop()).toEqual([])
    hold(await host.auth.guards.verifyToken(ada.token)).signal.throwIfAborted()
    const timersAfter = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length // those that keep the process alive
    expect(timersAfter).toBeLessThanOrEqual(timersBefore)
  })

  test('a credential whose signal is not read is not watched', async () => {
    const { host } = await startHost({ liveSessionPollSeconds: 1 })
    const ada = await signedIn(host)
    await host.auth.guards.verifyToken(ada.token)
    const queries = recordQueries(host.knex)
    await pause(1_200)
    expect(queries.stop()).toEqual([])
  })
})

describe('a database that does not answer', () => {
  const faults = {
    fails: () => Promise.reject(new Error('connection lost')),
    'is silent': () => new Promise<never>(() => undefined),
    'answers nonsense': () => [null] as never,
  }

  test.each(Object.entries(faults))('%s: the signal stays, and the next answer counts; one line in the log', async (_name, fault) => {
    const host = await start()
    const faulty = faultyStore(createKnexStore({ knex: host.knex }))
    const logs = logTap()
    const guards = createGuards({
      settings: { jwtSecret: testSecret, liveSessionPollSeconds: 1, unitTimeoutSeconds: 1 },
      store: faulty.store,
      now: host.clock.now,
      logger: logs,
    })
    const ada = await signedIn(host)
    const { signal } = hold(await guards.verifyToken(ada.token))
    expect(stateOf(signal)).toBe('open')
    await post(host, '/logout', { refresh_token: ada.refreshToken }).expect(204)
    faulty.break('sessions.findMany', fault)
    await pause(4_500)
    expect(stateOf(signal)).toBe('open')
    expect(logs.entries.map(({ level, message }) => [level, message.slice(0, 60)])).toEqual([
      ['warn', 'doorward: the database did not answer whether the sessions o'],
    ])
    faulty.break(null)
    expect(await endOf(signal, 3_000)).toBe('INVALID_TOKEN')
  })

  test('an adapter that answers a session without its user ends that signal alone, and later ends are still seen', async () => {
    const host = await start()
    const faulty = faultyStore(createKnexStore({ knex: host.knex }))
    const guards = createGuards({
      settings: { jwtSecret: testSecret, liveSessionPollSeconds: 1 },
      store: faulty.store,
      now: host.clock.now,
      logger: logTap(),
    })
    const [ada, bob] = [await signedIn(host), await signedIn(host)]
    const [ofAda, ofBob] = [hold(await guards.verifyToken(ada.token)), hold(await guards.verifyToken(bob.token))]
    expect([stateOf(ofAda.signal), stateOf(ofBob.signal)]).toEqual(['open', 'open'])
    const { find } = createKnexStore({ knex: host.knex }).sessions
    faulty.break('sessions.findMany', async () => {
      const rows = await Promise.all([ofAda, ofBob].map(({ sessionId }) => find({ id: String(sessionId) })))
      return rows.map((row) => (row?.session.id === ofAda.sessionId ? { ...row, user: null } : row))
    })
    expect(await endOf(ofAda.signal, 3_000)).toBe('INVALID_TOKEN')
    await post(host, '/logout', { refresh_token: bob.refreshToken }).expect(204)
    expect(await endOf(ofBob.signal, 3_000)).toBe('INVALID_TOKEN')
  })

  test('a handshake that cannot be checked is 503, and its cause is in the log', async () => {
    const host = await start()
    const faulty = faultyStore(createKnexStore({ knex: host.knex }))
    const logs = logTap()
    const guards = createGuards({ settings: { jwtSecret: testSecret }, store: faulty.store, now: host.clock.now, logger: logs })
    const ada = await signedIn(host)
    faulty.break('sessions.find', () => Promise.reject(Object.assign(new Error('connection lost'), { code: 'ECONNRESET' })))
    await expect(guards.verifyToken(ada.token)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    expect(logs.entries).toMatchObject([
      { level: 'error', message: 'doorward: the credential of a socket could not be checked', fields: { code: 'SERVICE_UNAVAILABLE' } },
    ])
  })

  test.each(Object.entries(faults).slice(0, 2))(
    '%s at the end of a session: the signal ends by the last expires_at that was read',
    async (_name, fault) => {
      const moved = movedClock()
      const faulty = faultyStore(createKnexStore({ knex: (await start()).knex }))
      const host = await start({
        settings: { tokenDelivery: 'session', sessionTtlSeconds: 60, liveSessionPollSeconds: 1 },
        options: { now: moved.now, store: faulty.store },
      })
      const ada = await signedIn(host)
      moved.advance(58)
      const { signal, expiresAt } = hold(await host.auth.guards.verify({ headers: handshakeOf('session', ada) }))
      expect(stateOf(signal)).toBe('open')
      faulty.break('sessions.findMany', fault)
      await pause(expiresAt.getTime() - moved.now().getTime() - 200)
      expect(stateOf(signal)).toBe('open')
      expect(await endOf(signal, 2_000)).toBe('INVALID_TOKEN')
    },
  )
})

test('sessions that slid and end together stay open, also where the store reads them one by one and slowly', async () => {
  const moved = movedClock()
  const store = createKnexStore({ knex: (await start()).knex })
  const { findMany: _, ...sessions } = store.sessions
  let delayMs = 0
  const slow = { ...sessions, find: async (wanted: never) => pause(delayMs).then(() => sessions.find(wanted)) }
  const host = await start({
    settings: { tokenDelivery: 'session', sessionTtlSeconds: 62, liveSessionPollSeconds: 0 },
    options: { now: moved.now, store: { ...store, sessions: slow } },
  })
  const members = [await signedIn(host), await signedIn(host), await signedIn(host)]
  moved.advance(60.5)
  const held = await Promise.all(members.map((one) => host.auth.guards.verify({ headers: handshakeOf('session', one) })))
  const signals = held.map((one) => hold(one).signal)
  host.app.get('/used', host.auth.guards.requireAuth(), (_req, res) => void res.end())
  for (const one of members)
    await host
      .browser()
      .get('/used')
      .set('Cookie', String(handshakeOf('session', one)['cookie']))
  delayMs = 600
  await pause(Number(held[0]?.expiresAt) - moved.now().getTime() + 2_500)
  expect(signals.map(stateOf)).toEqual(['open', 'open', 'open'])
})

describe('the statements of a poll', () => {
  const key = makeKey('one', 'ES256')
  const now = new Date('2026-03-01T12:00:00.000Z')

  /** Guards over a store whose sessions are all alive, except `ended`. */
  function guardsOver(store: object, row: (id: string) => object | null) {
    const guards: Guards = createGuards({
      settings: { jwtKeys: [key], liveSessionPollSeconds: 1 },
      store: {
        ...memoryStore(),
        sessions: { touch: async () => false, find: async ({ id }: { id: string }) => row(id), ...store },
      } as never,
      now: () => now,
      logger: logTap(),
    })
    return (id: string) => guards.verifyToken(tokenUnder(key, claimsAt(now, { sid: id, sub: `user of ${id}` })))
  }

  const alive = (id: string) => ({
    session: { id, userId: `user of ${id}`, revokedAt: null, expiresAt: new Date(now.getTime() + 3_600_000) },
    user: { id: `user of ${id}`, isActive: true },
  })

  test('are slices of 1,000 sessions, one after the other', async () => {
    const slices: number[] = []
    let running = 0
    let most = 0
    const ended = new Set<string>()
    const verify = guardsOver(
      {
        async findMany(ids: readonly string[]) {
          slices.push(ids.length)
          most = Math.max(most, ++running)
          await pause(30)
          running--
          return ids.flatMap((id) => (ended.has(id) ? [] : [alive(id)]))
        },
      },
      alive,
    )
    const found = []
    for (let session = 0; session < 2_500; session++) {
      const one = hold(await verify(`s-${session}`))
      expect(stateOf(one.signal)).toBe('open')
      found.push(one)
    }
    slices.length = 0
    ended.add('s-7').add('s-2400')
    await endOf(found[2400]?.signal as AbortSignal, 4_000)
    const aborted = found.filter(({ signal }) => signal.aborted).map(({ sessionId }) => sessionId)
    expect([aborted, most]).toEqual([['s-7', 's-2400'], 1])
    expect(slices.slice(-3).sort()).toEqual([1_000, 1_000, 500])
  })

  test('without findMany are one find for each session, and a row that cannot be read keeps no other signal open', async () => {
    const finds: string[] = []
    const ended = new Set<string>()
    const verify = guardsOver({}, (id) => {
      finds.push(id)
      if (id === 'broken' && finds.length > 3) throw new Error('no date')
      return ended.has(id) ? null : alive(id)
    })
    const [broken, left, stays] = [hold(await verify('broken')), hold(await verify('left')), hold(await verify('stays'))]
    expect([broken, left, stays].map(({ signal }) => stateOf(signal))).toEqual(['open', 'open', 'open'])
    ended.add('left')
    expect(await endOf(left.signal, 3_000)).toBe('INVALID_TOKEN')
    await pause(50)
    expect([stateOf(broken.signal), stateOf(stays.signal), finds]).toEqual([
      'open',
      'open',
      ['broken', 'left', 'stays', 'broken', 'left', 'stays'],
    ])
  })

  test('a host’s findMany that returns the row of another session or person ends the signal', async () => {
    const verify = guardsOver({ findMany: async () => [alive('other')] }, alive)
    expect(await endOf(hold(await verify('mine')).signal, 3_000)).toBe('INVALID_TOKEN')
  })
})

test('an end in a host’s store, in and out of a transaction, aborts at once', async () => {
  const store = memoryStore()
  const host = await start({ settings: { liveSessionPollSeconds: 0 }, options: { store } })
  const { id } = await withUser(store)
  const [one, two, three] = [await openAs(host, id), await openAs(host, id), await openAs(host, id)]
  const found = []
  for (const { token } of [one, two, three]) found.push(hold(await host.auth.guards.verifyToken(token)))
  const signals = found.map(({ signal }) => signal)
  await host.auth.service.logOut(one.refreshToken)
  expect(await endOf(signals[0] as AbortSignal, 1_000)).toBe('INVALID_TOKEN')
  expect(signals.map(stateOf)).toEqual(['INVALID_TOKEN', 'open', 'open'])
  await host.auth.service.revokeOtherSessions(id, found[2]?.sessionId ?? '')
  expect(await endOf(signals[1] as AbortSignal, 1_000)).toBe('INVALID_TOKEN')
  expect(signals.map(stateOf)).toEqual(['INVALID_TOKEN', 'INVALID_TOKEN', 'open'])
})
