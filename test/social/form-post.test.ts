import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createAuthRouter, createKnexStore, OidcClient } from '../../src'
import { type Mounted, type MountOptions, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { testClock } from '../support/clock'
import { oldBrowser } from '../support/cookie-check'
import type { FakeProvider } from '../support/fake-provider'
import { cookieAttributes, cookiePair, type HttpResponse, newPerson, setCookies } from './redirect-steps'

/**
 * Section 19: callbacks by form_post. What the route that takes another site's POST has to survive:
 *
 * - login CSRF: an attacker's answer, or sealed answer, in somebody else's browser
 * - a sealed answer that is used again, kept for later, changed, or of another provider
 * - the POST skipped: code and state in the query of the GET
 * - a form for a client that did not ask for one
 * - forms that are too large, of another type, or say a thing twice
 * - a cookie that another subdomain planted, beside ours or instead of it
 * - images, frames and scripts that post
 * - errors as answers, true and made up
 */
const start = appPerTest()

const byForm = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ providerName: 'acme', responseMode: 'form_post' }))
const other = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ providerName: 'other', responseMode: 'form_post' }))

const mounted = ({ settings, ...options }: Omit<MountOptions, 'knex'> = {}) =>
  start({ settings: { cookieSecure: true, ...settings }, providers: { acme: byForm, other, corp: {} }, ...options })

const postName = '__Host-oauth_state_post'
const foreign = { Origin: 'https://idp.example', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }

/** A browser that is at the provider. `lax` is what it sends with a GET from there, `none` with a form. */
async function atProvider(host: Mounted, { key = 'acme', profile = newPerson() as Record<string, unknown>, cookie = '' } = {}) {
  const response = await supertest(host.app).get(`/auth/oauth/${key}/login`).set('Cookie', cookie)
  const { callbackForm, callbackUrl } = host.provider.authorize(String(response.headers['location']), { profile })
  const none = String(cookiePair(response, postName))
  return { response, form: callbackForm ?? {}, callbackUrl, none, lax: `${cookiePair(response)}; ${none}` }
}

interface Sent {
  key?: string
  cookie?: string
  headers?: Record<string, string>
}

function postForm(host: Mounted, form: object | string, { key = 'acme', cookie = '', headers = {} }: Sent) {
  const type = { 'Content-Type': 'application/x-www-form-urlencoded' }
  return supertest(host.app)
    .post(`/auth/oauth/${key}/callback`)
    .set({ ...type, ...foreign, ...headers, ...(cookie && { Cookie: cookie }) })
    .send(typeof form === 'string' ? form : new URLSearchParams(form as Record<string, string>).toString())
}

