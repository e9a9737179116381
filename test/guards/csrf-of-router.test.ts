import express, { type Express } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type AuthRouter, ConfigurationError, createGuards, createKnexStore, csrfToken } from '../../src'
import { bearerOf, type LocalOptions, onLocal, password, signedIn } from '../local/people'
import { member } from '../server-session/devices'
import { setCookies } from '../social/redirect-steps'
import { type Browser, setCookieOf, testSecret } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { makeKey } from '../support/signing-keys'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn, opened } = onLocal(sqlite)

const api = 'https://api.example.com'
const page = 'https://app.example.com'
const ownSecret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe4iTo'
const deliveries = ['cookie', 'both', 'session'] as const
const wayOf = (delivery: string, path: string) => `/auth${delivery === 'both' ? '/cookie' : ''}${path}`

/** The CSRF guard stands before the guard that knows the session, and behind it. */
const places = ['/before', '/behind'] as const

function hostRoutes(app: Express, auth: AuthRouter): void {
  const { csrf, requireAuth } = auth.guards
  const done: express.RequestHandler = (_req, res) => void res.json({ done: true })
  app.use(express.urlencoded({ extended: false }))
  app.post('/before', csrf(), requireAuth(), done)
  app.post('/behind', requireAuth(), csrf(), done)
  app.post('/own-secret', csrf({ secret: ownSecret }), done)
  app.get('/own-secret', csrfToken({ secret: ownSecret, secure: false }), (_req, res) => void res.send(res.locals['csrfToken']))
  app.get('/form', auth.guards.optionalAuth(), auth.csrfToken(), (_req, res) => void res.send(res.locals['csrfToken']))
}

const start = ({ settings, ...options }: LocalOptions = {}) =>
  startOn({ host: hostRoutes, ...options, settings: { oauthRedirectBaseUrl: api, trustedOrigins: [page], ...settings } })

type Host = Awaited<ReturnType<typeof start>>

const tokenOf = async (browser: Browser, delivery: string): Promise<string> =>
  (await browser.get(wayOf(delivery, '/whoami')).set('Origin', page)).body.csrf_token

const logIn = async (browser: Browser, delivery: string, { email }: { email: string }) =>
  expect((await browser.post(wayOf(delivery, '/login')).set('Origin', page).send({ email, password })).status).toBe(200)

/** What POSTs to both places answer: the reason of a CSRF refusal, or the status. */
async function sent(browser: Browser, token: string, headers: Record<string, string> = { Origin: page }): Promise<unknown[]> {
  const answers = []
  for (const place of places) {
    const { status, body } = await browser.post(place).set({ 'X-CSRF-Token': token, ...headers })
    answers.push(body.code === 'CSRF_VALIDATION_FAILED' ? body.details.reason : status)
  }
  return answers
}

const both = (outcome: unknown) => [outcome, outcome]

function plantAtSite(browser: Browser, name: string, value: string): void {
  browser.cookies.plant({ name, value, domain: 'example.com', path: '/' })
}

async function signedInBrowser(host: Host, delivery: string, someone?: { email: string }): Promise<Browser> {
  const browser = host.browser()
  await logIn(browser, delivery, someone ?? (await member(host)))
  return browser
}

const cookieOf = (browser: Browser, name: string) => browser.cookies.kept().find(({ key }) => key === name)?.value ?? ''

