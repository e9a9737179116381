import { randomBytes } from 'node:crypto'
import express from 'express'
import { describe, expect, test } from 'vitest'
import { ACTIVATION_WITHHELD, createGuards, csrfGuard, errorHandler, idempotency, rateLimit, requireInternalToken } from '../../src'
import { newPerson } from '../social/redirect-steps'
import { baseUrl, type MountOptions, setCookieOf, signIn, startLogin, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { sendRaw } from '../support/send-raw'
import { claimsOf, clientOf, codeOf, newPassword, password, writtenWith } from './client'

const start = appPerTest()
const client = async (mounting: Omit<MountOptions, 'knex'> = {}) => clientOf(await start(writtenWith(mounting)))
const day = 86_400

describe('Token delivery', () => {
  test.each([
    ['bearer', false, true],
    ['cookie', true, false],
    ['both', true, true],
  ] as const)('%s: the callback sets cookies: %j, and has tokens in the body: %j', async (tokenDelivery, hasCookies, hasBody) => {
    const { social } = await client({ settings: { tokenDelivery } })
    const response = await social()
    const cookies = ['access_token', 'refresh_token'].map((name) => setCookieOf(response, name)?.attributes.includes('HttpOnly') === true)
    expect([cookies, response.body.access_token !== null, response.body.refresh_token !== null]).toEqual([
      [hasCookies, hasCookies],
      hasBody,
      hasBody,
    ])
  })

  test('both mounts parallel routes below /auth/cookie, but no callback', async () => {
    const { member, host } = await client({ settings: { tokenDelivery: 'both' } })
    const { email } = await member()
    const response = await host.browser().post('/auth/cookie/login').send({ email, password })
    expect([response.status, response.body.access_token, setCookieOf(response, 'refresh_token') !== null]).toEqual([200, null, true])
    expect((await host.browser().get('/auth/cookie/oauth/corp/callback')).status).toBe(404)
  })

  test.each(['bearer', 'cookie', 'both'] as const)('%s: a challenge is in the body, with no cookie', async (tokenDelivery) => {
    const { host, social, post } = await client({ settings: { tokenDelivery } })
    const person = newPerson()
    const browser = host.browser()
    const { body } = await signIn(host, browser, { key: 'corp', profile: person })
    const { secret } = await host.auth.service.enrollTotp(body.user_id)
    const { authenticator } = await import('../mfa/authenticator')
    const app = authenticator(secret, host.clock)
    await host.auth.service.confirmTotp({ userId: body.user_id, amr: ['ext'], code: app.code() })
    const challenged = await social(person)
    expect(challenged.body).toMatchObject({ access_token: null, refresh_token: null, mfa_required: true })
    expect([setCookieOf(challenged, 'access_token'), setCookieOf(challenged, 'refresh_token')]).toEqual([null, null])
    const verified = await post('/mfa/verify', { mfa_token: challenged.body.mfa_token, code: app.nextCode() })
    expect(verified.status).toBe(200)
  })
})

describe('State cookie', () => {
  test('a state is single use, valid for its provider alone, expires, and its cookie is cleared at the first callback', async () => {
    const { host } = await client()
    const browser = host.browser()
    const { callbackQuery } = await startLogin(host, browser, { profile: newPerson() })
    expect(codeOf(await browser.get('/auth/oauth/other/callback').query(callbackQuery))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    const again = host.browser()
    const begun = await startLogin(host, again, { profile: newPerson() })
    const first = await again.get('/auth/oauth/corp/callback').query(begun.callbackQuery)
    expect([first.status, setCookieOf(first, 'oauth_state')?.value]).toEqual([200, ''])
    expect(codeOf(await again.get('/auth/oauth/corp/callback').query(begun.callbackQuery))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    const late = host.browser()
    const slow = await startLogin(host, late, { profile: newPerson() })
    host.clock.advance(601)
    expect(codeOf(await late.get('/auth/oauth/corp/callback').query(slow.callbackQuery))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
  })
})

describe('Locale of a created account without a name', () => {
  test.each([
    ['lang before Accept-Language', '?lang=pt-BR', { 'Accept-Language': 'en-US' }, 'en-US', 'Você'],
    ['Accept-Language before the default', '', { 'Accept-Language': 'en-US' }, 'pt-BR', 'You'],
    ['the default at last', '', {}, 'pt-BR', 'Você'],
  ] as const)('%s', async (_what, query, headers, defaultLocale, name) => {
    const { host, get } = await client({ settings: { defaultLocale } })
    const lang = query === '' ? {} : { lang: query.split('=')[1] ?? '' }
    const { body } = await signIn(host, host.browser(), { profile: newPerson({ name: null }), query: lang, headers })
    expect((await get('/me', body.access_token)).body.name).toBe(name)
  })
})

describe('Account states', () => {
  test('with AUTH_AUTO_ACTIVATE a sign-up is born active and answers the pair; with AUTH_SIGNUP_ENABLED off it is refused', async () => {
    const { signUp, get } = await client({ settings: { autoActivate: true } }).then((one) => ({
      ...one,
      signUp: one.post.bind(null, '/signup'),
    }))
    const { status, body } = await signUp({ email: 'born@example.test', password })
    expect([status, body]).toMatchObject([201, { activation_required: false, activation_url: null }])
    expect((await get('/me', body.access_token)).body).toMatchObject({ is_active: true })
    const closed = await client({ settings: { signupEnabled: false } }) // a route that is off is no route
    expect((await closed.post('/signup', { email: 'late@example.test', password })).status).toBe(404)
  })

  test('an account that refuses email links: the same 201 and 202 without a token, and 403 EMAIL_LINK_FORBIDDEN at a confirm, which spends the token', async () => {
    let refuses = false
    const host = await client({ options: { refusesEmailLink: () => refuses } })
    const person = await host.member()
    const { email, path } = await host.signUp()
    const token = await host.resetToken(person)
    refuses = true
    const { body } = await host.post('/signup', { email: host.newEmail(), password })
    expect(body).toMatchObject({ activation_required: true, activation_url: null, access_token: null })
    const [known, unknown] = [
      await host.post('/activation/request', { email }),
      await host.post('/activation/request', { email: 'no@example.test' }),
    ]
    expect([known.status, known.text]).toEqual([202, unknown.text])
    const confirm = () => host.post('/password-reset/confirm', { token, new_password: newPassword })
    expect([codeOf(await host.post(path)), codeOf(await confirm())]).toEqual([
      [403, 'EMAIL_LINK_FORBIDDEN'],
      [403, 'EMAIL_LINK_FORBIDDEN'],
    ])
    refuses = false
    expect([(await host.post(path)).status, (await confirm()).status]).toEqual([401, 401])
    expect((await host.post('/login', { email: person.email, password })).status).toBe(200)
    refuses = true
    const [, second] = await host.host.auth.service.signUp({ email: host.newEmail(), password })
    expect(second).toBe(ACTIVATION_WITHHELD)
  })

  test('links live 7 days and 3600 seconds', async () => {
    const { signUp, member, resetToken, post, host } = await client()
    const [young, old, person] = [await signUp(), await signUp(), await member()]
    const [used, unused] = [await resetToken(person), '']
    host.clock.advance(3_599)
    expect((await post('/password-reset/confirm', { token: used, new_password: newPassword })).status).toBe(200)
    const late = await resetToken(person)
    host.clock.advance(3_600)
    expect((await post('/password-reset/confirm', { token: late || unused, new_password: password })).status).toBe(401)
    host.clock.advance(7 * day - 3_599 - 3_600 - 1)
    expect((await post(young.path)).status).toBe(200)
    host.clock.advance(2)
    expect((await post(old.path)).status).toBe(401)
  })

  test('the pages behind links put no tokens in the body and set no cookies, and refuse an account that refuses links', async () => {
    let refuses = false
    const { signUp, member, resetToken, host } = await client({
      settings: { backendLinks: true, publicUrl: baseUrl, tokenDelivery: 'both' },
      options: { refusesEmailLink: () => refuses },
    })
    const { path } = await signUp()
    const token = await resetToken(await member())
    const browser = host.browser()
    for (const page of [path, `/password-reset/${token}`]) {
      const { status, headers, text } = await browser.get(`/auth${page}`)
      expect([status, headers['set-cookie'], text.includes('access_token')]).toEqual([200, undefined, false])
    }
    refuses = true
    const { status, text } = await browser.get(`/auth/password-reset/${token}`)
    expect([status, text.includes('name="new_password"')]).toEqual([403, false])
  })
})

describe('Callers, guards and middleware', () => {
  const hostOf = (mount: (app: express.Express) => void) => {
    const app = express()
    mount(app)
    app.use((_req, res) => void res.json({}))
    return app.use(errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
  }

  test('the guard for a second factor refuses amr pwd, ext and email with 403 MFA_REQUIRED, and lets otp in', async () => {
    const { member, logIn, social, enrolled, host } = await client()
    const guards = createGuards({ settings: { jwtSecret: testSecret }, now: host.clock.now })
    const app = hostOf((app) => app.use(guards.requireMfa()))
    const ask = (token: string) => sendRaw(app, { method: 'GET', path: '/', headers: { Authorization: `Bearer ${token}` } })
    const byEmail = await member()
    for (const token of [byEmail.token, (await logIn(byEmail)).token, (await social()).body.access_token]) {
      const { status, body } = await ask(token)
      expect([claimsOf(token)['amr'], status, body['code']]).toEqual([expect.any(Array), 403, 'MFA_REQUIRED'])
    }
    expect((await ask((await enrolled()).token)).status).toBe(200)
  })

  test('the CSRF guard wants equal cookie and header on POST, PUT, PATCH and DELETE, passes the rest, and excludes prefixes', async () => {
    const app = hostOf((app) => app.use(csrfGuard({ exclude: ['/hooks'] })))
    const value = 'v'.repeat(43)
    const pair = { Cookie: `csrf_token=${value}`, 'X-CSRF-Token': value }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const statuses = [{}, { Cookie: pair.Cookie }, { ...pair, 'X-CSRF-Token': 'w'.repeat(43) }, pair].map((headers) =>
        sendRaw(app, { method, path: '/', headers }),
      )
      expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([403, 403, 403, 200])
    }
    for (const method of ['GET', 'OPTIONS']) expect((await sendRaw(app, { method, path: '/' })).status).toBe(200)
    expect((await sendRaw(app, { method: 'POST', path: '/hooks/paid' })).status).toBe(200)
  })

  test('X-Token guards internal routes; the default limit is 60 in 60 seconds; an Idempotency-Key answers again for 24 hours', async () => {
    const [token, another] = [0, 1].map(() => randomBytes(32).toString('base64url')) as [string, string]
    const internal = hostOf((app) => app.use(requireInternalToken({ token })))
    const statuses = [{}, { 'X-Token': another }, { 'X-Token': token }].map((headers) =>
      sendRaw(internal, { method: 'GET', path: '/', headers }),
    )
    expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([401, 401, 200])
    const limited = hostOf((app) => app.use(rateLimit()))
    const answers = []
    for (let count = 0; count < 61; count++) answers.push(await sendRaw(limited, { method: 'GET', path: '/' }))
    expect(answers.map(({ status }) => status)).toEqual([...Array(60).fill(200), 429])
    expect(Number(answers.at(-1)?.headers['retry-after'])).toBeGreaterThan(0)
    let count = 0
    const repeatable = express().use(idempotency(), (_req, res) => void res.json({ count: ++count }))
    const order = () =>
      sendRaw(repeatable, { method: 'POST', path: '/orders', headers: { 'Idempotency-Key': 'order-one', Authorization: 'Basic b25l' } })
    expect([(await order()).body, (await order()).body]).toEqual([{ count: 1 }, { count: 1 }])
  })
})

describe('Filters', () => {
  test('an unknown key or suffix is 422 UNKNOWN_FILTER_KEY with the key; between wants a pair; in takes a scalar', async () => {
    const { enrolled, host } = await client()
    const admin = await enrolled()
    await host.knex('auth_users').where({ id: admin.userId }).update({ is_admin: true })
    const list = (query: string) => host.browser().get(`/auth/admin/users?${query}`).set('Authorization', `Bearer ${admin.token}`)
    for (const key of ['shoe_size', 'email__near']) {
      const { status, body } = await list(`${key}=1`)
      expect([status, body.code, body.details.filter]).toEqual([422, 'UNKNOWN_FILTER_KEY', key])
    }
    expect((await list('created_at__between=2026-01-01')).status).toBe(422)
    expect((await list(`email__in=${admin.email}`)).body.items).toHaveLength(1)
  })
})
