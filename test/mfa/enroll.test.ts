import { encode } from 'uqr'
import { describe, expect, test } from 'vitest'
import { amrOf, bearerOf, isAlive, password, post, signedIn, userOf } from '../local/people'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { challengeOf, enrolled, onMfa, outcome, refusal, signedInAgain, verify, wrongCode } from './people'

describe.each(await databases())('enrolling a second factor, on $name', (database) => {
  const { start } = onMfa(database)

  test('answers once with a secret of 160 bits, its URI, a QR code of that URI, and recovery codes', async () => {
    const host = await start({ settings: { mfaIssuer: 'Exämple & Co', mfaRecoveryCodesCount: 4 } })
    const member = await signedIn(host, { email: `ana+${Date.now()}@example.test` })
    const { status, body } = await post(host, '/mfa/enroll', {}, bearerOf(member))

    expect([status, Object.keys(body).sort()]).toEqual([200, ['provisioning_uri', 'qr_svg', 'recovery_codes', 'secret']])
    expect(body.secret).toMatch(/^[A-Z2-7]{32}$/) // 32 letters of 5 bits
    const uri = new URL(body.provisioning_uri)
    expect([uri.protocol, uri.host, decodeURIComponent(uri.pathname)]).toEqual(['otpauth:', 'totp', `/Exämple & Co:${member.email}`])
    expect(body.provisioning_uri).not.toMatch(/[+ ]/)
    const query = { secret: body.secret, issuer: 'Exämple & Co', algorithm: 'SHA1', digits: '6', period: '30' }
    expect(Object.fromEntries(uri.searchParams)).toEqual(query)
    expect(darkModules(body.qr_svg)).toEqual(encode(body.provisioning_uri, { ecc: 'M' }).data)
    expect(body.qr_svg).not.toMatch(/<script|<image|href|\son\w+=/i)
    expect(new Set(body.recovery_codes).size).toBe(4)
    for (const code of body.recovery_codes) expect(code).toMatch(/^([A-Z2-7]{5}-){4}[A-Z2-7]{5}$/) // 125 bits
  })

  test('R-097: what is pending satisfies nothing and protects nothing; a further call begins anew', async () => {
    const host = await start()
    const member = await signedIn(host)
    const enroll = async () => (await post(host, '/mfa/enroll', {}, bearerOf(member))).body
    const [first, second] = [await enroll(), await enroll()]
    const [old, app] = [authenticator(first.secret, host.clock), authenticator(second.secret, host.clock)]

    const login = await post(host, '/login', { email: member.email, password })
    expect([login.body.mfa_required, login.body.mfa_token]).toEqual([false, null])
    const confirm = (code: unknown) => post(host, '/mfa/confirm', { code }, bearerOf(member))
    expect(refusal(await confirm(old.code()))).toEqual(wrongCode)
    expect(refusal(await confirm(second.recovery_codes[0]))).toEqual(wrongCode)
    expect(outcome(await post(host, '/mfa/recovery-codes', { code: app.code() }, bearerOf(member)))).toBe('MFA_NOT_ENROLLED')
    expect(outcome(await post(host, '/mfa/disable', { password, code: app.code() }, bearerOf(member)))).toBe('MFA_NOT_ENROLLED')
    expect((await confirm(app.code())).status).toBe(200)
    expect(outcome(await verify(host, await challengeOf(host, member), first.recovery_codes[0]))).toBe('MFA_CODE_INVALID')
  })

  test('confirm ends every other session, and goes on with its own, whose methods are now its own and otp', async () => {
    const host = await start()
    const member = await signedIn(host)
    const elsewhere = await post(host, '/login', { email: member.email, password })
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(member))
    const code = authenticator(body.secret, host.clock).code()
    const confirmed = await post(host, '/mfa/confirm', { code, refresh_token: member.refreshToken }, bearerOf(member))

    expect(confirmed.body).toMatchObject({ user_id: member.userId, mfa_required: false, mfa_token: null })
    expect(amrOf(confirmed.body.access_token)).toEqual(['pwd', 'otp'])
    expect(await isAlive(host, elsewhere.body.refresh_token)).toBe(false)
    expect(await isAlive(host, confirmed.body.refresh_token)).toBe(true)
    expect((await userOf(host, member.email)).totpEnabledAt).toEqual(host.clock.now())
  })
})

