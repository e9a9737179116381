import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { deriveKey } from '../../src/core/keys'
import { bearerOf, type LocalHost, password, post, resetLink, sha256, tokenRows } from '../local/people'
import { link } from '../social/link-steps'
import { newPerson } from '../social/redirect-steps'
import { signIn, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { challengeOf, type EnrolledMember, enrolled, onMfa, outcome, signedInAgain, verify } from './people'

const newPassword = 'nine green bicycles uphill'

describe.each(await databases())('a challenge, on $name', (database) => {
  const { start } = onMfa(database)

  test('R-095: one challenge is good for one success, whatever else would be right; the code that came too late is unspent', async () => {
    const host = await start()
    const person = await enrolled(host)
    const [first, second] = [await challengeOf(host, person), await challengeOf(host, person)]
    expect((await verify(host, first, person.app.nextCode())).status).toBe(200)

    const next = person.app.nextCode()
    expect(outcome(await verify(host, first, next))).toBe('MFA_TOKEN_INVALID')
    expect(outcome(await verify(host, first, person.recoveryCodes[0]))).toBe('MFA_TOKEN_INVALID')
    expect((await verify(host, second, next)).status).toBe(200)
    expect((await verify(host, await challengeOf(host, person), person.recoveryCodes[0])).status).toBe(200)
    const rows = (await tokenRows(host, person.userId)).filter(({ purpose }) => purpose === 'MFA_CHALLENGE')
    expect([rows.length, rows.every(({ isUsed }) => isUsed)]).toEqual([3, true])
    expect(rows.map(({ token_hash }) => token_hash)).toContain(sha256(String(claimsOf(first)['jti'])))
  })
})

describe('a challenge, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('R-095: it carries the user, the first step’s amr, a digest and an id, and lives mfaTokenTtlSeconds to the second', async () => {
    const host = await start({ settings: { mfaTokenTtlSeconds: 60 } })
    const person = await enrolled(host)
    const token = await challengeOf(host, person)
    const claims = claimsOf(token)
    expect(Object.keys(claims).sort()).toEqual(['amr', 'dig', 'exp', 'iat', 'jti', 'sub', 'typ'])
    expect(claims).toMatchObject({ amr: ['pwd'], sub: person.userId, typ: 'mfa' })
    expect(Number(claims['exp']) - Number(claims['iat'])).toBe(60)

    host.clock.advance(59)
    const late = await challengeOf(host, person)
    expect((await verify(host, token, person.app.code())).status).toBe(200)
    host.clock.advance(60)
    expect(outcome(await verify(host, late, person.app.code()))).toBe('MFA_TOKEN_INVALID')
  })

  const endings: Record<string, (host: LocalHost, person: EnrolledMember) => Promise<unknown>> = {
    'a reset': async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: newPassword }),
    'a password change': (host, person) =>
      post(host, '/password-change', { current_password: password, new_password: newPassword }, bearerOf(person)),
    'a password change by code': (host, person) =>
      post(host, '/password-change/mfa', { code: person.recoveryCodes[1], new_password: newPassword }, bearerOf(person)),
    deactivate: async (host, { userId }) => host.auth.service.deactivate(userId),
    'disable, and a factor enrolled anew': async (host, person) => {
      await post(host, '/mfa/disable', { password, code: person.app.nextCode() }, bearerOf(person))
      const { secret, recoveryCodes } = await host.auth.service.enrollTotp(person.userId)
      const app = authenticator(secret, host.clock)
      await host.auth.service.confirmTotp({ userId: person.userId, code: app.code() })
      Object.assign(person, { app, recoveryCodes })
    },
  }

  test.each(Object.keys(endings))('R-095: it dies with %s', async (ending) => {
    const host = await start()
    const person = await enrolled(host)
    const [token, witness] = [await challengeOf(host, person), await challengeOf(host, person)]
    expect((await verify(host, witness, person.app.nextCode())).status).toBe(200) // such a token was good
    await endings[ending]?.(host, person)

    expect(outcome(await verify(host, token, person.app.nextCode()))).toBe('MFA_TOKEN_INVALID')
    expect(outcome(await verify(host, token, person.recoveryCodes[0]))).toBe('MFA_TOKEN_INVALID')
  })

  test('it dies when the account is gone, and another account’s code does not redeem it', async () => {
    const host = await start()
    const [one, other] = [await enrolled(host), await enrolled(host)]
    const token = await challengeOf(host, one)
    expect(outcome(await verify(host, token, other.recoveryCodes[0]))).toBe('MFA_CODE_INVALID')
    await host.knex('auth_users').where({ id: one.userId }).delete()
    expect(outcome(await verify(host, token, one.app.nextCode()))).toBe('MFA_TOKEN_INVALID')
  })

  test('R-095: it is refused in every other slot, and every other token in its own', async () => {
    const host = await start()
    const person = await signedInAgain(host, await enrolled(host))
    const token = await challengeOf(host, person)
    const link = await host.auth.service.requestPasswordReset(person.email)

    expect(outcome(await host.browser().get('/auth/me').set(bearerOf({ token })))).toBe('INVALID_TOKEN')
    expect(outcome(await post(host, '/refresh', { refresh_token: token }))).toBe('INVALID_TOKEN')
    expect(outcome(await post(host, '/activate', { token }))).toBe('INVALID_TOKEN')
    for (const path of ['/password-reset/confirm', '/email-verify/confirm', '/email-change/confirm'])
      expect(outcome(await post(host, path, { token, new_password: newPassword }))).toBe('INVALID_TOKEN')
    const code = person.app.nextCode()
    for (const other of [person.token, person.refreshToken, link?.token, '', 'x', `${token}x`, token.slice(0, -2)])
      expect([422, 'MFA_TOKEN_INVALID', 'VALIDATION_ERROR']).toContain(outcome(await verify(host, other, code)))
    expect(outcome(await verify(host, person.token, code))).toBe('MFA_TOKEN_INVALID')
    expect((await verify(host, token, code)).status).toBe(200)
  })

  test('R-095: a token of our claims under another key, algorithm, type or of another shape is refused', async () => {
    const host = await start()
    const person = await enrolled(host)
    const claims = claimsOf(await challengeOf(host, person))
    const key = deriveKey(testSecret, 'mfa')
    const sign = (payload: object, secret: jwt.Secret = key, options: jwt.SignOptions = { algorithm: 'HS256' }) =>
      jwt.sign(payload, secret, options)
    const code = person.app.nextCode()
    const forgeries = [
      sign(claims, deriveKey(testSecret, 'access')),
      sign(claims, testSecret),
      sign(claims, key, { algorithm: 'HS512' }),
      sign(claims, key, { algorithm: 'HS256', keyid: 'k' }),
      sign(claims, '', { algorithm: 'none' }),
      ...['amr', 'dig', 'exp', 'jti', 'sub', 'typ'].map((name) =>
        sign(Object.fromEntries(Object.entries(claims).filter(([is]) => is !== name))),
      ),
      sign({ ...claims, typ: 'access' }),
      sign({ ...claims, amr: 'pwd' }),
      sign({ ...claims, amr: ['root'] }),
      sign({ ...claims, sub: 7 }),
    ]
    for (const forged of forgeries) expect(outcome(await verify(host, forged, code)), forged).toBe('MFA_TOKEN_INVALID')
    expect((await verify(host, sign(claims), code)).status).toBe(200)
  })

  test('a challenge whose first step was a provider ends when that provider is unlinked; one by password does not (25.3.2)', async () => {
    const host = await start({ providers: { hub: {} } })
    const person = await enrolled(host)
    const profile = newPerson()
    await link(host, { ...person, browser: host.browser() }, { key: 'hub', profile })
    const bySocial = async () => (await signIn(host, host.browser(), { key: 'hub', profile })).body.mfa_token
    const [byProvider, byPassword] = [await bySocial(), await challengeOf(host, person)]
    expect((await verify(host, await bySocial(), person.app.nextCode())).status).toBe(200)
    await host.auth.service.unlinkIdentity(person.userId, 'hub')
    const code = person.app.nextCode()
    expect(outcome(await verify(host, byProvider, code))).toBe('MFA_TOKEN_INVALID')
    expect((await verify(host, byPassword, code)).status).toBe(200)
  })

  test('a login that ends in a challenge is told as one, and as a login only once it is verified', async () => {
    const host = await start()
    const person = await enrolled(host)
    const told: unknown[] = []
    for (const name of ['login', 'challenge'] as const) host.auth.events.on(name, ({ userId, amr }) => told.push([name, userId, amr]))
    const { body } = await post(host, '/login', { email: person.email, password })
    await verify(host, body.mfa_token, person.app.nextCode())

    expect(told).toEqual([
      ['challenge', person.userId, ['pwd']],
      ['login', person.userId, ['pwd', 'otp']],
    ])
  })
})

function claimsOf(token: string): jwt.JwtPayload {
  return jwt.decode(token) as jwt.JwtPayload // issued just now
}
