import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { member } from '../social/link-steps'
import { begin, callBack, newPerson, setCookies } from '../social/redirect-steps'
import { baseUrl, type Mounted, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer } from '../support/fake-provider'
import { appSettings, bearerOf, browse, codeOf, enrolled, exchange, formOf, html, isAlive, nativeApp, singlePageApp, submit } from './apps'

const start = appPerTest()
const mfa = { ...appSettings, mfaEnabled: true, mfaIssuer: 'Example' }
const both = { ...mfa, tokenDelivery: 'both', oauthSuccessRedirect: '/in', oauthErrorRedirect: '/out' } as const
const challenge = codeChallengeOf('v'.repeat(43))
const unlimited = { throttle: { routes: false } } as const

const amrOf = ({ body }: supertest.Response) => JSON.parse(Buffer.from(body.access_token.split('.')[1], 'base64url').toString()).amr
const locationOf = ({ headers }: supertest.Response) => String(headers['location'])
const onlyStateCookies = (response: supertest.Response) => setCookies(response).every((line) => line.startsWith('oauth_state='))

describe('an app signs a person in by a provider', () => {
  test.each([
    ['a native app, delivery bearer', {}, nativeApp, `${nativeApp}?code=`],
    ['a native app, delivery both', both, nativeApp, `${nativeApp}?code=`],
    ['a single-page app on another site', both, singlePageApp, `${singlePageApp}&code=`],
  ])('%s: the browser brings a code, and the exchange gives the tokens', async (_name, settings, redirectTo, address) => {
    const host = await start({ settings: { ...appSettings, ...settings } })
    const logins: object[] = []
    host.auth.events.on('login', (event) => void logins.push(event))

    const { callback, verifier, code } = await browse(host, { redirectTo })
    expect([callback.status, callback.text, code.length]).toEqual([302, '', 43])
    expect(locationOf(callback)).toBe(`${address}${code}`)
    expect(onlyStateCookies(callback)).toBe(true)
    expect([await host.knex('auth_sessions').select(), logins]).toEqual([[], []])
    expect(JSON.stringify(await host.knex('auth_user_tokens').select())).not.toContain(code)

    const login = await exchange(host, { code, verifier }).set({ Origin: 'https://spa.example.test', 'User-Agent': 'an app' })
    expect(login.status, login.text).toBe(200)
    expect(Object.keys(login.body)).toEqual(['user_id', 'access_token', 'refresh_token', 'mfa_required', 'mfa_token'])
    expect(setCookies(login)).toEqual([])
    expect((await supertest(host.app).get('/auth/me').set(bearerOf(login))).body.id).toBe(login.body.user_id)
    expect(await host.knex('auth_sessions').select()).toMatchObject([
      { kind: 'tokens', provider: 'corp', amr: 'ext', user_agent: 'an app' },
    ])
    expect(logins).toMatchObject([{ userId: login.body.user_id, amr: ['ext'], provider: 'corp' }])
  })

  test('a browser without an app is as before', async () => {
    const host = await start({ settings: both })
    const plain = await signIn(host)
    expect([plain.status, locationOf(plain)]).toEqual([302, '/in'])
  })

  test('without HTTP: exchangeOAuthCode', async () => {
    const host = await start({ settings: appSettings })
    const { code, verifier } = await browse(host)
    expect(await host.auth.service.exchangeOAuthCode({ code, codeVerifier: verifier })).toMatchObject({ kind: 'session', amr: ['ext'] })
    await expect(host.auth.service.exchangeOAuthCode({ code, codeVerifier: verifier })).rejects.toMatchObject({
      code: 'OAUTH_CODE_INVALID',
    })
  })
})