describe.each(deliveries)('guards.csrf() with the token of whoami, in delivery %s', (tokenDelivery) => {
  const settings = { tokenDelivery, cookieSecure: true }

  test('takes the token after a login and after a refresh; a logout and a new login end it', async () => {
    const host = await start({ settings })
    const person = await member(host)
    const browser = await signedInBrowser(host, tokenDelivery, person)
    const token = await tokenOf(browser, tokenDelivery)
    expect(await sent(browser, token)).toEqual(both(200))

    if (tokenDelivery !== 'session') {
      expect((await browser.post(wayOf(tokenDelivery, '/refresh')).set('Origin', page).send({})).status).toBe(200)
      expect(await sent(browser, token)).toEqual(both(200))
    }
    expect((await browser.post(wayOf(tokenDelivery, '/logout')).set('Origin', page).send({})).status).toBe(204)
    expect(await sent(browser, token), 'nobody is signed in').toEqual(both(401))
    await logIn(browser, tokenDelivery, person)
    expect(await sent(browser, token)).toEqual(both('signature'))
    expect(await sent(browser, await tokenOf(browser, tokenDelivery))).toEqual(both(200))
  })

  test('refuses a token from before the login', async () => {
    const host = await start({ settings })
    const browser = host.browser()
    const token = await tokenOf(browser, tokenDelivery)
    await logIn(browser, tokenDelivery, await member(host))
    expect(await sent(browser, token)).toEqual(both('signature'))
  })

  test('refuses the token of another person, of another session of the same person, and of another browser', async () => {
    const host = await start({ settings })
    const ada = await member(host)
    const browser = await signedInBrowser(host, tokenDelivery, ada)
    await tokenOf(browser, tokenDelivery)
    const others = [await signedInBrowser(host, tokenDelivery), await signedInBrowser(host, tokenDelivery, ada), host.browser()]
    for (const other of others) {
      const token = await tokenOf(other, tokenDelivery)
      expect(await sent(browser, token), 'beside the own cookie').toEqual(both('mismatch'))
      const replaced = { Origin: page, Cookie: `${headerWithout(browser, 'csrf_token')}; csrf_token=${token}` }
      expect(await sent(host.browser(), token, replaced), 'as the cookie too').toEqual(both('signature'))
    }
  })

  test('refuses what a sibling subdomain plants, before and after the first whoami; the own token works beside it', async () => {
    const host = await start({ settings })
    const attacker = host.browser()
    const planted = await tokenOf(attacker, tokenDelivery)
    const binding = cookieOf(attacker, '__Host-csrf_binding')
    for (const asksFirst of [false, true]) {
      const browser = await signedInBrowser(host, tokenDelivery)
      if (asksFirst) await tokenOf(browser, tokenDelivery)
      plantAtSite(browser, 'csrf_token', planted)
      for (const name of ['csrf_binding', '__Host-csrf_binding']) plantAtSite(browser, name, binding)
      expect(await sent(browser, planted)).toEqual(both(asksFirst ? 'mismatch' : 'signature'))
      const token = await tokenOf(browser, tokenDelivery)
      expect(token).not.toBe(planted)
      expect(await sent(browser, token)).toEqual(both(200))
    }
  })

  test('without Secure cookies a sibling can plant both cookies, and its pages are refused by their origin', async () => {
    const host = await start({ settings: { ...settings, cookieSecure: false } })
    const attacker = host.browser()
    const [planted, browser] = [await tokenOf(attacker, tokenDelivery), await signedInBrowser(host, tokenDelivery)]
    plantAtSite(browser, 'csrf_token', planted)
    plantAtSite(browser, 'csrf_binding', cookieOf(attacker, 'csrf_binding'))
    expect(await sent(browser, planted, { Origin: 'https://blog.example.com' })).toEqual(both('origin'))
    expect(await sent(browser, planted, { 'Sec-Fetch-Site': 'same-site' })).toEqual(both('site'))
  })

  test('refuses pages of other sites and of sibling hosts, whatever they send, and opens no CORS', async () => {
    const host = await start({ settings })
    const browser = await signedInBrowser(host, tokenDelivery)
    const token = await tokenOf(browser, tokenDelivery)
    for (const Origin of ['https://evil.example', 'https://blog.example.com', 'null'])
      expect(await sent(browser, token, { Origin, ...oldBrowser }), Origin).toEqual(both('origin'))
    for (const site of ['cross-site', 'same-site'])
      expect(await sent(browser, token, { 'Sec-Fetch-Site': site, ...oldBrowser }), site).toEqual(both('site'))

    for (const path of [...places, wayOf(tokenDelivery, '/whoami'), wayOf(tokenDelivery, '/login')]) {
      const asked = { Origin: page, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'x-csrf-token' }
      const { headers } = await browser.options(path).set(asked)
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
  })

  test('there is no unsigned form: equal values that nobody signed are refused', async () => {
    const host = await start({ settings })
    const browser = await signedInBrowser(host, tokenDelivery)
    const value = 'a'.repeat(43)
    plantAtSite(browser, 'csrf_token', value)
    expect(await sent(browser, value)).toEqual(both('signature'))
  })

  test('a browser that lost one of the two cookies gets both anew, also when the binding ends after 30 days', async () => {
    const host = await start({ settings })
    const browser = await signedInBrowser(host, tokenDelivery)
    const token = await tokenOf(browser, tokenDelivery)
    const headers = { Origin: page, Cookie: headerWithout(browser, '__Host-csrf_binding') }
    const again = await host.browser().get(wayOf(tokenDelivery, '/whoami')).set(headers)
    expect(setCookies(again).map((line) => line.split('=')[0])).toEqual(['__Host-csrf_binding', 'csrf_token'])
    expect(again.body.csrf_token).not.toBe(token)

    host.clock.advance(30 * 86_400 + 1)
    expect(await tokenOf(browser, tokenDelivery)).not.toBe(token)
  })
})

function headerWithout(browser: Browser, name: string): string {
  const header = browser.cookies.header({ host: 'api.example.com', path: '/auth/cookie/whoami' }) ?? ''
  const kept = header.split('; ').filter((pair) => !pair.startsWith(`${name}=`) && !pair.startsWith('refresh_token='))
  return kept.join('; ')
}

describe('a request with a Bearer header', () => {
  test('passes guards.csrf() from any origin, and the guard behind refuses a bad token', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const { token } = await signedIn(host)
    const ask = (headers: Record<string, string>, place = '/before') => supertest(host.app).post(place).set(headers)

    for (const place of places) {
      expect((await ask({ Origin: 'https://spa.example.org', ...bearerOf({ token }) }, place)).status).toBe(200)
      for (const Authorization of ['Bearer', 'Bearer x', 'bearer e30.e30.x'])
        expect((await ask({ Authorization }, place)).body.code, Authorization).toBe('INVALID_TOKEN')
    }
    for (const Authorization of ['Basic dXNlcjpwdw==', 'Bearer-x y', 'Negotiate x'])
      expect((await ask({ Authorization, Cookie: `access_token=${token}` })).body.details, Authorization).toEqual({ reason: 'no_cookie' })
  })
})

