import { createHmac, hkdfSync } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { type AuthStore, createKnexStore, type SessionStore } from '../../src'
import { type LocalHost, type LocalMember, onLocal, post, sha256, signedIn } from '../local/people'
import { setCookieOf, testSecret } from '../support/app'
import { databases } from '../support/databases'

const window = 10
const settings = { refreshReuseGraceSeconds: window }
const invalid = [401, 'INVALID_TOKEN']

async function refresh(host: LocalHost, refresh_token: string) {
  const { status, body } = await post(host, '/refresh', { refresh_token })
  return { outcome: [status, body.code], token: String(body.refresh_token), access: String(body.access_token) }
}

/** The sessions of a person, as the database has them. */
const sessionsOf = ({ knex }: LocalHost, userId: string) => knex('auth_sessions').where({ user_id: userId })

const isDead = async (host: LocalHost, userId: string) => (await sessionsOf(host, userId)).every(({ revoked_at }) => revoked_at !== null)

describe.each(await databases())('the grace window on $name', (database) => {
  const { start } = onLocal(database)

  test('R-110: a replay within it gets what the first caller got, the access token’s claims included; nothing is written', async () => {
    const host = await start({ settings })
    const { refreshToken, userId } = await signedIn(host)
    const reused: object[] = []
    host.auth.events.on('refresh.reused', (payload) => reused.push(payload))

    const first = await refresh(host, refreshToken)
    const rows = await sessionsOf(host, userId)
    host.clock.advance(window - 0.001)
    const again = await refresh(host, refreshToken)

    expect([first.outcome, again.outcome]).toEqual([
      [200, undefined],
      [200, undefined],
    ])
    expect(again.token).toBe(first.token)
    expect(await sessionsOf(host, userId)).toEqual(rows)
    expect(rows.map(({ generation }) => generation)).toEqual([1])
    const [old, fresh] = [first, again].map(({ access }) => jwt.decode(access) as jwt.JwtPayload)
    expect(fresh).toMatchObject({ amr: ['pwd'], sub: userId, iat: old?.iat, exp: old?.exp })
    expect((await refresh(host, again.token)).outcome).toEqual([200, undefined])
    expect(reused).toEqual([])
  })

  test('R-110: at its very end the family ends, committed, and so it does once the successor was used', async () => {
    const host = await start({ settings })
    for (const isUsed of [false, true]) {
      const { refreshToken, userId } = await signedIn(host)
      const events: object[] = []
      const off = host.auth.events.on('refresh.reused', (payload) => events.push(payload))
      const successor = await refresh(host, refreshToken)
      if (isUsed) await refresh(host, successor.token)
      else host.clock.advance(window)

      expect((await refresh(host, refreshToken)).outcome).toEqual(invalid)

      expect(await isDead(host, userId)).toBe(true)
      expect((await refresh(host, successor.token)).outcome).toEqual(invalid)
      expect(events).toEqual([{ userId, familyId: expect.any(String) }])
      off()
    }
  })

  test('of twenty callers at once all get one successor', async () => {
    const host = await start({ settings })
    const { refreshToken, userId } = await signedIn(host)

    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(host, refreshToken)))

    expect(new Set(answers.map(({ outcome }) => outcome[0]))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ token }) => token)).size).toBe(1)
    expect((await sessionsOf(host, userId)).map(({ generation }) => generation)).toEqual([1])
  })
})

