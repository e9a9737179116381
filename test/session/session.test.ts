import { createHash } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { deriveKey } from '../../src/core/keys'
import { type Browser, type Mounted, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'

interface Pair {
  user_id: string
  access_token: string
  refresh_token: string
}

async function pairOf(mounted: Mounted, sub = 'S-1', email = `${sub.toLowerCase()}@example.test`): Promise<Pair> {
  const response = await signIn(mounted, mounted.browser(), { profile: { sub, email, email_verified: true } })
  if (response.status !== 200) throw new Error(response.text)
  return response.body as Pair
}

async function post(mounted: Mounted, path: string, body: object, browser: Browser = mounted.browser()) {
  return browser.post(`/auth${path}`).send(body)
}

const refreshWith = (mounted: Mounted, refresh_token: string) => post(mounted, '/refresh', { refresh_token })
const codeOf = (response: { status: number; body: { code?: string } }) => [response.status, response.body.code]
const invalid = [401, 'INVALID_TOKEN']
const day = 86_400

describe.each(await databases())('on $name', (database) => {
  const start = appPerTest(database)

  test('R-110: refresh rotates: a new pair, the amr of the origin, and the old token is spent', async () => {
    const mounted = await start()
    const first = await pairOf(mounted)

    const second = await refreshWith(mounted, first.refresh_token)

    expect(second.status, second.text).toBe(200)
    expect(second.body).toEqual({
      user_id: first.user_id,
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      mfa_required: false,
      mfa_token: null,
    })
    expect(second.body.refresh_token).not.toBe(first.refresh_token)
    const third = await refreshWith(mounted, second.body.refresh_token)
    for (const token of [first.access_token, second.body.access_token, third.body.access_token])
      expect(jwt.decode(token)).toMatchObject({ amr: ['ext'], sub: first.user_id })
  })

  test('R-105 access token claims are exactly amr, auth_time, email, exp, iat, sid, sub and typ, for 15 minutes', async () => {
    const mounted = await start()
    const { access_token, user_id } = await pairOf(mounted)
    const iat = mounted.clock.now().getTime() / 1000

    const claims = jwt.verify(access_token, deriveKey(testSecret, 'access'), { clockTimestamp: iat, complete: true })

    expect(claims.header).toEqual({ alg: 'HS256', typ: 'JWT' })
    const [session] = await mounted.knex('auth_sessions')
    const own = { amr: ['ext'], auth_time: iat, email: 's-1@example.test', sid: session.id, sub: user_id, typ: 'access' }
    expect(claims.payload).toEqual({ ...own, exp: iat + 900, iat })
  })

  test('R-112: a session without methods, from before the column existed, stays without them', async () => {
    const mounted = await start()
    const { refresh_token } = await pairOf(mounted)
    await mounted.knex('auth_sessions').update({ amr: '' })

    const second = await refreshWith(mounted, refresh_token)
    const third = await refreshWith(mounted, second.body.refresh_token)

    for (const response of [second, third]) expect(jwt.decode(response.body.access_token)).toMatchObject({ amr: [] })
  })

  test('R-110: a reused token ends its family, committed although the request fails; a sibling family lives on', async () => {
    const mounted = await start()
    const stolen = await pairOf(mounted)
    const sibling = await pairOf(mounted)
    const events: object[] = []
    mounted.auth.events.on('refresh.reused', (payload) => events.push(payload))
    const next = (await refreshWith(mounted, stolen.refresh_token)).body as Pair
    const newest = (await refreshWith(mounted, next.refresh_token)).body as Pair

    expect(codeOf(await refreshWith(mounted, stolen.refresh_token))).toEqual(invalid)

    const ended = await mounted.knex('auth_sessions').whereNotNull('revoked_at')
    expect(ended.map(({ token_hash, generation }) => [token_hash, generation])).toEqual([[sha256(newest.refresh_token), 2]])
    for (const token of [stolen, next, newest]) expect(codeOf(await refreshWith(mounted, token.refresh_token))).toEqual(invalid)
    expect((await refreshWith(mounted, sibling.refresh_token)).status).toBe(200)
    expect(events).toEqual([{ userId: stolen.user_id, familyId: ended[0].id }])
  })

  test('a token reused after it expired ends the family too', async () => {
    const mounted = await start()
    const first = await pairOf(mounted)
    mounted.clock.advance(6 * day)
    const second = (await refreshWith(mounted, first.refresh_token)).body as Pair
    mounted.clock.advance(2 * day)

    expect(codeOf(await refreshWith(mounted, first.refresh_token))).toEqual(invalid)
    expect(codeOf(await refreshWith(mounted, second.refresh_token))).toEqual(invalid)
  })

  test('of ten callers who refresh the same token at once, one wins and the family ends', async () => {
    const mounted = await start()
    const { refresh_token } = await pairOf(mounted)

    const answers = await Promise.all(Array.from({ length: 10 }, () => refreshWith(mounted, refresh_token)))

    const won = answers.filter((answer) => answer.status === 200)
    expect(won).toHaveLength(1)
    expect(answers.filter((answer) => answer.status === 401)).toHaveLength(9)
    expect(codeOf(await refreshWith(mounted, won[0]?.body.refresh_token))).toEqual(invalid)
  })

  test('R-111: a token nobody used for 7 days is expired, to the second', async () => {
    const mounted = await start()
    const [idle, used] = [await pairOf(mounted), await pairOf(mounted)]

    mounted.clock.advance(7 * day - 1)
    const rotated = (await refreshWith(mounted, used.refresh_token)).body as Pair
    expect(rotated.refresh_token).toMatch(/^[\w-]{112}$/)
    mounted.clock.advance(1)
    expect(codeOf(await refreshWith(mounted, idle.refresh_token))).toEqual(invalid)
    mounted.clock.advance(7 * day - 1)
    expect(codeOf(await refreshWith(mounted, rotated.refresh_token))).toEqual(invalid)
  })

  test('R-111: rotation does not move the absolute end of a family', async () => {
    const mounted = await start()
    let pair = await pairOf(mounted)
    for (let elapsed = 5; elapsed < 30; elapsed += 5) {
      mounted.clock.advance(5 * day)
      const response = await refreshWith(mounted, pair.refresh_token)
      expect(response.status, `day ${elapsed}`).toBe(200)
      pair = response.body as Pair
    }
    mounted.clock.advance(5 * day - 1)
    const last = await refreshWith(mounted, pair.refresh_token)
    expect(last.status).toBe(200)
    mounted.clock.advance(1)

    expect(codeOf(await refreshWith(mounted, last.body.refresh_token))).toEqual(invalid)
  })

  test('R-112: an inactive account is 403 with the token unspent, which works again after reactivation', async () => {
    const mounted = await start()
    const { refresh_token } = await pairOf(mounted)
    await mounted.knex('auth_users').update({ is_active: false })

    const refused = [await refreshWith(mounted, refresh_token), await refreshWith(mounted, refresh_token)]
    await mounted.knex('auth_users').update({ is_active: true })

    expect(refused.map(codeOf)).toEqual([
      [403, 'ACCOUNT_INACTIVE'],
      [403, 'ACCOUNT_INACTIVE'],
    ])
    expect((await mounted.knex('auth_sessions')).map(({ generation }) => generation)).toEqual([0])
    expect((await refreshWith(mounted, refresh_token)).status).toBe(200)
  })

  test('R-112: the token of a deleted user is 401', async () => {
    const mounted = await start()
    const { refresh_token, access_token } = await pairOf(mounted)
    await mounted.knex('auth_identities').del()
    await mounted.knex('auth_users').del()

    expect(codeOf(await refreshWith(mounted, refresh_token))).toEqual(invalid)
    const me = await mounted.browser().get('/auth/me').set('Authorization', `Bearer ${access_token}`)
    expect(codeOf(me)).toEqual([401, 'UNAUTHORIZED'])
  })

  test('the address in new access tokens is the one the account has now', async () => {
    const mounted = await start()
    const { refresh_token } = await pairOf(mounted)
    await mounted.knex('auth_users').update({ email: 'new@example.test' })

    const response = await refreshWith(mounted, refresh_token)

    expect(jwt.decode(response.body.access_token)).toMatchObject({ email: 'new@example.test' })
  })

  test('R-113: logout ends the family of its token and no other', async () => {
    const mounted = await start()
    const [one, other] = [await pairOf(mounted), await pairOf(mounted)]
    const next = (await refreshWith(mounted, one.refresh_token)).body as Pair

    const response = await post(mounted, '/logout', { refresh_token: next.refresh_token })

    expect([response.status, response.text]).toEqual([204, ''])
    expect(codeOf(await refreshWith(mounted, next.refresh_token))).toEqual(invalid)
    expect((await refreshWith(mounted, other.refresh_token)).status).toBe(200)
  })

  test('logout of all sessions ends every family of the user and nobody else’s', async () => {
    const mounted = await start()
    const [one, other, stranger] = [await pairOf(mounted), await pairOf(mounted), await pairOf(mounted, 'S-2')]

    expect((await post(mounted, '/logout', { refresh_token: one.refresh_token, all_sessions: true })).status).toBe(204)

    for (const pair of [one, other]) expect(codeOf(await refreshWith(mounted, pair.refresh_token))).toEqual(invalid)
    expect((await refreshWith(mounted, stranger.refresh_token)).status).toBe(200)
  })

  test('a logout of all sessions with a used refresh token revokes only the session of the token (25.3.4)', async () => {
    const mounted = await start()
    const [one, other] = [await pairOf(mounted), await pairOf(mounted)]
    const next = (await refreshWith(mounted, one.refresh_token)).body as Pair

    expect((await post(mounted, '/logout', { refresh_token: one.refresh_token, all_sessions: true })).status).toBe(204)

    expect(codeOf(await refreshWith(mounted, next.refresh_token))).toEqual(invalid)
    expect((await refreshWith(mounted, other.refresh_token)).status).toBe(200)
  })

  test('R-113: logout is the same 204 for an unknown, a spent, a revoked and an expired token, and however often', async () => {
    const mounted = await start()
    const spent = await pairOf(mounted)
    const next = (await refreshWith(mounted, spent.refresh_token)).body as Pair
    const sibling = await pairOf(mounted)
    const tokens = ['unknown', spent.refresh_token, spent.refresh_token, next.refresh_token, next.refresh_token]
    await post(mounted, '/logout', { refresh_token: spent.refresh_token })

    for (const refresh_token of tokens) {
      const response = await post(mounted, '/logout', { refresh_token, all_sessions: true })
      expect([response.status, response.text, response.headers['set-cookie']]).toEqual([204, '', undefined])
    }

    // A token of a family that has ended has no say over the others.
    expect(codeOf(await refreshWith(mounted, next.refresh_token))).toEqual(invalid)
    expect((await refreshWith(mounted, sibling.refresh_token)).status).toBe(200)
    mounted.clock.advance(8 * day)
    expect((await post(mounted, '/logout', { refresh_token: sibling.refresh_token })).status).toBe(204)
  })

  test('R-113: logout needs no access token: it works with an expired one', async () => {
    const mounted = await start()
    const { access_token, refresh_token } = await pairOf(mounted)
    mounted.clock.advance(1000)

    const response = await mounted.browser().post('/auth/logout').set('Authorization', `Bearer ${access_token}`).send({ refresh_token })

    expect(response.status).toBe(204)
    expect(codeOf(await refreshWith(mounted, refresh_token))).toEqual(invalid)
  })

  test('logout racing refresh leaves no live token', async () => {
    const mounted = await start()
    for (let round = 0; round < 5; round += 1) {
      const { refresh_token } = await pairOf(mounted)
      await Promise.all([refreshWith(mounted, refresh_token), post(mounted, '/logout', { refresh_token })])
    }

    expect(await mounted.knex('auth_sessions').whereNull('revoked_at')).toEqual([])
  })

  test('R-110: refresh tokens hold 256 bits and are stored only as SHA-256: no table holds a plaintext', async () => {
    const mounted = await start()
    const first = await pairOf(mounted)
    const second = (await refreshWith(mounted, first.refresh_token)).body as Pair

    const rows: object[] = []
    for (const table of ['auth_users', 'auth_identities', 'auth_user_tokens', 'auth_sessions', 'auth_recovery_codes'])
      rows.push(...(await mounted.knex(table)))

    const dump = JSON.stringify(rows)
    for (const token of [first.refresh_token, second.refresh_token]) {
      expect(token).toMatch(/^[\w-]{112}$/)
      expect(dump).not.toContain(token)
    }
    expect(dump).toContain(sha256(second.refresh_token))
    for (const token of [first.access_token, second.access_token]) expect(dump).not.toContain(token.split('.')[2])
  })
})

function sha256(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}
