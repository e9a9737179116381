import { randomUUID } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { createGuards, createKnexStore, errors } from '../../src'
import { deriveKey } from '../../src/core/keys'
import {
  bearerOf,
  type LocalHost,
  type LocalMember,
  onLocal,
  openAs,
  otherPassword,
  password,
  post,
  resetLink,
  signedIn,
} from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { endOf, holding, pause, stateOf } from './handshakes'

const wide = { login: false, routes: false, mail: false } as const

interface End {
  what: string
  /** @param current the session whose signals are watched */
  end(host: LocalHost, current: LocalMember, other: LocalMember): Promise<unknown>
  reason?: 'ACCOUNT_INACTIVE'
}

const idOf = async (host: LocalHost, { token }: { token: string }) => (await host.auth.guards.verifyToken(token)).sessionId ?? ''

/** Every way in which the router ends a session. `other` is another session of the same account. */
const ends: End[] = [
  { what: 'a logout', end: (host, { refreshToken }) => post(host, '/logout', { refresh_token: refreshToken }).expect(204) },
  {
    what: 'a logout of all sessions',
    end: (host, _current, { refreshToken }) => post(host, '/logout', { refresh_token: refreshToken, all_sessions: true }).expect(204),
  },
  {
    what: 'the list of sessions',
    end: async (host, current, other) =>
      host
        .browser()
        .delete(`${host.prefix}/sessions/${await idOf(host, current)}`)
        .set(bearerOf(other))
        .expect(204),
  },
  { what: 'revoke-others', end: (host, _current, other) => post(host, '/sessions/revoke-others', {}, bearerOf(other)).expect(204) },
  {
    what: 'a change of the password',
    end: (host, _current, other) =>
      post(host, '/password-change', { current_password: password, new_password: otherPassword }, bearerOf(other)).expect(204),
  },
  {
    what: 'a password reset',
    end: async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: otherPassword }).expect(200),
  },
  {
    what: 'the reuse of a refresh token',
    async end(host, { refreshToken }) {
      await post(host, '/refresh', { refresh_token: refreshToken }).expect(200)
      host.clock.advance(120)
      await post(host, '/refresh', { refresh_token: refreshToken }).expect(401)
    },
  },
  { what: 'service.deactivate', end: (host, { userId }) => host.auth.service.deactivate(userId), reason: 'ACCOUNT_INACTIVE' },
  { what: 'service.revokeSessions', end: (host, { userId }) => host.auth.service.revokeSessions(userId) },
  {
    what: 'a login beyond maxSessionsPerUser',
    async end(host, current) {
      for (let logins = 0; logins < 2; logins++) {
        host.clock.advance(1)
        await openAs(host, current.userId)
      }
    },
  },
]

const hold = holding()