function follow(host: Mounted, response: HttpResponse, cookie: string, change = (path: string) => path) {
  expect([response.status, response.text]).toEqual([303, ''])
  const { pathname, search } = new URL(String(response.headers['location']))
  return supertest(host.app)
    .get(change(pathname + search))
    .set({ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate', ...(cookie && { Cookie: cookie }) })
}

const outcome = ({ status, body }: HttpResponse) => [status, body.code]
const mismatch = [401, 'OAUTH_STATE_MISMATCH']

test('the answer by form is sealed for the GET callback, which logs in with the Lax cookie', async () => {
  const host = await mounted()
  const person = newPerson({ name: 'Form Person' })
  const { response, form, callbackUrl, none, lax } = await atProvider(host, { profile: person })
  expect(new URL(String(response.headers['location'])).searchParams.get('response_mode')).toBe('form_post')
  expect(cookieAttributes(response, postName)).toMatchObject({ path: '/', samesite: 'None', secure: '', httponly: '', 'max-age': '600' })
  expect(cookieAttributes(response, postName)).not.toHaveProperty('domain')
  expect(cookieAttributes(response)).toMatchObject({ samesite: 'Lax' })

  const posted = await postForm(host, form, { cookie: none })
  expect(String(posted.headers['location'])).toMatch(/^https:\/\/app\.example\.test\/auth\/oauth\/acme\/callback\?answer=v1\.[\w.-]+$/)
  expect(posted.headers['location']).not.toContain(form['code'])
  expect(callbackUrl).toBe('https://app.example.test/auth/oauth/acme/callback')
  expect(setCookies(posted)).toEqual([])
  expect([posted.headers['cache-control'], posted.headers['referrer-policy']]).toEqual(['no-store', 'no-referrer'])

  const login = await follow(host, posted, lax)
  expect([login.status, typeof login.body.access_token]).toEqual([200, 'string'])
  expect(cookiePair(login, postName)).toBe(`${postName}=`)
  expect(await host.knex('auth_users').select('email', 'name')).toEqual([{ email: person.email, name: 'Form Person' }])
})

test('several tabs, and providers that answer in the query, go on beside each other', async () => {
  const host = await mounted()
  const one = await atProvider(host)
  const two = await atProvider(host, { cookie: one.lax })
  const query = await supertest(host.app).get('/auth/oauth/corp/login').set('Cookie', two.lax)
  const none = String(cookiePair(query, postName))
  const cookies = `${cookiePair(query)}; ${none}`
  const { callbackQuery } = host.provider.authorize(String(query.headers['location']), { profile: newPerson() })

  const first = await follow(host, await postForm(host, one.form, { cookie: none }), cookies)
  const left = `${cookiePair(first)}; ${cookiePair(first, postName)}`
  const second = await supertest(host.app).get('/auth/oauth/corp/callback').query(callbackQuery).set('Cookie', left)
  const lastNone = String(cookiePair(second, postName))
  const third = await follow(host, await postForm(host, two.form, { cookie: lastNone }), `${cookiePair(second)}; ${lastNone}`)
  expect([first, second, third].map(({ status }) => status)).toEqual([200, 200, 200])
})

describe('login CSRF', () => {
  test("an attacker's form is nobody else's: without the cookie of this browser it is refused, and writes nothing", async () => {
    const host = await mounted()
    const [attacker, victim] = [await atProvider(host), await atProvider(host)]
    for (const cookie of ['', victim.none, victim.lax]) {
      const response = await postForm(host, attacker.form, { cookie, headers: oldBrowser })
      expect(outcome(response)).toEqual(mismatch)
      expect(setCookies(response)).toEqual([])
    }
    expect(host.provider.requests).toEqual([])
    expect((await follow(host, await postForm(host, victim.form, { cookie: victim.none }), victim.lax)).status).toBe(200)
  })

  test("another browser's sealed answer is refused, with no cookies, with its own, and with a planted Lax cookie", async () => {
    const host = await mounted()
    const [attacker, victim] = [await atProvider(host), await atProvider(host)]
    const posted = await postForm(host, attacker.form, { cookie: attacker.none })
    const [plantable = ''] = attacker.lax.split('; ')
    for (const cookie of ['', victim.lax, `${plantable}; ${victim.none}`, plantable])
      expect(outcome(await follow(host, posted, cookie))).toEqual(mismatch)
    expect(host.provider.requestsTo('token')).toEqual([])
    expect(await host.knex('auth_users')).toEqual([])
  })

  test.each([
    ['a cookie of another subdomain, by its plain name', (none: string) => none.replace('__Host-', '')],
    ['a cookie whose MAC is not ours', (none: string) => none.replace(/.{4}$/, 'AAAA')],
  ])('%s counts for nothing', async (_what, plant) => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    const posted = await postForm(host, form, { cookie: none })
    const response = await postForm(host, form, { cookie: plant(none) })
    expect(outcome(response)).toEqual(mismatch)
    expect(outcome(await follow(host, posted, lax.replace(none, plant(none))))).toEqual(mismatch)
    expect(setCookies(response).filter((line) => line.startsWith(`${postName}=; Path=/; Expires=`))).toEqual([])
  })

  test.each([
    ['our cookie, and another of the same name', (none: string) => `${none}; ${postName}=planted`],
    ['another of the same name, and our cookie', (none: string) => `${postName}=planted; ${none}`],
    ['our cookie twice', (none: string) => `${none}; ${none}`],
  ])('%s: the value that we made counts (25.7.8)', async (_what, plant) => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    const response = await postForm(host, form, { cookie: plant(none) })
    expect(response.status).toBe(303)
    expect((await follow(host, response, lax.replace(none, plant(none)))).status).toBe(200)
  })
})

