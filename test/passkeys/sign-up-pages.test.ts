import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { type LocalHost, newAddress, password, userOf } from '../local/people'
import { pagesInChromium } from '../page-routes/pages-in-chromium'
import { onPages, problemOf, sendForm } from '../page-routes/people'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { plugIn } from '../support/virtual-authenticator'
import { newcomer, shownPasskey, signupBody, signupOptions, signupSettings } from './newcomers'
import { logIn, newAuthenticator } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')

const passkeyOnly = { ...signupSettings, signupWith: ['passkey'], passwordLogin: false, emailLogin: 'code' } as const

/** As the page's script writes it. */
const written = ({ credential, challenge_token }: { credential: object; challenge_token: string }) => ({
  credential: JSON.stringify(credential),
  challenge_token,
})

describe('the sign-up page with a passkey', () => {
  const { start } = onPages(database)

  test('offers both ways, or the passkey alone without a field for a password, in both languages', async () => {
    const [both, alone] = [await start({ settings: signupSettings }), await start({ settings: passkeyOnly })]
    const pageOf = async (host: LocalHost, lang: string) => (await host.browser().get(`/auth/signup?lang=${lang}`)).text
    const english = await pageOf(both, 'en-US')
    expect(english).toMatch(/<form[^>]* action="\/auth\/signup\/passkey[^"]*"[^>]* data-passkey="create"[^>]* hidden>/)
    expect([english.includes('type="password"'), english.includes('Sign up with a passkey')]).toEqual([true, true])
    expect(await pageOf(both, 'pt-BR')).toContain('Cadastrar-se com uma chave de acesso')
    const only = await pageOf(alone, 'en-US')
    for (const page of [english, only]) expect(page.match(/Passkeys need JavaScript/g)).toHaveLength(1)
    expect([only.includes('type="password"'), only.includes('data-from='), only.includes('type="email"')]).toEqual([false, false, true])
    expect((await sendForm(alone.browser(), '/auth/signup', { email: newAddress() })).status).toBe(404)
    const plain = await start({ settings: { ...signupSettings, signupWith: ['password'] } })
    expect(await pageOf(plain, 'en-US')).not.toContain('Sign up with a passkey')
    expect((await sendForm(plain.browser(), '/auth/signup/passkey', { email: newAddress() })).status).toBe(404)
  })

  test('its form signs up; without a credential, or with a wrong one, it says why and keeps the address', async () => {
    const host = await start({ settings: signupSettings })
    const [email, authenticator, browser] = [newAddress(), newAuthenticator(), host.browser()]
    const body = await signupBody(host, email, authenticator)
    const none = await sendForm(browser, '/auth/signup/passkey', { email, credential: '', challenge_token: '' })
    expect([none.status, problemOf(none.text)]).toEqual([400, 'No passkey was created. Please try again.'])
    expect(none.text).toContain(`value="${email}"`)
    const wrong = await sendForm(browser, '/auth/signup/passkey', { email, ...written(body), challenge_token: 'x' })
    expect([wrong.status, problemOf(wrong.text)]).toEqual([400, expect.stringContaining('This passkey cannot be used here')])
    const unfit = await sendForm(browser, '/auth/signup/passkey', { email: 'x', credential: '', challenge_token: '' })
    expect([unfit.status, unfit.text]).toEqual([400, expect.stringContaining('email-fault')])
    const sent = await sendForm(browser, '/auth/signup/passkey', { email, name: 'Ana', ...written(body) })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
    expect((await userOf(host, email)).name).toBe('Ana')
    const back = await browser.get('/auth/signup/passkey')
    expect([back.status, back.headers['location']]).toEqual([303, '/auth/signup'])
  })
})

describe('the code of a sign-up with a passkey on /check-mail', () => {
  const { start } = onPages(database)
  const open = () => start({ settings: { ...signupSettings, mailedCodes: 'both', timingGridMilliseconds: 0 } })

  test('in the browser of the sign-up the code keeps the passkey', async () => {
    const host = await open()
    const [browser, authenticator, email] = [host.browser(), newAuthenticator(), newAddress()]
    await sendForm(browser, '/auth/signup/passkey', { email, ...written(await signupBody(host, email, authenticator)) }).expect(303)
    const { code } = await host.mails.next({ kind: 'activation', to: email })
    await sendForm(browser, '/auth/activate', { code }).expect(303)
    expect((await logIn(host, authenticator)).status).toBe(200)
  })

  test('in another browser the page says what the right code lacks, keeps it, and goes on without the passkey: a take-over', async () => {
    const host = await open()
    const { email, authenticator } = await newcomer(host)
    const browser = host.browser()
    await sendForm(browser, '/auth/signup', { email: newAddress(), password }) // leads to /check-mail
    await browser.post('/auth/activation/request').set('Origin', 'https://app.example.test').send({ email }).expect(202)
    const { code } = await host.mails.next({ kind: 'activation', to: email })
    const asks = await sendForm(browser, '/auth/activate', { code })
    expect([asks.status, problemOf(asks.text)]).toEqual([400, expect.stringContaining('use the passkey of the sign-up')])
    expect([asks.text.includes(`value="${code}"`), asks.text.includes('Continue without it')]).toEqual([true, true])
    expect((await userOf(host, email)).isActive).toBe(false)
    await sendForm(browser, '/auth/activate', { code, forgot: '1' }).expect(303)
    expect((await logIn(host, authenticator)).status).toBe(401)
  })
})

