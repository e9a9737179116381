import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { deriveKey } from '../../src/core/keys'
import {
  bearerOf,
  type LocalHost,
  type LocalMember,
  type LocalOptions,
  otherPassword,
  password,
  post,
  resetLink,
  signedIn,
} from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, onMfa } from '../mfa/people'
import { setCookieOf, testSecret } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'

const invalid = [401, 'INVALID_TOKEN']
const fine = [200, undefined]
const day = 86_400

/** A host whose store keeps no sessions. */
function onStateless(database: Awaited<ReturnType<typeof databases>>[number]) {
  const { start, opened } = onMfa(database)
  const storeOn = ({ knex }: OpenDatabase) => createKnexStore({ knex, sessions: false })
  return {
    opened,
    start: (options: LocalOptions = {}): Promise<LocalHost> =>
      start({ ...options, options: { store: storeOn(opened()), throttle: { mail: false }, ...options.options } }),
  }
}

async function refresh(host: LocalHost, refresh_token: unknown) {
  const { status, body } = await post(host, '/refresh', { refresh_token })
  return { outcome: [status, body.code], token: String(body.refresh_token), access: String(body.access_token) }
}

const claimsOf = (token: string) => jwt.decode(token) as jwt.JwtPayload // issued just now
const key = deriveKey(testSecret, 'refresh')
const header = { alg: 'HS256', typ: 'JWT' } as const

