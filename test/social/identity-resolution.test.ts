import { describe, expect, test } from 'vitest'
import { type Mounted, signIn } from '../support/app'
import { databases } from '../support/databases'
import { addIdentity, addUser, rowCounts, someTime, userById } from './accounts-at-hand'
import { newPerson, onDatabase } from './redirect-steps'

describe.each(await databases())('on $name', (database) => {
  const { start } = onDatabase(database)

  async function refused(host: Mounted, profile: Record<string, unknown>): Promise<[number, string]> {
    const before = await rowCounts(host.knex)
    const response = await signIn(host, host.browser(), { profile })
    expect(await rowCounts(host.knex)).toEqual(before)
    expect(response.body).not.toHaveProperty('access_token')
    return [response.status, response.body.code]
  }

  describe('an identity that is linked', () => {
    test('logs in its account with amr ext, and both last_login_at are that instant', async () => {
      const host = await start()
      const user = await addUser(host.knex)
      const identity = await addIdentity(host.knex, user.id)

      const response = await signIn(host, host.browser(), { profile: newPerson({ sub: identity.subject }) })

      expect(response.status, response.text).toBe(200)
      expect(response.body).toMatchObject({ user_id: user.id, mfa_required: false, mfa_token: null })
      const claims = JSON.parse(Buffer.from(response.body.access_token.split('.')[1], 'base64url').toString())
      expect(claims).toMatchObject({ sub: user.id, email: user.email, amr: ['ext'], typ: 'access' })
      expect((await userById(host.knex, user.id)).lastLoginAt).toEqual(host.clock.now())
      const listed = await host.auth.service.listIdentities(user.id)
      expect(listed).toEqual([{ ...identity, lastLoginAt: host.clock.now() }])
      const [session] = await host.knex('auth_sessions').where({ user_id: user.id })
      expect([session.amr, session.provider]).toEqual(['ext', identity.provider])
    })

    test('R-037: a change of its email at the provider, or its loss, keeps the account and the stored address', async () => {
      const host = await start()
      const first = await signIn(host, host.browser(), { profile: newPerson({ sub: 'moving', email: 'before@example.test' }) })
      const stranger = await addUser(host.knex, { email: 'after@example.test' })
      for (const email of ['after@example.test', 'somewhere@example.test', null, 'not an address']) {
        const again = await signIn(host, host.browser(), { profile: { sub: 'moving', email } })
        expect(again.body.user_id).toBe(first.body.user_id)
      }
      expect((await userById(host.knex, first.body.user_id)).email).toBe('before@example.test')
      expect(await host.auth.service.listIdentities(stranger.id)).toEqual([])
    })

    test('to a deactivated account is 401 OAUTH_ACCOUNT_INACTIVE, and nothing changes', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
      const user = await addUser(host.knex, { isActive: false })
      const { subject } = await addIdentity(host.knex, user.id)

      expect(await refused(host, newPerson({ sub: subject }))).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
      expect(await refused(host, newPerson({ sub: subject, email: user.email }))).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
      expect(await userById(host.knex, user.id)).toEqual(user)
      expect((await host.auth.service.listIdentities(user.id))[0]?.lastLoginAt).toEqual(someTime)
    })

    test('logs in where creation and linking are closed', async () => {
      const host = await start({ settings: { signupEnabled: false } })
      const user = await addUser(host.knex)
      const { subject } = await addIdentity(host.knex, user.id)
      expect((await signIn(host, host.browser(), { profile: newPerson({ sub: subject }) })).body.user_id).toBe(user.id)
    })

    test('R-037: subjects that differ in case or a trailing blank are three people', async () => {
      const host = await start()
      const ids: string[] = []
      for (const sub of ['AbC', 'abc', 'AbC ']) {
        const profile = newPerson()
        const first = await signIn(host, host.browser(), { profile: { ...profile, sub } })
        const again = await signIn(host, host.browser(), { profile: { ...profile, sub, email: 'other@example.test' } })
        expect(first.status, first.text).toBe(200)
        expect(again.body.user_id).toBe(first.body.user_id)
        ids.push(first.body.user_id)
      }
      expect(new Set(ids).size).toBe(3)
    })

    test('R-037: one subject at two providers is two identities', async () => {
      const host = await start({ providers: { corp: {}, acme: {} } })
      const [atCorp, atAcme] = [newPerson({ sub: 'same-subject' }), newPerson({ sub: 'same-subject' })]
      const one = await signIn(host, host.browser(), { key: 'corp', profile: atCorp })
      const two = await signIn(host, host.browser(), { key: 'acme', profile: atAcme })
      expect([one.status, two.status]).toEqual([200, 200])
      expect(one.body.user_id).not.toBe(two.body.user_id)
      expect(await refused(host, { ...atAcme, sub: 'another-subject' })).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    })

    test('the registration key is what is stored, whatever the client calls itself', async () => {
      const host = await start({ providers: { corp: { providerName: 'something-else' } } })
      const person = newPerson()
      const response = await signIn(host, host.browser(), { profile: person })
      expect(await host.auth.service.listIdentities(response.body.user_id)).toMatchObject([{ provider: 'corp', subject: person.sub }])
    })
  })

  describe('an identity that is not linked', () => {
    test('without an email is 422 OAUTH_EMAIL_MISSING, whatever is allowed', async () => {
      for (const settings of [{}, { signupEnabled: false }, { oauthLinkByVerifiedEmail: true }]) {
        const host = await start({ settings })
        expect(await refused(host, newPerson({ email: null }))).toEqual([422, 'OAUTH_EMAIL_MISSING'])
      }
    })

    test.each([true, false, null])(
      'with the email of an account is 409 OAUTH_EMAIL_TAKEN by default (email_verified %s)',
      async (emailVerified) => {
        const host = await start()
        const owner = await addUser(host.knex)
        const deactivated = await addUser(host.knex, { isActive: false })
        for (const { email } of [owner, deactivated, { email: owner.email.toUpperCase() }]) {
          expect(await refused(host, newPerson({ email, email_verified: emailVerified }))).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
        }
        expect(await userById(host.knex, owner.id)).toEqual(owner)
      },
    )

    test('with the email of an account and linking allowed: linked when verified, else 409 OAUTH_EMAIL_UNVERIFIED', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
      const owner = await addUser(host.knex)
      for (const emailVerified of [false, null, undefined, 1, 'yes', 'TRUE ', [true], {}]) {
        const profile = newPerson({ email: owner.email, email_verified: emailVerified })
        expect(await refused(host, profile)).toEqual([409, 'OAUTH_EMAIL_UNVERIFIED'])
      }
      const response = await signIn(host, host.browser(), { profile: newPerson({ email: owner.email, email_verified: 'true' }) })
      expect(response.status, response.text).toBe(200)
      expect(response.body.user_id).toBe(owner.id)
    })

    test('of a deactivated owner of the email is 401 OAUTH_ACCOUNT_INACTIVE where it would be linked', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true } })
      const owner = await addUser(host.knex, { isActive: false, emailVerifiedAt: null })
      expect(await refused(host, newPerson({ email: owner.email }))).toEqual([401, 'OAUTH_ACCOUNT_INACTIVE'])
      expect(await userById(host.knex, owner.id)).toEqual(owner)
    })

    test('a provider that is not trusted with emails cannot link: its verification counts as null', async () => {
      const host = await start({ settings: { oauthLinkByVerifiedEmail: true }, providers: { corp: { trustEmail: false } } })
      const owner = await addUser(host.knex)
      expect(await refused(host, newPerson({ email: owner.email }))).toEqual([409, 'OAUTH_EMAIL_UNVERIFIED'])
    })

    test.each([
      { signupEnabled: true, oauthAllowAccountCreation: undefined, creates: true },
      { signupEnabled: false, oauthAllowAccountCreation: undefined, creates: false },
      { signupEnabled: false, oauthAllowAccountCreation: true, creates: true },
      { signupEnabled: true, oauthAllowAccountCreation: false, creates: false },
    ])('signup $signupEnabled, creation $oauthAllowAccountCreation: an account is created: $creates', async ({ creates, ...settings }) => {
      const host = await start({ settings })
      const person = newPerson()
      if (!creates) return expect(await refused(host, person)).toEqual([403, 'OAUTH_REGISTRATION_DISABLED'])
      const response = await signIn(host, host.browser(), { profile: person })
      expect(response.status, response.text).toBe(200)
      expect(await userById(host.knex, response.body.user_id)).toMatchObject({ email: person.email, isActive: true })
    })

    test('with the email of an account is 409 also where creation is closed: the order of the list holds', async () => {
      const host = await start({ settings: { signupEnabled: false } })
      const owner = await addUser(host.knex)
      expect(await refused(host, newPerson({ email: owner.email }))).toEqual([409, 'OAUTH_EMAIL_TAKEN'])
    })
  })
})