describe('a sealed answer', () => {
  test('is used once', async () => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    const posted = await postForm(host, form, { cookie: none })
    const again = await postForm(host, form, { cookie: none })
    expect((await follow(host, posted, lax)).status).toBe(200)
    expect(outcome(await follow(host, posted, lax))).toEqual(mismatch)
    expect(outcome(await follow(host, again, lax))).toEqual(mismatch)
    expect(host.provider.requestsTo('token').length).toBe(1)
  })

  test('ends after 60 seconds', async () => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    const posted = await postForm(host, form, { cookie: none })
    host.clock.advance(59)
    const last = await postForm(host, form, { cookie: none })
    host.clock.advance(1)
    expect(outcome(await follow(host, posted, lax))).toEqual(mismatch)
    expect((await follow(host, last, lax)).status).toBe(200)
  })

  test('is of no use when it was changed, or at another provider', async () => {
    const host = await mounted()
    const tab = await atProvider(host)
    const { form, none, lax } = await atProvider(host, { key: 'other', cookie: tab.lax })
    const changes = [
      (path: string) => path.replace(/.{3}$/, 'AAA'),
      (path: string) => path.replace('/other/', '/acme/'),
      (path: string) => path.replace('answer=v1', 'answer=v2'),
      (path: string) => `${path}&answer=x`,
      (path: string) => path.replace(/answer=.*/, 'answer='),
    ]
    const posted = await postForm(host, form, { key: 'other', cookie: none })
    for (const change of changes) expect(outcome(await follow(host, posted, lax, change))).toEqual(mismatch)
    expect((await follow(host, posted, lax)).status).toBe(200)
  })

  test('ends with the attempt, by the clock of the server', async () => {
    const host = await mounted()
    const { form, none } = await atProvider(host)
    host.clock.advance(600)
    expect(outcome(await postForm(host, form, { cookie: none }))).toEqual(mismatch)
  })
})

test('code and state in the query of the GET are no answer of a provider that posts', async () => {
  const host = await mounted()
  const { form, lax } = await atProvider(host)
  const response = await supertest(host.app).get('/auth/oauth/acme/callback').query(form).set('Cookie', lax)
  expect(outcome(response)).toEqual(mismatch)
  expect(host.provider.requestsTo('token')).toEqual([])
})

test('a form for a client that did not ask for one is 405; for a provider that nobody registered, 404', async () => {
  const host = await mounted()
  const { form, none } = await atProvider(host)
  const response = await postForm(host, form, { key: 'corp', cookie: none })
  expect([...outcome(response), response.headers['allow']]).toEqual([405, 'METHOD_NOT_ALLOWED', 'GET'])
  expect(outcome(await postForm(host, form, { key: 'nobody', cookie: none }))).toEqual([404, 'OAUTH_PROVIDER_NOT_CONFIGURED'])
  expect(outcome(await postForm(host, form, { key: 'other', cookie: none }))).toEqual(mismatch)
})

test('a sealed answer in the query means nothing to a client that did not ask for a form', async () => {
  const host = await mounted()
  const { form, none } = await atProvider(host)
  const posted = await postForm(host, form, { cookie: none })
  const login = await supertest(host.app).get('/auth/oauth/corp/login')
  const response = await follow(host, posted, String(cookiePair(login)), (path) => path.replace('/acme/', '/corp/'))
  expect(outcome(response)).toEqual(mismatch)
})

test('a name in the query of a provider that answers in the query names nobody', async () => {
  const host = await mounted()
  const person = newPerson({ name: null })
  const { callbackUrl, lax } = await atProvider(host, { key: 'corp', profile: person })
  const { pathname, search } = new URL(callbackUrl)
  await supertest(host.app).get(`${pathname}${search}&name=Mallory`).set('Cookie', lax).expect(200)
  expect(await host.knex('auth_users').where({ email: person.email }).first()).toMatchObject({ name: 'You' })
})