describe('with a second factor', () => {
  test.each([
    ['bearer', mfa, '/auth/mfa/verify', nativeApp, "form-action 'self' com.example.app:;"],
    ['both', both, '/auth/cookie/mfa/verify', singlePageApp, "form-action 'self' https://spa.example.test;"],
  ])('delivery %s: the page asks for it, and then brings the code', async (_name, settings, action, redirectTo, policy) => {
    const host = await start({ settings })
    const { app, profile } = await enrolled(host)
    const { browser, callback: page, verifier } = await browse(host, { profile, redirectTo })
    expect([page.status, formOf(page).action]).toEqual([200, action])
    expect(page.headers['content-security-policy']).toContain(policy)

    const wrong = await submit(browser, page, '000000')
    expect([wrong.status, formOf(wrong)]).toEqual([400, formOf(page)])
    const done = await submit(browser, page, app.nextCode())
    expect([done.status, locationOf(done).startsWith(redirectTo), setCookies(done)]).toEqual([302, true, []])

    const login = await exchange(host, { code: codeOf(done), verifier })
    expect([login.status, login.body.mfa_required, amrOf(login)]).toEqual([200, false, ['ext', 'otp']])
  })

  test('a challenge that is over brings its error to the app', async () => {
    const host = await start({ settings: mfa })
    const { app, profile } = await enrolled(host)
    const { browser, callback: page } = await browse(host, { profile })
    expect((await submit(browser, page, app.nextCode())).status).toBe(302)
    const again = await submit(browser, page, app.nextCode())
    expect(locationOf(again)).toBe(`${nativeApp}?error=MFA_TOKEN_INVALID`)

    const late = await browse(host, { profile })
    host.clock.advance(301)
    expect(locationOf(await submit(late.browser, late.callback, app.nextCode()))).toBe(`${nativeApp}?error=MFA_TOKEN_INVALID`)
  })

  test('a browser that does not ask for HTML brings a code, and the exchange answers with the challenge', async () => {
    const host = await start({ settings: mfa })
    const { app, profile } = await enrolled(host)
    const { code, verifier } = await browse(host, { profile, headers: {} })
    const first = await exchange(host, { code, verifier })
    expect(first.body).toMatchObject({ access_token: null, refresh_token: null, mfa_required: true })
    const login = await supertest(host.app).post('/auth/mfa/verify').send({ mfa_token: first.body.mfa_token, code: app.nextCode() })
    expect([login.status, amrOf(login)]).toEqual([200, ['ext', 'otp']])
  })

  test('a code that was shown again ends the challenge that it gave', async () => {
    const host = await start({ settings: mfa })
    const { app, profile } = await enrolled(host)
    const { code, verifier } = await browse(host, { profile, headers: {} })
    const first = await exchange(host, { code, verifier })
    expect((await exchange(host, { code, verifier })).body.code).toBe('OAUTH_CODE_INVALID')
    const login = await supertest(host.app).post('/auth/mfa/verify').send({ mfa_token: first.body.mfa_token, code: app.nextCode() })
    expect([login.status, login.body.code]).toEqual([401, 'MFA_TOKEN_INVALID'])
  })
})