for (const database of await databases()) {
  describe(database.name, () => {
    const { start, opened } = onLocal(database)
    const startHost = (liveSessionPollSeconds: number) =>
      start({ settings: { liveSessionPollSeconds, maxSessionsPerUser: 3 }, options: { throttle: wide } })

    test.each(ends)('$what aborts the signal in this process at once, also without polls, and no other signal', async ({ end, reason }) => {
      const host = await startHost(0)
      const current = await signedIn(host)
      host.clock.advance(1)
      const other = { ...current, ...(await openAs(host, current.userId)) }
      const stranger = await signedIn(host)
      const watched = hold(await host.auth.guards.verify({ headers: bearerOf(current) }))
      const strangers = hold(await host.auth.guards.verifyToken(stranger.token))
      expect([stateOf(watched.signal), stateOf(strangers.signal)]).toEqual(['open', 'open'])
      await end(host, current, other)
      expect(await endOf(watched.signal, 2_000)).toBe(reason ?? 'INVALID_TOKEN')
      expect(watched.signal.reason).toBeInstanceOf(reason ? errors.AccountInactiveError : errors.InvalidTokenError)
      await pause(20)
      expect(stateOf(strangers.signal)).toBe('open')
    })

    test('an end elsewhere aborts within liveSessionPollSeconds: another router, SQL, a deleted row', async () => {
      const host = await startHost(1)
      const neighbour = await startHost(0)
      const people = { left: await signedIn(host), out: await signedIn(host), gone: await signedIn(host), stays: await signedIn(host) }
      const api = createGuards({
        settings: { jwtSecret: testSecret, liveSessionPollSeconds: 1 },
        store: createKnexStore({ knex: host.knex }),
        now: host.clock.now,
      })
      const signals = new Map<string, AbortSignal>()
      for (const [name, { token }] of Object.entries(people)) {
        signals.set(name, hold(await host.auth.guards.verifyToken(token)).signal)
        signals.set(`${name} at createGuards`, hold(await api.verifyToken(token)).signal)
        signals.set(`${name} without polls`, hold(await neighbour.auth.guards.verifyToken(token)).signal)
      }
      const startedAt = performance.now()
      await host.auth.service.logOut(people.left.refreshToken) // at the other router nobody tells of it
      await host.knex('auth_users').where({ id: people.out.userId }).update({ is_active: false })
      await host.knex('auth_sessions').where({ user_id: people.gone.userId }).delete()
      await host.knex('auth_users').where({ id: people.gone.userId }).delete()
      for (const [name, signal] of signals) if (!/^stays|polls$/.test(name)) await endOf(signal, 3_000)
      expect(performance.now() - startedAt).toBeLessThan(2_500)
      expect(Object.fromEntries([...signals].map(([name, signal]) => [name, stateOf(signal)]))).toEqual({
        left: 'INVALID_TOKEN',
        'left at createGuards': 'INVALID_TOKEN',
        'left without polls': 'open',
        out: 'ACCOUNT_INACTIVE',
        'out at createGuards': 'ACCOUNT_INACTIVE',
        'out without polls': 'open',
        gone: 'INVALID_TOKEN',
        'gone at createGuards': 'INVALID_TOKEN',
        'gone without polls': 'open',
        stays: 'open',
        'stays at createGuards': 'open',
        'stays without polls': 'open',
      })
    })

    test('a transaction of the host that ends a session aborts the signal after its commit, and not after a rollback', async () => {
      const host = await startHost(0)
      const { knex } = host
      const ada = await signedIn(host)
      const { signal, sessionId } = hold(await host.auth.guards.verifyToken(ada.token))
      const store = createKnexStore({ knex: opened().knex })
      const endIn = async (trx: Parameters<typeof store.using>[0]) =>
        host.auth.service.using(store.using(trx)).revokeSession(ada.userId, sessionId ?? '')

      const undone = await knex.transaction()
      await endIn(undone)
      await pause(50)
      await undone.rollback()
      await pause(100)
      expect(stateOf(signal)).toBe('open')

      const kept = await knex.transaction()
      await endIn(kept)
      await pause(50)
      expect(stateOf(signal)).toBe('open')
      await kept.commit()
      expect(await endOf(signal, 2_000)).toBe('INVALID_TOKEN')
    })

    test('10,000 signals of 10,000 sessions are ten statements a poll, of which each end is seen', { timeout: 120_000 }, async () => {
      const host = await startHost(1)
      const { token } = await signedIn(host)
      const { header, payload } = jwt.decode(token, { complete: true }) as { header: jwt.JwtHeader; payload: Record<string, unknown> }
      const { sid, ...claims } = payload
      const key = deriveKey(testSecret, 'access')
      const row = (await host.knex('auth_sessions').where({ id: sid }))[0] as Record<string, unknown>
      const ids = Array.from({ length: 10_000 }, () => randomUUID())
      await host.knex.batchInsert(
        'auth_sessions',
        ids.map((id) => ({ ...row, id, token_hash: id })),
        50,
      )
      const found = []
      for (const id of ids) found.push(hold(await host.auth.guards.verifyToken(jwt.sign({ ...claims, sid: id }, key, { header }))))
      expect(new Set(found.map(({ signal }) => stateOf(signal)))).toEqual(new Set(['open']))
      const last = found.at(-1) as (typeof found)[number]
      await createKnexStore({ knex: host.knex }).sessions.revoke({ id: String(last.sessionId) }, host.clock.now())
      const queries = recordQueries(host.knex)
      expect(await endOf(last.signal, 5_000)).toBe('INVALID_TOKEN')
      const polled = queries.stop()
      expect(new Set(polled.map((sql) => sql.match(/\?|\$\d+/g)?.length))).toEqual(new Set([1_000]))
      expect(polled.length).toBeGreaterThanOrEqual(10)
      expect(polled.length).toBeLessThanOrEqual(20) // the poll that was under way, and one more
    })

    test('200 signals of 40 sessions are one statement a poll; released, they are none', async () => {
      const host = await startHost(1)
      const people = await Promise.all(Array.from({ length: 40 }, () => signedIn(host)))
      const found = []
      for (const { token } of people) for (let tab = 0; tab < 5; tab++) found.push(await host.auth.guards.verifyToken(token))
      expect(new Set(found.map(({ signal }) => stateOf(signal)))).toEqual(new Set(['open']))
      const queries = recordQueries(host.knex)
      await pause(2_600)
      for (const { release } of found) release()
      const polled = queries.stop()
      expect(polled.length).toBeGreaterThanOrEqual(2)
      expect(polled.length).toBeLessThanOrEqual(3)
      for (const sql of polled) expect(sql).toMatch(/^select .* from .*auth_sessions.* where .*id.* in \(/s)
      const later = recordQueries(host.knex)
      await pause(1_300)
      expect(later.stop()).toEqual([])
    })
  })
}
