import { describe, expect, test } from 'vitest'
import { type LocalHost, otherPassword, password, signedIn, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { type EnrolledMember, enrolled, mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import type { Browser } from '../support/app'
import { withChangedEnd } from '../support/changed-text'
import { databases } from '../support/databases'
import { faultOf, fieldValue, noticeOf, onPages, problemOf, sendForm, signInByPage } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

const yesterday = (host: LocalHost) => new Date(host.clock.now().getTime() - 172_800_000)
const keyOf = (html: string) => (/class="key">([^<]+)</.exec(html)?.[1] ?? '').replaceAll(' ', '')
const attributeOf = (html: string, name: string) => new RegExp(` ${name}="([^"]*)"`).exec(html)?.[1] ?? ''

async function arrived(host: LocalHost, email: string): Promise<Browser> {
  const browser = host.browser()
  await signInByPage(browser, { email, password })
  return browser
}

/** Opens the page, fills its form and sends it. */
async function fill(browser: Browser, path: string, fields: object) {
  const page = await browser.get(path)
  return sendForm(browser, path.split('?', 1)[0] ?? path, { form_of: fieldValue(page.text, 'form_of'), ...fields })
}

describe.each(['cookie', 'both', 'session'] as const)('the account area, delivery %s', (tokenDelivery) => {
  const settings = { tokenDelivery }

  test('the overview says what the account is made of, and leads to each page', async () => {
    const host = await start({ settings: { ...settings, ...mfaSettings } })
    const { email } = await signedIn(host, { name: 'Ada' })
    const browser = await arrived(host, email)

    const page = await browser.get('/auth/account')
    expect(page.status).toBe(200)
    for (const presented of ['Ada', email, 'Confirmed', 'Set', 'Off']) expect(page.text).toContain(presented)
    const paths = ['profile', 'email', 'password', 'security', 'connections', 'devices']
    for (const path of paths) {
      expect(page.text).toContain(`href="/auth/account/${path}"`)
      expect([path, (await browser.get(`/auth/account/${path}`)).status]).toEqual([path, 200])
    }
  })

  test('a name is changed, and an empty one is none', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)

    const saved = await fill(browser, '/auth/account/profile', { name: 'Ada <b>Lovelace</b>' })
    expect([saved.status, saved.headers['location']]).toEqual([303, '/auth/account/profile'])
    const page = await browser.get('/auth/account/profile')
    expect([noticeOf(page.text), page.text.includes('<b>')]).toEqual(['Your name was saved.', false])
    expect((await userOf(host, email)).name).toBe('Ada <b>Lovelace</b>')
    expect(noticeOf((await browser.get('/auth/account/profile')).text)).toBeNull()
    await fill(browser, '/auth/account/profile', { name: '' })
    expect((await userOf(host, email)).name).toBeNull()

    const long = await fill(browser, '/auth/account/profile', { name: 'x'.repeat(121) })
    expect([long.status, faultOf(long.text, 'name'), fieldValue(long.text, 'name')]).toEqual([400, 'This is too long.', 'x'.repeat(121)])
  })

  test('a password is changed by the present one; every other device is signed out', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const [browser, other] = [await arrived(host, email), await arrived(host, email)]
    const change = (fields: object) => fill(browser, '/auth/account/password', fields)

    expect(faultOf((await change({})).text, 'current_password')).toBe('Please fill this in.')
    const unequal = await change({ current_password: password, new_password: otherPassword, confirm_password: `${otherPassword}!` })
    expect([unequal.status, faultOf(unequal.text, 'confirm_password')]).toEqual([400, 'The two passwords are not the same.'])
    expect(unequal.text).not.toContain(otherPassword)
    const weak = await change({ current_password: password, new_password: 'short', confirm_password: 'short' })
    expect([weak.status, faultOf(weak.text, 'new_password')]).toEqual([400, expect.stringContaining('at least 12 characters')])
    const wrong = await change({ current_password: 'not this one at all', new_password: otherPassword, confirm_password: otherPassword })
    expect([wrong.status, faultOf(wrong.text, 'current_password')]).toEqual([400, 'The current password is not correct.'])

    const right = await change({ current_password: password, new_password: otherPassword, confirm_password: otherPassword })
    expect([right.status, right.headers['location']]).toEqual([303, '/auth/account/password'])
    expect(noticeOf((await browser.get('/auth/account/password')).text)).toContain('Your password was changed.')
    expect((await other.get('/auth/account')).status).toBe(302)
  })

  test('another device is signed out by name, and all others at once', async () => {
    const host = await start({ settings })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)
    const phone = host.browser()
    await phone
      .post('/auth/login')
      .set({ Origin: 'https://app.example.test', 'Sec-Fetch-Site': 'same-origin' })
      .set('User-Agent', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0')
      .type('form')
      .send({ email, password })

    const page = await browser.get('/auth/account/devices')
    expect(page.text).toContain('Sign out of Firefox on Linux')
    expect(page.text.match(/This device/g)).toHaveLength(1)
    const [, id] = /name="session" value="([^"]+)">\s*<button[^>]*>Sign out of Firefox on Linux/.exec(page.text) ?? []
    const ended = await fill(browser, '/auth/account/devices', { session: id })
    expect([ended.status, noticeOf((await browser.get('/auth/account/devices')).text)]).toEqual([303, 'That device was signed out.'])
    expect((await phone.get('/auth/account')).status).toBe(302)
    const again = await fill(browser, '/auth/account/devices', { session: id })
    expect([again.status, problemOf(again.text)]).toEqual([400, 'That device is already signed out.'])

    const third = await arrived(host, email)
    expect((await fill(browser, '/auth/account/devices', { action: 'others' })).status).toBe(303)
    expect((await third.get('/auth/account')).status).toBe(302)
    expect((await browser.get('/auth/account')).status).toBe(200)
  })

  test('a factor is turned on with the key, after a mistyped code with the same key, and the recovery codes are shown once', async () => {
    const host = await start({ settings: { ...settings, ...mfaSettings } })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)
    const path = '/auth/account/security/authenticator'
    const before = await userOf(host, email)
    expect((await browser.get(path)).text).not.toContain('class="qr"')
    expect(await userOf(host, email)).toEqual(before) // a GET makes no secret

    const begun = await fill(browser, path, {})
    const key = /class="key">([^<]+)</.exec(begun.text)?.[1] ?? ''
    expect([begun.status, attributeOf(begun.text, 'src')]).toEqual([200, expect.stringMatching(/./)])
    const app = authenticator(key.replaceAll(' ', ''), host.clock)
    const [form_of, enrolment] = [fieldValue(begun.text, 'form_of'), fieldValue(begun.text, 'enrolment')]
    expect(begun.text).not.toMatch(/class="codes"/)

    const wrong = await sendForm(browser, path, { form_of, enrolment, code: '000000' })
    expect([wrong.status, /class="key">([^<]+)</.exec(wrong.text)?.[1], wrong.text.includes('class="qr"')]).toEqual([400, key, true])
    const right = await sendForm(browser, path, { form_of, enrolment: fieldValue(wrong.text, 'enrolment'), code: app.code() })
    expect([right.status, right.text.match(/<li>[\w-]+<\/li>/g)?.length]).toEqual([200, 10])
    expect(right.text).toContain('download="recovery-codes.txt"')
    expect((await userOf(host, email)).totpEnabledAt).not.toBeNull()
    const after = await browser.get('/auth/account/security')
    expect([after.status, after.text.includes('class="codes"'), after.text.includes('class="qr"')]).toEqual([200, false, false])
  })
})

