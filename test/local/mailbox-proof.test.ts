import { describe, expect, test } from 'vitest'
import { addIdentity, addUser } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { bearerOf, isAlive, type LocalHost, newAddress, onLocal, otherPassword, password, pending, post, resetLink, userOf } from './people'

/**
 * Contract-2 section 24.2 through the routes: somebody registers the victim's address first and leaves a way back in; the
 * victim's own activation or reset proves the mailbox, and removes it.
 */
describe.each(await databases())('a mailbox proof through the routes, on $name', (database) => {
  const { start } = onLocal(database)
  const providers = { corp: {}, attic: {}, acme: {} }

  const providersOf = async (host: LocalHost, userId: string) =>
    (await host.auth.service.listIdentities(userId)).map(({ provider }) => provider).sort()

  const unlinked = (host: LocalHost) => {
    const told: { userId: string; provider: string }[] = []
    host.auth.events.on('identity.unlinked', (payload) => told.push(payload))
    return told
  }

  test('R-060 born active under the victim’s address, the attacker has an identity; the victim’s reset removes it, the password and the sessions', async () => {
    const host = await start({ providers, settings: { autoActivate: true } })
    const told = unlinked(host)
    const email = newAddress()
    const browser = host.browser()
    const signup = await browser.post('/auth/signup').send({ email, password })
    const trojan = newPerson()
    // Linking waits for the proof (24.2): this one was there before that rule.
    const refused = await post(host, '/oauth/attic/link', {}, bearerOf({ token: signup.body.access_token }))
    expect([refused.status, refused.body.code]).toEqual([403, 'EMAIL_NOT_VERIFIED'])
    await addIdentity(host.knex, signup.body.user_id, { provider: 'attic', subject: trojan.sub })
    expect(await providersOf(host, signup.body.user_id)).toEqual(['attic'])

    const token = await resetLink(host, email)
    const reset = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([reset.status, reset.body.user_id]).toEqual([200, signup.body.user_id])
    expect(await providersOf(host, signup.body.user_id)).toEqual([])
    expect(told).toEqual([{ userId: signup.body.user_id, provider: 'attic' }])
    expect((await userOf(host, email)).emailVerifiedAt).toEqual(host.clock.now())
    const back = await signIn(host, host.browser(), { key: 'attic', profile: trojan })
    expect([back.status, back.body.user_id === signup.body.user_id]).toEqual([200, false])
    expect((await post(host, '/login', { email, password })).status).toBe(401)
    expect(await isAlive(host, signup.body.refresh_token)).toBe(false)
  })

  test('an account keeps the identity it was created with, also if its provider did not verify the address; the owner’s reset ends its sessions, and the mail names it (25.9.1)', async () => {
    const host = await start({ providers })
    const told = unlinked(host)
    const trojan = newPerson({ email_verified: false })
    const attacker = await signIn(host, host.browser(), { key: 'attic', profile: trojan })
    expect(attacker.status).toBe(200)

    const token = await resetLink(host, trojan.email)
    expect((await post(host, '/password-reset/confirm', { token, new_password: otherPassword })).status).toBe(200)

    expect(await providersOf(host, attacker.body.user_id)).toEqual(['attic'])
    expect(told).toEqual([])
    const back = await signIn(host, host.browser(), { key: 'attic', profile: trojan })
    expect([back.status, back.body.user_id]).toEqual([200, attacker.body.user_id])
    expect(await isAlive(host, attacker.body.refresh_token)).toBe(false)
    const mail = await host.mails.next({ kind: 'notice', to: trojan.email })
    expect(mail.subject).toBe('Your account was secured')
    expect(mail.text).toContain('kept, because the account was created with it: the sign-in provider “attic”')
  })

  test('an identity that was linked to a social account later goes with the first proof, and the first identity stays (25.9.1)', async () => {
    const host = await start({ providers })
    const told = unlinked(host)
    const person = newPerson({ email_verified: false })
    const { body } = await signIn(host, host.browser(), { key: 'attic', profile: person })
    host.clock.advance(1)
    const later = { provider: 'corp', email: 'mallory@example.test', emailVerified: true, createdAt: host.clock.now() }
    await addIdentity(host.knex, body.user_id, later)

    const token = await resetLink(host, person.email)
    expect((await post(host, '/password-reset/confirm', { token, new_password: otherPassword })).status).toBe(200)
    expect(await providersOf(host, body.user_id)).toEqual(['attic'])
    expect(told).toEqual([{ userId: body.user_id, provider: 'corp' }])
  })

  test('an activation without evidence removes what was linked while the account waited; an identity of the same address, verified, stays', async () => {
    const host = await start({ providers, settings: { activationBinding: 'strict' } })
    const told = unlinked(host)
    const { email, userId, link: token } = await pending(host)
    await addIdentity(host.knex, userId, { provider: 'corp', email, emailVerified: true })
    await addIdentity(host.knex, userId, { provider: 'attic', email: 'mallory@example.test', emailVerified: true })
    await addIdentity(host.knex, userId, { provider: 'acme', email, emailVerified: null })

    expect((await post(host, `/activate/${token}`)).status).toBe(200)

    expect(await providersOf(host, userId)).toEqual(['corp'])
    expect(told.sort((a, b) => a.provider.localeCompare(b.provider))).toEqual([
      { userId, provider: 'acme' },
      { userId, provider: 'attic' },
    ])
  })

  test('whoever verified the address at their provider keeps their way in through a reset', async () => {
    const host = await start({ providers })
    const told = unlinked(host)
    const profile = newPerson()
    const first = await signIn(host, host.browser(), { profile })
    const token = await resetLink(host, profile.email)
    await post(host, '/password-reset/confirm', { token, new_password: otherPassword })

    expect(told).toEqual([])
    expect((await signIn(host, host.browser(), { profile })).body.user_id).toBe(first.body.user_id)
  })

  test('a link that is refused proves nothing: every identity stays, and nothing is told', async () => {
    const host = await start({ providers })
    const user = await addUser(host.knex, { email: newAddress(), emailVerifiedAt: null })
    await addIdentity(host.knex, user.id, { provider: 'attic' })
    const token = await resetLink(host, user.email)
    const strict = await start({ providers, options: { refusesEmailLink: () => true } })
    const told = unlinked(strict)

    await post(strict, '/password-reset/confirm', { token, new_password: otherPassword })

    expect([await providersOf(host, user.id), told]).toEqual([['attic'], []])
    expect((await userOf(host, user.email)).emailVerifiedAt).toBeNull()
  })

  test('10.6 (a) linking by verified email onto a signup that never proved its address replaces the password and kills its activation link', async () => {
    const host = await start({ providers, settings: { oauthLinkByVerifiedEmail: true, autoActivate: true } })
    const email = newAddress()
    const attacker = await post(host, '/signup', { email, password })
    host.clock.advance(1)

    const victim = await signIn(host, host.browser(), { profile: newPerson({ email }) })

    expect([victim.status, victim.body.user_id]).toEqual([200, attacker.body.user_id])
    expect((await post(host, '/login', { email, password })).status).toBe(401)
    expect(await isAlive(host, attacker.body.refresh_token)).toBe(false)
    expect(await isAlive(host, victim.body.refresh_token)).toBe(true)
  })
})
