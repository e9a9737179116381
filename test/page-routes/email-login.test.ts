import { describe, expect, test } from 'vitest'
import { loginTemplate, person, wrong } from '../email-login/people'
import { newAddress, password, pending, signedIn, userOf } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import { faultOf, fieldValue, noticeOf, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const byCode = { emailLogin: 'code' } as const
const links = { emailLogin: 'link', emailLoginUrlTemplate: null, publicUrl: 'https://app.example.test' } as const
const request = '/auth/email-login/request'

/** The parts of the page that say something about this address. */
const withoutAddress = (html: string, email: string) => html.replaceAll(email, '…')

describe.each(['cookie', 'both', 'session'] as const)('signing in by email on the pages, delivery %s', (tokenDelivery) => {
  test('a person asks for a code, types it in its two groups, and goes back to where they came from', async () => {
    const host = await start({ settings: { ...byCode, tokenDelivery } })
    const { email } = await person(host)
    const browser = host.browser()

    const page = await browser.get('/auth/login').query({ return_to: '/orders?page=2' })
    expect(page.text.match(/<form/g)).toHaveLength(1) // one address, and a button for each way
    expect(page.text).toContain(`formaction="${request}" formnovalidate`)
    expect(page.text).toContain('Email me a code')
    const sent = await sendForm(browser, request, { email, return_to: '/orders?page=2' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
    const check = await browser.get('/auth/check-mail')
    expect(check.text).toContain(email)
    expect(check.text).toMatch(/name="code"[^>]* autocomplete="one-time-code"[^>]* inputmode="numeric"/)

    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const refused = await sendForm(browser, '/auth/check-mail', { code: wrong(String(code)) })
    expect([refused.status, problemOf(refused.text)]).toEqual([
      400,
      'This code is not correct, or it is no longer valid. Only the code from the newest email works.',
    ])
    const empty = await sendForm(browser, '/auth/check-mail', { code: '' })
    expect([empty.status, faultOf(empty.text, 'code')]).toEqual([400, 'Please fill this in.'])
    const signed = await sendForm(browser, '/auth/check-mail', { code: String(code).replace(/^(\d{4})/, '$1 ') })
    expect([signed.status, signed.headers['location'], signed.text]).toEqual([303, '/orders?page=2', ''])
    expect((await browser.get('/auth/account')).text).toContain(email)
    expect((await browser.get('/auth/check-mail')).headers['location']).toBe('/auth/login')
  })

  test('the mailed link leads to the account, also in another browser', async () => {
    const host = await start({ settings: { ...links, tokenDelivery } })
    const { email } = await person(host)
    await sendForm(host.browser(), request, { email, return_to: '/orders' })
    const path = new URL(String((await host.mails.next({ kind: 'email_login', to: email })).url)).pathname
    const other = host.browser()
    const signed = await sendForm(other, path)
    expect([signed.status, signed.headers['location']]).toEqual([303, '/auth/account'])
    expect((await other.get('/auth/account')).text).toContain(email)
  })

  test('the longest return_to fits into the cookie of the second step', async () => {
    const host = await start({ settings: { ...mfaSettings, ...links, tokenDelivery } })
    const { email, app } = await enrolled(host)
    const browser = host.browser()
    const back = `/orders?q=${'x'.repeat(1_014)}`
    await sendForm(browser, request, { email, return_to: back })
    const link = await sendForm(browser, new URL(String((await host.mails.next({ kind: 'email_login', to: email })).url)).pathname)
    const lines = (link.headers['set-cookie'] as unknown as string[]).filter((line) => line.startsWith('mfa_challenge='))
    expect(lines.map((line) => line.length < 4_096)).toEqual([true]) // RFC 6265bis section 5.6
    expect((await sendForm(browser, '/auth/mfa', { code: app.nextCode() })).headers['location']).toBe(back)
  })

  test('a second factor is asked for on /mfa after a link and after a code, and then it goes to return_to', async () => {
    const host = await start({ settings: { ...mfaSettings, ...links, emailLogin: 'both', tokenDelivery } })
    const { email, app } = await enrolled(host)
    for (const way of ['link', 'code'] as const) {
      const browser = host.browser()
      await sendForm(browser, request, { email, return_to: '/orders' })
      const { url, code } = await host.mails.next({ kind: 'email_login', to: email })
      const first =
        way === 'link'
          ? await sendForm(browser, new URL(String(url)).pathname)
          : await sendForm(browser, '/auth/check-mail', { code: String(code) })
      expect([first.status, first.headers['location']]).toEqual([303, '/auth/mfa'])
      const done = await sendForm(browser, '/auth/mfa', { code: app.nextCode() })
      expect([done.status, done.headers['location']]).toEqual([303, '/orders'])
      expect((await browser.get('/auth/account')).status).toBe(200)
    }
  })
})

describe('the form of /login that asks for a mail', () => {
  test('is not there where login by email is off', async () => {
    const host = await start()
    const browser = host.browser()
    expect((await browser.get('/auth/login')).text).not.toContain('email-login')
    expect((await sendForm(browser, request, { email: newAddress() })).status).toBe(404)
  })

  test('is refused on the page where it stands, with the address and return_to kept and nothing said about the password', async () => {
    const host = await start({ settings: byCode })
    const browser = host.browser()
    const empty = await sendForm(browser, request, { email: '', return_to: '/orders' })
    expect([empty.status, faultOf(empty.text, 'email'), faultOf(empty.text, 'password')]).toEqual([400, 'Please fill this in.', null])
    expect(empty.text.match(/name="return_to" value="\/orders"/g)).toHaveLength(1)
    const rowsBefore = await host.knex('auth_email_logins')
    const bad = await sendForm(browser, request, { email: 'x'.repeat(400) })
    expect([bad.status, bad.text.includes('x'.repeat(400))]).toEqual([400, true])
    const foreign = await browser.post(request).set('Origin', 'https://evil.example').type('form').send({ email: newAddress() })
    expect([foreign.status, problemOf(foreign.text)]).toEqual([403, 'This form was sent from another site. Please send it from this page.'])
    const reloaded = await browser.get(request).query({ return_to: '/orders' })
    expect([reloaded.status, reloaded.headers['location']]).toEqual([303, '/auth/login?return_to=%2Forders'])
    expect(await host.knex('auth_email_logins')).toEqual(rowsBefore)
  })

  test('says when it can be sent again, where it was sent too often', async () => {
    const host = await start({ settings: byCode })
    const browser = host.browser()
    const email = newAddress()
    for (let count = 0; count < 5; count += 1) expect((await sendForm(browser, request, { email })).status).toBe(303)
    const throttled = await sendForm(browser, request, { email })
    expect([throttled.status, throttled.headers['retry-after'], problemOf(throttled.text)]).toEqual([
      429,
      '900',
      'There were too many attempts. Please try again in 15 minutes.',
    ])
    expect(fieldValue(throttled.text, 'email')).toBe(email)
  })

  test('offers an account where one is made by the mail', async () => {
    const host = await start({ settings: { ...byCode, emailLoginSignup: true } })
    const browser = host.browser()
    expect((await browser.get('/auth/login')).text).toContain('No account yet? Enter your email address, and we will create one.')
    const email = newAddress()
    await sendForm(browser, request, { email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    expect((await sendForm(browser, '/auth/check-mail', { code: String(code) })).headers['location']).toBe('/auth/account')
    expect((await userOf(host, email)).isActive).toBe(true)
  })
})

describe('the page /check-mail', () => {
  test.each([
    ['signup', '/auth/signup'],
    ['a forgotten password', '/auth/forgot-password'],
    ['login by email', request],
  ])(
    '%s: the same for a known and an unknown address, whether or not a mail went out, and no sentence says that one did',
    async (_name, path) => {
      const host = await start({ settings: { ...byCode, emailLoginSilent: true } })
      const known = (await signedIn(host)).email
      const pages: string[] = []
      for (const email of [known, newAddress()]) {
        const browser = host.browser()
        await sendForm(browser, path, { email, password })
        for (const again of [false, true]) {
          if (again) expect((await sendForm(browser, '/auth/check-mail')).status).toBe(303)
          const { text, status } = await browser.get('/auth/check-mail')
          expect([status, text.includes(email)]).toEqual([200, true])
          expect(text).not.toMatch(/We sent|was sent/)
          pages.push(withoutAddress(text, email))
        }
      }
      expect([pages[0], pages[1]]).toEqual([pages[2], pages[3]])
    },
  )

  test('names whom the code replaces, and its way back keeps the form open', async () => {
    const host = await start({ settings: byCode })
    const [ada, bob] = [await signedIn(host), await person(host)]
    const browser = host.browser()
    await signInByPage(browser, { email: ada.email, password })
    await sendForm(browser, request, { email: bob.email })
    const { text } = await browser.get('/auth/check-mail')
    expect(text).toContain(`You are signed in as ${ada.email}. If you continue, you will be signed out of that account.`)
    expect(text).toContain('href="/auth/login?switch=1"')
  })

  test('sends again: the earlier code is dead, the new one signs in and keeps return_to', async () => {
    const host = await start({ settings: byCode })
    const { email } = await person(host)
    const browser = host.browser()
    await sendForm(browser, request, { email, return_to: '/orders' })
    const first = await host.mails.next({ kind: 'email_login', to: email })
    await sendForm(browser, '/auth/check-mail')
    const second = await host.mails.next({ kind: 'email_login', to: email })
    expect(noticeOf((await browser.get('/auth/check-mail')).text)).toBe(
      'If this address can receive our emails, another email is on its way.',
    )
    expect((await sendForm(browser, '/auth/check-mail', { code: String(first.code) })).status).toBe(400)
    expect((await sendForm(browser, '/auth/check-mail', { code: String(second.code) })).headers['location']).toBe('/orders')
  })

  test('a code is worth nothing in another browser, and takes none of a sign-up', async () => {
    const host = await start({ settings: byCode })
    const { email } = await person(host)
    await sendForm(host.browser(), request, { email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const other = host.browser()
    expect((await sendForm(other, '/auth/check-mail', { code: String(code) })).headers['location']).toBe('/auth/login')
    await sendForm(other, '/auth/forgot-password', { email })
    const sent = await sendForm(other, '/auth/check-mail', { code: String(code) })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
  })

  test('after five wrong codes the right one is refused', async () => {
    const host = await start({ settings: byCode })
    const { email } = await person(host)
    const browser = host.browser()
    await sendForm(browser, request, { email })
    const code = String((await host.mails.next({ kind: 'email_login', to: email })).code)
    for (let count = 0; count < 5; count += 1) await sendForm(browser, '/auth/check-mail', { code: wrong(code) })
    expect((await sendForm(browser, '/auth/check-mail', { code })).status).toBe(400)
  })
})

describe('the page /reauthenticate, with a mailed code', () => {
  test('a person asks for it and confirms by it, also after a wrong one', async () => {
    const host = await start({ settings: { ...byCode, ...loginTemplate } })
    const { email } = await person(host)
    const browser = host.browser()
    await sendForm(browser, request, { email })
    await sendForm(browser, '/auth/check-mail', { code: String((await host.mails.next({ kind: 'email_login', to: email })).code) })
    host.clock.advance(3_600)

    const stale = await browser.get('/auth/account/email')
    expect(stale.headers['location']).toBe('/auth/reauthenticate?return_to=%2Fauth%2Faccount%2Femail')
    const page = await browser.get(String(stale.headers['location']))
    expect([page.text.includes('Email me a code'), page.text.includes('name="email_code"')]).toEqual([true, false])
    const fields = { form_of: fieldValue(page.text, 'form_of'), return_to: '/auth/account/email' }
    const asked = await sendForm(browser, '/auth/reauthenticate', { ...fields, send_code: '1' })
    expect([asked.status, asked.headers['location']]).toEqual([303, '/auth/reauthenticate?return_to=%2Fauth%2Faccount%2Femail&by=email'])
    const entry = await browser.get(String(asked.headers['location']))
    expect([noticeOf(entry.text), entry.text.includes(`We sent it to ${email}.`)]).toEqual([
      'An email with a code is on its way. If you asked too often, no new email comes. Then use the newest code that you have.',
      true,
    ])

    const code = String((await host.mails.next({ kind: 'email_login', to: email })).code)
    const action = '/auth/reauthenticate?by=email'
    const refused = await sendForm(browser, action, { ...fields, email_code: wrong(code) })
    expect([refused.status, faultOf(refused.text, 'email_code'), fieldValue(refused.text, 'email_code')]).toEqual([
      400,
      'This code is not correct, or it is no longer valid. Only the code from the newest email works.',
      '',
    ])
    const done = await sendForm(browser, action, { ...fields, email_code: code })
    expect([done.status, done.headers['location']]).toEqual([303, '/auth/account/email'])
    expect((await browser.get('/auth/account/email')).status).toBe(200)
  })
})

test('a code is the first proof of an address: who signed up in this browser keeps the password', async () => {
  const host = await start({ settings: byCode })
  const browser = host.browser()
  const email = newAddress()
  await sendForm(browser, '/auth/signup', { email, password })
  await host.mails.next({ kind: 'activation', to: email })
  await sendForm(browser, request, { email })
  const { code } = await host.mails.next({ kind: 'email_login', to: email })
  expect((await sendForm(browser, '/auth/check-mail', { code: String(code) })).status).toBe(303)
  expect((await signInByPage(host.browser(), { email, password })).headers['location']).toBe('/auth/account')
  expect((await pending(host)).link).toBeTruthy()
})

test('24.2: in another browser the code of a first proof asks for the password, which the person types or does not know', async () => {
  const host = await start({ settings: byCode })
  const [kept, lost] = [await pending(host), await pending(host)]
  const askFor = async (email: string) => {
    const browser = host.browser()
    await sendForm(browser, request, { email })
    expect((await browser.get('/auth/check-mail')).text).not.toContain('name="password"')
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    return { browser, code: String(code) }
  }

  const first = await askFor(kept.email)
  const guessed = await sendForm(first.browser, '/auth/check-mail', { code: wrong(first.code), password: 'anything at all' })
  expect([guessed.status, guessed.text.includes('name="password"')]).toEqual([400, false])
  const asked = await sendForm(first.browser, '/auth/check-mail', { code: first.code })
  expect([asked.status, faultOf(asked.text, 'password'), fieldValue(asked.text, 'code')]).toEqual([
    400,
    'Enter the password that you chose when you signed up, or continue without it.',
    first.code,
  ])
  const mistyped = await sendForm(first.browser, '/auth/check-mail', { code: first.code, password: 'not this one' })
  expect([mistyped.status, faultOf(mistyped.text, 'password'), mistyped.text.includes('not this one')]).toEqual([
    400,
    'This password is not correct.',
    false,
  ])
  const signed = await sendForm(first.browser, '/auth/check-mail', { code: first.code, password })
  expect([signed.status, signed.headers['location']]).toEqual([303, '/auth/account'])
  expect((await userOf(host, kept.email)).passwordSetAt).not.toBeNull()

  const second = await askFor(lost.email)
  await sendForm(second.browser, '/auth/check-mail', { code: second.code })
  const dropped = await sendForm(second.browser, '/auth/check-mail', { code: second.code, password: '', forgot: '1' })
  expect([dropped.status, dropped.headers['location']]).toEqual([303, '/auth/account'])
  expect((await userOf(host, lost.email)).passwordSetAt).toBeNull()
})
