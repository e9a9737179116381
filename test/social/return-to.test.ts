import { describe, expect, test } from 'vitest'
import { readReturnTo } from '../../src/http/return-to'
import { authenticator } from '../mfa/authenticator'
import { type Browser, baseUrl, type Mounted, setCookieOf, signIn, startLogin } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { link, member } from './link-steps'
import { begin, callBack, cookieAttributes, cookiePair, type HttpResponse, newPerson } from './redirect-steps'

const start = appPerTest()
const trusted = 'https://shop.example.test:8443'
const html = { Accept: 'text/html' }
const cookies = { tokenDelivery: 'cookie', trustedOrigins: [trusted] } as const
const unlimited = { throttle: { routes: false } } as const

const longest = `/${'a'.repeat(1_023)}`

/** What a browser may be sent back to, and where it then goes. */
const honest: readonly (readonly [value: string, location: string])[] = [
  ['/', '/'],
  ['/orders/7?tab=2&sort=-date#items', '/orders/7?tab=2&sort=-date#items'],
  ['/a%20b?next=https%3A%2F%2Felsewhere.example%2F', '/a%20b?next=https%3A%2F%2Felsewhere.example%2F'],
  ['/search?q=a%0Ab&path=C:\\x', '/search?q=a%0Ab&path=C:\\x'],
  ['/@someone/https://elsewhere.example', '/@someone/https://elsewhere.example'],
  [longest, longest],
  [`${baseUrl}/orders`, `${baseUrl}/orders`],
  [baseUrl, `${baseUrl}/`],
  [`${baseUrl}:443/a/../b`, `${baseUrl}/b`],
  ['HTTPS://APP.Example.TEST/Orders', `${baseUrl}/Orders`],
  [`${trusted}/cart?mail=a@b.example`, `${trusted}/cart?mail=a@b.example`],
]

/** What an attacker would like a browser to be sent to. */
const hostile: readonly string[] = [
  '',
  ' ',
  ' /orders',
  '/orders ',
  'orders',
  './orders',
  '?next=/',
  '#top',
  '//elsewhere.example',
  '///elsewhere.example',
  '//app.example.test',
  '/\\elsewhere.example',
  '/\\/elsewhere.example',
  '\\/elsewhere.example',
  '\\\\elsewhere.example',
  '/orders\\..\\x',
  '/\t/elsewhere.example',
  '\t//elsewhere.example',
  '/\n/elsewhere.example',
  '/\r\nLocation: https://elsewhere.example',
  '/orders\u0000',
  '/%09/elsewhere.example',
  '/%0a/elsewhere.example',
  '/%0D%0ALocation:https://elsewhere.example',
  '/%00/elsewhere.example',
  '/%20/elsewhere.example',
  '/%2felsewhere.example',
  '/%2F%2Felsewhere.example',
  '/%5celsewhere.example',
  '/.//elsewhere.example',
  '/..//elsewhere.example',
  '/%2e//elsewhere.example',
  '/a/..//elsewhere.example',
  '/a/%2E%2e//elsewhere.example',
  'https://elsewhere.example',
  'https://elsewhere.example/https://app.example.test',
  'https://app.example.test.elsewhere.example',
  'https://app.example.test@elsewhere.example',
  'https://app.example.test:x@elsewhere.example',
  'https://user@app.example.test/',
  'https://user:word@app.example.test/',
  'https://@app.example.test/',
  'https://:@app.example.test/',
  'https://app.example.test\\@elsewhere.example',
  'https://elsewhere.example\\app.example.test',
  'https://elsewhere.example#@app.example.test',
  'https://elsewhere.example?@app.example.test',
  'https://app.example.test%2eelsewhere.example/',
  'https://app.example.test./',
  'https://app.example.test:8443/',
  'https://shop.example.test/',
  'https://shop.example.test:8444/',
  'http://app.example.test/',
  'https:app.example.test',
  'https:/app.example.test',
  'https:///app.example.test',
  'https:\\\\app.example.test',
  'ht\ttps://app.example.test',
  'https://аpp.example.test/', // a Cyrillic а
  'https://xn--pp-7kc.example.test/',
  'https://app。example。test/',
  'https://ａｐｐ.example.test/',
  '/ünï',
  '/\u202eorders',
  'javascript:alert(1)',
  'JaVaScRiPt://app.example.test/%0aalert(1)',
  'data:text/html,x',
  'vbscript:x',
  'blob:https://app.example.test/0',
  'filesystem:https://app.example.test/0',
  'view-source:https://app.example.test/',
  'file:///etc/passwd',
  'ftp://app.example.test/',
  'wss://app.example.test/',
  'com.example.app:/in',
  'null',
  `/${'a'.repeat(1_024)}`,
  `${baseUrl}/${'a'.repeat(1_024)}`,
]

