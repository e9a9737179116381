import { describe, expect, test } from 'vitest'
import { type LocalHost, password } from '../local/people'
import { enrolled } from '../mfa/people'
import { faultOf, fieldValue, noticeOf, sendForm, signInByPage } from '../page-routes/people'
import { ownerWithFactor } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import { setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import { firefox, isTrusted, onTrust, trust, trusting, trustRows } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const box = (page: { text: string }, id = 'trust_device') =>
  new RegExp(`<input type="checkbox" id="${id}" name="trust_device" value="on"( checked)?>`).exec(page.text)

describe('the pages of trusted devices', () => {
  const { start } = onTrust(sqlite)
  const onPages = (settings: object = {}) => start({ settings: { pagesEnabled: true, ...settings } })
  const signInForm = (host: LocalHost, email: string) => {
    const browser = host.browser()
    return { browser, step: () => signInByPage(browser, { email, password }) }
  }

  test.each(['cookie', 'both', 'session'] as const)(
    'in delivery %s, the second-factor page has the checkbox, keeps it after a wrong code, and trusts the browser without script',
    async (tokenDelivery) => {
      const host = await onPages({ tokenDelivery })
      const person = await enrolled(host)
      const { browser, step } = signInForm(host, person.email)
      await step()
      const page = await browser.get('/auth/mfa')
      expect([page.text.includes('Trust this browser for 30 days'), box(page)?.[1]]).toEqual([true, undefined])
      const wrong = await sendForm(browser, '/auth/mfa', { code: '000000', trust_device: 'on' })
      expect([wrong.status, box(wrong)?.[1], faultOf(wrong.text, 'code')]).toEqual([400, ' checked', null])
      const right = await sendForm(browser, '/auth/mfa', { code: person.app.nextCode(), trust_device: 'on' })
      expect([right.status, setCookieOf(right, 'auth_trust') !== null]).toEqual([303, true])
      expect(await trustRows(host, person.userId)).toHaveLength(1)
      expect((await step()).headers['location']).not.toBe('/auth/mfa')
    },
  )

  test('an unchecked box trusts nothing', async () => {
    const host = await onPages()
    const person = await enrolled(host)
    const { browser, step } = signInForm(host, person.email)
    await step()
    const right = await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })
    expect([right.status, setCookieOf(right, 'auth_trust')]).toEqual([303, null])
    expect((await step()).headers['location']).toBe('/auth/mfa')
  })

  test('the form of a passkey has a box of its own, which trusts the browser', async () => {
    const host = await onPages()
    const person = await ownerWithFactor(host)
    const { browser, step } = signInForm(host, person.email)
    await step()
    const page = await browser.get('/auth/mfa')
    expect(box(page, 'trust_device_by_passkey')).not.toBeNull()
    const options = JSON.parse((/data-options="([^"]+)"/.exec(page.text)?.[1] ?? '').replaceAll('&quot;', '"'))
    const credential = JSON.stringify(person.authenticator.get(options))
    const fields = { credential, challenge_token: fieldValue(page.text, 'challenge_token'), trust_device: 'on' }
    expect((await sendForm(browser, '/auth/mfa', fields)).status).toBe(303)
    expect(await trustRows(host, person.userId)).toHaveLength(1)
  })

  test('off, no page has the box', async () => {
    const host = await onPages({ trustedDeviceDays: 0 })
    const { browser, step } = signInForm(host, (await enrolled(host)).email)
    await step()
    expect((await browser.get('/auth/mfa')).text).not.toContain('trust_device')
  })

  test('in Portuguese, the box says it in days of that language', async () => {
    const host = await onPages({ trustedDeviceDays: 1 })
    const { browser, step } = signInForm(host, (await enrolled(host)).email)
    await step()
    const page = await browser.get('/auth/mfa').set('Accept-Language', 'pt-BR')
    expect(page.text).toContain('Confiar neste navegador por 1 dia<')
  })

  describe('without our pages, on the way back from a provider', () => {
    const html = { Accept: 'text/html' }
    const arrive = async (tokenDelivery: 'cookie' | 'both', trustedDeviceDays = 30) => {
      const host = await start({ settings: { tokenDelivery, trustedDeviceDays, oauthSuccessRedirect: 'https://web.example.test/home' } })
      const person = await enrolled(host)
      const profile = { sub: `of-${person.userId}`, email: person.email }
      await addIdentity(host.knex, person.userId, { subject: profile.sub, email: person.email })
      const browser = host.browser()
      return { host, person, browser, page: await signIn(host, browser, { profile, headers: html }) }
    }

    test.each(['cookie', 'both'] as const)(
      'in delivery %s, the form of the page trusts the browser for a login by password',
      async (delivery) => {
        const { host, person, browser, page } = await arrive(delivery)
        expect(box(page)).not.toBeNull()
        const base = delivery === 'both' ? '/cookie' : ''
        const fields = { mfa_token: fieldValue(page.text, 'mfa_token'), code: person.app.nextCode(), trust_device: 'on' }
        const done = await sendForm(browser, `/auth${base}/mfa/verify`, fields)
        expect([done.status, setCookieOf(done, 'auth_trust') !== null]).toEqual([302, true])
        expect(await trustRows(host, person.userId)).toHaveLength(1)
        expect(await isTrusted(browser, person, base)).toBe(true)
      },
    )

    test('off, the page has no box, and the field is ignored', async () => {
      const { host, person, browser, page } = await arrive('cookie', 0)
      expect(page.text).not.toContain('trust_device')
      const fields = { mfa_token: fieldValue(page.text, 'mfa_token'), code: person.app.nextCode(), trust_device: 'on' }
      const done = await sendForm(browser, '/auth/mfa/verify', fields)
      expect([done.status, setCookieOf(done, 'auth_trust'), await trustRows(host, person.userId)]).toEqual([302, null, []])
    })
  })

  test('/account/devices lists the trusted browsers and removes one, without script', async () => {
    const host = await onPages()
    const person = await trusting(host)
    await trust(host.browser(), person)
    const [own, other] = (await person.browser.get('/auth/trusted-devices')).body.toSorted((one: { is_current: boolean }) =>
      one.is_current ? -1 : 1,
    )
    const page = await person.browser.get('/auth/account/devices')
    for (const said of ['Trusted browsers', 'Firefox, Linux', 'This browser', 'Trusted until', `value="${own.id}"`, `value="${other.id}"`])
      expect(page.text).toContain(said)
    const remove = (trusted: string) =>
      sendForm(person.browser, '/auth/account/devices', { form_of: fieldValue(page.text, 'form_of'), trusted })
    for (const _ of ['removed', 'removed in another tab before']) {
      expect((await remove(other.id)).status).toBe(303)
      const after = await person.browser.get('/auth/account/devices')
      expect(noticeOf(after.text)).toBe('That browser is no longer trusted.')
      expect([after.text.includes(other.id), after.text.includes(own.id)]).toEqual([false, true])
    }
    await remove(own.id)
    expect((await person.browser.get('/auth/account/devices')).text).not.toContain('Trusted browsers')
    expect(await isTrusted(person.browser, person)).toBe(false)
  })

  test('a form that was made for another person removes nothing', async () => {
    const host = await onPages()
    const [person, other] = [await trusting(host), await trusting(host)]
    const foreign = fieldValue((await other.browser.get('/auth/account/devices')).text, 'form_of')
    const [device] = (await person.browser.get('/auth/trusted-devices')).body
    const refused = await sendForm(person.browser, '/auth/account/devices', { form_of: foreign, trusted: device.id })
    expect([refused.status, (await trustRows(host, person.userId)).length]).toEqual([400, 1])
  })

  test('a name of a client is never shown as markup', async () => {
    const host = await onPages()
    const person = await enrolled(host)
    const browser = host.browser()
    const { body } = await browser.post('/auth/login').set('User-Agent', '<b>evil</b> Firefox/1').send({ email: person.email, password })
    await browser
      .post('/auth/mfa/verify')
      .set('User-Agent', '<b>evil</b> Firefox/1')
      .send({ mfa_token: body.mfa_token, code: person.app.nextCode(), trust_device: true })
    expect((await trustRows(host, person.userId))[0]?.name).toBe('Firefox')
    expect(firefox).not.toContain('evil')
  })
})
