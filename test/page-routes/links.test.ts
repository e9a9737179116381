import { describe, expect, test } from 'vitest'
import { type LocalHost, newAddress, otherPassword, password, post, signedIn, userOf } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'
import { faultOf, noticeOf, onPages, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

const pathOf = (url: string | null) => new URL(String(url)).pathname
/** The links of this file's hosts are those of the pages. */
const settings = {
  publicUrl: 'https://app.example.test',
  activationUrlTemplate: null,
  passwordResetUrlTemplate: null,
  emailVerificationUrlTemplate: null,
  emailChangeUrlTemplate: null,
}

async function signUp(host: LocalHost, browser: Browser, returnTo?: string) {
  const email = newAddress()
  const sent = await sendForm(browser, '/auth/signup', { email, password, ...(returnTo && { return_to: returnTo }) })
  expect(sent.status).toBe(303)
  return { email, link: pathOf((await host.mails.next({ kind: 'activation', to: email })).url) }
}

async function resetLinkOf(host: LocalHost, email: string) {
  await sendForm(host.browser(), '/auth/forgot-password', { email })
  return pathOf((await host.mails.next({ kind: 'password_reset', to: email })).url)
}

describe.each(['cookie', 'both', 'session'] as const)('with the pages of the account area, delivery %s', (tokenDelivery) => {
  test('the browser that signed up is in after activation, and goes on to where the person came from', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery } })
    const browser = host.browser()
    const { email, link } = await signUp(host, browser, '/orders?page=2')
    const page = await browser.get(link)
    expect([page.status, page.text.includes(`You will sign in as ${email}.`)]).toEqual([200, true])
    const done = await sendForm(browser, link)
    expect([done.status, done.headers['location']]).toEqual([303, '/orders?page=2'])
    expect((await browser.get('/auth/account')).text).toContain(email)
  })

  test('a reset signs in, and says that the password was changed', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery } })
    const { email } = await signedIn(host)
    const browser = host.browser()
    const link = await resetLinkOf(host, email)
    expect((await browser.get(link)).text).toContain(`You will sign in as ${email}.`)
    const done = await sendForm(browser, link, { new_password: otherPassword, confirm_password: otherPassword })
    expect([done.status, done.headers['location']]).toEqual([303, '/auth/account'])
    expect(noticeOf((await browser.get('/auth/account')).text)).toContain('Your password was changed.')
    expect((await sendForm(browser, link, { new_password: otherPassword, confirm_password: otherPassword })).status).toBe(400)
  })
})

