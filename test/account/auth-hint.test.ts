import { describe, expect, test } from 'vitest'
import { createAuthRouter, createKnexStore } from '../../src'
import { onLocal, password } from '../local/people'
import { member } from '../server-session/devices'
import { setCookies } from '../social/redirect-steps'
import { setCookieOf } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start, opened } = onLocal(sqlite)

const deliveries = ['cookie', 'both', 'session'] as const
type Host = Awaited<ReturnType<typeof start>>
const wayOf = (delivery: string, path: string) => `/auth${delivery === 'both' ? '/cookie' : ''}${path}`
const secretCookieOf = (delivery: string) => (delivery === 'session' ? 'auth_session' : 'refresh_token')
const ended = 'Thu, 01 Jan 1970 00:00:00 GMT'

async function visit(host: Host, delivery: string, fields: object = {}) {
  const { email } = await member(host)
  const browser = host.browser()
  const login = await browser.post(wayOf(delivery, '/login')).send({ email, password, ...fields })
  expect(login.status).toBe(200)
  return { browser, login, email }
}

describe.each(deliveries)('the cookie auth_hint in delivery %s', (tokenDelivery) => {
  test.each(['lax', 'strict', 'none'] as const)(
    'is set beside the cookie of the session, for as long, for scripts, with SameSite %s',
    async (cookieSamesite) => {
      const host = await start({ settings: { tokenDelivery, cookieSecure: true, cookieSamesite, cookieDomain: 'example.test' } })
      const { login } = await visit(host, tokenDelivery)
      const [hint, secret] = [setCookieOf(login, 'auth_hint'), setCookieOf(login, secretCookieOf(tokenDelivery))]
      const maxAge = /Max-Age=\d+/.exec(secret?.attributes ?? '')?.[0]
      expect(maxAge).toBeDefined()
      const sameSite = cookieSamesite.replace(/^./, (letter) => letter.toUpperCase())
      expect([hint?.value, hint?.attributes.replace(/; Expires=[^;]+/, '')]).toEqual([
        '1',
        `${maxAge}; Domain=example.test; Path=/; Secure; SameSite=${sameSite}`,
      ])
    },
  )

  test('ends with the browser if the login was not remembered', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const { login } = await visit(host, tokenDelivery, { remember: false })
    expect(setCookieOf(login, 'auth_hint')).toEqual({ value: '1', attributes: 'Path=/; SameSite=Lax' })
  })

  test('is cleared by a logout', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const { browser } = await visit(host, tokenDelivery)
    const logout = await browser.post(wayOf(tokenDelivery, '/logout')).send({})
    expect(setCookieOf(logout, 'auth_hint')).toEqual({ value: '', attributes: `Path=/; Expires=${ended}; SameSite=Lax` })
    expect(browser.cookies.names()).not.toContain('auth_hint')
  })

  test('is cleared by whoami if nobody is signed in and nothing can be refreshed, and by no request of another site', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const stale = { Cookie: 'auth_hint=1', ...oldBrowser }
    const ask = async (headers: Record<string, string>) =>
      setCookies(
        await host
          .browser()
          .get(wayOf(tokenDelivery, '/whoami'))
          .set({ ...stale, ...headers }),
      ).filter((line) => line.startsWith('auth_hint='))
    expect(await ask({})).toEqual([`auth_hint=; Path=/; Expires=${ended}; SameSite=Lax`])
    expect(await ask({ 'Sec-Fetch-Site': 'cross-site' })).toEqual([])
    expect(await ask({ Origin: 'https://evil.example' })).toEqual([])
    expect(await ask({ Authorization: 'Bearer x' })).toEqual([])
  })

  test('stays while somebody is signed in or the browser can refresh', async () => {
    const host = await start({ settings: { tokenDelivery, sessionTtlSeconds: 7_200 } })
    const { browser } = await visit(host, tokenDelivery)
    await browser.get(wayOf(tokenDelivery, '/whoami'))
    host.clock.advance(1_000)
    const { body } = await browser.get(wayOf(tokenDelivery, '/whoami'))
    expect(body.user !== null || body.can_refresh).toBe(true)
    expect(browser.cookies.names()).toContain('auth_hint')
  })
})

test('a login in a body sets no auth_hint, and the plain whoami of delivery both clears none', async () => {
  const host = await start({ settings: { tokenDelivery: 'both' } })
  const { email } = await member(host)
  const login = await host.browser().post('/auth/login').send({ email, password })
  expect([login.status, setCookieOf(login, 'auth_hint')]).toEqual([200, null])
  const plain = await host
    .browser()
    .get('/auth/whoami')
    .set({ Cookie: 'auth_hint=1', ...oldBrowser })
  expect(setCookieOf(plain, 'auth_hint')).toBeNull()
})

test('a refresh, a password change and a revoked session of a guard set and clear auth_hint', async () => {
  const host = await start({ settings: { tokenDelivery: 'cookie' } })
  const { browser } = await visit(host, 'cookie')
  expect(setCookieOf(await browser.post('/auth/refresh'), 'auth_hint')?.value).toBe('1')
  const change = await browser.post('/auth/password-change').send({ current_password: password, new_password: `${password} again` })
  expect([change.status, setCookieOf(change, 'auth_hint')?.value]).toEqual([204, '1'])

  const sessions = await start({
    settings: { tokenDelivery: 'session' },
    host: (app, { guards }) => void app.get('/mine', guards.requireAuth(), (_req, res) => void res.json({})),
  })
  const other = await visit(sessions, 'session')
  await sessions.knex('auth_sessions').update({ revoked_at: sessions.clock.now().getTime() })
  const refused = await other.browser.get('/mine')
  expect([refused.status, setCookieOf(refused, 'auth_hint')?.value]).toEqual([401, ''])
})

test.each(['accessCookieName', 'refreshCookieName', 'oauthStateCookieName', 'sessionCookieName'])(
  'boot refuses auth_hint as %s',
  (name) => {
    const settings = { jwtSecret: 'a test secret of forty characters, or so', localAccountsEnabled: false, [name]: 'auth_hint' }
    const store = createKnexStore({ knex: opened().knex })
    expect(() => createAuthRouter({ settings, store, prefix: '/auth', environment: 'test' })).toThrow(`${name}`)
    expect(() => createAuthRouter({ settings, store, prefix: '/auth', environment: 'test' })).toThrow('auth_hint')
  },
)
