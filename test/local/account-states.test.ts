import { describe, expect, test } from 'vitest'
import { addIdentity } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import {
  amrOf,
  isAlive,
  mailsTo,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  sha256,
  signedIn,
  tokenRows,
  userOf,
} from './people'

const refusing = { refusesEmailLink: () => true }
const pendingShape = {
  user_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
  activation_required: true,
  activation_url: null,
  access_token: null,
  refresh_token: null,
  signup_token: expect.stringMatching(/^[\w-]{43}$/),
}

// The table "Account states" of the specification, row by row.
describe.each(await databases())('account states, on $name', (database) => {
  const { start } = onLocal(database)

  test('(none), signup, AUTH_AUTO_ACTIVATE true: active; token pair returned', async () => {
    const host = await start({ settings: { autoActivate: true } })
    const email = newAddress()

    const { status, body } = await post(host, '/signup', { email, password })

    expect([status, Object.keys(body)]).toEqual([
      201,
      ['user_id', 'activation_required', 'activation_url', 'access_token', 'refresh_token', 'signup_token'],
    ])
    expect([body.activation_required, body.activation_url]).toEqual([false, null])
    expect(await userOf(host, email)).toMatchObject({ id: body.user_id, isActive: true, activatedAt: host.clock.now(), lastLoginAt: null })
    expect(amrOf(body.access_token)).toEqual(['pwd'])
    expect(await isAlive(host, body.refresh_token)).toBe(true)
    expect(await tokenRows(host, body.user_id)).toEqual([])
    expect(mailsTo(host, email)).toEqual([])
  })

  test('(none), signup, AUTH_AUTO_ACTIVATE false: inactive; activation token stored (hash only) and link mailed', async () => {
    const host = await start()
    const email = newAddress()

    const { status, body } = await post(host, '/signup', { email, password })
    const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))

    expect([status, body]).toEqual([201, pendingShape])
    expect(await userOf(host, email)).toMatchObject({ id: body.user_id, isActive: false, activatedAt: null, emailVerifiedAt: null })
    expect(await tokenRows(host, body.user_id)).toEqual([{ token_hash: sha256(token), purpose: 'ACTIVATION', isUsed: false }])
    expect(JSON.stringify(await host.knex('auth_user_tokens'))).not.toContain(token)
  })

  test('(none), signup, AUTH_AUTO_ACTIVATE false, no email sender wired: the link is returned', async () => {
    const host = await start({ links: 'shown' })
    const { body } = await post(host, '/signup', { email: newAddress(), password })

    expect(body).toEqual({ ...pendingShape, activation_url: expect.stringMatching(/^https:\/\/app\.example\.test\/activate\/[\w-]{43}$/) })
    expect((await post(host, `/activate/${tokenOf({ url: body.activation_url })}`)).status).toBe(200)
  })

  test.each(['mailed', 'shown'] as const)(
    '(none), signup, refuses_email_link matches: no token and no email, the same 201 pending shape, activation_url null (links %s)',
    async (links) => {
      const asked: string[] = []
      const host = await start({ links, options: { refusesEmailLink: async ({ email }) => asked.push(email) > 0 } })
      const email = newAddress()

      const { status, body } = await post(host, '/signup', { email, password })

      expect([status, body]).toEqual([201, pendingShape])
      const user = await userOf(host, email)
      expect([user.isActive, await tokenRows(host, user.id), mailsTo(host, email)]).toEqual([false, [], []])
      expect(asked).toEqual([email])
    },
  )

  test('inactive, activate, token valid, unspent, unexpired: active; token marked used; pair returned', async () => {
    const host = await start()
    const { email, userId, link } = await pending(host)
    host.clock.advance(7 * 86_400 - 1)

    const { status, body } = await post(host, `/activate/${link}`)

    expect([status, Object.keys(body)]).toEqual([200, ['user_id', 'access_token', 'refresh_token', 'mfa_required', 'mfa_token']])
    expect(body).toMatchObject({ user_id: userId, mfa_required: false, mfa_token: null })
    expect(amrOf(body.access_token)).toEqual(['email'])
    const now = host.clock.now()
    expect(await userOf(host, email)).toMatchObject({ isActive: true, activatedAt: now, emailVerifiedAt: now, updatedAt: now })
    expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: true }])
    const refreshed = await post(host, '/refresh', { refresh_token: body.refresh_token })
    expect(amrOf(refreshed.body.access_token)).toEqual(['email'])
  })

  test('refuses_email_link is asked before the state of the account and the password: 403 with the link spent', async () => {
    const host = await start()
    const strict = await start({ options: refusing })
    const { email, userId } = await signedIn(host)
    const activation = await pending(host)
    const reset = await resetLink(host, email)
    await host.knex('auth_users').where({ id: userId }).update({ is_active: false })
    await host.knex('auth_users').where({ id: activation.userId }).update({ is_active: true })

    const answers = [
      await post(strict, '/password-reset/confirm', { token: reset, new_password: 'short' }),
      await post(strict, `/activate/${activation.link}`),
    ]

    expect(answers.map(({ status, body }) => [status, body.code])).toEqual(Array(2).fill([403, 'EMAIL_LINK_FORBIDDEN']))
    const used = [...(await tokenRows(host, userId)), ...(await tokenRows(host, activation.userId))]
    expect(used.map(({ isUsed }) => isUsed)).toEqual([true, true])
  })

  test('(none), social callback, unknown identity: active with a generated password; AUTH_AUTO_ACTIVATE not consulted', async () => {
    const host = await start({ settings: { autoActivate: false } })
    const profile = newPerson()

    expect((await signIn(host, host.browser(), { profile })).status).toBe(200)

    expect(await userOf(host, profile.email)).toMatchObject({ isActive: true, activatedAt: host.clock.now(), passwordSetAt: null })
    expect(mailsTo(host, profile.email)).toEqual([])
  })

  test('any, social login, identity of a deactivated account: unchanged; 401 OAUTH_ACCOUNT_INACTIVE', async () => {
    const host = await start()
    const { email, userId } = await signedIn(host)
    const profile = newPerson({ email })
    await addIdentity(host.knex, userId, { subject: profile.sub })
    await host.auth.service.deactivate(userId)
    const before = await userOf(host, email)

    const { status, body } = await signIn(host, host.browser(), { profile })

    expect([status, body.code]).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
    expect(await userOf(host, email)).toEqual(before)
  })

  test('active, reset confirm, token valid: active; hash replaced; sessions revoked', async () => {
    const host = await start()
    const { email, userId, refreshToken } = await signedIn(host)
    const token = await resetLink(host, email)

    const { status, body } = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([status, body.user_id, body.mfa_required, amrOf(body.access_token)]).toEqual([200, userId, false, ['email']])
    const now = host.clock.now()
    const user = await userOf(host, email)
    expect(user).toMatchObject({ isActive: true, passwordSetAt: now, emailVerifiedAt: now })
    expect(await host.hasher.verify(user.hashedPassword, otherPassword)).toBe(true)
    expect([await isAlive(host, refreshToken), await isAlive(host, body.refresh_token)]).toEqual([false, true])
    expect((await post(host, '/login', { email, password })).status).toBe(401)
    expect((await post(host, '/login', { email, password: otherPassword })).status).toBe(200)
  })

  test('active, reset confirm with revoke_sessions=False: the sessions go on', async () => {
    const host = await start()
    const { email, refreshToken } = await signedIn(host)
    const token = await resetLink(host, email)

    await host.auth.service.resetPassword({ token, newPassword: otherPassword, revokeSessions: false })

    expect(await isAlive(host, refreshToken)).toBe(true)
    expect((await post(host, '/login', { email, password })).status).toBe(401)
  })

  test('R-082 any, reset confirm with refuses_email_link matching: 403 EMAIL_LINK_FORBIDDEN; token consumed and committed; password untouched', async () => {
    const host = await start()
    const { email, userId, refreshToken } = await signedIn(host)
    const token = await resetLink(host, email)
    const before = await userOf(host, email)
    const strict = await start({ options: refusing })

    const { status, body } = await post(strict, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([status, body.code]).toEqual([403, 'EMAIL_LINK_FORBIDDEN'])
    expect(await tokenRows(host, userId)).toMatchObject([{ purpose: 'PASSWORD_RESET', isUsed: true }])
    expect(await userOf(host, email)).toEqual(before)
    expect(await isAlive(host, refreshToken)).toBe(true)
    // Also where the host would not refuse any more.
    expect((await post(host, '/password-reset/confirm', { token, new_password: otherPassword })).status).toBe(401)
  })

  test('R-082 any, activation with refuses_email_link matching: 403 EMAIL_LINK_FORBIDDEN; token consumed and committed; is_active untouched', async () => {
    const host = await start()
    const { email, userId, link } = await pending(host)
    const before = await userOf(host, email)
    const strict = await start({ options: refusing })

    const { status, body } = await post(strict, `/activate/${link}`)

    expect([status, body.code]).toEqual([403, 'EMAIL_LINK_FORBIDDEN'])
    expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: true }])
    expect(await userOf(host, email)).toEqual(before)
    expect((await post(host, `/activate/${link}`)).status).toBe(401)
  })
})