const atLogin = (host: Mounted, search: string) => host.browser().get(`/auth/oauth/corp/login?${search}`)
const encoded = (value: string) => `return_to=${encodeURIComponent(value)}`

function expectRefused(response: HttpResponse, value: string): void {
  expect([response.status, response.body.code, response.headers['location']], value).toEqual([422, 'VALIDATION_ERROR', undefined])
  expect(response.headers['set-cookie'], value).toBeUndefined()
  expect(response.body.details.errors[0].path).toBe('return_to')
}

/** A person whose login ends in a challenge. */
async function enrolled(host: Mounted, profile = newPerson()) {
  const browser = host.browser()
  const { value: accessToken } = setCookieOf(await signIn(host, browser, { profile }), 'access_token') ?? {}
  const as = { Authorization: `Bearer ${accessToken}` }
  const enrolment = await browser.post('/auth/mfa/enroll').set(as).send({})
  const app = authenticator(enrolment.body.secret, host.clock)
  await browser.post('/auth/mfa/confirm').set(as).send({ code: app.code() })
  return { app, profile }
}

/** The challenge page of a login with a `return_to`. */
async function challenged(host: Mounted, browser: Browser, profile: object, returnTo: string) {
  const page = await signIn(host, browser, { profile: { ...profile }, query: { return_to: returnTo }, headers: html })
  expect([page.status, page.headers['content-type']], page.text).toEqual([200, 'text/html; charset=utf-8'])
  const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(page.text) ?? []
  const [, mfaToken = ''] = /name="mfa_token" value="([^"]+)"/.exec(page.text) ?? []
  return { page, action, mfaToken }
}

const submit = (browser: Browser, action: string, fields: object) =>
  browser.post(action).set({ Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }).type('form').send(fields)

describe('return_to at the start', () => {
  test('each hostile value is 422 at login, without a cookie and without a redirect', async () => {
    const settings = { ...cookies, oauthSuccessRedirect: '/in', oauthErrorRedirect: '/out' }
    const host = await start({ settings, options: unlimited })
    expect(hostile.length).toBeGreaterThanOrEqual(60)
    for (const value of hostile) expectRefused(await atLogin(host, encoded(value)), value)
    for (const search of ['return_to=/a&return_to=/a', 'return_to=/a&return_to=', 'return_to=%ff', 'return_to=/a+b', 'return_to'])
      expectRefused(await atLogin(host, search), search)
  })

  test('it is 422 in the body of link and reauthenticate too', async () => {
    const host = await start({ settings: { ...cookies, tokenDelivery: 'both' }, providers: { corp: {}, acme: {} }, options: unlimited })
    const ana = await member(host)
    const as = { Authorization: `Bearer ${ana.token}` }
    for (const value of [...hostile.filter((_, index) => index % 8 === 0), null, 7, ['/a'], { a: '/a' }])
      for (const path of ['acme/link', 'corp/reauthenticate'])
        expectRefused(await host.browser().post(`/auth/oauth/${path}`).set(as).send({ return_to: value }), String(value))
  })

  test('delivery bearer takes none: a redirect would lose the tokens', async () => {
    const host = await start({ providers: { corp: {}, acme: {} } })
    expectRefused(await atLogin(host, encoded('/orders')), '/orders')
    const ana = await member(host)
    const as = { Authorization: `Bearer ${ana.token}` }
    for (const path of ['acme/link', 'corp/reauthenticate'])
      expectRefused(await host.browser().post(`/auth/oauth/${path}`).set(as).send({ return_to: '/orders' }), path)
  })

  test('without a public origin only paths and trusted origins are taken', () => {
    const settings = { publicUrl: '', trustedOrigins: [trusted], tokenDelivery: 'cookie' } as const
    expect([readReturnTo(settings, []), readReturnTo(settings, [`${trusted}/a`])]).toEqual([null, `${trusted}/a`])
    expect(() => readReturnTo(settings, ['https://app.example.test/'])).toThrow()
  })
})