describe('the grace window', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onLocal(sqlite)

  test('the successor’s secret is HMAC-SHA256 of predecessor and session id, under a key for it alone; without a window it is random', async () => {
    const key = Buffer.from(hkdfSync('sha256', testSecret, '', 'doorward/refresh-successor/v1', 32))
    const secretOf = (token: string) => Buffer.from(token, 'base64url').subarray(0, 32)
    const derived = async (host: LocalHost, { refreshToken, userId }: LocalMember) => {
      const [session] = await sessionsOf(host, userId)
      return createHmac('sha256', key).update(`${refreshToken}${session.id}`).digest()
    }

    const host = await start({ settings })
    const person = await signedIn(host)
    const { token } = await refresh(host, person.refreshToken)
    expect(secretOf(token)).toEqual(await derived(host, person))
    expect((await sessionsOf(host, person.userId)).map(({ token_hash }) => token_hash)).toEqual([sha256(token)])

    const strict = await start()
    const other = await signedIn(strict)
    const next = await refresh(strict, other.refreshToken)
    expect(secretOf(next.token)).not.toEqual(await derived(strict, other))
  })

  test('whoever asked within the window is answered, however long the database made it wait', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex })
    const rotate: SessionStore['rotate'] = async (rotation) => {
      const rotated = await store.sessions.rotate(rotation)
      host.clock.advance(2 * window)
      return rotated
    }
    const slow: AuthStore = { ...store, sessions: { ...store.sessions, rotate } }
    const host = await start({ settings, options: { store: slow } })
    const { refreshToken, userId } = await signedIn(host)
    const at = host.clock.now().getTime()
    const winner = await refresh(host, refreshToken)
    host.clock.advance(Math.round((at - host.clock.now().getTime()) / 1000) + window / 2)

    const late = await refresh(host, refreshToken)

    expect([late.outcome, late.token]).toEqual([[200, undefined], winner.token])
    expect(await isDead(host, userId)).toBe(false)
  })

  /** What is done between the refresh and its replay within the window; the answer, and whether the family is alive after it. */
  const between: Record<
    string,
    { act(host: LocalHost, person: LocalMember, successor: string): Promise<unknown>; answer: unknown[]; lives: boolean }
  > = {
    'a logout with the successor': {
      act: (host, _person, successor) => post(host, '/logout', { refresh_token: successor }),
      answer: invalid,
      lives: false,
    },
    'a logout with the spent token': {
      act: (host, { refreshToken }) => post(host, '/logout', { refresh_token: refreshToken }),
      answer: invalid,
      lives: false,
    },
    'an end of every session': { act: (host, { userId }) => host.auth.service.revokeSessions(userId), answer: invalid, lives: false },
    'a deactivation': { act: (host, { userId }) => host.auth.service.deactivate(userId), answer: invalid, lives: false },
    'an account marked inactive by the host': {
      act: (host, { userId }) => host.knex('auth_users').where({ id: userId }).update({ is_active: false }),
      answer: [403, 'ACCOUNT_INACTIVE'],
      lives: true,
    },
    'the account deleted': {
      act: (host, { userId }) => host.knex('auth_users').where({ id: userId }).delete(),
      answer: invalid,
      lives: false,
    },
    'the successor expired': {
      act: (host, _person, successor) =>
        host
          .knex('auth_sessions')
          .where({ token_hash: sha256(successor) })
          .update({ expires_at: host.clock.now().getTime() }),
      answer: invalid,
      lives: true,
    },
    'the session at its absolute end': {
      act: (host, _person, successor) =>
        host
          .knex('auth_sessions')
          .where({ token_hash: sha256(successor) })
          .update({ ends_at: host.clock.now().getTime(), expires_at: host.clock.now().getTime() }),
      answer: invalid,
      lives: true,
    },
    'a successor of another key': {
      act: (host, _person, successor) =>
        host
          .knex('auth_sessions')
          .where({ token_hash: sha256(successor) })
          .update({ token_hash: sha256('made under another jwtSecret') }),
      answer: invalid,
      lives: true,
    },
    'the session’s row lost': {
      act: (host, _person, successor) =>
        host
          .knex('auth_sessions')
          .where({ token_hash: sha256(successor) })
          .delete(),
      answer: invalid,
      lives: false,
    },
  }

  test.each(Object.entries(between))('a replay after %s', async (_what, { act, answer, lives }) => {
    const host = await start({ settings })
    const person = await signedIn(host)
    const successor = await refresh(host, person.refreshToken)
    await act(host, person, successor.token)
    const rows = await host.knex('auth_sessions').where({ user_id: person.userId }).count({ count: '*' })

    expect((await refresh(host, person.refreshToken)).outcome).toEqual(answer)

    const live = await host.knex('auth_sessions').where({ user_id: person.userId, revoked_at: null })
    expect(live.length > 0).toBe(lives)
    expect(await host.knex('auth_sessions').where({ user_id: person.userId }).count({ count: '*' })).toEqual(rows)
  })

  test('under another jwtSecret every token is 401 and ends nothing: the successor in hand goes on where the secret is known', async () => {
    const host = await start({ settings })
    const { refreshToken } = await signedIn(host)
    const { token } = await refresh(host, refreshToken)
    const renewed = await start({ settings: { ...settings, jwtSecret: 'another secret of forty characters, or so' } })

    for (const presented of [refreshToken, token]) expect((await refresh(renewed, presented)).outcome).toEqual(invalid)
    expect((await refresh(host, token)).outcome).toEqual([200, undefined])
  })

  test('without a window another server’s clock that runs ahead opens none: the family ends', async () => {
    const ahead = await start()
    const host = await start()
    ahead.clock.advance(60)
    const { refreshToken, userId } = await signedIn(host)
    await refresh(ahead, refreshToken)

    expect((await refresh(host, refreshToken)).outcome).toEqual(invalid)
    expect(await isDead(host, userId)).toBe(true)
  })

  test('the cookie of a replay ends where the successor ends', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery: 'cookie', refreshTokenTtlSeconds: 1000 } })
    const { refreshToken } = await signedIn(host)
    const byCookie = () => post(host, '/refresh', {}, { Cookie: `refresh_token=${refreshToken}` })
    const first = await byCookie()
    host.clock.advance(4)
    const again = await byCookie()

    const [set, reset] = [setCookieOf(first, 'refresh_token'), setCookieOf(again, 'refresh_token')]
    expect(reset?.value).toBe(set?.value)
    expect([set?.attributes, reset?.attributes].map((attributes) => /Max-Age=(\d+)/.exec(String(attributes))?.[1])).toEqual(['1000', '996'])
    expect(again.body).toMatchObject({ access_token: null, refresh_token: null })
  })
})

describe('a second use that ends a session', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onLocal(sqlite)

  test.each([
    [0, /session ended.*two tabs.*set refreshReuseGraceSeconds \(AUTH_REFRESH_REUSE_GRACE_SECONDS\) to 10\./],
    [window, /session ended.*two tabs.*came after refreshReuseGraceSeconds .*, 10 seconds\./],
  ])('is one line of the log that names the setting, with a grace period of %i seconds, and doctor repeats it', async (grace, says) => {
    const host = await start({ settings: { refreshReuseGraceSeconds: grace } })
    const { refreshToken } = await signedIn(host)
    await refresh(host, refreshToken)
    host.clock.advance(window)
    for (let time = 0; time < 2; time++) expect((await refresh(host, refreshToken)).outcome).toEqual(invalid)

    const lines = host.logs.entries.filter(({ message }) => message.endsWith('#a-refresh-token-came-twice'))
    expect(lines).toEqual([{ level: 'warn', fields: { sessionId: expect.any(String), count: 1 }, message: expect.stringMatching(says) }])
    expect(host.logs.text()).not.toContain(refreshToken)
    const { findings } = await host.auth.doctor()
    expect(findings.filter(({ check }) => check === 'seen-in-requests').map(({ what }) => what)).toEqual([expect.stringMatching(says)])
  })
})
