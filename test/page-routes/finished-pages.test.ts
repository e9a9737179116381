import { describe, expect, test } from 'vitest'
import { ConfigurationError, OidcClient } from '../../src'
import { newAddress, password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { withFactors } from '../passkeys/people'
import { newPerson } from '../social/redirect-steps'
import { type Browser, signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { fieldValue, onPages, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

const pageOf = async (browser: Browser, path: string) => (await browser.get(path)).text
const marks = (html: string) => html.match(/<span class="mark" aria-hidden="true"><svg/g)?.length ?? 0

describe('the pages a person meets first (25.5)', () => {
  test('the way back survives a cancelled and a failed login at a provider, on our page, and only a way back that we follow', async () => {
    const host = await start()
    for (const [error, code] of [
      ['access_denied', 'OAUTH_PROVIDER_DENIED'],
      ['server_error', 'OAUTH_PROVIDER_ERROR'],
    ]) {
      const browser = host.browser()
      const login = await browser.get('/auth/oauth/corp/login').query({ return_to: '/orders?page=2' })
      const state = String(new URL(String(login.headers['location'])).searchParams.get('state'))
      const back = await browser.get('/auth/oauth/corp/callback').query({ error, state })
      const location = new URL(String(back.headers['location']), 'https://app.example.test')
      expect([error, location.pathname, location.searchParams.get('return_to')]).toEqual([error, '/auth/login', '/orders?page=2'])
      expect(location.searchParams.get('error')).toMatch(code === 'OAUTH_PROVIDER_DENIED' ? code : /^OAUTH_/)
      expect(fieldValue(await pageOf(browser, location.pathname + location.search), 'return_to')).toBe('/orders?page=2')
    }
    const lost = await host.browser().get('/auth/oauth/corp/callback').query({ error: 'access_denied', return_to: 'https://evil.example' })
    expect(lost.headers['location']).toMatch(/^\/auth\/login\?error=OAUTH_\w+$/)
  })

  test('sign-up says the rule of passwords before the first try, and offers providers and passkeys like sign-in does', async () => {
    const host = await start({ settings: { ...withFactors, passwordMinLength: 14 } })
    const page = await pageOf(host.browser(), '/auth/signup?return_to=%2Forders')
    expect(page).toMatch(/aria-describedby="password-hint"/)
    expect(page).toContain('At least 14 characters.')
    expect(page).toContain('href="/auth/oauth/corp/login?return_to=%2Forders"')
    expect(page).toContain('data-passkey="get"')
    expect(page).not.toContain('data-conditional')
  })

  test('a provider’s button has its mark: the client’s own, or a drawing of ours for a known provider', async () => {
    const icon = '<svg viewBox="0 0 2 2"><path d="M0 0h2v2z"/></svg>'
    const host = await start({ providers: { github: {}, work: { providerName: 'google' }, corp: {}, own: { icon } } })
    const page = await pageOf(host.browser(), '/auth/login')
    expect([marks(page), page.includes(icon)]).toEqual([3, true])
    const options = { clientId: 'app', issuer: 'https://id.example.test', authorizeUrl: 'https://id.example.test/a' }
    for (const wrong of ['logo.svg', '<img src=x>', `<svg>${'x'.repeat(9_000)}</svg>`])
      expect(() => new OidcClient({ ...options, tokenUrl: 'https://id.example.test/t', icon: wrong })).toThrow(ConfigurationError)
  })

  test('the overview says Add, Turn on or Set beside what is not there yet', async () => {
    const host = await start({ settings: { ...withFactors, emailLogin: 'code' } })
    const browser = host.browser()
    await signIn(host, browser, { profile: newPerson() })
    const actions = async () =>
      Object.fromEntries(
        [...(await pageOf(browser, '/auth/account')).matchAll(/aria-label="([^"]*?): ([^"]*)"/g)].map(([, action, of]) => [of, action]),
      )
    expect(await actions()).toMatchObject({
      Password: 'Set a password',
      Passkeys: 'Add',
      'Two-step verification': 'Turn on',
    })
    const { email } = await signedIn(host, { name: 'Ada' })
    await signInByPage(browser, { email, password }, '/auth/login?switch=1')
    expect(await actions()).toMatchObject({ Name: 'Change', Password: 'Change', 'Connected accounts': 'Add' })
  })

  test('the enrolment has the otpauth link for an app on the same phone, and the recovery codes can be copied, downloaded and printed', async () => {
    const host = await start({ settings: mfaSettings })
    const { email } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    const path = '/auth/account/security/authenticator'
    const begun = await sendForm(browser, path, { form_of: fieldValue(await pageOf(browser, path), 'form_of') })
    const key = (/class="key">([^<]+)</.exec(begun.text)?.[1] ?? '').replaceAll(' ', '')
    expect(begun.text).toMatch(new RegExp(`<p class="phone"><a class="button second" href="otpauth://totp/[^"]*secret=${key}`))
    const member = await enrolled(host)
    const other = host.browser()
    await signInByPage(other, { email: member.email, password })
    await sendForm(other, '/auth/mfa', { code: member.app.nextCode() })
    const codesPath = '/auth/account/security/recovery-codes'
    const formOf = fieldValue(await pageOf(other, codesPath), 'form_of')
    const codes = await sendForm(other, codesPath, { form_of: formOf, code: member.app.nextCode() })
    for (const part of ['data-copy=".codes"', 'download="recovery-codes.txt"', 'data-print']) expect(codes.text).toContain(part)
  })

  test('the mails "You already have an account" and "There is no account" have the link that a person needs', async () => {
    const host = await start({ settings: { emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } })
    const { email } = await signedIn(host)
    await sendForm(host.browser(), '/auth/signup', { email, password })
    const taken = await host.mails.next({ to: email, kind: 'notice' })
    expect([taken.subject, taken.url]).toEqual(['You already have an account', 'https://app.example.test/auth/login'])
    const nobody = newAddress()
    await sendForm(host.browser(), '/auth/email-login/request', { email: nobody })
    const none = await host.mails.next({ to: nobody, kind: 'notice' })
    expect([none.subject, none.url]).toEqual(['There is no account with this address', 'https://app.example.test/auth/signup'])
    for (const { url, text, html } of [taken, none])
      expect([text.includes(`${url}\n`), html.includes(`href="${url}"`)]).toEqual([true, true])
  })

  test.each(['sign-up', 'activation', 'login'] as const)('a session that %s opened a moment ago is fresh on every page', async (by) => {
    const host = await start({ settings: { ...withFactors, autoActivate: by === 'sign-up' } })
    const browser = host.browser()
    const email = newAddress()
    if (by === 'sign-up') await sendForm(browser, '/auth/signup', { email, password })
    if (by === 'activation') {
      await sendForm(browser, '/auth/signup', { email, password })
      const activation = `/auth/activate/${tokenOf(await host.mails.next({ kind: 'activation', to: email }))}`
      const page = await pageOf(browser, activation)
      await sendForm(browser, activation, { ...(page.includes('name="password"') && { password }) })
      if ((await browser.get('/auth/account')).status !== 200) await signInByPage(browser, { email, password })
    }
    if (by === 'login') await signInByPage(browser, { email: (await signedIn(host)).email, password })
    const paths = [
      '',
      '/profile',
      '/email',
      '/password',
      '/security',
      '/security/authenticator',
      '/security/passkeys/add',
      '/connections',
      '/devices',
    ]
    for (const path of paths) {
      const { status, headers } = await browser.get(`/auth/account${path}`)
      expect([path, status, headers['location']]).toEqual([path, 200, undefined])
    }
  })
})