describe('with the pages of the account area', () => {
  test('another browser is in with the password, and not without; it ends at the account', async () => {
    const host = await start({ settings: { ...settings, activationBinding: 'strict' } })
    const { link } = await signUp(host, host.browser(), '/orders')
    const other = host.browser()
    const wrong = await sendForm(other, link, { password: 'not this one' })
    expect([wrong.status, faultOf(wrong.text, 'password')]).toEqual([400, 'This password is not correct.'])
    const right = await sendForm(other, link, { password })
    expect([right.status, right.headers['location']]).toEqual([303, '/auth/account'])

    const second = await signUp(host, host.browser())
    const stranger = host.browser()
    const forgot = await sendForm(stranger, second.link, { forgot: '1' })
    expect([forgot.status, String(forgot.headers['location']).startsWith('/auth/password-reset/')]).toEqual([303, true])
    expect(forgot.headers['set-cookie']).toBeUndefined()
  })

  test.each(['lenient', 'strict'] as const)(
    'the activation page asks another browser for the password, and an empty form activates nothing, binding %s (25.4.3)',
    async (activationBinding) => {
      const host = await start({ settings: { ...settings, activationBinding } })
      const { email, link } = await signUp(host, host.browser())
      const other = host.browser()
      expect((await other.get(link)).text).toContain('name="password"')

      const empty = await sendForm(other, link)

      expect([empty.status, empty.headers['set-cookie']]).toEqual([400, undefined])
      expect((await userOf(host, email)).isActive).toBe(false)
      expect((await sendForm(other, link, { password })).status).toBe(303)
      expect((await signInByPage(host.browser(), { email, password })).status).toBe(303)
    },
  )

  test.each(['lenient', 'strict'] as const)(
    'a person who does not know the password of the sign-up takes the account over, binding %s (25.4.3)',
    async (activationBinding) => {
      const host = await start({ settings: { ...settings, activationBinding } })
      const { email, link } = await signUp(host, host.browser())
      const taken: string[] = []
      host.auth.events.on('account.taken_over', ({ userId }) => taken.push(userId))
      const forgot = await sendForm(host.browser(), link, { forgot: '1' })
      expect([forgot.status, forgot.headers['location']]).toEqual([303, expect.stringMatching(/^\/auth\/password-reset\/[\w-]+$/)])
      expect(taken).toEqual([(await userOf(host, email)).id])
      expect((await post(host, '/login', { email, password })).status).toBe(401)
    },
  )

  test.each([
    ['of an account', async (host: LocalHost) => ((email) => ({ email, link: resetLinkOf(host, email) }))((await signedIn(host)).email)],
    [
      'that the activation page leads to',
      async (host: LocalHost) => {
        const { email, link } = await signUp(host, host.browser())
        const forgot = await sendForm(host.browser(), `${link}?lang=pt-BR`, { forgot: '1' })
        await host.mails.next({ kind: 'notice', to: email }) // of the take-over
        return { email, link: Promise.resolve(String(forgot.headers['location']).replace('?lang=pt-BR', '')) }
      },
    ],
  ])('the notice of a reset %s is in the language of its form (25.7.13)', async (_what, prepare) => {
    const host = await start({ settings })
    const { email, link } = await prepare(host)
    const page = `${await link}?lang=pt-BR`
    const browser = host.browser()
    expect((await browser.get(page)).text).toContain('<html lang="pt-BR"')
    await sendForm(browser, page, { new_password: otherPassword, confirm_password: otherPassword })
    const notice = await host.mails.next({ kind: 'notice', to: email })
    expect([notice.locale, notice.subject]).toEqual(['pt-BR', 'Sua senha foi alterada'])
  })

  test('without passwords the activation page asks for none, and its button activates (25.4.3)', async () => {
    const host = await start({ settings: { ...settings, passwordLogin: false, emailLogin: 'link' } })
    const email = newAddress()
    await sendForm(host.browser(), '/auth/signup', { email })
    const link = pathOf((await host.mails.next({ kind: 'activation', to: email })).url)
    expect((await host.browser().get(link)).text).not.toContain('name="password"')
    expect((await sendForm(host.browser(), link)).status).toBe(200)
    expect((await userOf(host, email)).isActive).toBe(true)
  })

  test('the JSON routes of an activation keep the setting: with lenient binding the link alone is enough (25.4.3)', async () => {
    const host = await start({ settings })
    const { email, link } = await signUp(host, host.browser())
    const { status, body } = await post(host, '/activate', { token: link.split('/').at(-1) })
    expect([status, body.password_required, (await userOf(host, email)).isActive]).toEqual([200, undefined, true])
  })

  test('a form of another site spends no link and signs nobody in', async () => {
    const host = await start({ settings })
    const browser = host.browser()
    const { link } = await signUp(host, browser)
    const { email } = await signedIn(host)
    for (const path of [link, await resetLinkOf(host, email)]) {
      const fields = { new_password: otherPassword, confirm_password: otherPassword }
      const foreign = await browser.post(path).set('Origin', 'https://elsewhere.example').type('form').send(fields)
      expect([foreign.status, foreign.headers['set-cookie']]).toEqual([403, undefined])
      expect((await sendForm(browser, path, fields)).status).toBe(303)
    }
  })

  test('whom the link replaces in this browser is named', async () => {
    const host = await start({ settings })
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const browser = host.browser()
    await signInByPage(browser, { email: ana.email, password })
    const page = await browser.get(await resetLinkOf(host, bob.email))
    expect(page.text).toContain(`You are signed in as ${ana.email}. If you continue, you will be signed out of that account.`)
  })

  test('a second factor is asked for after a reset', async () => {
    const host = await start({ settings: { ...settings, ...mfaSettings } })
    const person = await enrolled(host)
    const browser = host.browser()
    const done = await sendForm(browser, await resetLinkOf(host, person.email), {
      new_password: otherPassword,
      confirm_password: otherPassword,
    })
    expect([done.status, done.headers['location']]).toEqual([303, '/auth/mfa'])
    expect((await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })).headers['location']).toBe('/auth/account')
  })

  test('these pages are dressed like the others; what they load is not told where they are', async () => {
    const host = await start({ settings })
    const browser = host.browser()
    const { link } = await signUp(host, browser)
    const { text, headers } = await browser.get(link)
    expect(headers['referrer-policy']).toBe('same-origin')
    expect(text).not.toContain(String(link.split('/').at(-1)))
    const loaded = [...text.matchAll(/<(?:link rel="stylesheet"|script|a [^>]*href="\?)[^>]*>/g)].map(([tag]) => tag)
    expect(loaded).toHaveLength(3)
    for (const tag of loaded) expect(tag).toContain('referrerpolicy="no-referrer"')
  })
})