describe('the key of the tokens', () => {
  const settings = { tokenDelivery: 'cookie' } as const
  const guarded = (guards: ReturnType<typeof createGuards>) =>
    express().post('/order', guards.csrf(), (_req, res) => void res.json({ done: true }))
  const silent = { info() {}, warn() {}, error() {} }

  /** A POST with the cookies of this browser at another process of the same host. */
  const orderAt = (app: Express, browser: Browser, token: string) =>
    supertest(app)
      .post('/order')
      .set({ Cookie: browser.cookies.header({ host: 'api.example.com', path: '/order' }) ?? '', 'X-CSRF-Token': token })

  test('a host with a secret of its own takes its own tokens and not those of whoami, and the other way around', async () => {
    const host = await start({ settings })
    const [browser, other] = [host.browser(), host.browser()]
    const ours = await tokenOf(browser, 'cookie')
    const own = (await other.get('/own-secret')).text

    const reasonAt = async (of: Browser, place: string, token: string) => {
      const { body } = await of.post(place).set('X-CSRF-Token', token)
      return body.details?.reason ?? body.done ?? body.code
    }
    expect(await reasonAt(browser, '/own-secret', ours)).toBe('signature')
    expect(await reasonAt(other, '/own-secret', own)).toBe(true)
    expect(await reasonAt(other, '/before', own)).toBe('signature')
    expect(await reasonAt(browser, '/before', ours), 'past the CSRF guard').toBe('UNAUTHORIZED')
  })

  test('createGuards() with the secret and the realm of the router takes the tokens of whoami', async () => {
    const host = await start({ settings })
    const browser = await signedInBrowser(host, 'cookie')
    const token = await tokenOf(browser, 'cookie')
    const guardsWith = (more: object) =>
      createGuards({ settings: { jwtSecret: testSecret, ...settings, ...more }, logger: silent, now: host.clock.now })

    expect((await orderAt(guarded(guardsWith({})), browser, token)).status).toBe(200)
    for (const more of [{ realm: 'other' }, { jwtSecret: ownSecret }])
      expect((await orderAt(guarded(guardsWith(more)), browser, token)).body.details, Object.keys(more)[0]).toEqual({ reason: 'signature' })
  })

  test('createGuards() without jwtSecret needs `secret`, and says so', () => {
    const store = createKnexStore({ knex: opened().knex })
    for (const guards of [
      createGuards({ settings: { jwtKeys: [makeKey('k1', 'ES256')] } }),
      createGuards({ settings: { jwksUri: 'https://id.example.com/jwks.json' } }),
      createGuards({ settings: { tokenDelivery: 'session' }, store }),
    ]) {
      expect(() => guards.csrf()).toThrow(ConfigurationError)
      expect(() => guards.csrf()).toThrow(/^guards\.csrf: pass `secret`/)
      expect(() => guards.csrf({ secret: ownSecret })).not.toThrow()
    }
    const guards = createGuards({ settings: { jwtSecret: testSecret } })
    expect(() => guards.csrf({ secret: '' })).toThrow(/guards\.csrf: secret must/)
    expect(() => guards.csrf({ session: () => 'a' })).toThrow(/pass `secret` too/)
  })

  test('a token lives on while its secret is in the list of jwtSecret', async () => {
    const [older, newer] = [testSecret, ownSecret]
    const before = await start({ settings: { ...settings, jwtSecret: older } })
    const browser = before.browser()
    const token = await tokenOf(browser, 'cookie')
    for (const [jwtSecret, status] of [
      [[newer, older], 200],
      [[newer], 403],
    ] as const) {
      const guards = createGuards({ settings: { jwtSecret, ...settings }, logger: silent, now: before.clock.now })
      expect((await orderAt(guarded(guards), browser, token)).status).toBe(status)
    }
  })
})

