import type { Express } from 'express'
import { describe, expect, test } from 'vitest'
import { type AuthRouter, createKnexStore } from '../../src'
import { bearerOf, type LocalOptions, onLocal, password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { member } from '../server-session/devices'
import { setCookies } from '../social/redirect-steps'
import { type Browser, setCookieOf } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { recordQueries } from '../support/record-queries'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn, opened } = onLocal(sqlite)

const api = 'https://api.example.com'
const page = 'https://app.example.com'
const deliveries = ['cookie', 'both', 'session'] as const
const wayOf = (delivery: string, path: string) => `/auth${delivery === 'both' ? '/cookie' : ''}${path}`
const nobody = { user: null, fresh_until: null, csrf_token: null, can_refresh: false }

function hostRoutes(app: Express, { guards }: AuthRouter): void {
  app.get('/fresh', guards.requireFresh(), (_req, res) => void res.json({}))
}

const start = ({ settings, ...options }: LocalOptions) =>
  startOn({ host: hostRoutes, ...options, settings: { oauthRedirectBaseUrl: api, trustedOrigins: [page], ...settings } })

type Host = Awaited<ReturnType<typeof start>>

/** A member's browser after a login, and what it asks. */
async function visit(host: Host, delivery: string, someone?: { email: string; userId: string }) {
  const person = someone ?? (await member(host))
  const browser = host.browser()
  const login = await browser.post(wayOf(delivery, '/login')).set('Origin', page).send({ email: person.email, password })
  expect(login.status).toBe(200)
  return { ...person, browser, ask: (headers: Record<string, string> = { Origin: page }) => whoami(browser, delivery, headers) }
}

const whoami = (browser: Browser, delivery: string, headers: Record<string, string> = {}) =>
  browser.get(wayOf(delivery, '/whoami')).set(headers)

