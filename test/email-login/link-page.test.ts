import { describe, expect, test } from 'vitest'
import { pending } from '../local/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { ask, confirm, type LocalHost, newAddress, onEmailLogin, person, userOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

/** What a browser sends with a form of ours. */
const ownForm = { 'Sec-Fetch-Site': 'same-origin', Origin: 'null' }
const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0'

describe('the page behind the link of a login by email', () => {
  const { start: startHost } = onEmailLogin(sqlite)
  const start = (settings: object = {}, options: object = {}) =>
    startHost({ settings: { emailLogin: 'link', emailLoginUrlTemplate: null, backendLinks: true, ...settings }, options })
  const press = (browser: ReturnType<LocalHost['browser']>, token: string, fields = '') =>
    browser.post(`/auth/email-login/${token}`).set(ownForm).type('form').send(fields)

  test('names the address; its button opens the session and goes to return_to in the browser that asked', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token, browser } = await ask(host, email, { body: { return_to: '/orders?page=2' } })
    const page = await browser.get(`/auth/email-login/${token}`)
    expect([page.status, page.headers['set-cookie']]).toEqual([200, undefined])
    expect(page.text).toContain(email)
    expect(page.text).not.toContain('another browser')

    const answer = await press(browser, token)
    expect([answer.status, answer.headers['location']]).toEqual([303, '/orders?page=2'])
    expect(setCookieOf(answer, 'auth_session')).not.toBeNull()
    expect((await browser.get('/auth/me')).body.email).toBe(email)
  })

  test('in another browser it says when and with what it was asked, and goes to the success redirect', async () => {
    const host = await start({ oauthSuccessRedirect: 'https://app.example.test/home' })
    const { email } = await person(host)
    const asking = host.browser().set('User-Agent', firefox)
    const { token } = await ask(host, email, { browser: asking, body: { return_to: '/orders' } })
    const browser = host.browser()
    const { text } = await browser.get(`/auth/email-login/${token}`)
    expect(text).toMatch(/another browser, on [A-Z][a-z]+ \d+, \d{4} at \d+:\d\d.[AP]M UTC, with Firefox, Windows/)
    expect(text).not.toContain('Gecko')

    const answer = await press(browser, token)
    expect([answer.status, answer.headers['location']]).toEqual([303, 'https://app.example.test/home'])
  })

  test('a mail scanner that follows links spends nothing: GET and HEAD, as often as it likes', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token } = await ask(host, email)
    for (let times = 0; times < 3; times++) {
      expect((await host.browser().get(`/auth/email-login/${token}`)).status).toBe(200)
      expect((await host.browser().head(`/auth/email-login/${token}`)).status).toBe(200)
    }
    expect((await confirm(host, { token })).status).toBe(200)
  })

  test('the form of another site is refused, and spends nothing', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token } = await ask(host, email)
    for (const headers of [{ Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' }]) {
      const answer = await host.browser().post(`/auth/email-login/${token}`).set(headers).type('form').send('')
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
    }
    expect((await confirm(host, { token })).status).toBe(200)
  })

  test('a used or unknown link is a page that says so', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token, browser } = await ask(host, email)
    await press(browser, token)
    for (const link of [token, 'A'.repeat(43)]) {
      expect((await browser.get(`/auth/email-login/${link}`)).status).toBe(400)
      const answer = await press(browser, link)
      expect([answer.status, answer.text.includes('no longer valid')]).toEqual([400, true])
    }
  })

  test('a second factor is asked for on the challenge page, which leads to return_to', async () => {
    const host = await start({ mfaEnabled: true, mfaIssuer: 'Acme' })
    const { email } = await person(host, { totpSecret: 'JBSWY3DPEHPK3PXP', totpEnabledAt: host.clock.now() })
    const { token, browser } = await ask(host, email, { body: { return_to: '/orders' } })
    const answer = await press(browser, token)
    expect([answer.status, setCookieOf(answer, 'auth_session')]).toEqual([200, null])
    expect(answer.text).toContain('action="/auth/mfa/verify"')
    expect(answer.text).toContain('name="mfa_token"')
  })

  test('whom it replaces is named', async () => {
    const host = await start()
    const [first, second] = [await person(host), await person(host)]
    const browser = host.browser()
    const { token } = await ask(host, first.email, { browser })
    await press(browser, token)
    const other = await ask(host, second.email, { browser })
    expect((await browser.get(`/auth/email-login/${other.token}`)).text).toContain(`You are signed in as ${first.email}`)
    await press(browser, other.token)
    expect((await browser.get('/auth/me')).body.email).toBe(second.email)
  })

  test('24.2: at the first proof of an account with a password the form asks for it, and can be skipped', async () => {
    const host = await start()
    const [kept, lost] = [await pending(host), await pending(host)]
    const forms = [
      [kept.email, 'password=a+quiet+harbour+in+winter'],
      [lost.email, 'forgot=1'],
    ] as const
    for (const [email, fields] of forms) {
      const { token } = await ask(host, email)
      const browser = host.browser()
      expect((await browser.get(`/auth/email-login/${token}`)).text).toContain('name="password"')
      const nothing = await press(browser, token)
      expect([nothing.status, nothing.text.includes(email)]).toEqual([400, true])
      expect((await press(browser, token, fields)).status).toBe(303)
    }
    expect((await userOf(host, kept.email)).passwordSetAt).not.toBeNull()
    expect((await userOf(host, lost.email)).passwordSetAt).toBeNull()
  })

  test('signs up where emailLoginSignup is on', async () => {
    const host = await start({ emailLoginSignup: true })
    const email = newAddress()
    const { token, browser } = await ask(host, email)
    expect((await browser.get(`/auth/email-login/${token}`)).text).toContain(email)
    expect((await press(browser, token)).status).toBe(303)
    expect((await userOf(host, email)).isActive).toBe(true)
  })

  test('in Portuguese too', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token } = await ask(host, email)
    const { text } = await host.browser().get(`/auth/email-login/${token}?lang=pt-BR`)
    expect(text).toContain(`Você vai entrar como ${email}.`)
    expect(text).toContain('em outro navegador')
  })
})