describe('auth.csrfToken()', () => {
  test('gives pages the token of whoami, with the names and attributes of the settings', async () => {
    const names = { accessCookieName: 'at', sessionCookieName: 'sid' }
    const host = await start({ settings: { tokenDelivery: 'cookie', cookieSecure: true, cookieSamesite: 'strict', ...names } })
    const browser = await signedInBrowser(host, 'cookie')
    const form = await browser.get('/form')

    expect(setCookieOf(form, 'csrf_token')).toEqual({ value: form.text, attributes: 'Path=/; Secure; SameSite=Strict' })
    expect([form.headers['cache-control'], form.headers['vary']]).toEqual(['private, no-store', 'Cookie'])
    expect(await tokenOf(browser, 'cookie')).toBe(form.text)
    for (const place of places) expect((await browser.post(place).type('form').send({ _csrf: form.text })).status).toBe(200)
    const bare = { Cookie: `at=e30.e30.x; csrf_token=${form.text}`, 'X-CSRF-Token': form.text }
    expect((await supertest(host.app).post('/before').set(bare)).body.details, 'the cookie of a session').toEqual({ reason: 'signature' })
  })

  test('without its parentheses throws a sentence', async () => {
    const host = await start()
    const app = express().use(host.auth.csrfToken as never, (error: Error, _req: unknown, res: express.Response, _next: unknown) => {
      res.status(500).send(error.message)
    })
    expect((await supertest(app).get('/')).text).toMatch(/^auth\.csrfToken is in a route without its parentheses/)
  })
})

test('a login in a frame of another site ends the binding: its end has the SameSite of the cookie', async () => {
  const host = await start({ settings: { tokenDelivery: 'cookie', cookieSecure: true, cookieSamesite: 'none' } })
  const browser = host.browser()
  await tokenOf(browser, 'cookie')
  const { email } = await member(host)
  const login = await browser.post('/auth/login').set('Origin', page).send({ email, password })
  expect(setCookieOf(login, '__Host-csrf_binding')?.attributes).toMatch(/SameSite=None$/)
})
