import { describe, expect, test } from 'vitest'
import { newPerson } from '../social/redirect-steps'
import { startLogin } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer } from '../support/fake-provider'
import { claimsOf, clientOf, codeOf, newPassword, password, writtenWith } from './client'

const start = appPerTest()
const client = async (mounting: Parameters<typeof writtenWith>[0] = {}) => clientOf(await start(writtenWith(mounting)))
const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/)
const pair = { user_id: uuid, access_token: expect.any(String), refresh_token: expect.any(String), mfa_required: false, mfa_token: null }
const challenge = { user_id: uuid, access_token: null, refresh_token: null, mfa_required: true, mfa_token: expect.any(String) }

describe('Endpoints: social login', () => {
  test('login answers 302 to the authorize URL with a state, and sets an HttpOnly cookie that is always SameSite=Lax', async () => {
    const { get, host } = await client()
    const response = await get('/oauth/corp/login')
    expect([response.status, new URL(String(response.headers['location'])).searchParams.has('state')]).toEqual([302, true])
    expect(String(response.headers['set-cookie'])).toMatch(/HttpOnly.*SameSite=Lax/)
    expect(String(response.headers['location']).startsWith(host.provider.authorizeUrl)).toBe(true)
  })

  test('an unregistered provider answers 404 OAUTH_PROVIDER_NOT_CONFIGURED', async () => {
    const { get } = await client()
    expect(codeOf(await get('/oauth/nobody/login'))).toEqual([404, 'OAUTH_PROVIDER_NOT_CONFIGURED'])
  })

  test('the callback answers the login response with amr ext, and a created account is active and stores the provider email and name', async () => {
    const { social, get } = await client()
    const person = newPerson()
    const { status, body } = await social(person)
    expect([status, body]).toEqual([200, pair])
    expect(claimsOf(body.access_token)['amr']).toEqual(['ext'])
    expect((await get('/me', body.access_token)).body).toMatchObject({ email: person.email, name: person['name'], is_active: true })
  })

  test('error present is 401 OAUTH_PROVIDER_DENIED, a wrong or missing state 401 OAUTH_STATE_MISMATCH, neither code nor error 422 OAUTH_CODE_MISSING', async () => {
    const { get, host } = await client()
    expect(codeOf(await get('/oauth/corp/callback?error=access_denied'))).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
    expect(codeOf(await get('/oauth/corp/callback?code=x&state=y'))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect(codeOf(await get('/oauth/corp/callback?code=x'))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    const browser = host.browser()
    const { state } = await startLogin(host, browser)
    expect(codeOf(await browser.get('/auth/oauth/corp/callback').query({ state }))).toEqual([422, 'OAUTH_CODE_MISSING'])
  })

  test('a provider that refuses the code exchange is 502 OAUTH_ERROR with its response body in details', async () => {
    const { social, host } = await client()
    host.provider.on('token', answer(400, { error: 'invalid_grant' }))
    const { status, body } = await social()
    expect([status, body.code, body.details.body]).toEqual([502, 'OAUTH_ERROR', '{"error":"invalid_grant"}'])
  })

  test('no email is 422 OAUTH_EMAIL_MISSING; a taken one 409 OAUTH_EMAIL_TAKEN; with linking on, 409 OAUTH_EMAIL_UNVERIFIED for false and null, and a link for true', async () => {
    const { social, member } = await client()
    expect(codeOf(await social(newPerson({ email: null })))).toEqual([422, 'OAUTH_EMAIL_MISSING'])
    const { email } = await member()
    expect(codeOf(await social(newPerson({ email })))).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    const linking = await client({ settings: { oauthLinkByVerifiedEmail: true } })
    const taken = await linking.member()
    for (const email_verified of [false, null])
      expect(codeOf(await linking.social(newPerson({ email: taken.email, email_verified })))).toEqual([409, 'OAUTH_EMAIL_UNVERIFIED'])
    expect((await linking.social(newPerson({ email: taken.email }))).body.user_id).toBe(taken.userId)
  })

  test.each([
    [true, undefined, 200],
    [false, undefined, 403],
    [false, true, 200],
    [true, false, 403],
  ])('account creation with signupEnabled %j and oauthAllowAccountCreation %j answers %i', async (signupEnabled, allow, status) => {
    const settings = { signupEnabled, ...(allow !== undefined && { oauthAllowAccountCreation: allow }) }
    const { social } = await client({ settings })
    const response = await social()
    expect(response.status).toBe(status)
    if (status === 403) expect(response.body.code).toBe('OAUTH_REGISTRATION_DISABLED')
  })

  test('a deactivated account is 401 OAUTH_ACCOUNT_INACTIVE', async () => {
    const { social, host } = await client()
    const person = newPerson()
    const { body } = await social(person)
    await host.auth.service.deactivate(body.user_id)
    expect(codeOf(await social(person))).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
  })

  test('a resolved account with TOTP gets the challenge, and verify makes amr ext and otp', async () => {
    const { social, post, enrol } = await client()
    const person = newPerson()
    const first = await social(person)
    const { app } = await enrol({ token: first.body.access_token })
    const { body } = await social(person)
    expect(body).toEqual(challenge)
    const verified = await post('/mfa/verify', { mfa_token: body.mfa_token, code: app.nextCode() })
    expect(claimsOf(verified.body.access_token)['amr']).toEqual(['ext', 'otp'])
  })

  test('accounts lists the linked identities with exactly the fields of the table, and an account with none gets an empty array', async () => {
    const { social, get, member } = await client()
    const { body } = await social()
    const { body: listed } = await get('/oauth/accounts', body.access_token)
    const fields = ['created_at', 'email', 'email_verified', 'last_login_at', 'name', 'picture', 'provider', 'subject']
    expect(Object.keys(listed[0]).sort()).toEqual(fields)
    expect((await get('/oauth/accounts', (await member()).token)).body).toEqual([])
    expect((await get('/oauth/accounts')).status).toBe(401)
  })

  test('unlink answers 204, and 404 OAUTH_ACCOUNT_NOT_LINKED when that provider is not linked to the caller', async () => {
    const { social, post, member } = await client()
    const { body } = await social()
    expect(codeOf(await post('/oauth/accounts/unlink', { provider: 'corp' }, (await member()).token))).toEqual([
      404,
      'OAUTH_ACCOUNT_NOT_LINKED',
    ])
    expect((await post('/oauth/accounts/unlink', { provider: 'corp' }, body.access_token)).status).toBe(204)
  })
})

describe('Local accounts', () => {
  test('sign-up answers 201 pending, activation the pair with amr email, and login the pair with amr pwd', async () => {
    const { signUp, post } = await client()
    const { email, path, response } = await signUp()
    expect(response.body).toMatchObject({ user_id: uuid, activation_required: true, access_token: null, refresh_token: null })
    expect(codeOf(await post('/login', { email, password }))).toEqual([401, 'UNAUTHORIZED'])
    const activated = await post(path)
    expect([activated.body, claimsOf(activated.body.access_token)['amr']]).toEqual([pair, ['email']])
    const { body } = await post('/login', { email: email.toUpperCase(), password })
    expect([body, claimsOf(body.access_token)['amr']]).toEqual([pair, ['pwd']])
    expect((await post(path)).status).toBe(401)
  })

  test('wrong password, unknown email and inactive user give the same generic unauthorized error, and a malformed email is 422', async () => {
    const { member, signUp, post, newEmail } = await client()
    const answers = [
      await post('/login', { email: (await member()).email, password: newPassword }),
      await post('/login', { email: newEmail(), password }),
      await post('/login', { email: (await signUp()).email, password }),
    ]
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(codeOf(await post('/login', { email: 'not-an-email', password }))).toEqual([422, 'VALIDATION_ERROR'])
  })

  test('a reset request answers 202 with the same message whether or not the email exists, and confirm replaces the password and ends the sessions', async () => {
    const { member, post, resetToken, newEmail } = await client()
    const person = await member()
    const [known, unknown] = [await post('/password-reset/request', person), await post('/password-reset/request', { email: newEmail() })]
    expect([known.status, unknown.status, unknown.body.message]).toEqual([202, 202, known.body.message])
    const token = await resetToken(person)
    const { body } = await post('/password-reset/confirm', { token, new_password: newPassword })
    expect([body, claimsOf(body.access_token)['amr']]).toEqual([pair, ['email']])
    expect((await post('/refresh', { refresh_token: person.refreshToken })).status).toBe(401)
    expect((await post('/login', { email: person.email, password: newPassword })).status).toBe(200)
  })
})

describe('Session and second-factor states', () => {
  test('login and reset confirm of an enrolled account answer the challenge; a code is accepted once', async () => {
    const { enrolled, post, resetToken } = await client()
    const { email, app } = await enrolled()
    const { body } = await post('/login', { email, password })
    expect(body).toEqual(challenge)
    const code = app.nextCode()
    const verified = await post('/mfa/verify', { mfa_token: body.mfa_token, code })
    expect(claimsOf(verified.body.access_token)['amr']).toEqual(['pwd', 'otp'])
    const again = await post('/login', { email, password })
    const refused = await post('/mfa/verify', { mfa_token: again.body.mfa_token, code })
    expect([refused.status, refused.body.detail]).toEqual([401, 'invalid MFA code'])
    const reset = await post('/password-reset/confirm', { token: await resetToken({ email }), new_password: newPassword })
    expect(reset.body).toEqual(challenge)
  })

  test('a session by password and a factor of today may disable the factor right after the login', async () => {
    const { enrolled, post } = await client()
    const { app, token } = await enrolled()
    expect((await post('/mfa/disable', { password, code: app.nextCode() }, token)).status).toBe(204)
  })

  test('refresh rotates and repeats amr, a refresh token is single use, reuse is detected across the family, and logout kills it', async () => {
    const { member, logIn, post } = await client()
    const person = await member()
    const { body } = await post('/refresh', { refresh_token: person.refreshToken })
    expect(claimsOf(body.access_token)['amr']).toEqual(['email'])
    expect((await post('/refresh', { refresh_token: person.refreshToken })).status).toBe(401)
    expect((await post('/refresh', { refresh_token: body.refresh_token })).status).toBe(401)
    const { refreshToken } = await logIn(person)
    await post('/logout', { refresh_token: refreshToken })
    expect((await post('/refresh', { refresh_token: refreshToken })).status).toBe(401)
  })

  test('an account with no second factor asked to do an MFA-protected change answers 422 MFA_NOT_ENROLLED, even when the second factor is off', async () => {
    for (const mfaEnabled of [true, false]) {
      const { member, post } = await client({ settings: { mfaEnabled } })
      const change = { code: '123456', new_password: newPassword }
      expect(codeOf(await post('/password-change/mfa', change, (await member()).token))).toEqual([422, 'MFA_NOT_ENROLLED'])
    }
  })
})

describe('Limits', () => {
  test('5 failed logins of an address answer 429 LOGIN_THROTTLED with Retry-After, which details repeat', async () => {
    const { member, post } = await client()
    const { email } = await member()
    for (let count = 0; count < 5; count++) await post('/login', { email, password: newPassword })
    const { status, headers, body } = await post('/login', { email, password })
    expect([status, body.code, headers['retry-after']]).toEqual([429, 'LOGIN_THROTTLED', String(body.details.retry_after_seconds)])
  })

  test('5 wrong codes answer 429 MFA_THROTTLED at verify and at the password change, which share the counter', async () => {
    const { enrolled, post } = await client({ settings: { youngCredentialSeconds: 0 } })
    const { email, app, token } = await enrolled()
    const { body } = await post('/login', { email, password })
    for (let count = 0; count < 5; count++) await post('/mfa/verify', { mfa_token: body.mfa_token, code: '000000' })
    const change = { code: app.nextCode(), new_password: newPassword }
    expect(codeOf(await post('/password-change/mfa', change, token))).toEqual([429, 'MFA_THROTTLED'])
  })
})
