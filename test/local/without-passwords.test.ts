import { describe, expect, test } from 'vitest'
import { ask, confirm, loginTemplate, person } from '../email-login/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { configurations, everything } from '../openapi/configurations'
import { documentOf, mountedRoutes } from '../openapi/document-of'
import { fieldValue, sendForm } from '../page-routes/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { bearerOf, type LocalHost, newAddress, onLocal, openAs, otherPassword, password, post, userOf } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const off = { passwordLogin: false, emailLogin: 'both', ...loginTemplate } as const
const allOn = { ...everything.settings, passwordLogin: false } as const
const { options = {} } = configurations['no passwords'] ?? {}
const pagesOn = { ...off, tokenDelivery: 'cookie', pagesEnabled: true } as const

/** What an app had before it switched passwords off. */
async function oldMember(host: LocalHost, changes: object = {}) {
  const hashedPassword = await host.hasher.hash(password)
  return person(host, { hashedPassword, passwordSetAt: host.clock.now(), ...changes })
}

describe('passwordLogin: false', () => {
  test.each([
    ['both', {}],
    ['session', { tokenDelivery: 'session', appRedirects: [], accessTokenIssuer: null, accessTokenAudience: null }],
    ['cookie, with pages', { tokenDelivery: 'cookie', pagesEnabled: true, appRedirects: [] }],
    ['bearer', { tokenDelivery: 'bearer', trustedDeviceDays: 0, oauthSuccessRedirect: null, oauthErrorRedirect: null, ...loginTemplate }],
  ] as const)('no mounted route has to do with a password, in delivery %s', async (_name, settings) => {
    const host = await start({ ...everything, options, settings: { ...allOn, ...settings } })
    expect(mountedRoutes(host.auth).filter((route) => /password/.test(route))).toEqual([])
    for (const path of ['/login', '/session/login', '/cookie/login', ...removed.flatMap((one) => [one, `/cookie${one}`])])
      expect([path, (await post(host, path, { email: newAddress(), password })).status]).toEqual([path, expect.toBeOneOf([404, 405])])
  })

  const removed = [...['/password-reset/request', '/password-reset/confirm', '/password-change', '/password-change/mfa', '/password/first']]

  test('the word is nowhere in the OpenAPI document', async () => {
    for (const settings of [
      {},
      { tokenDelivery: 'session', appRedirects: [], accessTokenIssuer: null, accessTokenAudience: null },
    ] as const) {
      const host = await start({ ...everything, options, settings: { ...allOn, ...settings } })
      // The answer of /client-config has the word everywhere: it says that there are no passwords.
      const { paths, components, ...others } = await documentOf(host)
      const { '/client-config': _route, ...ofOthers } = paths as Record<string, unknown>
      const { ClientConfig: _schema, ...schemas } = components.schemas as Record<string, unknown>
      expect(JSON.stringify([ofOthers, { ...components, schemas }, others]).match(/.{0,60}password.{0,60}/i)?.[0] ?? null).toBeNull()
    }
  })

  test('a sign-up takes the address alone; a password that comes along is not looked at, and none is stored', async () => {
    const host = await start({ settings: off })
    const email = newAddress()
    const signup = await post(host, '/signup', { email, password: 'short' })
    expect([signup.status, signup.body.activation_required]).toEqual([201, true])
    expect(await userOf(host, email)).toMatchObject({ hashedPassword: expect.stringMatching(/^!/), passwordSetAt: null })

    await newestActivation(host, email)
    const again = await post(host, '/signup', { email })
    expect([again.status, Object.keys(again.body)]).toEqual([201, Object.keys(signup.body)])
    const activated = await post(host, '/activate', { token: tokenOf(await newestActivation(host, email)) })
    expect([activated.status, activated.body.access_token, activated.body.password_required]).toEqual([200, expect.any(String), undefined])
  })

  test('with autoActivate the sign-up opens a session, which shows no method', async () => {
    const host = await start({ settings: { ...off, autoActivate: true } })
    const signup = await post(host, '/signup', { email: newAddress() })
    const me = await host
      .browser()
      .get('/auth/me')
      .set(bearerOf({ token: signup.body.access_token }))
    expect([signup.status, me.status]).toEqual([201, 200])
    const refreshed = await post(host, '/refresh', { refresh_token: signup.body.refresh_token })
    expect(refreshed.status).toBe(200)
  })

  test('a password that an account has from before is no evidence, and the take-over asks for no new one', async () => {
    const host = await start({ settings: { ...off, tokenDelivery: 'bearer' } })
    const { email } = await oldMember(host, { emailVerifiedAt: null })
    const { token } = await ask(host, email)
    const answer = await confirm(host, { token, password })
    expect([answer.status, answer.body.password_required]).toEqual([200, undefined])
    expect((await userOf(host, email)).passwordSetAt).toBeNull()
  })

  test('a session is made fresh without it: by a mailed code', async () => {
    const host = await start({ settings: { ...off, ...mfaSettings, tokenDelivery: 'bearer' } })
    const { email, id } = await oldMember(host)
    const member = await openAs(host, id)
    host.clock.advance(1_000)
    const { body: pair } = await post(host, '/refresh', { refresh_token: member.refreshToken })
    const bearer = bearerOf({ token: pair.access_token })
    const stale = await post(host, '/mfa/enroll', {}, bearer)
    expect([stale.body.code, stale.body.details.methods]).toEqual(['REAUTHENTICATION_REQUIRED', ['email']])
    const refused = await post(host, '/reauthenticate', { password }, bearer)
    expect([refused.status, refused.body.details.errors]).toEqual([422, [{ path: 'code', rule: 'object.missing' }]])

    await post(host, '/reauthenticate/email', {}, bearer)
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const fresh = await post(host, '/reauthenticate', { email_code: code }, bearer)
    expect(fresh.status).toBe(200)
    expect((await post(host, '/mfa/enroll', {}, bearerOf({ token: fresh.body.access_token }))).status).toBe(200)
  })

  test('the second factor comes off, and the address changes, without a password', async () => {
    const host = await start({ settings: { ...off, ...mfaSettings, tokenDelivery: 'bearer' } })
    const withFactor = await enrolledWithout(host)
    const disabled = await post(host, '/mfa/disable', { code: withFactor.app.nextCode() }, bearerOf(withFactor))
    expect([disabled.body, disabled.status]).toEqual([{}, 204])

    const { id } = await oldMember(host)
    const member = await openAs(host, id)
    const to = newAddress()
    expect((await post(host, '/email-change/request', { new_email: to }, bearerOf(member))).status).toBe(202)
    const token = tokenOf(await host.mails.next({ kind: 'email_change', to }))
    expect((await post(host, '/email-change/confirm', { token, password })).status).toBe(401)
    expect((await post(host, '/email-change/confirm', { token }, bearerOf(member))).status).toBe(200)
  })

  test('the verbs of a password refuse with a sentence', async () => {
    const host = await start({ settings: off })
    const { service } = host.auth
    const { email, id: userId } = await oldMember(host)
    const calls = [
      service.logIn({ email, password }),
      service.logInToSession({ email, password }),
      service.requestPasswordReset(email),
      service.resetPassword({ token: 'a'.repeat(43), newPassword: otherPassword }),
      service.changePassword({ userId, currentPassword: password, newPassword: otherPassword }),
      service.changePasswordWithMfa({ userId, code: '123456', newPassword: otherPassword }),
      service.setFirstPassword({ userId, newPassword: otherPassword }),
      service.signUp({ email: newAddress(), password }),
      service.activate('a'.repeat(43), { password }),
    ]
    for (const call of calls) await expect(call).rejects.toThrow('passwordLogin (AUTH_PASSWORD_LOGIN) is false')
    await expect(service.signUp({ email: newAddress() })).resolves.toHaveLength(2)
  })

  test('the last way in stays: a verified address counts with login by email, an old password and an unverified address do not', async () => {
    const refusing = { settings: { ...off, oauthKeepLastLoginMethod: true }, options: { refusesEmailLink: () => true } }
    const cases = [
      [{ settings: { ...off, oauthKeepLastLoginMethod: true } }, {}, 204],
      [{ settings: { ...off, oauthKeepLastLoginMethod: true } }, { emailVerifiedAt: null }, 409],
      [{ settings: { ...off, oauthKeepLastLoginMethod: true, emailLogin: 'off' } }, {}, 409],
      [refusing, {}, 409],
    ] as const
    for (const [options, changes, status] of cases) {
      const host = await start(options)
      const { id } = await oldMember(host, changes)
      await addIdentity(host.knex, id)
      const unlinked = await post(host, '/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(await openAs(host, id)))
      expect([unlinked.status, unlinked.body.code]).toEqual([status, status === 409 ? 'LAST_LOGIN_METHOD' : undefined])
    }
  })

  test('with passwords, `service.signUp` needs one', async () => {
    const host = await start()
    await expect(host.auth.service.signUp({ email: newAddress() })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' })
  })

  test('no page asks for a password, and none links to a page that is gone', async () => {
    const host = await start({ settings: { ...pagesOn, ...mfaSettings, passkeysEnabled: true } })
    const browser = host.browser()
    const email = newAddress()
    const seen: string[] = []
    const open = async (path: string) => {
      const page = await browser.get(path)
      expect([path, page.status]).toEqual([path, 200])
      seen.push(page.text)
      return page.text
    }
    await open('/auth/login')
    await open('/auth/signup')
    const signup = await sendForm(browser, '/auth/signup', { email, name: 'Ada', return_to: '' })
    expect([signup.status, signup.headers['location']]).toEqual([303, '/auth/check-mail'])
    await open('/auth/check-mail')
    const { token } = await ask(host, (await oldMember(host, { emailVerifiedAt: null })).email)
    await open(`/auth/email-login/${token}`)
    const link = tokenOf(await newestActivation(host, email))
    await open(`/auth/activate/${link}`)
    const activated = await sendForm(browser, `/auth/activate/${link}`)
    expect([activated.status, activated.headers['location']]).toEqual([303, '/auth/account'])
    for (const path of ['', '/profile', '/email', '/security', '/security/authenticator', '/connections', '/devices'])
      await open(`/auth/account${path}`)
    host.clock.advance(1_000)
    await open('/auth/reauthenticate?return_to=/auth/account')

    for (const html of seen) {
      expect(fieldValue(html, 'password')).toBeNull()
      expect(html).not.toMatch(/type="password"|forgot-password|account\/password|password-reset/)
    }
    for (const path of ['/auth/forgot-password', '/auth/account/password', `/auth/password-reset/${link}`])
      expect([path, (await browser.get(path)).status]).toEqual([path, 404])
    expect((await sendForm(browser, '/auth/login', { email, password })).status).toBe(405)
    expect((await post(host, '/login', { email, password })).status).toBe(405)
  })
})

async function enrolledWithout(host: LocalHost) {
  const { id } = await oldMember(host)
  const { secret } = await host.auth.service.enrollTotp(id)
  const app = authenticator(secret, host.clock)
  await host.auth.service.confirmTotp({ userId: id, amr: ['email'], code: app.code() })
  return { app, ...(await openAs(host, id)) }
}

function newestActivation(host: LocalHost, email: string) {
  return host.mails.next({ kind: 'activation', to: email })
}
