import { createHash, createHmac, hkdfSync } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { type AuthStore, createKnexStore, type RefreshTokenStore } from '../../src'
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

/** Every row of the family a token belongs to, as the database has it. */
async function familyOf({ knex }: LocalHost, token: string) {
  const family = knex('auth_refresh_tokens')
    .where({ token_hash: sha256(token) })
    .select('family_id')
  return knex('auth_refresh_tokens').whereIn('family_id', family)
}

const isDead = async (host: LocalHost, token: string) => (await familyOf(host, token)).every(({ revoked_at }) => revoked_at !== null)

describe.each(await databases())('the grace window on $name', (database) => {
  const { start } = onLocal(database)

  test('R-110: a replay within it gets what the first caller got, the access token’s claims included; nothing is written', async () => {
    const host = await start({ settings })
    const { refreshToken, userId } = await signedIn(host)
    const reused: object[] = []
    host.auth.events.on('refresh.reused', (payload) => reused.push(payload))

    const first = await refresh(host, refreshToken)
    const rows = await familyOf(host, refreshToken)
    host.clock.advance(window - 0.001)
    const again = await refresh(host, refreshToken)

    expect([first.outcome, again.outcome]).toEqual([
      [200, undefined],
      [200, undefined],
    ])
    expect(again.token).toBe(first.token)
    expect(await familyOf(host, refreshToken)).toEqual(rows)
    expect(rows).toHaveLength(2)
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

      expect(await isDead(host, refreshToken)).toBe(true)
      expect((await refresh(host, successor.token)).outcome).toEqual(invalid)
      expect(events).toEqual([{ userId, familyId: expect.any(String) }])
      off()
    }
  })

  test('of twenty callers at once all get one successor', async () => {
    const host = await start({ settings })
    const { refreshToken } = await signedIn(host)

    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(host, refreshToken)))

    expect(new Set(answers.map(({ outcome }) => outcome[0]))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ token }) => token)).size).toBe(1)
    expect(await familyOf(host, refreshToken)).toHaveLength(2)
  })
})

describe('the grace window', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onLocal(sqlite)

  test('the successor is HMAC-SHA256 of predecessor and row id, under a key derived for it alone; without a window it is random', async () => {
    const host = await start({ settings })
    const { refreshToken } = await signedIn(host)
    const { token } = await refresh(host, refreshToken)
    const [child] = await host.knex('auth_refresh_tokens').where({ token_hash: sha256(token) })
    const key = Buffer.from(hkdfSync('sha256', testSecret, '', 'doorward/refresh-successor/v1', 32))

    expect(token).toBe(createHmac('sha256', key).update(`${refreshToken}${child.id}`).digest('base64url'))
    expect(child.token_hash).toBe(createHash('sha256').update(token).digest('hex'))

    const strict = await start()
    const other = await signedIn(strict)
    const next = await refresh(strict, other.refreshToken)
    const [row] = await strict.knex('auth_refresh_tokens').where({ token_hash: sha256(next.token) })
    expect(next.token).not.toBe(createHmac('sha256', key).update(`${other.refreshToken}${row.id}`).digest('base64url'))
  })

  test('whoever asked within the window is answered, however long the database made it wait', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex })
    const rotate: RefreshTokenStore['rotate'] = async (rotation) => {
      const rotated = await store.refreshTokens.rotate(rotation)
      host.clock.advance(2 * window)
      return rotated
    }
    const slow: AuthStore = { ...store, refreshTokens: { ...store.refreshTokens, rotate } }
    const host = await start({ settings, options: { store: slow } })
    const { refreshToken } = await signedIn(host)
    const at = host.clock.now().getTime()
    const winner = await refresh(host, refreshToken)
    host.clock.advance(Math.round((at - host.clock.now().getTime()) / 1000) + window / 2)

    const late = await refresh(host, refreshToken)

    expect([late.outcome, late.token]).toEqual([[200, undefined], winner.token])
    expect(await isDead(host, refreshToken)).toBe(false)
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
          .knex('auth_refresh_tokens')
          .where({ token_hash: sha256(successor) })
          .update({ expires_at: host.clock.now().getTime() }),
      answer: invalid,
      lives: true,
    },
    'the family at its absolute end': {
      act: (host, _person, successor) =>
        host
          .knex('auth_refresh_tokens')
          .where({ token_hash: sha256(successor) })
          .update({ family_expires_at: host.clock.now().getTime() }),
      answer: invalid,
      lives: true,
    },
    'a successor of another key': {
      act: (host, _person, successor) =>
        host
          .knex('auth_refresh_tokens')
          .where({ token_hash: sha256(successor) })
          .update({ token_hash: sha256('made under another jwtSecret') }),
      answer: invalid,
      lives: true,
    },
    'the successor’s row lost': {
      act: (host, _person, successor) =>
        host
          .knex('auth_refresh_tokens')
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
    const rows = await host.knex('auth_refresh_tokens').where({ user_id: person.userId }).count({ count: '*' })

    expect((await refresh(host, person.refreshToken)).outcome).toEqual(answer)

    const live = await host.knex('auth_refresh_tokens').where({ user_id: person.userId, revoked_at: null })
    expect(live.length > 0).toBe(lives)
    expect(await host.knex('auth_refresh_tokens').where({ user_id: person.userId }).count({ count: '*' })).toEqual(rows)
  })

  test('a changed jwtSecret makes a replay 401 and ends nothing: the successor in hand goes on', async () => {
    const host = await start({ settings })
    const { refreshToken } = await signedIn(host)
    const { token } = await refresh(host, refreshToken)
    const renewed = await start({ settings: { ...settings, jwtSecret: 'another secret of forty characters, or so' } })

    expect((await refresh(renewed, refreshToken)).outcome).toEqual(invalid)
    expect((await refresh(renewed, token)).outcome).toEqual([200, undefined])
  })

  test('without a window another server’s clock that runs ahead opens none: the family ends', async () => {
    const ahead = await start()
    const host = await start()
    ahead.clock.advance(60)
    const { refreshToken } = await signedIn(host)
    await refresh(ahead, refreshToken)

    expect((await refresh(host, refreshToken)).outcome).toEqual(invalid)
    expect(await isDead(host, refreshToken)).toBe(true)
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