describe('what is no code', () => {
  const refused = async (host: Mounted, given: { code: string; verifier: string }) => {
    const { status, body } = await exchange(host, given)
    expect([status, body.code]).toEqual([401, 'OAUTH_CODE_INVALID'])
  }

  test('a stolen one without the verifier gives nothing, and is used up', async () => {
    const host = await start({ settings: appSettings })
    const failures: object[] = []
    host.auth.events.on('login.failed', (event) => void failures.push(event))
    const { code, verifier } = await browse(host)
    const other = await browse(host)
    await refused(host, { code, verifier: other.verifier })
    await refused(host, { code, verifier })
    expect(await host.knex('auth_sessions').select()).toEqual([])
    expect(failures).toMatchObject([{ reason: 'OAUTH_CODE_INVALID' }, { reason: 'OAUTH_CODE_INVALID' }])
    expect((await exchange(host, other)).status).toBe(200)
  })

  test.each(['', 'v'.repeat(42), 'v'.repeat(129), `${'v'.repeat(42)} `, challenge])('the verifier %j is none', async (verifier) => {
    const host = await start({ settings: appSettings })
    const { code } = await browse(host)
    const { status, body } = await exchange(host, { code, verifier })
    expect([status, body.code]).toEqual(verifier === '' ? [422, 'VALIDATION_ERROR'] : [401, 'OAUTH_CODE_INVALID'])
  })

  test('one of over 60 seconds, one that was never made, and another one-shot value', async () => {
    const host = await start({ settings: appSettings })
    const [first, second] = [await browse(host), await browse(host)]
    host.clock.advance(59)
    expect((await exchange(host, first)).status).toBe(200)
    host.clock.advance(1)
    await refused(host, second)
    for (const code of ['x', 'x'.repeat(43), '\u{1f600}']) await refused(host, { code, verifier: second.verifier })
  })

  test('the token of a mailed link is no code', async () => {
    const host = await start({ settings: { ...appSettings, publicUrl: baseUrl } })
    const { body } = await exchange(host, await browse(host))
    await host.knex('auth_users').update({ email_verified_at: null })
    const link = await host.auth.service.requestEmailVerification(body.user_id)
    await refused(host, { code: String(link?.token), verifier: 'v'.repeat(43) })
  })

  test.each<[string, (host: Mounted, userId: string) => Promise<unknown>]>([
    ['a deactivation', (host, userId) => host.knex('auth_users').where({ id: userId }).update({ is_active: false })],
    ['a new password', (host, userId) => host.knex('auth_users').where({ id: userId }).update({ hashed_password: 'another' })],
    ['a second factor', (host, userId) => host.knex('auth_users').where({ id: userId }).update({ totp_enabled_at: 1 })],
    ['the end of all sessions', (host, userId) => host.auth.service.revokeSessions(userId)],
  ])('one of before %s', async (_change, change) => {
    const host = await start({ settings: appSettings })
    const { code, verifier } = await browse(host)
    const [{ id }] = await host.knex('auth_users').select('id')
    await change(host, id)
    await refused(host, { code, verifier })
    expect(await host.knex('auth_sessions').select()).toEqual([])
  })

  test('one that is shown again ends the session that it gave, also without the verifier and after a refresh', async () => {
    const host = await start({ settings: appSettings })
    const ended: object[] = []
    host.auth.events.on('session.revoked', (event) => void ended.push(event))
    for (const verifierOf of [(own: string) => own, () => 'w'.repeat(43)]) {
      const { code, verifier } = await browse(host)
      const login = await exchange(host, { code, verifier })
      host.clock.advance(3_600)
      const { body } = await supertest(host.app).post('/auth/refresh').send({ refresh_token: login.body.refresh_token })
      await refused(host, { code, verifier: verifierOf(verifier) })
      expect(await isAlive(host, { body } as supertest.Response)).toBe(false)
    }
    expect(ended).toMatchObject([{ count: 1, reason: 'code_reused' }, { reason: 'code_reused' }])
  })
})

describe('a failure on the way', () => {
  test('a denial, and a provider that fails, come to the app as an error', async () => {
    const host = await start({ settings: both })
    const app = { redirect_to: singlePageApp, code_challenge: challenge }
    const denied = await begin(host, { query: app })
    const back = await callBack(host, { error: 'access_denied', state: denied.state }, { cookie: denied.cookie })
    expect([back.status, locationOf(back)]).toEqual([302, `${singlePageApp}&error=OAUTH_PROVIDER_DENIED`])

    const failing = await begin(host, { query: app, profile: newPerson() })
    host.provider.on('token', answer(400, { error: 'invalid_grant' }))
    expect(locationOf(await callBack(host, failing.query, { cookie: failing.cookie }))).toBe(`${singlePageApp}&error=OAUTH_ERROR`)
  })

  test('what names no login of this browser goes nowhere near an app', async () => {
    const host = await start({ settings: appSettings })
    const { query } = await begin(host, { query: { redirect_to: nativeApp, code_challenge: challenge } })
    const stranger = await callBack(host, query)
    expect([stranger.status, stranger.body.code, stranger.headers['location']]).toEqual([401, 'OAUTH_STATE_MISMATCH', undefined])
  })
})