describe.each([true, false])('the activation page of a sign-up with a passkey, with pagesEnabled %s', (pagesEnabled) => {
  const { start } = onPages(database)
  const open = () => start({ settings: { ...signupSettings, pagesEnabled, backendLinks: true, activationUrlTemplate: null } })
  const pathOf = (link: string) => `/auth/activate/${link}`

  test('in the browser of the sign-up it is one button, and the passkey stays', async () => {
    const host = await open()
    const { email, authenticator, browser, link } = await newcomer(host)
    expect((await browser.get(pathOf(link))).text).not.toContain('Use the passkey')
    expect((await sendForm(browser, pathOf(link))).status).toBe(pagesEnabled ? 303 : 200)
    expect((await userOf(host, email)).isActive).toBe(true)
    expect((await logIn(host, authenticator)).status).toBe(200)
  })

  test('elsewhere it offers the passkey and to go on without it; an empty form is 400 and activates nothing', async () => {
    const host = await open()
    const { email, authenticator, link } = await newcomer(host)
    const browser = host.browser()
    const page = await browser.get(pathOf(link))
    expect(page.text).toContain('Use the passkey you signed up with')
    expect(page.text).toContain('Continue without it')
    expect(page.text).toMatch(/data-passkey="get"/)
    expect(page.text).not.toContain('type="password"')
    // The script is there, and the policy of the page allows it.
    const policy = String(page.headers['content-security-policy'])
    const nonce = /<script nonce="([^"]+)">/.exec(page.text)?.[1]
    if (pagesEnabled) expect(page.text).toMatch(/<script src=/)
    else expect(policy).toContain(`script-src 'nonce-${nonce}'`)
    expect((await browser.get(`${pathOf(link)}?lang=pt-BR`)).text).toContain('Usar a chave de acesso do cadastro')
    for (const fields of [{}, { credential: '', challenge_token: 'x' }, { password: 'a guess of somebody' }]) {
      const empty = await sendForm(browser, pathOf(link), fields)
      expect([empty.status, problemOf(empty.text)]).toEqual([400, expect.any(String)])
    }
    const stranger = newAuthenticator()
    stranger.create((await signupOptions(host, newAddress())) as never)
    const wrong = await sendForm(browser, pathOf(link), written(await shownPasskey(host, stranger)))
    expect([wrong.status, problemOf(wrong.text)]).toEqual([400, expect.stringContaining('This passkey did not work')])
    expect((await userOf(host, email)).isActive).toBe(false)

    const used = await sendForm(browser, pathOf(link), written(await shownPasskey(host, authenticator)))
    expect([used.status, used.headers['location']]).toEqual(pagesEnabled ? [303, '/auth/account'] : [200, undefined])
    expect((await logIn(host, authenticator)).status).toBe(200)
  })

  test('"Continue without it" is a take-over, which removes the passkey and asks for a password', async () => {
    const host = await open()
    const { email, authenticator, link } = await newcomer(host)
    const gone = await sendForm(host.browser(), pathOf(link), { forgot: '1' })
    expect([gone.status, gone.headers['location']]).toEqual([303, expect.stringMatching(/^\/auth\/password-reset\//)])
    expect((await userOf(host, email)).isActive).toBe(true)
    expect((await logIn(host, authenticator)).status).toBe(401)
    expect((await host.mails.next({ kind: 'notice', to: email })).text).toContain('all passkeys')
  })
})

describe.skipIf(!hasChromium)('sign-up with a passkey on the pages, in Chromium', { timeout: 90_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test.each([
    ['beside passwords', signupSettings],
    ['without passwords', passkeyOnly],
  ])('on a phone, %s: address, touch, the mailed link, signed in, never a password', async (_name, settings) => {
    const served = await serve({ settings: { ...settings, activationUrlTemplate: null } }, 'localhost')
    const page = await browse(served)
    await page.setViewportSize({ width: 360, height: 740 })
    await plugIn(page)
    const email = newAddress()
    await page.goto('/auth/signup')
    const button = page.getByRole('button', { name: 'Sign up with a passkey' })
    if (settings === signupSettings) {
      await button.click() // the browser asks for the address
      expect(await page.evaluate('document.activeElement.name')).toBe('email')
    }
    await page.getByLabel('Email').fill(email)
    await button.click()
    await page.waitForURL('**/auth/check-mail')
    const link = tokenOf(await served.host.mails.next({ kind: 'activation', to: email }))
    await page.goto(`/auth/activate/${link}`)
    await page.getByRole('button', { name: 'Activate account' }).click()
    await page.waitForURL('**/auth/account')
    expect(await served.host.knex('auth_passkeys').where({ user_id: (await userOf(served.host, email)).id })).toHaveLength(1)
    expect((await userOf(served.host, email)).passwordSetAt).toBeNull()
    const width: unknown = await page.evaluate('document.documentElement.scrollWidth')
    expect(width).toBeLessThanOrEqual(360)
  })

  test('in a browser that does not know the sign-up, the page takes the passkey', async () => {
    const served = await serve({ settings: { ...signupSettings, activationUrlTemplate: null } }, 'localhost')
    const page = await browse(served)
    await plugIn(page)
    const email = newAddress()
    await page.goto('/auth/signup')
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Sign up with a passkey' }).click()
    await page.waitForURL('**/auth/check-mail')
    await page.context().clearCookies()
    const link = tokenOf(await served.host.mails.next({ kind: 'activation', to: email }))
    await page.goto(`/auth/activate/${link}`)
    await page.getByRole('button', { name: 'Use the passkey you signed up with' }).click()
    await page.waitForURL('**/auth/account')
  })
})