describe('the account area', () => {
  test('an enrolment that another session began, that took too long or that was changed begins anew', async () => {
    const host = await start({ settings: mfaSettings })
    const { email } = await signedIn(host)
    const [browser, other] = [await arrived(host, email), await arrived(host, email)]
    const path = '/auth/account/security/authenticator'
    const begun = await fill(browser, path, {})
    const [form_of, enrolment] = [fieldValue(begun.text, 'form_of'), String(fieldValue(begun.text, 'enrolment'))]

    for (const [who, sealed] of [
      [other, enrolment],
      [browser, withChangedEnd(enrolment)],
      [browser, ''],
    ] as const) {
      const refused = await sendForm(who, path, { form_of, enrolment: sealed, code: '123456' })
      expect([refused.status, refused.text.includes('class="qr"')]).toEqual([400, false])
    }
    host.clock.advance(899)
    expect((await sendForm(browser, path, { form_of, enrolment, code: '000000' })).text).toContain('class="qr"')
    host.clock.advance(2)
    await fill(browser, '/auth/reauthenticate', { password })
    const late = await sendForm(browser, path, { form_of, enrolment, code: '000000' })
    expect([late.status, problemOf(late.text)]).toEqual([400, 'This took longer than 15 minutes. Please start again.'])
  })

  test('what a fresh session began is finished by it, also when it is no longer fresh', async () => {
    const host = await start({ settings: { ...mfaSettings, freshSessionSeconds: 120 } })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)
    const path = '/auth/account/security/authenticator'
    const begun = await fill(browser, path, {})
    const app = authenticator(keyOf(begun.text), host.clock)
    const [form_of, enrolment] = [fieldValue(begun.text, 'form_of'), fieldValue(begun.text, 'enrolment')]
    host.clock.advance(200)

    const wrong = await sendForm(browser, path, { form_of, enrolment, code: '000000' })
    expect([wrong.status, wrong.text.includes('class="qr"')]).toEqual([400, true])
    const anew = await sendForm(browser, path, { form_of })
    expect([anew.status, String(anew.headers['location'])]).toEqual([303, expect.stringContaining('/auth/reauthenticate')])
    expect((await sendForm(browser, path, { form_of, enrolment, code: app.code() })).status).toBe(200)
    expect((await userOf(host, email)).totpEnabledAt).not.toBeNull()
  })

  test('of two windows that began, the newer one counts: the older one shows no recovery codes that are dead', async () => {
    const host = await start({ settings: mfaSettings })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)
    const path = '/auth/account/security/authenticator'
    const older = await fill(browser, path, {})
    const newer = await fill(browser, path, {})
    const form_of = fieldValue(older.text, 'form_of')
    const finish = (page: { text: string }) =>
      sendForm(browser, path, {
        form_of,
        enrolment: fieldValue(page.text, 'enrolment'),
        code: authenticator(keyOf(newer.text), host.clock).code(),
      })

    const refused = await finish(older)
    expect([refused.status, problemOf(refused.text)]).toEqual([400, expect.stringContaining('in another window')])
    expect((await userOf(host, email)).totpEnabledAt).toBeNull()
    expect((await finish(newer)).text).toContain('recovery-codes.txt')
  })

  test('with a factor: new recovery codes, another phone, and off again, each by a code', async () => {
    const host = await start({ settings: mfaSettings })
    const member = await enrolled(host)
    const browser = await arrivedWithCode(host, member)
    const security = '/auth/account/security'

    expect(faultOf((await fill(browser, `${security}/recovery-codes`, {})).text, 'code')).toBe('Please fill this in.')
    const codes = await fill(browser, `${security}/recovery-codes`, { code: member.app.nextCode() })
    expect([codes.status, codes.text.match(/<li>[\w-]+<\/li>/g)?.length]).toEqual([200, 10])

    expect((await fill(browser, `${security}/authenticator`, { code: '000000' })).status).toBe(400)
    const begun = await fill(browser, `${security}/authenticator`, { code: member.app.nextCode() })
    expect([begun.status, begun.text.includes('class="qr"')]).toEqual([200, true])
    expect((await userOf(host, member.email)).totpEnabledAt).not.toBeNull()

    const off = `${security}/turn-off`
    const wrong = await fill(browser, off, { password: 'not this one', code: member.app.nextCode() })
    expect([wrong.status, faultOf(wrong.text, 'password')]).toEqual([400, 'The current password is not correct.'])
    const done = await fill(browser, off, { password, code: member.app.nextCode() })
    expect([done.status, done.headers['location']]).toEqual([303, security])
    expect((await userOf(host, member.email)).totpEnabledAt).toBeNull()
    expect((await browser.get(off)).headers['location']).toBe(security)
  })

  test('an account without a password sets its first one, in a fresh session', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const browser = await arrived(host, email)
    const unusable = `!${'x'.repeat(43)}`
    await host.knex('auth_users').where({ id: userId }).update({ hashed_password: unusable })

    const page = await browser.get('/auth/account/password')
    expect([page.text.includes('Choose a password'), page.text.includes('current_password')]).toEqual([true, false])
    const set = await fill(browser, '/auth/account/password', { new_password: otherPassword, confirm_password: otherPassword })
    expect([set.status, noticeOf((await browser.get('/auth/account/password')).text)]).toEqual([303, 'Your password was set.'])
    await host.knex('auth_users').where({ id: userId }).update({ hashed_password: unusable })
    host.clock.advance(901)
    const stale = await browser.get('/auth/account/password')
    expect([stale.status, stale.headers['location']]).toEqual([303, '/auth/reauthenticate?return_to=%2Fauth%2Faccount%2Fpassword'])
  })

  test('a change of address is mailed to the new one; a stale session confirms first, at GET and at POST', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)

    const bad = await fill(browser, '/auth/account/email', { new_email: 'nobody' })
    expect([bad.status, faultOf(bad.text, 'new_email'), fieldValue(bad.text, 'new_email')]).toEqual([
      400,
      'Please enter an email address, such as name@example.com.',
      'nobody',
    ])
    const sent = await fill(browser, '/auth/account/email', { new_email: 'ada.new@example.test' })
    expect([sent.status, sent.headers['location']]).toEqual([303, '/auth/account/email'])
    const { url } = await host.mails.next({ to: 'ada.new@example.test', kind: 'email_change' })
    expect(url).toContain('/change/')
    expect((await userOf(host, email)).email).toBe(email)

    const form_of = fieldValue((await browser.get('/auth/account/email')).text, 'form_of')
    host.clock.advance(901)
    const confirmation = '/auth/reauthenticate?return_to=%2Fauth%2Faccount%2Femail'
    expect((await browser.get('/auth/account/email')).headers['location']).toBe(confirmation)
    const stale = await sendForm(browser, '/auth/account/email', { form_of, new_email: 'eve@example.test' })
    expect([stale.status, stale.headers['location']]).toEqual([303, confirmation])
  })

  test('an address that is not verified yet gets its link', async () => {
    const host = await start({ settings: { autoActivate: true } })
    const { email } = await signedIn(host, { emailVerifiedAt: null })
    const browser = await arrived(host, email)

    expect((await browser.get('/auth/account/email')).text).toContain('This address is not confirmed yet.')
    const sent = await fill(browser, '/auth/account/email', { action: 'verify' })
    expect([sent.status, noticeOf((await browser.get('/auth/account/email')).text)]).toEqual([
      303,
      'We sent you the link. Please check your email.',
    ])
    await host.mails.next({ to: email, kind: 'email_verification' })
  })

  test('a provider is connected by its form, whose end the policy names, and disconnected on a page that asks', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const browser = await arrived(host, email)
    const path = '/auth/account/connections'

    const page = await browser.get(path)
    const origin = new URL(host.provider.oidcOptions().authorizeUrl).origin
    expect(page.headers['content-security-policy']).toContain(`form-action 'self' ${origin};`)
    const begun = await fill(browser, path, { provider: 'corp' })
    expect([begun.status, new URL(String(begun.headers['location'])).origin]).toEqual([303, origin])
    const unknown = await fill(browser, path, { provider: 'nobody' })
    expect([unknown.status, problemOf(unknown.text)]).toEqual([400, 'This account is no longer connected.'])

    await addIdentity(host.knex, userId, { provider: 'corp', subject: 'corp-1', createdAt: yesterday(host) })
    expect((await browser.get(path)).text).toContain('Disconnect Corp')
    const asked = await browser.get(`${path}/remove`).query({ provider: 'corp' })
    expect(asked.text).toContain('Disconnect Corp?')
    expect((await host.knex('auth_identities')).length).toBe(1)
    const gone = await fill(browser, `${path}/remove?provider=corp`, { provider: 'corp' })
    expect([gone.status, gone.headers['location']]).toEqual([303, path])
    expect((await host.knex('auth_identities')).length).toBe(0)
    expect((await browser.get(`${path}/remove`).query({ provider: 'corp' })).headers['location']).toBe(path)
  })

  test('what a provider came back with is said in our words, whatever the address holds', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)

    const back = await browser.get('/auth/login').query({ error: 'OAUTH_IDENTITY_TAKEN' })
    expect([back.status, back.headers['location']]).toEqual([303, '/auth/account/connections?error=OAUTH_IDENTITY_TAKEN'])
    const said = async (error: string) => problemOf((await browser.get('/auth/account/connections').query({ error })).text)
    expect(await said('OAUTH_IDENTITY_TAKEN')).toBe('This provider account is already connected to another account here.')
    expect(await said('<script>alert(1)</script>')).toBe('Nothing was connected. Please try again.')
  })

  test('a form that was made for another person changes nothing', async () => {
    const host = await start()
    const [ada, bob] = [await signedIn(host), await signedIn(host)]
    const [browserOfAda, browserOfBob] = [await arrived(host, ada.email), await arrived(host, bob.email)]
    const form_of = fieldValue((await browserOfAda.get('/auth/account/profile')).text, 'form_of')

    for (const given of [form_of, '', undefined]) {
      const refused = await sendForm(browserOfBob, '/auth/account/profile', { form_of: given, name: 'Ada' })
      expect([refused.status, problemOf(refused.text)]).toEqual([400, expect.stringContaining('signed in to a different account')])
      expect(fieldValue(refused.text, 'name')).not.toBe('Ada')
    }
    expect((await userOf(host, bob.email)).name).toBe('There Before')
  })

  test('pages of features that are off are not there, and nothing leads to them', async () => {
    const host = await start({ settings: { oauthEnabled: false } })
    const { email } = await signedIn(host)
    const browser = await arrived(host, email)
    const page = await browser.get('/auth/account')
    for (const path of ['security', 'connections', 'security/authenticator', 'connections/remove']) {
      expect(page.text).not.toContain(`/account/${path}"`)
      expect([path, (await browser.get(`/auth/account/${path}`)).status]).toEqual([path, 404])
    }
  })
})

async function arrivedWithCode(host: LocalHost, member: EnrolledMember): Promise<Browser> {
  const browser = await arrived(host, member.email)
  await sendForm(browser, '/auth/mfa', { code: member.app.nextCode() })
  return browser
}