describe('return_to after a success', () => {
  test('each honest value is where the browser goes, whatever Accept says, with and without a success redirect', async () => {
    for (const settings of [cookies, { ...cookies, oauthSuccessRedirect: '/in' }]) {
      const host = await start({ settings, options: unlimited })
      const profile = newPerson()
      for (const [index, [value, location]] of honest.entries()) {
        const headers = index % 2 === 0 ? html : { Accept: 'application/json' }
        const answer = await signIn(host, host.browser(), { profile, query: { return_to: value }, headers })
        expect([answer.status, answer.headers['location'], answer.text], value).toEqual([302, location, ''])
        expect(setCookieOf(answer, 'access_token')).not.toBeNull()
      }
    }
  })

  test('the provider never sees it, and the next login does not have it', async () => {
    const host = await start({ settings: cookies })
    const browser = host.browser()
    const login = await browser.get('/auth/oauth/corp/login').query({ return_to: '/orders/secret-7' })
    expect(decodeURIComponent(String(login.headers['location']))).not.toContain('secret-7')
    await signIn(host, browser, { query: { return_to: '/orders/secret-7' } })
    expect(host.provider.requests.map((request) => JSON.stringify(request)).join()).not.toContain('secret-7')

    expect((await signIn(host, browser)).status).toBe(200)
  })

  test('nobody can change it on the way: one character of the cookie is a mismatch', async () => {
    const host = await start({ settings: cookies })
    const { query, cookie } = await begin(host, { profile: newPerson(), query: { return_to: '/orders' } })
    const [, field = ''] = /\.([\w-]+)\.[\w-]+$/.exec(cookie) ?? []
    const other = Buffer.from(JSON.stringify({ returnTo: '//elsewhere.example' })).toString('base64url')

    const refused = await callBack(host, query, { cookie: cookie.replace(field, other) })
    expect([refused.status, refused.body.code]).toEqual([401, 'OAUTH_STATE_MISMATCH'])
  })

  test('each tab comes back to its own page', async () => {
    const host = await start({ settings: cookies })
    const browser = host.browser()
    const [first, second] = [
      await startLogin(host, browser, { profile: newPerson(), query: { return_to: '/first' } }),
      await startLogin(host, browser, { profile: newPerson(), query: { return_to: '/second' } }),
    ]
    for (const [{ callbackQuery }, location] of [[first, '/first'] as const, [second, '/second'] as const])
      expect((await browser.get('/auth/oauth/corp/callback').query(callbackQuery)).headers['location']).toBe(location)
  })

  test('a failure goes to oauthErrorRedirect, with its code alone', async () => {
    const host = await start({ settings: { ...cookies, oauthErrorRedirect: '/out' } })
    const { query, cookie } = await begin(host, { query: { return_to: '/orders' } })
    const denied = await callBack(host, { error: 'access_denied', state: String(query['state']) }, { cookie })
    expect(denied.headers['location']).toBe('/out?error=OAUTH_PROVIDER_DENIED')
  })
})