describe.each(deliveries)('whoami in delivery %s', (tokenDelivery) => {
  test('names the signed-in person as GET /me does, and after the logout answers 200 for nobody', async () => {
    const host = await start({ settings: { tokenDelivery, cookieSecure: true } })
    const { browser, ask } = await visit(host, tokenDelivery)

    const signedIn = await ask()
    expect([signedIn.status, signedIn.headers['cache-control']]).toEqual([200, 'no-store'])
    expect(signedIn.body).toEqual({
      user: (await browser.get('/auth/me')).body,
      fresh_until: expect.stringMatching(/^2026-03-01T\d\d:\d\d:\d\d\.000Z$/),
      csrf_token: setCookieOf(signedIn, 'csrf_token')?.value,
      can_refresh: tokenDelivery !== 'session',
      delivery: tokenDelivery,
    })

    await browser.post(wayOf(tokenDelivery, '/logout')).set('Origin', page).send({})
    const out = await ask()
    expect([out.status, out.body]).toEqual([200, { ...nobody, csrf_token: signedIn.body.csrf_token, delivery: tokenDelivery }])
  })

  test('answers a page of any other origin as nobody, without a statement, a cookie or a CORS header', async () => {
    const host = await start({ settings: { tokenDelivery, cookieSecure: true } })
    const { ask } = await visit(host, tokenDelivery)
    const foreign: Record<string, string>[] = [
      { Origin: 'https://evil.example' },
      { Origin: 'https://blog.example.com', 'Sec-Fetch-Site': 'same-site' },
      { Origin: 'null' },
      { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'cross-site' },
    ]
    for (const headers of foreign) {
      const queries = recordQueries(host.knex)
      const answer = await ask({ ...headers, ...oldBrowser })
      expect([headers, queries.stop(), answer.status, answer.body]).toEqual([headers, [], 200, { ...nobody, delivery: tokenDelivery }])
      expect(setCookies(answer)).toEqual([])
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    for (const headers of [{}, { Origin: api }, { 'Sec-Fetch-Site': 'same-origin' }, { Origin: page, 'Sec-Fetch-Site': 'same-site' }])
      expect((await ask(headers)).body.user, JSON.stringify(headers)).not.toBeNull()
  })

  test('reads once and writes nothing: it extends no session and sets no cookie a second time', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const { ask, userId } = await visit(host, tokenDelivery)
    const rows = () => host.knex('auth_sessions').where({ user_id: userId })
    const before = await rows()
    host.clock.advance(600)

    expect(setCookies(await ask()).map((line) => line.split('=')[0])).toEqual(['csrf_binding', 'csrf_token'])
    const queries = recordQueries(host.knex)
    expect(setCookies(await ask())).toEqual([])
    expect(queries.stop()).toEqual([expect.stringMatching(/^select/)])
    expect(await rows()).toEqual(before)
  })

  test('made-up credentials cost no statement', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const queries = recordQueries(host.knex)
    const junk = `${'a'.repeat(112)}`
    const cookies = `access_token=e30.e30.x; refresh_token=${junk}; auth_session=${junk}`
    for (const headers of [{}, { Cookie: cookies }, { Authorization: 'Bearer e30.e30.x' }] as Record<string, string>[]) {
      const { status, body } = await whoami(host.browser(), tokenDelivery, headers)
      expect([status, body.user, body.can_refresh]).toEqual([200, null, false])
    }
    expect(queries.stop()).toEqual([])
  })

  test('a session that was revoked, and an account that is inactive, are nobody', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const [revoked, inactive] = [await visit(host, tokenDelivery), await visit(host, tokenDelivery)]
    await host.knex('auth_sessions').where({ user_id: revoked.userId }).update({ revoked_at: host.clock.now().getTime() })
    await host.knex('auth_users').where({ id: inactive.userId }).update({ is_active: false })

    for (const { ask } of [revoked, inactive])
      expect((await ask()).body).toMatchObject({ user: null, fresh_until: null, can_refresh: tokenDelivery !== 'session' })
  })

  test('is 503 if the store does not answer', async () => {
    const faulty = faultyStore(createKnexStore({ knex: opened().knex }))
    const host = await start({ settings: { tokenDelivery }, options: { store: faulty.store } })
    const { ask } = await visit(host, tokenDelivery)
    faulty.break('sessions.find', () => Promise.reject(new Error('down')))

    const { status, body } = await ask()
    expect([status, body.code]).toEqual([503, 'SERVICE_UNAVAILABLE'])
    expect((await whoami(host.browser(), tokenDelivery)).status).toBe(200)
  })

  test.each([
    ['five minutes', 300],
    ['a day, past the end of an access token', 86_400],
    ['0, which makes every live session fresh', 0],
  ])('fresh_until says when requireFresh() stops to let in: freshSessionSeconds %s', async (_name, freshSessionSeconds) => {
    const host = await start({ settings: { tokenDelivery, freshSessionSeconds, sessionTtlSeconds: 3_600 } })
    const { browser, ask } = await visit(host, tokenDelivery)
    const cookies = browser.cookies.header({ host: 'api.example.com', path: '/fresh' }) ?? ''
    const sent = { Cookie: cookies }
    const until = new Date((await ask()).body.fresh_until).getTime()
    const expected = Math.min(freshSessionSeconds || Number.POSITIVE_INFINITY, tokenDelivery === 'session' ? 3_600 : 900)
    expect((until - host.clock.now().getTime()) / 1000).toBe(expected)

    host.clock.advance(expected - 1)
    const stateOf = async () => {
      const answer = await whoami(host.browser(), tokenDelivery, sent)
      return [answer.body.fresh_until !== null, (await host.browser().get('/fresh').set(sent)).status === 200]
    }
    expect((await whoami(host.browser(), tokenDelivery, sent)).body.fresh_until).toBe(new Date(until).toISOString())
    host.clock.advance(2)
    expect(await stateOf()).toEqual([false, false])
  })

  test.each(['lax', 'strict', 'none'] as const)(
    'with cookieSamesite %s sets two cookies of this host alone, one of them for scripts',
    async (cookieSamesite) => {
      const host = await start({ settings: { tokenDelivery, cookieSecure: true, cookieSamesite, cookieDomain: 'example.com' } })
      const answer = await whoami(host.browser(), tokenDelivery)
      const sameSite = `SameSite=${cookieSamesite.replace(/^./, (letter) => letter.toUpperCase())}`

      expect(setCookieOf(answer, 'csrf_token')?.attributes).toBe(`Path=/; Secure; ${sameSite}`)
      expect(setCookieOf(answer, '__Host-csrf_binding')?.attributes).toMatch(
        new RegExp(`^Max-Age=2592000; Path=/; Expires=[^;]+; HttpOnly; Secure; ${sameSite}$`),
      )
      expect(setCookies(answer)).toHaveLength(2)
    },
  )
})