test('without such a client there is no POST', async () => {
  const host = await start()
  const response = await supertest(host.app).post('/auth/oauth/corp/callback').type('form').send({ state: 'x' })
  expect([...outcome(response), response.headers['allow']]).toEqual([405, 'METHOD_NOT_ALLOWED', 'GET'])
})

describe('forms that are wrong', () => {
  const text = (form: object, more: string) => `${new URLSearchParams(form as Record<string, string>)}&${more}`

  test.each<[string, (form: Record<string, string>) => string, Record<string, string>, unknown[]]>([
    ['of more than 16 KiB', (form) => text(form, `user=${'x'.repeat(17_000)}`), {}, [413, 'PAYLOAD_TOO_LARGE']],
    ['with a code that fits in no address', (form) => text({ ...form, code: 'c'.repeat(5_000) }, ''), {}, [413, 'PAYLOAD_TOO_LARGE']],
    ['with an issuer that fits in no address', (form) => text(form, `iss=${'%0a'.repeat(3_000)}`), {}, [413, 'PAYLOAD_TOO_LARGE']],
    ['in JSON', (form) => JSON.stringify(form), { 'Content-Type': 'application/json' }, [415, 'UNSUPPORTED_MEDIA_TYPE']],
    ['in several parts', () => 'x', { 'Content-Type': 'multipart/form-data; boundary=x' }, [415, 'UNSUPPORTED_MEDIA_TYPE']],
    ['with two states', (form) => text(form, `state=${form['state']}`), {}, mismatch],
    ['with a state of another name', ({ state, code }) => `state[]=${state}&code=${code}`, {}, mismatch],
    ['without a state', ({ code }) => `code=${code}`, {}, mismatch],
    ['with nothing', () => '', {}, mismatch],
  ])('%s', async (_what, bodyOf, headers, refusal) => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    expect(outcome(await postForm(host, bodyOf(form), { cookie: none, headers }))).toEqual(refusal)
    expect(host.provider.requests).toEqual([])
    expect((await follow(host, await postForm(host, form, { cookie: none }), lax)).status).toBe(200)
  })

  test.each([
    ['two codes', (form: object) => text(form, 'code=another'), [422, 'OAUTH_CODE_MISSING']],
    ['no code', ({ state }: Record<string, string>) => `state=${state}`, [422, 'OAUTH_CODE_MISSING']],
    ['another issuer', (form: object) => text(form, 'iss=https%3A%2F%2Fevil.example'), [502, 'OAUTH_ERROR']],
  ])('%s: the GET says so', async (_what, bodyOf, refusal) => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    expect(outcome(await follow(host, await postForm(host, bodyOf(form), { cookie: none }), lax))).toEqual(refusal)
    expect(host.provider.requestsTo('token')).toEqual([])
  })

  test('fields that the GET does not read are not passed on', async () => {
    const host = await mounted()
    const { form, none } = await atProvider(host)
    const [plain, full] = await Promise.all(
      [form, { ...form, id_token: 'x'.repeat(4_000), name: 'x'.repeat(4_000), user: '{"name":{"firstName":"x"}}' }].map((fields) =>
        postForm(host, fields, { cookie: none }),
      ),
    )
    expect(String(full?.headers['location']).length).toBe(String(plain?.headers['location']).length)
  })
})

