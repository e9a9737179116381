import { describe, expect, test } from 'vitest'
import { amrOf, bearerOf, type LocalHost, newAddress, otherPassword, password, post } from '../local/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { undo, undoTokenOf } from '../undo/people'
import {
  age,
  codeOf,
  logIn,
  newAuthenticator,
  onPasskeys,
  ownerWithFactor,
  type PasskeyOwner,
  passkeyOwner,
  register,
  rejected,
  withFactors,
} from './people'

describe.each(await databases())('section 16, rule by rule, on $name', (database) => {
  const { start } = onPasskeys(database)
  const remove = (host: LocalHost, { passkeyId, token }: Pick<PasskeyOwner, 'passkeyId' | 'token'>) =>
    host.browser().delete(`${host.prefix}/passkeys/${passkeyId}`).set(bearerOf({ token })).send({})

  test('2: it counts as two factors: no challenge follows it, and requireMfa is content', async () => {
    const host = await start({
      settings: withFactors,
      host: (app, auth) => app.get('/safe', auth.guards.requireMfa(), (_req, res) => void res.json({ reached: true })),
    })
    const owner = await ownerWithFactor(host)
    const login = await logIn(host, owner.authenticator)
    expect([login.status, login.body.mfa_required, amrOf(login.body.access_token)]).toEqual([200, false, ['passkey']])
    const safe = await host
      .browser()
      .get('/safe')
      .set(bearerOf({ token: login.body.access_token }))
    expect(safe.body).toEqual({ reached: true })
    const change = { current_password: password, new_password: otherPassword }
    expect((await post(host, '/password-change', change, bearerOf({ token: login.body.access_token }))).status).toBe(204)
  })

  test('4: having one asks nobody for a second step after a password', async () => {
    const host = await start({ settings: withFactors })
    const owner = await passkeyOwner(host)
    const { body } = await post(host, '/login', { email: owner.email, password })
    expect([body.mfa_required, amrOf(body.access_token)]).toEqual([false, ['pwd']])
  })

  test('5: a take-over removes it, and what shows that the owner is in keeps it', async () => {
    const host = await start({ options: { throttle: { mail: false, links: false } } })
    for (const presented of [{}, { password }]) {
      const squatter = await passkeyOwner(host, { changes: { email: newAddress(), emailVerifiedAt: null } })
      const removed: unknown[] = []
      host.auth.events.on('passkey.removed', (payload) => removed.push(payload))
      const link = await host.auth.service.requestPasswordReset(squatter.email)
      const reset = await post(host, '/password-reset/confirm', { token: link?.token, new_password: otherPassword, ...presented })
      expect(reset.status, reset.text).toBe(200)
      const isKept = 'password' in presented
      expect((await logIn(host, squatter.authenticator)).status).toBe(isKept ? 200 : 401)
      expect(removed).toEqual(isKept ? [] : [{ userId: squatter.userId, passkeyId: squatter.passkeyId }])
    }
  })

  test('24.6: the link of its notice removes it, and lists those that stay; one that was there before stays', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    await undoTokenOf(host, owner.email) // of the one that stays
    await host.knex('auth_user_tokens').where({ user_id: owner.userId }).delete()
    const thiefs = newAuthenticator()
    expect((await register(host, owner, thiefs)).status).toBe(201)
    const token = await undoTokenOf(host, owner.email)

    const page = await host.browser().get(`${host.prefix}/security/undo/${token}`)
    expect(page.text).toContain('a passkey, added on')
    await undo(host, token).expect(200)
    expect(codeOf(await logIn(host, thiefs))).toEqual(rejected)
    expect((await logIn(host, owner.authenticator)).status).toBe(200)
    const mail = await host.mails.next({ kind: 'password_reset', to: owner.email })
    expect(mail.text.match(/a passkey, added on/g)).toHaveLength(1)
  })

  test('24.6: an undo while passkeys are off removes it as well, so it signs nobody in once they are on again', async () => {
    const host = await start()
    const owner = await passkeyOwner(host)
    await undoTokenOf(host, owner.email) // of the one that stays
    await host.knex('auth_user_tokens').where({ user_id: owner.userId }).delete()
    const thiefs = newAuthenticator()
    expect((await register(host, owner, thiefs)).status).toBe(201)
    const token = await undoTokenOf(host, owner.email)

    const whileOff = await start({ settings: { passkeysEnabled: false } })
    const page = await whileOff.browser().get(`${whileOff.prefix}/security/undo/${token}`)
    expect([page.status, page.text.includes('a passkey')]).toEqual([200, false]) // none signs in now
    await undo(whileOff, token).expect(200)
    expect(codeOf(await logIn(host, thiefs))).toEqual(rejected)
    expect((await logIn(host, owner.authenticator)).status).toBe(200)
  })

  test('8: the last way in is not removed where the host says so: a password, an identity and another passkey are ways in', async () => {
    const host = await start({ settings: { oauthKeepLastLoginMethod: true }, options: { throttle: { mail: false } } })
    const withoutPassword = async () => {
      const owner = await passkeyOwner(host)
      await host
        .knex('auth_users')
        .where({ id: owner.userId })
        .update({ hashed_password: `!${'a'.repeat(43)}`, password_set_at: null })
      return owner
    }
    const alone = await withoutPassword()
    expect(codeOf(await remove(host, alone))).toEqual([409, 'LAST_LOGIN_METHOD'])
    const second = await register(host, alone, newAuthenticator())
    expect((await remove(host, alone)).status).toBe(204)
    expect(codeOf(await remove(host, { ...alone, passkeyId: second.body.id }))).toEqual([409, 'LAST_LOGIN_METHOD'])

    const linked = await withoutPassword()
    await addIdentity(host.knex, linked.userId)
    expect((await remove(host, linked)).status).toBe(204)
    expect((await remove(host, await passkeyOwner(host))).status).toBe(204)

    const unlinking = await withoutPassword()
    await addIdentity(host.knex, unlinking.userId)
    expect((await post(host, '/oauth/accounts/unlink', { provider: 'corp' }, bearerOf(unlinking))).status).toBe(204)
  })

  test('a passkey is its owner’s: nobody else names or removes it', async () => {
    const host = await start()
    const [owner, other] = [await passkeyOwner(host), await passkeyOwner(host)]
    expect(codeOf(await remove(host, { ...other, passkeyId: owner.passkeyId }))).toEqual([404, 'NOT_FOUND'])
    const named = await host.browser().patch(`${host.prefix}/passkeys/${owner.passkeyId}`).set(bearerOf(other)).send({ name: 'mine' })
    expect(codeOf(named)).toEqual([404, 'NOT_FOUND'])
    await age(host, owner.passkeyId)
    expect(await host.auth.service.listPasskeys(owner.userId)).toMatchObject([{ name: null }])
  })
})
