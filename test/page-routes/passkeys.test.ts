import { describe, expect, test } from 'vitest'
import { type LocalHost, password, signedIn } from '../local/people'
import { mfaSettings } from '../mfa/people'
import { newAuthenticator, ownerWithFactor, passkeyOwner, passkeySettings } from '../passkeys/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { faultOf, fieldValue, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)
const settings = passkeySettings

/** What the page's script reads from a form. */
function optionsOf(html: string) {
  const [, json = '{}'] = /data-options="([^"]*)"/.exec(html) ?? []
  const options = JSON.parse(json.replaceAll('&quot;', '"').replaceAll('&amp;', '&'))
  return { options, challenge_token: fieldValue(html, 'challenge_token') }
}

const rejected = 'This passkey did not work, or it took too long. Please try again.'

describe.each(['cookie', 'both', 'session'] as const)('a passkey on the pages, delivery %s', (tokenDelivery) => {
  test('signs in by the form of /login, once, and goes to return_to', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery } })
    const { authenticator, email } = await passkeyOwner(host)
    const browser = host.browser()
    const page = await browser.get('/auth/login').query({ return_to: '/orders' })
    expect(page.text).toContain('autocomplete="username webauthn"')
    expect(page.text).toMatch(/<noscript><p[^>]*>Passkeys need JavaScript, which is turned off in this browser.<\/p><\/noscript>/)
    const { options, challenge_token } = optionsOf(page.text)
    const fields = { credential: JSON.stringify(authenticator.get(options)), challenge_token, return_to: '/orders' }
    const signed = await sendForm(browser, '/auth/passkeys/login', fields)
    expect([signed.status, signed.headers['location']]).toEqual([303, '/orders'])
    expect((await browser.get('/auth/account')).text).toContain(email)
    const again = await sendForm(host.browser(), '/auth/passkeys/login', fields)
    expect([again.status, problemOf(again.text), fieldValue(again.text, 'credential')]).toEqual([400, rejected, ''])
  })

  test('takes the second step on /mfa, and not with the options of another challenge', async () => {
    const host = await start({ settings: { ...settings, ...mfaSettings, tokenDelivery } })
    const { authenticator, email } = await ownerWithFactor(host)
    const [browser, other] = [host.browser(), host.browser()]
    for (const each of [browser, other]) await signInByPage(each, { email, password })
    const [mine, hers] = [optionsOf((await browser.get('/auth/mfa')).text), optionsOf((await other.get('/auth/mfa')).text)]
    const send = ({ options, challenge_token }: typeof mine) =>
      sendForm(browser, '/auth/mfa', { credential: JSON.stringify(authenticator.get(options)), challenge_token })
    const wrong = await send(hers)
    expect([wrong.status, problemOf(wrong.text)]).toEqual([400, rejected])
    const right = await send(mine)
    expect([right.status, right.headers['location']]).toEqual([303, '/auth/account'])
  })
})

describe('the form of a passkey', () => {
  test.each(['', 'no json', '[]', '"text"', 'null', '{}'])('that holds %j is refused on the page, and does nothing', async (credential) => {
    const host = await start({ settings })
    const browser = host.browser()
    const { challenge_token } = optionsOf((await browser.get('/auth/login')).text)
    const answer = await sendForm(browser, '/auth/passkeys/login', { credential, challenge_token })
    expect([answer.status, problemOf(answer.text), setCookieOf(answer, 'refresh_token')]).toEqual([400, rejected, null])
  })

  test('of another site is refused; a GET of its address leads to the sign-in page', async () => {
    const host = await start({ settings })
    const browser = host.browser()
    const foreign = await browser.post('/auth/passkeys/login').set('Origin', 'https://evil.example').type('form').send({ credential: '{}' })
    expect([foreign.status, problemOf(foreign.text)]).toEqual([403, 'This form was sent from another site. Please send it from this page.'])
    expect((await browser.get('/auth/passkeys/login')).headers['location']).toBe('/auth/login')
  })

  test('is nowhere where passkeys are off, and where an account has none', async () => {
    const without = await start()
    const browser = without.browser()
    expect((await browser.get('/auth/login')).text).not.toContain('passkey')
    expect((await sendForm(browser, '/auth/passkeys/login', {})).status).toBe(404)
    expect((await browser.get('/auth/account/security/passkeys/add')).status).toBe(404)
  })
})

