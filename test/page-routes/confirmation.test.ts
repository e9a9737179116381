import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type LocalHost, password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { type Browser, setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { faultOf, fieldValue, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

describe.each(['cookie', 'both', 'session'] as const)('the page /reauthenticate, delivery %s', (tokenDelivery) => {
  test('a person confirms with the password, and goes back', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const { email } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    host.clock.advance(3_600)

    const page = await browser.get('/auth/reauthenticate').query({ return_to: '/auth/account' })
    expect([page.status, page.text.includes(`You are signed in as ${email}.`)]).toEqual([200, true])
    const formOf = fieldValue(page.text, 'form_of')
    const wrong = await sendForm(browser, '/auth/reauthenticate', { form_of: formOf, return_to: '/auth/account', password: 'not this one' })
    expect([wrong.status, faultOf(wrong.text, 'password'), fieldValue(wrong.text, 'return_to')]).toEqual([
      400,
      'This password is not correct.',
      '/auth/account',
    ])
    const right = await sendForm(browser, '/auth/reauthenticate', { form_of: formOf, return_to: '/auth/account', password })
    expect([right.status, right.headers['location']]).toEqual([303, '/auth/account'])
    expect((await browser.get('/auth/account')).status).toBe(200)
    const rows = await host.knex('auth_sessions').orderBy('last_seen_at', 'desc')
    expect(new Date(rows[0].authenticated_at).getTime()).toBe(host.clock.now().getTime())
  })
})

describe('the page /reauthenticate', () => {
  test('with a second factor it takes the code, and no password', async () => {
    const host = await start({ settings: mfaSettings })
    const person = await enrolled(host)
    const browser = host.browser()
    await signInByPage(browser, { email: person.email, password })
    await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })

    const page = await browser.get('/auth/reauthenticate')
    expect([page.text.includes('name="code"'), page.text.includes('type="password"')]).toEqual([true, false])
    const form_of = fieldValue(page.text, 'form_of')
    expect((await sendForm(browser, '/auth/reauthenticate', { form_of, code: '000000' })).status).toBe(400)
    const right = await sendForm(browser, '/auth/reauthenticate', { form_of, code: person.app.nextCode() })
    expect([right.status, right.headers['location']]).toEqual([303, '/auth/account'])
  })

  test('an account with a provider alone is sent there and back; the policy names where that form ends', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    await addIdentity(host.knex, userId, {
      provider: 'corp',
      subject: 'corp-1',
      createdAt: new Date(host.clock.now().getTime() - 172_800_000),
    })
    await host
      .knex('auth_users')
      .where({ id: userId })
      .update({ hashed_password: `!${'x'.repeat(43)}` })

    const page = await browser.get('/auth/reauthenticate').query({ return_to: '/auth/account' })
    expect([page.text.includes('Confirm with Corp'), page.text.includes('type="password"')]).toEqual([true, false])
    const origin = new URL(host.provider.oidcOptions().authorizeUrl).origin
    expect(page.headers['content-security-policy']).toContain(`form-action 'self' ${origin};`)
    const sent = await sendForm(browser, '/auth/reauthenticate', {
      form_of: fieldValue(page.text, 'form_of'),
      return_to: '/auth/account',
      provider: 'corp',
    })
    expect([sent.status, new URL(String(sent.headers['location'])).origin]).toEqual([303, origin])
  })

  test('an account with nothing to confirm with is led to sign in again', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    await host
      .knex('auth_users')
      .where({ id: userId })
      .update({ hashed_password: `!${'x'.repeat(43)}`, email_verified_at: null })
    const page = await browser.get('/auth/reauthenticate').query({ return_to: '/x' })
    expect(page.text).toContain('href="/auth/login?switch=1&amp;return_to=%2Fx"')
  })

  test('a form that was made for another person changes nothing, and the page is shown as it is now', async () => {
    const host = await start()
    const [ana, bob] = [await signedIn(host), await signedIn(host)]
    const [hers, his] = [host.browser(), host.browser()]
    await signInByPage(hers, { email: ana.email, password })
    await signInByPage(his, { email: bob.email, password })
    const form_of = fieldValue((await hers.get('/auth/reauthenticate')).text, 'form_of')
    const refused = await sendForm(his, '/auth/reauthenticate', { form_of, password })
    expect([refused.status, problemOf(refused.text)?.slice(0, 46)]).toEqual([400, 'You are now signed in to a different account, '])
    expect([refused.text.includes(bob.email), fieldValue(refused.text, 'form_of') === form_of]).toEqual([true, false])
  })

  test('who is not signed in goes to the sign-in page; a form that was sent says that it was not saved', async () => {
    const host = await start()
    const browser = host.browser()
    const page = await browser.get('/auth/reauthenticate').query({ return_to: '/x' })
    expect([page.status, page.headers['location']]).toEqual([302, '/auth/login?return_to=%2Fauth%2Freauthenticate%3Freturn_to%3D%252Fx'])
    const sent = await sendForm(browser, '/auth/reauthenticate', { password, return_to: '/x' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/login?return_to=%2Fx'])
    const login = await browser.get(String(sent.headers['location']))
    expect(login.text).toContain('what you entered was not saved')
  })
})

describe('the page /reauthenticate, where the store keeps no sessions', () => {
  const freshPage = '/auth/account/security'
  const stateless = async () => {
    const { knex } = await start()
    return start({ settings: mfaSettings, options: { store: createKnexStore({ knex, sessions: false }) } })
  }
  const confirm = async (browser: Browser) => {
    const { text } = await browser.get('/auth/reauthenticate')
    return sendForm(browser, '/auth/reauthenticate', { form_of: fieldValue(text, 'form_of'), password }).expect(303)
  }
  /** Signed in longer ago than a fresh session lasts. */
  const signedInBefore = async (host: LocalHost) => {
    const person = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email: person.email, password })
    host.clock.advance(1_000)
    return { ...person, browser }
  }

  test.each(['cookie', 'both'] as const)('a confirmation lasts over the pages that follow, delivery %s', async (tokenDelivery) => {
    const { knex } = await start()
    const store = createKnexStore({ knex, sessions: false })
    const host = await start({ settings: { tokenDelivery, ...mfaSettings }, options: { store } })
    const { browser } = await signedInBefore(host)
    expect((await browser.get(freshPage)).status).toBe(303)
    await confirm(browser)
    for (const path of [freshPage, '/auth/account', freshPage]) expect((await browser.get(path)).status).toBe(200)
    host.clock.advance(1_000)
    expect((await browser.get(freshPage)).status).toBe(303) // it is over as everywhere
  })

  test('an access cookie of another account says nothing, and neither does one from before a change of the address’s proof', async () => {
    const host = await stateless()
    const [person, other] = [await signedInBefore(host), await signedIn(host)]
    const others = await signInByPage(host.browser(), { email: other.email, password })
    const refresh = setCookieOf(await person.browser.get('/auth/account'), 'refresh_token')
    const cookie = `access_token=${setCookieOf(others, 'access_token')?.value}; refresh_token=${refresh?.value}`
    const mixed = await host.browser().get('/auth/account').set('Cookie', cookie)
    expect([mixed.text.includes(person.email), mixed.text.includes(other.email)]).toEqual([true, false])

    await confirm(person.browser)
    host.clock.advance(1)
    await createKnexStore({ knex: host.knex }).users.update(person.userId, { emailVerifiedAt: host.clock.now() })
    host.clock.advance(1)
    expect((await person.browser.get('/auth/account')).status).toBe(200)
    expect((await person.browser.get(freshPage)).status).toBe(303)
  })
})