describe('redirect_to at the start', () => {
  test.each([
    ['another address', { redirect_to: 'https://elsewhere.example/', code_challenge: challenge }],
    ['an address below a listed one', { redirect_to: `${nativeApp}/x`, code_challenge: challenge }],
    ['a listed one in capitals', { redirect_to: nativeApp.toUpperCase(), code_challenge: challenge }],
    ['an empty one', { redirect_to: '', code_challenge: challenge }],
    ['no code_challenge', { redirect_to: nativeApp }],
    ['an empty code_challenge', { redirect_to: nativeApp, code_challenge: '' }],
    ['a code_challenge that is no SHA-256', { redirect_to: nativeApp, code_challenge: 'v'.repeat(44) }],
    ['the method plain', { redirect_to: nativeApp, code_challenge: challenge, code_challenge_method: 'plain' }],
    ['return_to beside it', { redirect_to: nativeApp, code_challenge: challenge, return_to: '/' }],
  ])('%s is 422', async (_what, query) => {
    const host = await start({ settings: both })
    const refused = await host.browser().get('/auth/oauth/corp/login').query(query)
    expect([refused.status, refused.body.code, setCookies(refused)]).toEqual([422, 'VALIDATION_ERROR', []])
  })

  test('two of one name are 422, and S256 may be named', async () => {
    const host = await start({ settings: appSettings })
    const search = new URLSearchParams({ redirect_to: nativeApp, code_challenge: challenge }).toString()
    const ask = (more: string) => host.browser().get(`/auth/oauth/corp/login?${search}&${more}`)
    expect((await ask(`redirect_to=${encodeURIComponent(nativeApp)}`)).status).toBe(422)
    expect((await ask(`code_challenge=${challenge}`)).status).toBe(422)
    expect((await ask('code_challenge_method=S256')).status).toBe(302)
  })

  test('the provider sees neither the app nor its challenge', async () => {
    const host = await start({ settings: appSettings })
    const { location } = await begin(host, { query: { redirect_to: nativeApp, code_challenge: challenge } })
    expect(decodeURIComponent(location)).not.toContain('com.example.app')
    expect(location).not.toContain(challenge)
  })

  test('without the setting there is no exchange, and redirect_to is 422', async () => {
    const host = await start({ host: (app) => void app.use((_req, res) => void res.status(404).end()) })
    expect((await exchange(host, { code: 'x', verifier: 'x' })).status).toBe(404)
    const query = { redirect_to: nativeApp, code_challenge: challenge }
    expect((await host.browser().get('/auth/oauth/corp/login').query(query)).status).toBe(422)
  })

  test('delivery cookie is refused at boot: an app would get no tokens', async () => {
    await expect(start({ settings: { ...appSettings, tokenDelivery: 'cookie' } })).rejects.toThrow(
      /^appRedirects \(AUTH_APP_REDIRECTS\) needs/,
    )
  })
})

describe('a ticket comes home to the app', () => {
  const settings = { ...appSettings, accessTokenTtlSeconds: 7_200 }
  const providers = { corp: {}, acme: {} }

  /** Begun at the app; the browser comes back with the state cookie of the start. */
  async function comesBack(host: Mounted, path: string) {
    const ana = await member(host)
    const as = { Authorization: `Bearer ${ana.token}` }
    const began = await ana.browser.post(`/auth/oauth/${path}`).set(as).send({ redirect_to: nativeApp })
    expect(began.status, began.text).toBe(200)
    const authTime = { auth_time: Math.floor(host.clock.now().getTime() / 1000) }
    const profile = path.startsWith('corp') ? { ...ana.profile, ...authTime } : newPerson()
    const { callbackQuery } = host.provider.authorize(began.body.authorize_url, { profile })
    const back = await ana.browser
      .get(`/auth/oauth/${path.split('/')[0]}/callback`)
      .set(html)
      .query(callbackQuery)
    return { ana, as, back, ticket: locationOf(back).split(`${nativeApp}?ticket=`)[1] }
  }

  test.each(['bearer', 'both'] as const)('delivery %s: of a link', async (tokenDelivery) => {
    const host = await start({ settings: { ...settings, tokenDelivery }, providers })
    const { as, back, ticket } = await comesBack(host, 'acme/link')
    expect([back.status, back.text]).toEqual([302, ''])
    const linked = await supertest(host.app).post('/auth/oauth/link/redeem').set(as).send({ ticket })
    expect([linked.status, linked.body.provider]).toEqual([200, 'acme'])
  })

  test('of a reauthentication', async () => {
    const host = await start({ settings, providers })
    const { as, ticket } = await comesBack(host, 'corp/reauthenticate')
    expect((await supertest(host.app).post('/auth/reauthenticate').set(as).send({ ticket })).status).toBe(200)
  })

  test('only to an app of the list', async () => {
    const host = await start({ settings, providers, options: unlimited })
    const { token } = await member(host)
    const as = { Authorization: `Bearer ${token}` }
    for (const redirect_to of ['https://elsewhere.example/', '', null, [nativeApp]])
      for (const path of ['acme/link', 'corp/reauthenticate'])
        expect((await host.browser().post(`/auth/oauth/${path}`).set(as).send({ redirect_to })).status).toBe(422)
  })
})