describe('the pages of a person’s passkeys', () => {
  async function owner(host: LocalHost) {
    const person = await passkeyOwner(host)
    const browser = host.browser()
    await signInByPage(browser, { email: person.email, password })
    return { ...person, browser }
  }

  test('a passkey is added with a name by what the script sends; the pages are of the security page where there is no second factor', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    const add = '/auth/account/security/passkeys/add'
    const form_of = fieldValue((await browser.get(add)).text, 'form_of')
    const { body } = await browser.post('/auth/passkeys/register/options').set('Origin', 'https://app.example.test').send({})
    const sent = { form_of, credential: JSON.stringify(newAuthenticator().create(body)), challenge_token: body.challenge_token }
    const long = await sendForm(browser, add, { ...sent, name: 'x'.repeat(65) })
    expect([long.status, faultOf(long.text, 'name'), fieldValue(long.text, 'name')]).toEqual([400, 'This is too long.', 'x'.repeat(65)])
    const added = await sendForm(browser, add, { ...sent, name: 'Laptop' })
    expect([added.status, added.headers['location']]).toEqual([303, '/auth/account/security'])
    expect((await browser.get('/auth/account/security')).text).toMatch(/<h1>Security<\/h1>[\s\S]*<strong>Laptop<\/strong>/)
    expect((await browser.get('/auth/account')).text).toContain('Passkeys')
    const again = await sendForm(browser, add, sent)
    expect([again.status, problemOf(again.text)]).toEqual([400, 'This passkey cannot be used here, or it took too long. Please try again.'])
  })

  test('a form without a passkey says why there is none: an address that is not verified', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host, { emailVerifiedAt: null })
    const browser = host.browser()
    await signInByPage(browser, { email, password })
    const add = '/auth/account/security/passkeys/add'
    const form_of = fieldValue((await browser.get(add)).text, 'form_of')
    const sent = await sendForm(browser, add, { form_of, credential: '' })
    expect([sent.status, problemOf(sent.text)]).toEqual([
      400,
      'Please confirm your email address first. The button is on the page “Email”.',
    ])
  })

  test('renaming and removing act on the person’s own passkeys alone, and removing asks first', async () => {
    const host = await start({ settings })
    const [ada, bob] = [await owner(host), await owner(host)]
    const pages = '/auth/account/security/passkeys'
    const form_of = fieldValue((await ada.browser.get(`${pages}/add`)).text, 'form_of')
    for (const page of ['rename', 'remove']) {
      expect((await ada.browser.get(`${pages}/${page}`).query({ id: bob.passkeyId })).headers['location']).toBe('/auth/account/security')
      const sent = await sendForm(ada.browser, `${pages}/${page}`, { form_of, id: bob.passkeyId, name: 'Mine' })
      expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/account/security'])
    }
    expect((await host.knex('auth_passkeys').where({ id: bob.passkeyId })).map(({ name }) => name)).toEqual([null])

    const empty = await sendForm(ada.browser, `${pages}/rename`, { form_of, id: ada.passkeyId, name: ' ' })
    expect([empty.status, faultOf(empty.text, 'name')]).toEqual([400, 'Please fill this in.'])
    expect((await sendForm(ada.browser, `${pages}/rename`, { form_of, id: ada.passkeyId, name: '<b>Key</b>' })).status).toBe(303)
    expect((await ada.browser.get('/auth/account/security')).text).toContain('<strong>&lt;b&gt;Key&lt;/b&gt;</strong>')

    expect((await ada.browser.get(`${pages}/remove`).query({ id: ada.passkeyId })).text).toContain('Remove &lt;b&gt;Key&lt;/b&gt;?')
    expect(await host.knex('auth_passkeys').where({ id: ada.passkeyId })).toHaveLength(1)
    expect((await sendForm(ada.browser, `${pages}/remove`, { form_of, id: ada.passkeyId })).status).toBe(303)
    expect(await host.knex('auth_passkeys').where({ id: ada.passkeyId })).toEqual([])
  })
})