describe('stateless refresh tokens', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onStateless(sqlite)

  test('R-011: the token is a JWT of its own kind, which buys the next pair with the same methods, and may do so again', async () => {
    const host = await start()
    const { refreshToken, userId } = await signedIn(host)
    const iat = Math.floor(host.clock.now().getTime() / 1000)

    expect(jwt.decode(refreshToken, { complete: true })?.header).toEqual(header)
    expect(jwt.verify(refreshToken, key, { clockTimestamp: iat })).toEqual({
      amr: ['pwd'],
      auth_time: iat,
      dig: expect.stringMatching(/^[\w-]{43}$/),
      end: iat + 30 * day,
      exp: iat + 7 * day,
      iat,
      sub: userId,
      typ: 'refresh',
    })
    host.clock.advance(1)
    const answers = [await refresh(host, refreshToken), await refresh(host, refreshToken)]
    expect(answers.map(({ outcome }) => outcome)).toEqual([fine, fine])
    for (const { token, access } of answers) {
      expect(claimsOf(token)).toMatchObject({ amr: ['pwd'], iat: iat + 1, exp: iat + 1 + 7 * day, end: iat + 30 * day })
      expect(claimsOf(access)).toMatchObject({ amr: ['pwd'], auth_time: iat, sub: userId, typ: 'access' })
    }
    expect(await host.knex('auth_sessions')).toEqual([])
  })

  test('R-011 R-111: it ends after its idle time, and the absolute end does not move', async () => {
    const host = await start()
    const idle = await signedIn(host)
    let { refreshToken } = await signedIn(host)
    host.clock.advance(7 * day)
    expect((await refresh(host, idle.refreshToken)).outcome).toEqual(invalid)

    refreshToken = (await signedIn(host)).refreshToken
    for (let elapsed = 0; elapsed < 25; elapsed += 5) {
      host.clock.advance(5 * day)
      const next = await refresh(host, refreshToken)
      expect(next.outcome).toEqual(fine)
      refreshToken = next.token
    }
    expect(Number(claimsOf(refreshToken).exp)).toBe(claimsOf(refreshToken)['end'])
    host.clock.advance(5 * day - 1)
    const last = await refresh(host, refreshToken)
    expect(last.outcome).toEqual(fine)
    host.clock.advance(1)
    for (const token of [refreshToken, last.token]) expect((await refresh(host, token)).outcome).toEqual(invalid)
  })

  const ends: Record<string, (host: LocalHost, person: LocalMember) => Promise<unknown>> = {
    'a password reset': async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: otherPassword }),
    'a password change': (host, person) =>
      post(host, '/password-change', { current_password: password, new_password: otherPassword }, bearerOf(person)),
    'a second factor confirmed': async (host, { userId }) => {
      const { secret } = await host.auth.service.enrollTotp(userId)
      await host.auth.service.confirmTotp({ userId, amr: ['pwd'], code: authenticator(secret, host.clock).code() })
    },
    'the account deleted': (host, { userId }) => host.knex('auth_users').where({ id: userId }).delete(),
  }

  test.each(Object.entries(ends))('R-011: %s ends what was issued before it', async (_what, end) => {
    const host = await start()
    const person = await signedIn(host)
    const other = await signedIn(host)
    await end(host, person)

    expect((await refresh(host, person.refreshToken)).outcome).toEqual(invalid)
    expect((await refresh(host, other.refreshToken)).outcome).toEqual(fine)
  })

  test('R-011: the session that a reset, a factor and its removal hand out themselves goes on', async () => {
    const host = await start()
    const person = await signedIn(host)
    const reset = await post(host, '/password-reset/confirm', { token: await resetLink(host, person.email), new_password: password })
    expect((await refresh(host, reset.body.refresh_token)).outcome).toEqual(fine)

    const { secret } = await host.auth.service.enrollTotp(person.userId)
    const app = authenticator(secret, host.clock)
    const confirmed = await host.auth.service.confirmTotp({ userId: person.userId, amr: ['pwd'], code: app.code() })
    const token = confirmed.kind === 'session' ? confirmed.refreshToken : ''
    const next = await refresh(host, token)
    expect([next.outcome, claimsOf(next.access)['amr']]).toEqual([fine, ['pwd', 'otp']])
    await host.auth.service.disableTotp({ userId: person.userId, password, code: app.nextCode() })
    expect((await refresh(host, token)).outcome).toEqual(invalid)
  })

  test('R-112: an inactive account is 403; what is not kept cannot be ended: active again, its token works again', async () => {
    const host = await start()
    const { refreshToken, userId } = await signedIn(host)

    await host.auth.service.deactivate(userId)
    expect((await refresh(host, refreshToken)).outcome).toEqual([403, 'ACCOUNT_INACTIVE'])
    await host.knex('auth_users').where({ id: userId }).update({ is_active: true })
    expect((await refresh(host, refreshToken)).outcome).toEqual(fine)
  })

  test('R-113: logout answers 204 and clears the cookies, and the token lives on, with all_sessions too', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const { refreshToken, userId } = await signedIn(host)
    const heard: object[] = []
    host.auth.events.on('logout', (payload) => heard.push(payload))

    const inBody = await post(host, '/logout', { refresh_token: refreshToken })
    const byCookie = await post(host, '/cookie/logout', {}, { Cookie: `refresh_token=${refreshToken}` })
    expect([inBody.status, byCookie.status, setCookieOf(byCookie, 'refresh_token')?.value]).toEqual([204, 204, ''])
    expect((await refresh(host, refreshToken)).outcome).toEqual(fine)

    for (const refresh_token of ['unknown', `${refreshToken}x`, refreshToken])
      expect((await post(host, '/logout', { refresh_token, all_sessions: true })).status).toBe(204)
    expect((await refresh(host, refreshToken)).outcome).toEqual(fine)
    expect(heard).toEqual([false, false, true].map((allSessions) => ({ userId, allSessions })))
    expect(await host.auth.service.revokeSessions(userId)).toBe(0)
  })

  test('R-113: a token that a password change ended logs nobody out', async () => {
    const host = await start()
    const { refreshToken, userId } = await signedIn(host)
    await host.auth.service.changePassword({ userId, currentPassword: password, newPassword: otherPassword })
    const heard: object[] = []
    host.auth.events.on('logout', (payload) => heard.push(payload))

    expect((await post(host, '/logout', { refresh_token: refreshToken, all_sessions: true })).status).toBe(204)

    expect(heard).toEqual([])
  })

  test('there are no server-side sessions, and an access token names none', async () => {
    const host = await start()
    const { token } = await signedIn(host)
    expect((await post(host, '/session/login', { email: 'ada@example.test', password })).status).toBe(404)
    expect(claimsOf(token)).not.toHaveProperty('sid')
  })

  test('R-011: it passes in no other slot, and nothing else passes in its', async () => {
    const host = await start()
    const person = await signedIn(host)
    const { refreshToken, token } = person
    const { secret } = await host.auth.service.enrollTotp(person.userId)
    await host.auth.service.confirmTotp({ userId: person.userId, amr: ['pwd'], code: authenticator(secret, host.clock).code() })
    const challenge = await challengeOf(host, person)
    const { dig, end, ...rest } = claimsOf(refreshToken)
    const signed = (claims: object, by = key, algorithm: 'HS256' | 'HS512' = 'HS256') =>
      jwt.sign(claims, by, { algorithm, header: { ...header, alg: algorithm } })
    const other = await signedIn(host)
    const good = claimsOf(other.refreshToken)

    expect(
      (
        await host
          .browser()
          .get('/auth/me')
          .set(bearerOf({ token: refreshToken }))
      ).body.code,
    ).toBe('INVALID_TOKEN')
    expect((await post(host, '/mfa/verify', { mfa_token: refreshToken, code: '123456' })).body.code).toBe('MFA_TOKEN_INVALID')
    expect((await post(host, '/activate', { token: refreshToken })).body.code).toBe('INVALID_TOKEN')
    const strangers = {
      'an access token': token,
      'a challenge': challenge,
      'an opaque token': 'x'.repeat(43),
      'its payload under the key of access tokens': signed(good, deriveKey(testSecret, 'access')),
      'the payload of an access token under its key': signed({ ...rest, typ: 'access', email: 'a@example.test' }),
      'without a digest': signed({ ...good, dig: undefined }),
      'without an end': signed({ ...good, end: undefined }),
      'with a method nobody knows': signed({ ...good, amr: ['root'] }),
      'of a user nobody knows': signed({ ...good, sub: '00000000-0000-4000-8000-000000000000' }),
      'of another user': signed({ ...good, sub: person.userId }),
      'with the digest of another': signed({ ...good, dig }),
      'under another algorithm': signed(good, key, 'HS512'),
      unsigned: `${Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')}.${other.refreshToken.split('.')[1]}.`,
      cut: other.refreshToken.slice(0, -1),
      'a payload null': jwt.sign('null', key, { algorithm: 'HS256', header }),
    }
    for (const [what, stranger] of Object.entries(strangers))
      expect([what, (await refresh(host, stranger)).outcome]).toEqual([what, invalid])
    expect((await refresh(host, signed(good))).outcome).toEqual(fine)
    expect(end).toBe(good['end'])
  })
})

describe.each(await databases())('stateless refresh tokens on $name', (database) => {
  const { start } = onStateless(database)

  test('login, refresh, reset and logout of every session work without the table', async () => {
    const host = await start()
    await host.knex.schema.dropTable('auth_sessions')
    const person = await signedIn(host)

    expect((await refresh(host, person.refreshToken)).outcome).toEqual(fine)
    expect((await post(host, '/logout', { refresh_token: person.refreshToken, all_sessions: true })).status).toBe(204)
    const confirmed = await post(host, '/password-reset/confirm', {
      token: await resetLink(host, person.email),
      new_password: otherPassword,
    })
    expect([confirmed.status, (await refresh(host, confirmed.body.refresh_token)).outcome]).toEqual([200, fine])
    expect((await refresh(host, person.refreshToken)).outcome).toEqual(invalid)
    expect(await host.auth.service.revokeSessions(person.userId)).toBe(0)
  })
})
