import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, type LocalMember, newAddress, otherPassword, password, post, signedIn } from '../local/people'
import { signIn } from '../support/app'
import { type Database, databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { authenticator } from './authenticator'
import { challengeOf, enrolled, onMfa, outcome, verify } from './people'

const all = await databases()
const sqlite = all[0] as Database // always there

for (const database of all) {
  describe(`what was begun before a change ends with it, on ${database.name}`, () => {
    const { start } = onMfa(database)

    test('the old password, proven before a reset, takes no factor off after it', async () => {
      const host = await start()
      const person = await enrolled(host)
      await post(host, '/password-reset/request', { email: person.email })
      const reset = { token: tokenOf(await host.mails.next({ kind: 'password_reset', to: person.email })), newPassword: otherPassword }
      const original = host.hasher.verify.bind(host.hasher)
      host.hasher.verify = async (hash, text) => {
        const matches = await original(hash, text)
        host.hasher.verify = original
        await host.auth.service.resetPassword(reset)
        return matches
      }

      const disable = host.auth.service.disableTotp({ userId: person.userId, password, code: person.app.nextCode() })
      await expect(disable).rejects.toMatchObject({ status: 401 })
      expect((await host.knex('auth_users').where({ id: person.userId }).first()).totp_enabled_at).not.toBeNull()
    })

    test('a password change that was begun without the factor ends when the factor is confirmed meanwhile', async () => {
      const host = await start()
      const member = await signedIn(host)
      await host.auth.service.enrollTotp(member.userId)
      const totpEnabledAt = host.clock.now()
      const original = host.hasher.hash.bind(host.hasher)
      host.hasher.hash = async (text) => {
        host.hasher.hash = original
        await createKnexStore({ knex: host.knex }).users.update(member.userId, { totpEnabledAt })
        return original(text)
      }

      const change = { current_password: password, new_password: otherPassword }
      expect(outcome(await post(host, '/password-change', change, bearerOf(member)))).toBe('MFA_REQUIRED')
    })

    test('R-097: an access token whose session was ended adds no way in, neither a factor nor a provider, for all its minutes', async () => {
      const host = await start()
      const ends: Record<string, (person: LocalMember) => Promise<unknown>> = {
        'its logout': ({ refreshToken }) => post(host, '/logout', { refresh_token: refreshToken }),
        'a logout everywhere': async ({ email }) => {
          const { body } = await post(host, '/login', { email, password })
          return post(host, '/logout', { refresh_token: body.refresh_token, all_sessions: true })
        },
        revokeSessions: ({ userId }) => host.auth.service.revokeSessions(userId),
      }
      for (const [name, end] of Object.entries(ends)) {
        const thief = await signedIn(host)
        const { secret } = (await post(host, '/mfa/enroll', {}, bearerOf(thief))).body
        host.clock.advance(2)
        await end(thief)
        const owner = { ...thief, token: (await post(host, '/login', { email: thief.email, password })).body.access_token }
        const code = authenticator(secret, host.clock).code()
        const asked = (person: LocalMember) => [
          () => post(host, '/oauth/corp/link', {}, bearerOf(person)),
          () => post(host, '/mfa/confirm', { code }, bearerOf(person)),
          () => post(host, '/mfa/enroll', {}, bearerOf(person)),
        ]
        for (const ask of asked(thief)) expect([name, outcome(await ask())]).toEqual([name, 'INVALID_TOKEN'])
        const outcomes: unknown[] = []
        for (const ask of asked(owner)) outcomes.push(outcome(await ask()))
        expect([name, outcomes]).toEqual([name, [200, 'REAUTHENTICATION_REQUIRED', 200]]) // what another session began is not confirmed
      }
    })

    test('a challenge of before a deactivation stays dead when the account is opened again', async () => {
      const host = await start()
      const person = await enrolled(host)
      const challenge = await challengeOf(host, person)
      host.clock.advance(1)
      await host.auth.service.deactivate(person.userId)
      await host.auth.service.activateUser(person.userId)

      expect(outcome(await verify(host, challenge, person.app.nextCode()))).toBe('MFA_TOKEN_INVALID')
      expect(outcome(await verify(host, await challengeOf(host, person), person.app.nextCode()))).toBe(200)
    })

    test('a token that was refreshed meanwhile is of the same session, and goes on', async () => {
      const host = await start()
      const member = await signedIn(host)
      host.clock.advance(60)
      await post(host, '/refresh', { refresh_token: member.refreshToken })

      expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(member)))).toBe(200)
    })

    test('13 (a) whoever gets an account by a verified address gets a session, and not the first registrant’s challenge', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true, autoActivate: true } })
      const email = newAddress()
      const squatter = await post(host, '/signup', { email, password })
      const { secret } = await host.auth.service.enrollTotp(squatter.body.user_id)
      await host.auth.service.confirmTotp({ userId: squatter.body.user_id, code: authenticator(secret, host.clock).code() })

      const owner = await signIn(host, host.browser(), { profile: { sub: 'the-owner', email, email_verified: true } })
      expect([owner.status, owner.body.user_id, owner.body.mfa_required]).toEqual([200, squatter.body.user_id, false])
    })

    test('a challenge that is sent again costs no recovery code', async () => {
      const host = await start()
      const person = await enrolled(host)
      const challenge = await challengeOf(host, person)
      expect((await verify(host, challenge, person.app.nextCode())).status).toBe(200)

      const [code = ''] = person.recoveryCodes
      expect(outcome(await verify(host, challenge, code))).toBe('MFA_TOKEN_INVALID')
      expect((await verify(host, await challengeOf(host, person), code)).status).toBe(200)
    })
  })
}

describe('a pending factor', () => {
  const { start } = onMfa(sqlite)

  test('is not guessed at: five wrong codes, whichever client they come from', async () => {
    const host = await start({ options: { throttle: { routes: false } } })
    const member = await signedIn(host)
    await host.auth.service.enrollTotp(member.userId)
    const confirm = () => post(host, '/mfa/confirm', { code: '000000' }, bearerOf(member))

    const answers = [await confirm(), await confirm(), await confirm(), await confirm(), await confirm(), await confirm()].map(outcome)
    expect(answers).toEqual([...Array(5).fill('MFA_CODE_INVALID'), 'MFA_THROTTLED'])
  })
})

describe('a pair that came of a link or of a code', () => {
  const { start } = onMfa(sqlite)

  test('counts in the very second of it: from activation straight to enrolment, and on', async () => {
    const host = await start()
    const email = newAddress()
    await post(host, '/signup', { email, password })
    host.clock.advance(7.3)
    const activated = await post(host, '/activate', { token: tokenOf(await host.mails.next({ kind: 'activation', to: email })) })

    const enrolment = await post(host, '/mfa/enroll', {}, bearerOf({ token: activated.body.access_token }))
    expect(enrolment.status).toBe(200)
    const link = await post(host, '/oauth/corp/link', {}, bearerOf({ token: activated.body.access_token }))
    expect(link.status).toBe(200)
  })

  test('and with a factor, another address is the factor’s to ask for', async () => {
    const host = await start()
    const member = await signedIn(host)
    const person = await enrolled(host, { email: newAddress() })
    const change = { new_email: newAddress(), current_password: password }
    await host.knex('auth_users').where({ id: member.userId }).update({ totp_secret: 'x', totp_enabled_at: 1 })

    expect(outcome(await post(host, '/email-change/request', change, bearerOf(member)))).toBe('MFA_REQUIRED')
    expect((await post(host, '/email-change/request', change, bearerOf(person))).status).toBe(202)
  })
})
