import { describe, expect, test } from 'vitest'
import { bearerOf, type LocalHost, newAddress, onLocal, password, post, settled, userOf } from '../local/people'
import { mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { activeSquatters, ownersPassword, pendingSquatters, squattersPassword } from './squatters'

const providers = { corp: {}, attic: {}, acme: {} }
const unhurried = { login: false, links: false, mail: false, signup: false, routes: false } as const

/** Each proves the address, and returns a way to be in afterwards that only the owner has. */
const proofs: Record<string, (host: LocalHost, email: string) => Promise<boolean>> = {
  async reset(host, email) {
    await post(host, '/password-reset/request', { email })
    const token = tokenOf(await host.mails.next({ kind: 'password_reset', to: email }))
    const { status } = await post(host, '/password-reset/confirm', { token, new_password: ownersPassword })
    return status === 200 && logsIn(host, email)
  },
  async verification(host, email) {
    await host.auth.service.requestEmailVerification((await userOf(host, email)).id)
    const token = tokenOf(await host.mails.next({ kind: 'email_verification', to: email }))
    const { body } = await post(host, '/email-verify/confirm', { token })
    expect(body).toMatchObject({ password_required: true, reset_token: expect.any(String) })
    const { status } = await post(host, '/password-reset/confirm', { token: body.reset_token, new_password: ownersPassword })
    return status === 200 && logsIn(host, email)
  },
  async 'sign-in by a provider that verified the address'(host, email) {
    const { status, body } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson({ email }) })
    expect([status, body.password_required]).toEqual([200, true])
    const first = await post(host, '/password/first', { new_password: ownersPassword }, bearerOf({ token: body.access_token }))
    return first.status === 204 && logsIn(host, email)
  },
}

const activations: Record<string, (host: LocalHost, link: string) => Promise<string | null>> = {
  async 'a click'(host, token) {
    const { status, body } = await post(host, '/activate', { token })
    expect([status, body.password_required]).toEqual([200, true])
    return body.access_token
  },
  async 'a click on the page'(host, token) {
    const page = `/auth/activate/${token}`
    const browser = host.browser()
    expect((await browser.get(page)).text).toContain('name="password"')
    expect((await browser.post(page).type('form').send({})).status).toBe(400)
    expect((await browser.post(page).type('form').send({ password: 'not the right harbour' })).status).toBe(400)
    const clicked = await browser.post(page).type('form').send({ forgot: '1' })
    expect([clicked.status, clicked.headers['location']]).toEqual([303, expect.stringMatching(/^\/auth\/password-reset\/[\w-]{43}$/)])
    const form = { new_password: ownersPassword, confirm_password: ownersPassword }
    expect((await browser.post(String(clicked.headers['location'])).type('form').send(form)).status).toBe(200)
    return null
  },
}

async function logsIn(host: LocalHost, email: string): Promise<boolean> {
  return (await post(host, '/login', { email, password: ownersPassword })).body.access_token !== undefined
}