describe('whoami with an Authorization header', () => {
  test.each(['bearer', 'cookie', 'both'] as const)(
    'in delivery %s names the person from any origin, beside no cookie',
    async (tokenDelivery) => {
      const host = await start({ settings: { tokenDelivery } })
      const { email, token } = await signedIn(host)
      for (const headers of [{}, { Origin: 'https://spa.example.org' }, { Origin: 'null' }] as Record<string, string>[]) {
        const queries = recordQueries(host.knex)
        const answer = await host
          .browser()
          .get('/auth/whoami')
          .set({ ...headers, ...bearerOf({ token }) })
        expect(queries.stop()).toHaveLength(1)
        expect(answer.body).toMatchObject({ user: { email }, csrf_token: null, can_refresh: false, delivery: tokenDelivery })
        expect(setCookies(answer)).toEqual([])
      }
    },
  )

  test.each(deliveries)('in delivery %s a bad token is nobody, and no cookie stands in for it', async (tokenDelivery) => {
    const host = await start({ settings: { tokenDelivery } })
    const { ask } = await visit(host, tokenDelivery)
    for (const Authorization of ['Bearer', 'Bearer x', 'bearer e30.e30.x']) {
      const answer = await ask({ Authorization })
      expect([Authorization, answer.status, answer.body]).toEqual([Authorization, 200, { ...nobody, delivery: tokenDelivery }])
      expect(setCookies(answer)).toEqual([])
    }
    expect((await ask({ Authorization: 'Basic dXNlcjpwdw==' })).body.user, 'another scheme is no credential of ours').not.toBeNull()
  })

  test('in delivery bearer a cookie is no credential', async () => {
    const host = await start({ settings: { tokenDelivery: 'bearer' } })
    const { token, refreshToken } = await signedIn(host)
    const answer = await host.browser().get('/auth/whoami').set('Cookie', `access_token=${token}; refresh_token=${refreshToken}`)
    expect(answer.body).toEqual({ ...nobody, delivery: 'bearer' })
    expect(setCookies(answer)).toEqual([])
  })

  test('without sid, the refresh cookie names the session beside the cookie of the token, and not beside a header', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie', accessTokenSessionClaims: false } })
    const { ask, browser, email } = await visit(host, 'cookie')
    const token = browser.cookies.kept().find(({ key }) => key === 'access_token')?.value ?? ''

    const queries = recordQueries(host.knex)
    expect((await ask()).body.user).toMatchObject({ email })
    expect(queries.stop().length).toBeLessThanOrEqual(2)
    expect((await ask(bearerOf({ token }))).body.user).toBeNull()
  })
})

test('whoami in delivery both finds the refresh cookie only below /cookie, where browsers send it', async () => {
  const host = await start({ settings: { tokenDelivery: 'both' } })
  const { browser } = await visit(host, 'both')
  const [plain, ofBrowser] = [await browser.get('/auth/whoami'), await browser.get('/auth/cookie/whoami')]
  expect([plain.body.can_refresh, ofBrowser.body.can_refresh]).toEqual([false, true])
  expect(plain.body.csrf_token).toBe(ofBrowser.body.csrf_token)
})

test('whoami without the access cookie says that the browser can refresh', async () => {
  const host = await start({ settings: { tokenDelivery: 'cookie' } })
  const { ask } = await visit(host, 'cookie')
  host.clock.advance(901)
  expect((await ask()).body).toMatchObject({ user: null, fresh_until: null, can_refresh: true })
})

test('whoami in a store without sessions asks for the user, and reads the signature and the end of the refresh cookie', async () => {
  const store = createKnexStore({ knex: opened().knex, sessions: false })
  const host = await start({ settings: { tokenDelivery: 'cookie', refreshTokenTtlSeconds: 1_800 }, options: { store } })
  const { ask, browser, email, userId } = await visit(host, 'cookie')

  const queries = recordQueries(host.knex)
  expect((await ask()).body).toMatchObject({ user: { email }, fresh_until: expect.any(String), can_refresh: true })
  expect(queries.stop()).toHaveLength(1)
  const later = new Date(host.clock.now().getTime() + 5_000)
  await createKnexStore({ knex: host.knex }).users.update(userId, { passwordSetAt: later })
  expect((await ask()).body, 'a token from before a new password').toMatchObject({ user: { email }, fresh_until: null })
  host.clock.advance(901)
  expect((await ask()).body).toMatchObject({ user: null, can_refresh: true })
  const refreshToken = browser.cookies.kept().find(({ key }) => key === 'refresh_token')?.value ?? ''
  host.clock.advance(900)
  const late = await whoami(host.browser(), 'cookie', { Cookie: `refresh_token=${refreshToken}` })
  expect(late.body.can_refresh).toBe(false)
})

test('fresh_until knows the rule of young second factors, as requireFresh() does', async () => {
  const host = await start({ settings: { ...mfaSettings, tokenDelivery: 'both' } })
  for (const isYoung of [true, false]) {
    const { token } = await enrolled(host, {}, { isYoung })
    const [answer, guarded] = [
      await host.browser().get('/auth/whoami').set(bearerOf({ token })),
      await host.browser().get('/fresh').set(bearerOf({ token })),
    ]
    expect(answer.body.user.mfa_enabled).toBe(true)
    expect([isYoung, answer.body.fresh_until !== null]).toEqual([isYoung, guarded.status === 200])
  }
})