describe('the state cookie', () => {
  test('stays within 4,000 bytes with its attributes: the oldest attempts give way', async () => {
    const host = await start({ settings: { ...cookies, cookieSecure: true }, prefix: '/api/v1/auth' })
    const returnTo = (page: number) => `/${page}${'a'.repeat(1_022)}`
    let last = await begin(host, { profile: newPerson(), query: { return_to: returnTo(0) } })
    const oldest = last
    for (let page = 1; page < 5; page += 1)
      last = await begin(host, { cookie: last.cookie, profile: newPerson(), query: { return_to: returnTo(page) } })

    const lines = (last.response.headers['set-cookie'] ?? []) as unknown as string[]
    expect(lines.map((line) => [line.split('=')[0], Buffer.byteLength(line) <= 4_000])).toEqual([
      ['oauth_state', true],
      ['__Host-oauth_browser', true],
    ])
    expect(last.cookie.split('~').length).toBe(2)
    expect(cookieAttributes(last.response)).toMatchObject({ path: '/api/v1/auth', samesite: 'Lax' })
    expect((await callBack(host, last.query, { cookie: last.cookie })).headers['location']).toBe(returnTo(4))
    expect((await callBack(host, oldest.query, { cookie: last.cookie })).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('five short ones still live side by side', async () => {
    const host = await start({ settings: cookies })
    let cookie = ''
    for (let page = 0; page < 5; page += 1) ({ cookie } = await begin(host, { cookie, query: { return_to: `/orders/${page}` } }))
    expect(cookie.split('~')).toHaveLength(5)
  })
})

describe('return_to through the second factor', () => {
  const mfa = { ...cookies, mfaEnabled: true, mfaIssuer: 'Example' }

  test.each(['cookie', 'both'] as const)('delivery %s: the page leads there after a wrong and a right code', async (tokenDelivery) => {
    const host = await start({ settings: { ...mfa, tokenDelivery } })
    const { app, profile } = await enrolled(host)
    const browser = host.browser()
    const { page, action, mfaToken } = await challenged(host, browser, profile, `${trusted}/cart`)
    expect(page.headers['content-security-policy']).toContain(`form-action 'self' ${trusted};`)

    const wrong = await submit(browser, action, { mfa_token: mfaToken, code: '000000' })
    expect([wrong.status, wrong.headers['content-security-policy']?.includes(trusted)]).toEqual([400, true])
    const done = await submit(browser, action, { mfa_token: mfaToken, code: app.nextCode() })
    expect([done.status, done.headers['location'], done.text]).toEqual([302, `${trusted}/cart`, ''])
    expect(setCookieOf(done, 'access_token')).not.toBeNull()
  })

  test('an answer in JSON that opens the session carries it, and the challenge itself does not', async () => {
    const host = await start({ settings: { ...mfa, tokenDelivery: 'both' } })
    const { app, profile } = await enrolled(host)
    for (const [path, value, returnTo] of [
      ['/mfa/verify', '/orders', '/orders'],
      ['/cookie/mfa/verify', baseUrl, `${baseUrl}/`],
      ['/session/mfa/verify', '/orders', '/orders'],
    ] as const) {
      const browser = host.browser()
      const { body } = await signIn(host, browser, { profile, query: { return_to: value } })
      expect([body.mfa_required, 'return_to' in body]).toEqual([true, false])
      const done = await browser.post(`/auth${path}`).send({ mfa_token: body.mfa_token, code: app.nextCode() })
      expect([done.status, done.body.return_to], path).toEqual([200, returnTo])
    }
  })

  test('a login that began without one has none, and its form without a page of ours is 415', async () => {
    const host = await start({ settings: mfa })
    const { app, profile } = await enrolled(host)
    const browser = host.browser()
    const { body } = await signIn(host, browser, { profile, headers: html })
    const form = await submit(browser, '/auth/mfa/verify', { mfa_token: body.mfa_token, code: app.nextCode() })
    expect([form.status, form.body.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
    const done = await browser.post('/auth/mfa/verify').send({ mfa_token: body.mfa_token, code: app.code() })
    expect([done.status, 'return_to' in done.body]).toEqual([200, false])
  })
})

describe('return_to of a signed-in person', () => {
  const settings = { ...cookies, tokenDelivery: 'both', oauthSuccessRedirect: '/in', accessTokenTtlSeconds: 7_200 } as const
  const here = { Origin: baseUrl }

  /** Somebody signed in by cookies, who begins at a provider and comes back. */
  async function comesBack(host: Mounted, path: string, { isSignedIn = true } = {}) {
    const profile = newPerson()
    const browser = host.browser()
    await signIn(host, browser, { profile })
    const other = newPerson()
    const began = await browser.post(`/auth/oauth/${path}`).set(here).send({ return_to: '/settings?tab=2' })
    expect(began.status, began.text).toBe(200)
    expect(began.body.authorize_url).not.toContain('settings')
    const seconds = Math.floor(host.clock.now().getTime() / 1000)
    const who = path.startsWith('corp') ? { ...profile, auth_time: seconds } : other
    const { callbackQuery } = host.provider.authorize(began.body.authorize_url, { profile: who })
    const at = `/auth/oauth/${path.split('/')[0]}/callback`
    if (isSignedIn) return browser.get(at).query(callbackQuery)
    return host
      .browser()
      .get(at)
      .query(callbackQuery)
      .set('Cookie', String(cookiePair(began)))
  }

  test.each(['acme/link', 'corp/reauthenticate'])('%s leads there once it is done', async (path) => {
    const host = await start({ settings, providers: { corp: {}, acme: {} } })
    const answer = await comesBack(host, path)
    expect([answer.status, answer.headers['location'], answer.text]).toEqual([302, '/settings?tab=2', ''])
  })

  test.each(['acme/link', 'corp/reauthenticate'])('%s never puts a ticket on it', async (path) => {
    const host = await start({ settings, providers: { corp: {}, acme: {} } })
    const answer = await comesBack(host, path, { isSignedIn: false })
    expect(answer.headers['location']).toMatch(/^\/in#(link|reauthentication)_ticket=/)
  })

  test('a link begun without one is as before', async () => {
    const host = await start({ settings: { ...settings, oauthSuccessRedirect: '' }, providers: { corp: {}, acme: {} } })
    expect((await link(host, await member(host))).status).toBe(200)
  })
})