describe.each(await databases())('what somebody prepared in an account of an address that is not theirs, on $name', (database) => {
  const { start } = onLocal(database)
  const strict = (settings: object = {}) =>
    start({
      providers,
      settings: { ...mfaSettings, activationBinding: 'strict', oauthLinkByVerifiedEmail: true, backendLinks: true, ...settings },
      options: { throttle: unhurried },
    })

  describe.each(Object.keys(activeSquatters))('a squatter who %s', (before) => {
    test.each(Object.keys(proofs))('has nothing left after the owner’s %s, and the owner is in', async (proof) => {
      const host = await strict({ autoActivate: true })
      const { email, userId, held } = (await activeSquatters[before]?.(host)) ?? never()
      if (held['the password']) expect(await held['the password'](host), 'it works until then').toBe(true)
      const told: unknown[] = []
      host.auth.events.on('account.taken_over', (payload) => told.push(payload))
      host.clock.advance(1)

      expect(await proofs[proof]?.(host, email)).toBe(true)

      expect(told).toEqual([{ userId }])
      for (const [what, works] of Object.entries(held)) expect(await works(host), what).toBe(false)
      expect(await logsIn(host, email)).toBe(true)
    })
  })

  describe.each(Object.keys(pendingSquatters))('a squatter who %s', (before) => {
    test.each(Object.keys(activations))('has nothing left after the owner’s activation by %s, and the owner is in', async (proof) => {
      const host = await strict()
      const { email, link, held } = (await pendingSquatters[before]?.(host)) ?? never()

      const token = await activations[proof]?.(host, link)

      if (token) expect((await post(host, '/password/first', { new_password: ownersPassword }, bearerOf({ token }))).status).toBe(204)
      for (const [what, works] of Object.entries(held)) expect(await works(host), what).toBe(false)
      expect(await logsIn(host, email)).toBe(true)
    })
  })

  describe.each(['strict', 'lenient'])('where the owner comes by a provider that verified the address, %s', (activationBinding) => {
    test.each(Object.keys(pendingSquatters))('a squatter who %s keeps nobody out, and has nothing left', async (before) => {
      const host = await strict({ activationBinding })
      const { email, link, held } = (await pendingSquatters[before]?.(host)) ?? never()
      const told: string[] = []
      host.auth.events.on('activation', ({ userId }) => told.push(userId))

      const { status, body } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson({ email }) })

      expect([status, body.password_required]).toEqual([200, true])
      expect(told).toEqual([(await userOf(host, email)).id])
      expect((await post(host, '/activate', { token: link })).status).toBe(401)
      const bearer = bearerOf({ token: body.access_token })
      expect((await post(host, '/password/first', { new_password: ownersPassword }, bearer)).status).toBe(204)
      for (const [what, works] of Object.entries(held)) expect(await works(host), what).toBe(false)
      expect(await logsIn(host, email)).toBe(true)
    })
  })

  test('a provider opens no account that waits where it verified nothing, linking is off, or the host refuses mailed links', async () => {
    const arrive = async (host: LocalHost, claims: object = {}) => {
      const { email } = (await pendingSquatters['signs up and waits']?.(host)) ?? never()
      const { body } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson({ email, ...claims }) })
      expect((await userOf(host, email)).isActive).toBe(false)
      return body.code
    }
    expect(await arrive(await strict(), { email_verified: null })).toBe('OAUTH_EMAIL_UNVERIFIED')
    expect(await arrive(await strict({ oauthLinkByVerifiedEmail: false }))).toBe('OAUTH_EMAIL_TAKEN')
    let isRefused = false
    const host = await start({
      providers,
      settings: { oauthLinkByVerifiedEmail: true },
      options: { throttle: unhurried, refusesEmailLink: () => isRefused },
    })
    const { email } = (await pendingSquatters['signs up and waits']?.(host)) ?? never()
    const late = (await pendingSquatters['signs up and waits']?.(host)) ?? never()
    host.clock.advance(8 * 86_400) // no link works any more: an app may have switched the account off
    const expired = await signIn(host, host.browser(), { key: 'corp', profile: newPerson({ email: late.email }) })
    expect([expired.body.code, (await userOf(host, late.email)).isActive]).toEqual(['OAUTH_ACCOUNT_INACTIVE', false])
    isRefused = true
    const { body } = await signIn(host, host.browser(), { key: 'corp', profile: newPerson({ email }) })
    expect(body.code).toBe('OAUTH_ACCOUNT_INACTIVE')
  })

  test('lenient, the one exception: the link of the only signup keeps its password, whoever clicks', async () => {
    const host = await strict({ activationBinding: 'lenient' })
    const { email, link } = (await pendingSquatters['signs up and waits']?.(host)) ?? never()
    const { body } = await post(host, '/activate', { token: link })
    expect([body.password_required, (await post(host, '/login', { email, password: squattersPassword })).status]).toEqual([undefined, 200])
  })

  test.each(['signs up after the owner', 'signs up before the owner and again after', 'says that the password was forgotten'])(
    'lenient: a squatter who %s has no exception (X23)',
    async (before) => {
      const host = await strict({ activationBinding: 'lenient' })
      const { email, link } = (await pendingSquatters[before]?.(host)) ?? never()
      host.clock.advance(60)
      const { body } = await post(host, '/activate', { token: link })
      expect([body.password_required, (await post(host, '/login', { email, password: squattersPassword })).status]).toEqual([true, 401])
    },
  )

  test('X20 the binding of another signup, made up or of another account, keeps no password', async () => {
    const host = await strict()
    const other = await post(host, '/signup', { email: newAddress(), password })
    const { email, link } = (await pendingSquatters['signs up and waits']?.(host)) ?? never()
    const { body } = await post(
      host,
      '/activate',
      { token: link, signup_token: other.body.signup_token },
      { Cookie: 'signup_binding=planted' },
    )
    expect([body.password_required, (await post(host, '/login', { email, password: squattersPassword })).status]).toEqual([true, 401])
  })

  test('X23 an older signup’s binding is worth nothing after a newer signup, and the newer one’s keeps its password', async () => {
    const host = await strict()
    const email = newAddress()
    const first = await post(host, '/signup', { email, password: squattersPassword })
    const second = await post(host, '/signup', { email, password: ownersPassword })
    await host.mails.next({ kind: 'activation', to: email })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
    expect(first.body.signup_token).not.toBe(second.body.signup_token)
    const { body } = await post(host, '/activate', { token, signup_token: second.body.signup_token })
    expect([body.password_required, await logsIn(host, email)]).toEqual([undefined, true])
    expect((await post(host, '/login', { email, password: squattersPassword })).status).toBe(401)
  })

  test('X22 an identity of this very address, verified by its provider, is the owner’s and stays; every other one goes', async () => {
    const host = await strict({ autoActivate: true })
    const squat = (await activeSquatters['links an identity of another address']?.(host)) ?? never()
    await addIdentity(host.knex, squat.userId, { provider: 'corp', email: squat.email, emailVerified: true })
    expect(await proofs['reset']?.(host, squat.email)).toBe(true)
    expect((await host.auth.service.listIdentities(squat.userId)).map(({ provider }) => provider)).toEqual(['corp'])
  })

  test('X7 a click moves no address: it takes a session of the account that asked, or its password', async () => {
    const host = await strict({ autoActivate: true })
    const squat = (await activeSquatters['signs up and keeps the session']?.(host)) ?? never()
    const victim = newAddress()
    const link = await host.auth.service.requestEmailChange({ userId: squat.userId, newEmail: victim, currentPassword: squattersPassword })
    const bystander = await post(host, '/signup', { email: newAddress(), password })
    const token = link?.token
    for (const [body, headers] of [
      [{ token }, {}],
      [{ token, password: 'not the right harbour' }, {}],
      [{ token }, bearerOf({ token: bystander.body.access_token })],
    ] as const)
      expect((await post(host, '/email-change/confirm', body, headers)).body.code).toBe('UNAUTHORIZED')
    expect((await post(host, '/email-change/confirm', { token, password: squattersPassword })).status).toBe(200)
    expect((await userOf(host, victim)).id).toBe(squat.userId)
  })

  test('the mail of a signup that a stranger replaced before it left does not bring the stranger’s password back', async () => {
    let replace: (() => Promise<void>) | null = null
    const refusesEmailLink = async () => {
      const now = replace
      replace = null
      await now?.()
      return false
    }
    const host = await start({ settings: { activationBinding: 'strict' }, options: { throttle: unhurried, refusesEmailLink } })
    const email = newAddress()
    replace = async () => {
      await post(host, '/signup', { email, password: squattersPassword }).expect(201)
      await host.mails.next({ kind: 'activation', to: email })
    }
    const { body: signup } = await post(host, '/signup', { email, password: ownersPassword }).expect(201)
    await settled(host)
    const links = host.mails.mails.filter(({ to, kind }) => to === email && kind === 'activation').map(tokenOf)
    for (const token of links) await post(host, '/activate', { token, signup_token: signup.signup_token })

    expect((await post(host, '/login', { email, password: squattersPassword })).status).toBe(401)
    expect((await userOf(host, email)).isActive).toBe(true)
  })
})

function never(): never {
  throw new Error('no such block')
}
