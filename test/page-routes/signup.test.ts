import { describe, expect, test } from 'vitest'
import { errors } from '../../src'
import { newAddress, otherPassword, password, signedIn, userOf } from '../local/people'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { faultOf, fieldValue, noticeOf, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

describe.each(['cookie', 'both', 'session'] as const)('signing up by the page, delivery %s', (tokenDelivery) => {
  test('a person signs up, is told where the mail went, opens its link and signs in', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const browser = host.browser()
    const email = newAddress()

    const page = await browser.get('/auth/signup')
    expect([page.status, page.text.includes('autocomplete="new-password"')]).toEqual([200, true])
    const sent = await sendForm(browser, '/auth/signup', { email, password, name: 'Ada' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
    const check = await browser.get('/auth/check-mail')
    expect([check.status, check.text.includes(email)]).toEqual([200, true])

    const token = tokenOf(await host.mails.next({ to: email, kind: 'activation' }))
    await sendForm(browser, `/auth/activate/${token}`)
    expect((await userOf(host, email)).isActive).toBe(true)
    expect((await signInByPage(browser, { email, password })).headers['location']).toBe('/auth/account')
  })
})

describe('the page /signup', () => {
  test('says what is wrong beside its fields, and keeps what was typed but the password', async () => {
    const host = await start()
    const browser = host.browser()
    const email = newAddress()

    const empty = await sendForm(browser, '/auth/signup', { name: 'Ada', email: '' })
    expect([empty.status, faultOf(empty.text, 'email'), faultOf(empty.text, 'password'), fieldValue(empty.text, 'name')]).toEqual([
      400,
      'Please fill this in.',
      'Please fill this in.',
      'Ada',
    ])
    const weak = await sendForm(browser, '/auth/signup', { email, password: 'abcdef' })
    expect([weak.status, faultOf(weak.text, 'password'), fieldValue(weak.text, 'email')]).toEqual([
      400,
      expect.stringContaining('at least 12 characters'),
      email,
    ])
    expect(weak.text).not.toContain('abcdef')
    const bad = await sendForm(browser, '/auth/signup', { email: 'nobody', password })
    expect([bad.status, faultOf(bad.text, 'email')]).toEqual([400, 'Please enter an email address, such as name@example.com.'])
    const foreign = await browser.post('/auth/signup').set('Origin', 'https://evil.example').type('form').send({ email, password })
    expect([foreign.status, problemOf(foreign.text)]).toEqual([403, 'This form was sent from another site. Please send it from this page.'])
    expect(await host.knex('auth_users').where({ email })).toEqual([])
  })

  test('gives guardRequest every field of its form, so a page of the host can have a CAPTCHA', async () => {
    const host = await start({
      options: {
        guardRequest: async ({ body }) => {
          if (body.captcha !== 'solved') throw new errors.ForbiddenError()
        },
        templates: { pages: { signup: ({ body }) => body.replace('<button', '<input name="captcha"><button') } },
      },
    })
    const browser = host.browser()
    const email = newAddress()
    expect((await browser.get('/auth/signup')).text).toContain('<input name="captcha">')

    const refused = await sendForm(browser, '/auth/signup', { email, password })
    expect([refused.status, problemOf(refused.text), fieldValue(refused.text, 'email')]).toEqual([400, 'This is not allowed.', email])
    const sent = await sendForm(browser, '/auth/signup', { email, password, captcha: 'solved' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
  })

  test('answers the same for a taken address, whose owner is mailed', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const [one, other] = [host.browser(), host.browser()]
    const free = newAddress()
    const taken = await sendForm(one, '/auth/signup', { email, password })
    const fresh = await sendForm(other, '/auth/signup', { email: free, password })
    expect([taken.status, taken.headers['location']]).toEqual([fresh.status, fresh.headers['location']])
    const namesOf = (sent: typeof taken) => (sent.headers['set-cookie'] as unknown as string[]).map((line) => line.split('=', 1)[0]).sort()
    expect(namesOf(taken)).toEqual(namesOf(fresh))
    const [pageOfTaken, pageOfFree] = [await one.get('/auth/check-mail'), await other.get('/auth/check-mail')]
    expect(pageOfTaken.text.replaceAll(email, '')).toBe(pageOfFree.text.replaceAll(free, ''))
  })

  test('an account that is active at once is signed in, and goes on to where the person came from', async () => {
    const host = await start({ settings: { autoActivate: true } })
    const browser = host.browser()
    const page = await browser.get('/auth/signup').query({ return_to: '/orders/7' })
    expect(fieldValue(page.text, 'return_to')).toBe('/orders/7')
    const sent = await sendForm(browser, '/auth/signup', { email: newAddress(), password, return_to: '/orders/7' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/orders/7'])
    expect((await browser.get('/auth/account')).status).toBe(200)
    expect((await browser.get('/auth/signup')).headers['location']).toBe('/auth/account')
  })

  test('is not there, and nothing leads to it, where nobody can sign up', async () => {
    const host = await start({ settings: { signupEnabled: false } })
    const browser = host.browser()
    expect((await browser.get('/auth/signup')).status).toBe(404)
    expect((await browser.get('/auth/login')).text).not.toContain('/auth/signup')
  })
})

describe('the pages /forgot-password and /check-mail', () => {
  test('a person asks for a link, sends it again, and chooses a new password', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = host.browser()
    expect((await browser.get('/auth/login')).text).toContain('/auth/forgot-password')

    const sent = await sendForm(browser, '/auth/forgot-password', { email })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/check-mail'])
    await host.mails.next({ to: email, kind: 'password_reset' })
    const again = await sendForm(browser, '/auth/check-mail')
    expect([again.status, noticeOf((await browser.get('/auth/check-mail')).text)]).toEqual([
      303,
      'If this address can receive our emails, another email is on its way.',
    ])
    const token = tokenOf(await host.mails.next({ to: email, kind: 'password_reset' }))
    await sendForm(browser, `/auth/password-reset/${token}`, { new_password: otherPassword, confirm_password: otherPassword })
    expect((await signInByPage(browser, { email, password: otherPassword })).headers['location']).toBe('/auth/account')
  })

  test('an address without an account gets the same page', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const [one, other] = [host.browser(), host.browser()]
    const nobody = newAddress()
    await sendForm(one, '/auth/forgot-password', { email })
    await sendForm(other, '/auth/forgot-password', { email: nobody })
    const [known, unknown] = [await one.get('/auth/check-mail'), await other.get('/auth/check-mail')]
    expect(known.text.replaceAll(email, '')).toBe(unknown.text.replaceAll(nobody, ''))
  })

  test('only the cookie names an address: without it, and with one that somebody made up, the page leads to the sign-in page', async () => {
    const host = await start()
    const browser = host.browser()
    expect((await browser.get('/auth/check-mail').query({ email: 'eve@example.test' })).headers['location']).toBe('/auth/login')
    const made = Buffer.from(JSON.stringify({ email: 'eve@example.test', from: 'signup', returnTo: null })).toString('base64url')
    const planted = await browser
      .get('/auth/check-mail')
      .set('Cookie', `check_mail=${made}.99999999999.AAAA; __Host-check_mail=${made}.99999999999.AAAA`)
    expect([planted.headers['location'], planted.text.includes('eve@')]).toEqual(['/auth/login', false])
  })
})