test('an image, a frame of data or a script of another site is refused before it counts', async () => {
  const host = await mounted({ options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
  const { form, none } = await atProvider(host)
  for (const mode of ['no-cors', 'cors', 'same-origin'])
    expect(outcome(await postForm(host, form, { cookie: none, headers: { 'Sec-Fetch-Mode': mode } }))).toEqual([
      403,
      'CSRF_VALIDATION_FAILED',
    ])
  expect((await postForm(host, form, { cookie: none })).status).toBe(303)
  expect(outcome(await postForm(host, form, { cookie: none }))).toEqual([429, 'TOO_MANY_REQUESTS'])
})

describe('an error by form', () => {
  test.each([
    ['access_denied', 'access_denied', false],
    ['user_cancelled_authorize', 'access_denied', false],
    ['invalid_scope', 'invalid_scope', true],
  ])('%s is a denial, told by the GET', async (error, told, isLogged) => {
    const host = await mounted()
    const { form, none, lax } = await atProvider(host)
    const posted = await postForm(host, { state: String(form['state']), error, error_description: 'Why it is' }, { cookie: none })
    const response = await follow(host, posted, lax)
    expect([...outcome(response), response.body.details]).toEqual([401, 'OAUTH_PROVIDER_DENIED', { error: told }])
    expect(cookiePair(response, postName)).toBe(`${postName}=`)
    expect(host.logs.text().includes('Why it is')).toBe(isLogged)
  })

  test('that nobody asked for is refused by its state, and no log has it', async () => {
    const host = await mounted()
    const { none } = await atProvider(host)
    for (const form of [{ error: 'server_error' }, { error: 'server_error', state: 'made-up' }])
      expect(outcome(await postForm(host, form, { cookie: none }))).toEqual(mismatch)
    expect(host.logs.text()).not.toContain('server_error')
  })

  test('in the query, from a provider that refused the request itself, is a denial too', async () => {
    const host = await mounted()
    const { form, lax } = await atProvider(host)
    const query = { error: 'invalid_request', state: String(form['state']) }
    const response = await supertest(host.app).get('/auth/oauth/acme/callback').query(query).set('Cookie', lax)
    expect(outcome(response)).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
  })
})

test('refusals of the POST lead to the page of errors, where there is one', async () => {
  const host = await mounted({ settings: { tokenDelivery: 'cookie', oauthSuccessRedirect: '/in', oauthErrorRedirect: '/out' } })
  const { form, none, lax } = await atProvider(host)
  const refused = await postForm(host, form, {})
  expect([refused.status, refused.headers['location']]).toEqual([302, '/out?error=OAUTH_STATE_MISMATCH'])
  const answer = await follow(host, await postForm(host, form, { cookie: none }), lax)
  expect([answer.status, answer.headers['location']]).toEqual([302, '/in'])
})

test('another process with the same secret takes the answer', async () => {
  const one = await mounted()
  const { form, none, lax } = await atProvider(one)
  const posted = await postForm(one, form, { cookie: none })
  const two = await mounted({ providers: { acme: () => byForm(one.provider) } })
  expect((await follow(two, posted, lax)).status).toBe(200)
})

test('a body that the host parsed first is taken', async () => {
  const { default: express } = await import('express')
  const host = await mounted({ before: [express.urlencoded({ extended: true })] })
  const { form, none, lax } = await atProvider(host)
  expect((await follow(host, await postForm(host, form, { cookie: none }), lax)).status).toBe(200)
})

test('boot refuses responseMode without secure cookies, and a responseMode that it does not know', async () => {
  const provider = { authorizeUrl: 'https://idp.example/a', tokenUrl: 'https://idp.example/t', clientId: 'id', clientSecret: 'secret' }
  const { knex } = await start()
  const boot = (cookieSecure: boolean, client: object) => () =>
    createAuthRouter({
      settings: { jwtSecret: testSecret, oauthEnabled: true, oauthRedirectBaseUrl: 'https://app.example.test', cookieSecure },
      store: createKnexStore({ knex }),
      providers: { acme: client as OidcClient },
      environment: 'test',
      now: testClock().now,
    })
  const client = new OidcClient({ ...provider, responseMode: 'form_post' })
  expect(boot(false, client)).toThrow(/Provider acme answers by form_post.*cookieSecure \(AUTH_COOKIE_SECURE\)/)
  expect(boot(true, client)).not.toThrow()
  const handMade = { ...client, scopes: [], exchangeCode: () => undefined, fetchUser: () => undefined, responseMode: 'fragment' }
  expect(boot(true, handMade)).toThrow(/Provider acme: responseMode must be 'form_post'/)
  const unknown = { ...provider, responseMode: 'fragment' as 'form_post' }
  expect(() => new OidcClient(unknown)).toThrow(/responseMode must be 'form_post'/)
})
