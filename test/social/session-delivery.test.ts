import { describe, expect, test } from 'vitest'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { sessionCookie } from '../server-session/devices'
import { type Browser, type Mounted, setCookieOf, signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { newPerson } from './redirect-steps'

const start = appPerTest()
const origin = { Origin: 'https://app.example.test' }

/** Two providers, and pages that the browser goes to. */
function open(settings: object = {}): Promise<Mounted> {
  const pages = { oauthSuccessRedirect: '/home', oauthErrorRedirect: '/sorry' }
  return start({ providers: { corp: {}, acme: {} }, settings: { ...mfaSettings, ...pages, tokenDelivery: 'session', ...settings } })
}

/** The browser is sent by the page that asked, and comes back from the provider. */
async function goAndComeBack(host: Mounted, browser: Browser, path: string, profile: object) {
  const { body } = await browser.post(path).set(origin).send({}).expect(200)
  const { callbackQuery } = host.provider.authorize(body.authorize_url, { profile: { ...profile } })
  return (other: Browser = browser) => other.get(`/auth/oauth/${path.split('/')[3]}/callback`).query(callbackQuery)
}

const isIn = async (browser: Browser) => (await browser.get('/auth/me')).status === 200

describe('a provider, in delivery session', () => {
  test('the page that asks for the second factor opens the session, and leads on', async () => {
    const host = await open()
    const [desk, phone, profile] = [host.browser(), host.browser(), newPerson()]
    await signIn(host, desk, { profile })
    const { body } = await desk.post('/auth/mfa/enroll').set(origin).send({}).expect(200)
    const app = authenticator(body.secret, host.clock)
    await desk.post('/auth/mfa/confirm').set(origin).send({ code: app.code() }).expect(200)

    const page = await signIn(host, phone, { profile, headers: { Accept: 'text/html' } })
    const [, action = ''] = /<form method="post" action="([^"]+)">/.exec(page.text) ?? []
    const [, mfaToken = ''] = /name="mfa_token" value="([^"]+)"/.exec(page.text) ?? []
    expect([page.status, action, setCookieOf(page, 'auth_session')]).toEqual([200, '/auth/mfa/verify', null])
    const submit = (code: string) =>
      phone.post(action).set({ Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }).type('form').send({ mfa_token: mfaToken, code })
    const wrong = await submit(app.code(-9))
    expect([wrong.status, setCookieOf(wrong, 'auth_session'), await isIn(phone)]).toEqual([400, null, false])
    const done = await submit(app.nextCode())
    expect([done.status, done.headers['location'], await isIn(phone)]).toEqual([302, '/home', true])
    expect(await host.knex('auth_sessions').where({ kind: 'tokens' })).toEqual([])
  })

  test('links in the session that began, and gives every other browser a ticket that this session alone redeems', async () => {
    const host = await open()
    const [ana, stranger] = [host.browser(), host.browser()]
    await signIn(host, ana, { profile: newPerson() })
    await signIn(host, stranger, { profile: newPerson() })
    const linked = await (await goAndComeBack(host, ana, '/auth/oauth/acme/link', newPerson()))()
    expect([linked.status, linked.headers['location']]).toEqual([302, '/home'])
    expect((await ana.get('/auth/oauth/accounts')).body).toHaveLength(2)

    await ana.post('/auth/oauth/accounts/unlink').set(origin).send({ provider: 'acme' }).expect(204)
    const back = await goAndComeBack(host, ana, '/auth/oauth/acme/link', newPerson())
    // The state is there, and who is signed in is somebody else.
    expect((await back(stranger)).headers['location']).toBe('/sorry?error=OAUTH_STATE_MISMATCH')
    expect((await stranger.get('/auth/oauth/accounts')).body).toHaveLength(1)
  })

  test('confirms the person: the session is fresh, its cookie has a new value, and the old one is dead', async () => {
    const host = await open()
    const [browser, profile] = [host.browser(), newPerson()]
    const login = await signIn(host, browser, { profile })
    const old = sessionCookie(login).cookie
    host.clock.advance(1_000)
    expect((await browser.post('/auth/oauth/acme/link').set(origin).send({})).body.code).toBe('REAUTHENTICATION_REQUIRED')
    const before = await host.knex('auth_sessions').first()
    const auth_time = Math.floor(host.clock.now().getTime() / 1000)
    const landed = await (await goAndComeBack(host, browser, '/auth/oauth/corp/reauthenticate', { ...profile, auth_time }))()
    expect([landed.headers['location'], sessionCookie(landed).cookie]).toEqual(['/home', expect.not.stringContaining(old)])
    const after = await host.knex('auth_sessions').first()
    expect([after.id, after.ends_at, after.token_hash === before.token_hash]).toEqual([before.id, before.ends_at, false])
    expect((await host.browser().get('/auth/me').set('Cookie', old)).status).toBe(401)
    await browser.post('/auth/oauth/acme/link').set(origin).send({}).expect(200)
  })

  test('a browser that comes back goes where it came from, by return_to, with its session', async () => {
    const host = await open()
    const browser = host.browser()
    const back = await signIn(host, browser, { query: { return_to: '/orders/7' } })
    expect([back.status, back.headers['location'], await isIn(browser)]).toEqual([302, '/orders/7', true])
  })
})
