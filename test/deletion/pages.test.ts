import { describe, expect, test } from 'vitest'
import { type LocalHost, newAddress, password, post } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { fieldValue, onPages, problemOf, sendForm, signInByPage } from '../page-routes/people'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { isGone, soft } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onPages(sqlite)

async function personOn(host: LocalHost, changes: object = {}) {
  const { id, email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password), ...changes })
  const browser = host.browser()
  await signInByPage(browser, { email, password })
  return { id, email, browser }
}

describe('the pages of a deletion, without script', () => {
  test('a person reads what will happen, downloads the data, ticks the box, and comes back by the mail', async () => {
    const host = await start({ settings: soft })
    const { id, email, browser } = await personOn(host)
    const overview = await browser.get('/auth/account')
    expect(overview.text).toContain('href="/auth/account/delete"')
    const page = await browser.get('/auth/account/delete')
    expect(page.text).toMatch(/On March 31, 2026 we delete it/)
    const [, file = ''] = /href="([^"]*export)"/.exec(page.text) ?? []
    expect((await browser.get(file)).body.user.email).toBe(email)

    const form_of = fieldValue(page.text, 'form_of')
    const unticked = await sendForm(browser, '/auth/account/delete', { form_of })
    expect([unticked.status, problemOf(unticked.text)]).toEqual([400, 'Please tick the box first.'])
    const foreign = await sendForm(browser, '/auth/account/delete', { understood: 'on', form_of: 'of somebody else' })
    expect(foreign.status).toBe(400)
    const closed = await sendForm(browser, '/auth/account/delete', { form_of, understood: 'on' })
    expect([closed.status, closed.text]).toEqual([200, expect.stringMatching(/Your account is closed[\s\S]*March 31, 2026/)])
    expect(closed.text).not.toContain('<nav')
    expect((await browser.get('/auth/account')).headers['location']).toContain('/auth/login')

    const token = tokenOf(await host.mails.next({ kind: 'account_deletion', to: email }))
    const look = await host.browser().get(`/auth/account/restore/${token}`)
    expect([look.status, look.headers['set-cookie']]).toEqual([200, undefined])
    expect(look.text).toContain('It is deleted on March 31, 2026.')
    expect((await host.browser().get(`/auth/account/restore/${token}`)).status).toBe(200)
    const back = await sendForm(host.browser(), `/auth/account/restore/${token}`)
    expect([back.status, back.text]).toEqual([200, expect.stringContaining('Your account is back')])
    for (const used of [token, 'nonsense']) expect((await host.browser().get(`/auth/account/restore/${used}`)).status).toBe(400)
    expect((await sendForm(host.browser(), `/auth/account/restore/${token}`)).status).toBe(400)
    expect(await isGone(host, id)).toBe(false)
  })

  test('a right login of a closed account shows the button that brings it back, after the second factor', async () => {
    const host = await start({ settings: { ...soft, ...mfaSettings } })
    const person = await enrolled(host)
    await post(host, '/account/delete', { code: person.app.nextCode() }, { Cookie: `access_token=${person.token}` }).expect(202)
    const browser = host.browser()
    const first = await signInByPage(browser, { email: person.email, password })
    expect(first.headers['location']).toBe('/auth/mfa')
    const second = await sendForm(browser, '/auth/mfa', { code: person.app.nextCode() })
    expect([second.status, second.text]).toEqual([403, expect.stringContaining('Keep your account?')])
    const [, action = ''] = /action="([^"]*restore[^"]*)"/.exec(second.text) ?? []
    expect((await sendForm(browser, action)).text).toContain('Your account is back')
    expect((await signInByPage(host.browser(), { email: person.email, password })).headers['location']).toBe('/auth/mfa')
  })

  test('immediate: the page says that nobody can bring it back, and the credential must be of the last minute', async () => {
    const host = await start({ settings: { accountDeletion: 'immediate' } })
    const { id, browser } = await personOn(host)
    const page = await browser.get('/auth/account/delete')
    expect(page.text).toContain('Nobody can bring it back.')
    const fields = { form_of: fieldValue(page.text, 'form_of'), understood: 'on' }
    host.clock.advance(61)
    const stale = await sendForm(browser, '/auth/account/delete', fields)
    expect(stale.headers['location']).toMatch(/^\/auth\/reauthenticate\?/)
    await sendForm(browser, '/auth/reauthenticate', { password, form_of: fields.form_of, return_to: '/auth/account/delete' }).expect(303)
    const gone = await sendForm(browser, '/auth/account/delete', fields)
    expect([gone.status, gone.text]).toEqual([200, expect.stringContaining('Your account is deleted')])
    expect(await isGone(host, id)).toBe(true)
  })

  test('after a change to `off`, a right login of a closed account shows no button that leads nowhere', async () => {
    const host = await start()
    const changes = { isActive: false, deletionRequestedAt: host.clock.now(), hashedPassword: await host.hasher.hash(password) }
    const { email } = await addUser(host.knex, { email: newAddress(), ...changes })
    const refused = await signInByPage(host.browser(), { email, password })
    expect([refused.status, problemOf(refused.text)]).toEqual([400, expect.stringContaining('This account is closed')])
    expect(refused.text).not.toContain('restore')
  })

  test('a refusal is a sentence, and the pages speak Portuguese; without the setting there are none', async () => {
    const host = await start({ settings: soft })
    await host.knex('auth_users').where({ is_admin: true }).update({ is_admin: false })
    const { browser } = await personOn(host, { isAdmin: true })
    const page = await browser.get('/auth/account/delete?lang=pt-BR')
    expect(page.text).toMatch(/Em 31 de março de 2026 ela será excluída/)
    const fields = { form_of: fieldValue(page.text, 'form_of'), understood: 'on' }
    const refused = await sendForm(browser, '/auth/account/delete', fields)
    expect([refused.status, problemOf(refused.text)]).toEqual([400, 'This account cannot be deleted now. Please contact us.'])
    const off = await start()
    const { browser: other } = await personOn(off)
    expect((await other.get('/auth/account/delete')).status).toBe(404)
    expect((await other.get('/auth/account')).text).not.toContain('account/delete')
    for (const path of ['export', 'restore/x']) expect((await other.get(`/auth/account/${path}`)).status).toBe(404)
  })
})
