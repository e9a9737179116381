import { describe, expect, test } from 'vitest'
import { newAddress, otherPassword, password, post, signedIn, userOf } from '../local/people'
import { faultOf, noticeOf, onPages, problemOf, sendForm, signInByPage } from '../page-routes/people'
import { databases } from '../support/databases'
import { wrong } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start: startPages } = onPages(database)
const wrongCode = 'This code is not correct, or it is no longer valid. Only the code from the newest email works.'

describe.each(['cookie', 'both', 'session'] as const)(
  'the code on /check-mail, without a script (30.1.11), delivery %s',
  (tokenDelivery) => {
    const start = () => startPages({ settings: { mailedCodes: 'both', tokenDelivery, timingGridMilliseconds: 0 } })
    type Host = Awaited<ReturnType<typeof start>>
    const codeTo = async (host: Host, to: string) => String((await host.mails.next({ to })).code)
    const formOf = (html: string, action: string) =>
      new RegExp(`<form method="post" action="${action}"[\\s\\S]*?</form>`).exec(html)?.[0] ?? ''

    test('a person signs up, types the code in two groups, and is signed in where they wanted to go', async () => {
      const host = await start()
      const browser = host.browser()
      const email = newAddress()
      expect((await sendForm(browser, '/auth/signup', { email, password, return_to: '/orders' })).headers['location']).toBe(
        '/auth/check-mail',
      )
      const form = formOf((await browser.get('/auth/check-mail')).text, '/auth/activate')
      expect(form).toMatch(/name="code"[^>]* autocomplete="one-time-code"[^>]* inputmode="numeric"/)
      expect(form).not.toContain('name="new_password"')
      const code = await codeTo(host, email)
      const refused = await sendForm(browser, '/auth/activate', { code: wrong({ code }) })
      expect([refused.status, problemOf(refused.text)]).toEqual([400, wrongCode])
      expect(refused.text).not.toContain(wrong({ code }))
      expect(faultOf((await sendForm(browser, '/auth/activate', { code: '' })).text, 'code')).toBe('Please fill this in.')
      const done = await sendForm(browser, '/auth/activate', { code: `${code.slice(0, 4)} ${code.slice(4)}` })
      expect([done.status, done.headers['location']]).toEqual([303, '/orders'])
      expect((await browser.get('/auth/account')).text).toContain(email)
      expect((await browser.get('/auth/check-mail')).headers['location']).toBe('/auth/login')
      await post(host, '/login', { email, password }).expect(200)
    })

    test('after a forgotten password the form asks for the new one too, and keeps the code while the policy refuses it', async () => {
      const host = await start()
      const { email } = await signedIn(host)
      const browser = host.browser()
      await sendForm(browser, '/auth/forgot-password', { email })
      const action = '/auth/password-reset/confirm'
      const form = formOf((await browser.get('/auth/check-mail')).text, action)
      expect(form).toMatch(/name="new_password" type="password"[^>]* autocomplete="new-password"/)
      const code = await codeTo(host, email)
      const first = await sendForm(browser, action, { code: wrong({ code }), new_password: 'short' })
      expect([first.status, problemOf(first.text), faultOf(first.text, 'new_password')]).toEqual([400, wrongCode, null])
      const short = await sendForm(browser, action, { code, new_password: 'short' })
      expect([short.status, faultOf(short.text, 'new_password')]).toEqual([400, expect.stringContaining('12')])
      expect(short.text).toContain(`value="${code}"`)
      const done = await sendForm(browser, action, { code, new_password: otherPassword })
      expect([done.status, done.headers['location']]).toEqual([303, '/auth/account'])
      expect(noticeOf((await browser.get('/auth/account')).text)).toBe('Your password was changed. Your other devices were signed out.')
      await post(host, '/login', { email, password: otherPassword }).expect(200)
    })

    test('a new address and a first verification are confirmed by their codes, in the session that asked', async () => {
      const host = await start()
      const { email } = await signedIn(host, { emailVerifiedAt: null })
      const browser = host.browser()
      await signInByPage(browser, { email, password })
      const page = await browser.get('/auth/account/email')
      const formOfPerson = /name="form_of" value="([^"]+)"/.exec(page.text)?.[1] ?? ''
      const asked = await sendForm(browser, '/auth/account/email', { action: 'verify', form_of: formOfPerson })
      expect([asked.status, asked.headers['location']]).toEqual([303, '/auth/check-mail'])
      const code = await codeTo(host, email)
      const verified = await sendForm(browser, '/auth/email-verify/confirm', { code })
      expect([verified.status, verified.headers['location']]).toEqual([303, '/auth/account/email'])
      expect(noticeOf((await browser.get('/auth/account/email')).text)).toBe('Your email address is confirmed.')
      expect((await userOf(host, email)).emailVerifiedAt).not.toBeNull()

      const to = newAddress()
      await sendForm(browser, '/auth/account/email', { new_email: to, form_of: formOfPerson })
      expect((await browser.get('/auth/check-mail')).text).toContain(to)
      const done = await sendForm(browser, '/auth/email-change/confirm', { code: await codeTo(host, to) })
      expect([done.status, done.headers['location']]).toEqual([303, '/auth/account/email'])
      expect((await browser.get('/auth/account/email')).text).toContain(to)
    })

    test('in a browser without the binding the form asks for the password of the sign-up; forgot is a take-over (25.4.3)', async () => {
      const host = await start()
      const other = '203.0.113.7'
      const email = newAddress()
      await post(host, '/signup', { email, password }).expect(201)
      await host.mails.next({ kind: 'activation', to: email })
      const browser = host.browser()
      await sendForm(browser, '/auth/signup', { email: newAddress(), password: otherPassword }) // leads to /check-mail
      await browser.post('/auth/activation/request').set('X-Forwarded-For', other).send({ email }).expect(202)
      const code = await codeTo(host, email)
      const asks = await sendForm(browser, '/auth/activate', { code })
      expect([asks.status, faultOf(asks.text, 'password')]).toEqual([400, expect.any(String)])
      expect(asks.text).toContain(`value="${code}"`)
      for (let count = 0; count < 5; count++) expect((await sendForm(browser, '/auth/activate', { code })).status).toBe(400)
      expect((await sendForm(browser, '/auth/activate', { code, forgot: '1' })).status).toBe(303)
      expect((await post(host, '/login', { email, password })).status).toBe(401)
    })

    test('a sibling host cannot send the form', async () => {
      const host = await start()
      const { email } = await signedIn(host)
      const browser = host.browser()
      await sendForm(browser, '/auth/forgot-password', { email })
      const code = await codeTo(host, email)
      const sent = await browser
        .post('/auth/password-reset/confirm')
        .type('form')
        .set({ Origin: 'https://evil.example.test', 'Sec-Fetch-Site': 'same-site' })
        .send({ code, new_password: otherPassword })
      expect(sent.status).toBe(403)
      expect((await sendForm(browser, '/auth/password-reset/confirm', { code, new_password: otherPassword })).status).toBe(303)
    })

    test('without mailedCodes the page has no field, and the routes take no form', async () => {
      const host = await startPages({ settings: { mailedCodes: 'off', tokenDelivery } })
      const browser = host.browser()
      await sendForm(browser, '/auth/signup', { email: newAddress(), password })
      expect((await browser.get('/auth/check-mail')).text).not.toContain('name="code"')
      expect((await sendForm(browser, '/auth/activate', { code: '12345678' })).status).toBe(415)
    })
  },
)
