import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { adminOn } from '../admin/people'
import { bearerOf, newAddress, otherPassword, password, pending, post, signedIn, userOf } from '../local/people'
import { newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { everyWay, type InvitingHost, invite, inviteByMail, onInvitations, usesOf } from './people'

const redeem = (host: InvitingHost, person: { token: string }, token: unknown) =>
  post(host, '/invitations/redeem', { token }, bearerOf(person))

for (const database of await databases()) {
  describe(`invitations under attack on ${database.name}`, () => {
    const { start } = onInvitations(database)

    test('a taken and a free address get equal answers under one open invitation, and its use stays', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const [invitation, member, free] = [await invite(host), await signedIn(host), newAddress()]
      const answers = await Promise.all(
        [member.email, free].map((email) => post(host, '/signup', { email, password, invitation: invitation.token })),
      )
      const shapes = answers.map(({ status, body }) => [status, Object.keys(body).sort(), body.activation_required, body.activation_url])
      expect(shapes[0]).toEqual(shapes[1])
      expect(shapes[0]?.[0]).toBe(201)
      expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
      const mail = await host.mails.next({ kind: 'notice', to: member.email })
      expect(mail.text).toContain('The sign-up had an invitation. To use it, sign in, and then open the link of the invitation.')
    })

    test("without an invitation, the mail to a taken address's owner says nothing of one", async () => {
      const host = await start({ settings: { signupMode: 'open' } })
      const member = await signedIn(host)
      await post(host, '/signup', { email: member.email, password })
      expect((await host.mails.next({ kind: 'notice', to: member.email })).text).not.toContain('invitation')
    })

    test('the refusal is equal for a taken and a free address, and no hash is made', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const { email: taken } = await signedIn(host)
      const hashes: string[] = []
      const hash = host.hasher.hash.bind(host.hasher)
      Object.assign(host.hasher, {
        hash: (given: string) => {
          hashes.push(given)
          return hash(given)
        },
      })
      for (const email of [taken, newAddress()]) {
        for (const invitation of [undefined, 'x', 'a'.repeat(43), 'b'.repeat(128)]) {
          const { status, body } = await post(host, '/signup', { email, password, ...(invitation && { invitation }) })
          expect([status, body.code, body.details]).toEqual([403, 'INVITATION_REQUIRED', {}])
        }
      }
      expect(hashes).toEqual([])
    })

    test.each(['', 'a'.repeat(129), 7, null])('an invitation that is no text of 1 to 128 characters is 422: %j', async (invitation) => {
      const host = await start({ settings: { ...everyWay, signupMode: 'invite' } })
      for (const path of ['/signup', '/signup/passkey/options', '/email-login/request']) {
        const { status } = await post(host, path, { email: newAddress(), password, invitation })
        expect([path, status]).toEqual([path, 422])
      }
      if (typeof invitation !== 'string') return
      const answer = await host.browser().get(`${host.prefix}/oauth/corp/login?invitation=${invitation}`)
      expect(answer.status).toBe(422)
    })

    test("the hook is not called for another person's address until that address is verified", async () => {
      const host = await start()
      const [invitation, email] = [await invite(host, { data: { team: 'a' } }), newAddress()]
      await post(host, '/signup', { email, password, invitation: invitation.token })
      expect(host.calls).toEqual([])
      const link = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      expect((await post(host, '/activate', { token: link })).status).toBe(200)
      expect(host.calls).toMatchObject([{ email, isActive: true, data: { team: 'a' } }])
    })

    test('an administrator who signs up as the invited person with a token that was shown gets a pending account', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const email = newAddress()
      const { token } = await invite(host, { email, send: false })
      const { status, body } = await post(host, '/signup', { email, password, invitation: token })
      expect([status, body.activation_required, body.access_token]).toEqual([201, true, null])
      expect(await userOf(host, email)).toMatchObject({ isActive: false, emailVerifiedAt: null, activatedAt: null })
    })

    test('a mailed token verifies its address: the account is active at once, and answers with a session', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const email = newAddress()
      const invitation = await inviteByMail(host, email, { data: 7 })
      expect([invitation.url, (await invite(host, { email: newAddress() })).token]).toEqual([null, null])
      const { status, body } = await post(host, '/signup', { email, password, invitation: invitation.token })
      expect([status, body.activation_required, typeof body.access_token]).toEqual([201, false, 'string'])
      const user = await userOf(host, email)
      expect(user).toMatchObject({ isActive: true })
      expect(user.emailVerifiedAt).not.toBeNull()
      expect(await usesOf(host, invitation)).toEqual({ left: 0, users: [user.id] })
      expect(host.calls).toMatchObject([{ email, data: 7 }])
    })

    test('a mailed token takes over the pending account of an attacker, whose password then opens nothing', async () => {
      const host = await start()
      const { email, link } = await pending(host)
      const invitation = await inviteByMail(host, email)
      const { status, body } = await post(host, '/signup', { email, password: otherPassword, invitation: invitation.token })
      expect([status, body.activation_required]).toEqual([201, false])
      expect((await post(host, '/login', { email, password })).status).toBe(401)
      expect((await post(host, '/login', { email, password: otherPassword })).status).toBe(200)
      expect((await post(host, '/activate', { token: link })).status).toBe(401)
      expect((await usesOf(host, invitation)).left).toBe(0)
    })

    test('a mailed token does not activate a pending account for which the host refuses mailed links', async () => {
      let refuses = false
      const host = await start({ options: { refusesEmailLink: () => refuses } })
      const { email } = await pending(host)
      const invitation = await inviteByMail(host, email)
      refuses = true
      const { status, body } = await post(host, '/signup', { email, password: otherPassword, invitation: invitation.token })
      expect([status, body.activation_required, body.access_token]).toEqual([201, true, null])
      expect(await userOf(host, email)).toMatchObject({ isActive: false, emailVerifiedAt: null, activatedAt: null })
      expect((await usesOf(host, invitation)).left).toBe(1)
    })

    test('a provider that has not verified the address uses no invitation that was shown for that address', async () => {
      const host = await start({ settings: { ...everyWay, signupMode: 'invite' } })
      const enter = (email: string, invitation: string) =>
        post(host, '/oauth/corp/token', {
          access_token: host.provider.issueAccessToken({ profile: newPerson({ email, email_verified: false }) }),
          invitation,
        })
      const [email, invited] = [newAddress(), newAddress()]
      const [shown, mailed, open] = [await invite(host, { email, send: false }), await inviteByMail(host, invited), await invite(host)]
      const refused = await enter(email, String(shown.token))
      expect([refused.status, refused.body.code]).toEqual([403, 'INVITATION_REQUIRED'])
      expect(await usesOf(host, shown)).toEqual({ left: 1, users: [] })
      expect((await enter(invited, mailed.token)).status).toBe(200)
      expect((await enter(newAddress(), String(open.token))).status).toBe(200)
    })

    test('an activation whose invitation is gone is refused, and its link works once the invitation does again', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const [invitation, email] = [await invite(host), newAddress()]
      const { body: signup } = await post(host, '/signup', { email, password, invitation: invitation.token })
      const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      const table = host.knex('auth_invitations').where({ id: invitation.id })
      await table.clone().update({ uses_left: 0 })
      const refused = await post(host, '/activate', { token, signup_token: signup.signup_token })
      expect([refused.status, refused.body.code]).toEqual([403, 'INVITATION_REQUIRED'])
      expect((await userOf(host, email)).isActive).toBe(false)
      await table.clone().update({ uses_left: 1 })
      expect((await post(host, '/activate', { token, signup_token: signup.signup_token })).status).toBe(200)
    })

    test('a right code whose invitation is gone costs no try, and works once the invitation does again', async () => {
      const host = await start({ settings: { ...everyWay, signupMode: 'invite', mailedCodes: 'both' } })
      const [invitation, newcomer, email] = [await invite(host), newAddress(), newAddress()]
      const requested = await post(host, '/email-login/request', { email: newcomer, invitation: invitation.token })
      const login = await host.mails.next({ kind: 'email_login', to: newcomer })
      const { body: signup } = await post(host, '/signup', { email, password, invitation: invitation.token })
      const activation = await host.mails.next({ kind: 'activation', to: email })
      const ways: readonly (readonly [string, object])[] = [
        ['/email-login/confirm', { code: login.code, request_token: requested.body.request_token }],
        ['/activate', { code: activation.code, request_token: signup.request_token }],
      ]
      const table = host.knex('auth_invitations').where({ id: invitation.id })
      await table.clone().update({ uses_left: 0 })
      for (const [path, body] of ways)
        for (let times = 0; times < 6; times++) expect((await post(host, path, body)).body.code).toBe('INVITATION_REQUIRED')
      await table.clone().update({ uses_left: 2 })
      for (const [path, body] of ways) expect([path, (await post(host, path, body)).status]).toEqual([path, 200])
    })

    test('a wrong code costs its try also while the invitation is gone: the fifth ends the code', async () => {
      const host = await start({ settings: { ...everyWay, signupMode: 'invite', mailedCodes: 'both' } })
      const [invitation, newcomer, email] = [await invite(host), newAddress(), newAddress()]
      const requested = await post(host, '/email-login/request', { email: newcomer, invitation: invitation.token })
      const login = await host.mails.next({ kind: 'email_login', to: newcomer })
      const { body: signup } = await post(host, '/signup', { email, password, invitation: invitation.token })
      const activation = await host.mails.next({ kind: 'activation', to: email })
      const ways = [
        ['/email-login/confirm', String(login.code), requested.body.request_token],
        ['/activate', String(activation.code), signup.request_token],
      ] as const
      await host.knex('auth_invitations').where({ id: invitation.id }).update({ uses_left: 0 })
      for (const [path, code, request_token] of ways) {
        const wrong = code.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))
        const enter = async (code: string) => (await post(host, path, { code, request_token })).body.code
        expect(await enter(code)).toBe('INVITATION_REQUIRED')
        const refusal = await enter(wrong)
        for (let times = 2; times <= 4; times++) expect(await enter(wrong)).toBe(refusal)
        expect(await enter(code)).toBe('INVITATION_REQUIRED')
        expect(await enter(wrong)).toBe(refusal)
        expect(await enter(code)).toBe(refusal)
      }
    })

    test('a further link, also after "I forgot my password", still needs the invitation of the sign-up', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const [invitation, email] = [await invite(host), newAddress()]
      await post(host, '/signup', { email, password, invitation: invitation.token })
      await host.mails.next({ kind: 'activation', to: email })
      await host.auth.service.invitations.revoke(invitation.id)
      for (const path of ['/activation/request', '/password-reset/request']) {
        await post(host, path, { email })
        const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
        expect([path, (await post(host, '/activate', { token })).body.code]).toEqual([path, 'INVITATION_REQUIRED'])
      }
    })

    test('an existing account logs in and is not asked for an invitation', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const { email } = await signedIn(host)
      expect((await post(host, '/login', { email, password, invitation: 'x' })).status).toBe(200)
    })

    test('an account that signed up before the mode changed is activated without an invitation', async () => {
      const open = await start({ settings: { signupMode: 'open' } })
      const { link } = await pending(open)
      const host = await start({ settings: { signupMode: 'invite' } })
      expect((await post(host, '/activate', { token: link })).status).toBe(200)
    })

    test('sign-up that is switched off stays off with an invitation', async () => {
      const host = await start({ settings: { signupMode: 'invite', signupEnabled: false } })
      const { token } = await invite(host)
      expect((await post(host, '/signup', { email: newAddress(), password, invitation: token })).status).toBe(404)
    })

    test('the service signs people up without an invitation', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const email = newAddress()
      await host.auth.service.signUp({ email, password })
      expect((await userOf(host, email)).isActive).toBe(false)
    })

    test('an id that no column holds is 404, and no error as a cursor', async () => {
      const host = await start()
      const admin = bearerOf(await adminOn(host))
      const cursor = (id: string) => Buffer.from(JSON.stringify([0, id])).toString('base64url')
      await invite(host)
      for (const id of ['x', '\0', 'é'.repeat(400)]) {
        const { status } = await host
          .browser()
          .delete(`${host.prefix}/admin/invitations/${encodeURIComponent(id)}`)
          .set(admin)
        const list = await host
          .browser()
          .get(`${host.prefix}/admin/invitations?cursor=${cursor(id)}`)
          .set(admin)
        expect([id, status, list.status]).toEqual([id, 404, 200])
      }
    })

    test('two people redeem one use: one 204 and one 403; one person in eight tabs: one use and one call', async () => {
      const host = await start()
      const [one, other] = [await signedIn(host), await signedIn(host)]
      const shared = await invite(host)
      const both = await Promise.all([one, other].map((person) => redeem(host, person, shared.token)))
      expect(both.map(({ status }) => status).sort()).toEqual([204, 403])
      expect(await usesOf(host, shared)).toMatchObject({ left: 0 })
      const own = await invite(host, { uses: 10 })
      const tabs = await Promise.all(Array.from({ length: 8 }, () => redeem(host, one, own.token)))
      expect(tabs.map(({ status }) => status)).toEqual(Array(8).fill(204))
      expect(await usesOf(host, own)).toEqual({ left: 9, users: [one.userId] })
      expect(host.calls).toHaveLength(2)
    })

    test('an invitation with an address is redeemed only by the verified account that has it', async () => {
      const host = await start()
      const verified = await signedIn(host, { emailVerifiedAt: new Date(0) })
      const unverified = await signedIn(host, { emailVerifiedAt: null })
      for (const [person, email, status] of [
        [verified, newAddress(), 403],
        [unverified, unverified.email, 403],
        [verified, verified.email, 204],
      ] as const) {
        const { token } = await invite(host, { email, send: false })
        expect((await redeem(host, person, token)).status).toBe(status)
      }
      expect((await userOf(host, unverified.email)).emailVerifiedAt).toBeNull()
      expect((await post(host, '/invitations/redeem', { token: 'a'.repeat(43) })).status).toBe(401)
      expect((await redeem(host, verified, 'a'.repeat(43))).body.code).toBe('INVITATION_REQUIRED')
    })

    test('ten activations of one use at once: one account becomes active', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const invitation = await invite(host)
      const people: { email: string; token: string; signup_token: string }[] = []
      for (let count = 0; count < 10; count++) {
        const email = newAddress()
        const { body } = await post(host, '/signup', { email, password, invitation: invitation.token })
        const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
        people.push({ email, token, signup_token: body.signup_token })
      }
      const answers = await Promise.all(people.map(({ email: _, ...proof }) => post(host, '/activate', proof)))
      expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(9).fill(403)])
      const { users } = createKnexStore({ knex: host.knex })
      const rows = await Promise.all(people.map(({ email }) => users.findByEmail(email)))
      expect(rows.filter((user) => user?.isActive)).toHaveLength(1)
      expect(host.calls).toHaveLength(1)
    })
  })
}