describe('enrolling, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('R-097: over an active factor it is 409, whatever the token, and changes nothing', async () => {
    const host = await start()
    const person = await enrolled(host)
    const before = await userOf(host, person.email)
    for (const who of [person, await signedInAgain(host, person)])
      expect(refusal(await post(host, '/mfa/enroll', {}, bearerOf(who))).slice(0, 1)).toEqual([409])
    expect((await post(host, '/mfa/enroll', {}, bearerOf(person))).body.code).toBe('MFA_ALREADY_ENROLLED')

    expect((await userOf(host, person.email)).totpSecret).toBe(before.totpSecret)
    expect((await verify(host, await challengeOf(host, person), person.recoveryCodes[0])).status).toBe(200)
  })

  test('confirm without anything pending, or over an active factor, is 422 MFA_NOT_ENROLLED', async () => {
    const host = await start()
    const member = await signedIn(host)
    expect(refusal(await post(host, '/mfa/confirm', { code: '123456' }, bearerOf(member))).slice(0, 1)).toEqual([422])
    const person = await enrolled(host)
    expect(outcome(await post(host, '/mfa/confirm', { code: person.app.nextCode() }, bearerOf(person)))).toBe('MFA_NOT_ENROLLED')
  })

  test('the service may leave the other sessions alone: revokeSessions false', async () => {
    const host = await start()
    const { userId, refreshToken } = await signedIn(host)
    const { service } = host.auth
    const { secret } = await service.enrollTotp(userId)
    await service.confirmTotp({ userId, code: authenticator(secret, host.clock).code(), revokeSessions: false })

    expect(await isAlive(host, refreshToken)).toBe(true)
  })

  test('whoever a reset has put out can neither enrol nor confirm what they had begun, though the access token lives on', async () => {
    const host = await start()
    const thief = await signedIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(thief))
    const app = authenticator(body.secret, host.clock)
    const link = await host.auth.service.requestPasswordReset(thief.email)
    await host.auth.service.resetPassword({ token: String(link?.token), newPassword: 'nine green bicycles uphill' })

    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(thief)))).toBe('INVALID_TOKEN')
    expect(outcome(await post(host, '/mfa/confirm', { code: app.code() }, bearerOf(thief)))).toBe('INVALID_TOKEN')
    expect((await userOf(host, thief.email)).totpEnabledAt).toBeNull()
  })

  test('an account that is gone or closed enrols nothing', async () => {
    const host = await start()
    const [gone, closed] = [await signedIn(host), await signedIn(host)]
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    await host.auth.service.deactivate(closed.userId)

    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(gone)))).toBe('UNAUTHORIZED')
    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(closed)))).toBe('ACCOUNT_INACTIVE')
    expect(outcome(await post(host, '/mfa/confirm', { code: '123456' }, bearerOf(closed)))).toBe('ACCOUNT_INACTIVE')
    expect(outcome(await post(host, '/mfa/enroll', {}))).toBe('UNAUTHORIZED')
  })

  test('GET /me says whether a factor is active, and shows no secret', async () => {
    const host = await start()
    const me = async ({ token }: { token: string }) => (await host.browser().get('/auth/me').set(bearerOf({ token }))).body
    const member = await signedIn(host)
    await post(host, '/mfa/enroll', {}, bearerOf(member))

    expect((await me(member)).mfa_enabled).toBe(false)
    const presented = await me(await enrolled(host))
    expect(presented.mfa_enabled).toBe(true)
    expect(JSON.stringify(presented)).not.toMatch(/totp|secret/i)
  })
})

/** The QR code's modules, read back from the SVG's path: each dark one is a square of `M x y h…`. */
function darkModules(svg: string): boolean[][] {
  const size = Number(/viewBox="0 0 (\d+) /.exec(svg)?.[1])
  const rows = Array.from({ length: size }, () => Array.from({ length: size }, () => false))
  for (const [, x, y, length] of svg.matchAll(/M(\d+) (\d+)\.5h(\d+)/g)) {
    rows[Number(y)]?.fill(true, Number(x), Number(x) + Number(length))
  }
  return rows
}
