import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { newAddress, otherPassword, password, post, userOf } from '../local/people'
import { begin, callBack, newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { everyWay, type InvitingHost, invite, onInvitations, usesOf } from './people'

const day = 86_400

async function newLink(host: InvitingHost, email: string): Promise<string> {
  await post(host, '/activation/request', { email })
  return tokenOf(await host.mails.next({ kind: 'activation', to: email }))
}

async function answerOf(host: InvitingHost, token: string): Promise<unknown[]> {
  const { status, body } = await post(host, '/activate', { token })
  return [status, body.code]
}

const isRequired = [403, 'INVITATION_REQUIRED']

for (const database of await databases()) {
  describe(`a pending account keeps the invitation of its sign-up on ${database.name}`, () => {
    const { start } = onInvitations(database)

    test('a sign-up whose link the host withheld still needs its invitation when a later link is allowed', async () => {
      let refuses = true
      const host = await start({ settings: { signupMode: 'invite' }, options: { refusesEmailLink: () => refuses } })
      const [invitation, email] = [await invite(host), newAddress()]
      expect((await post(host, '/signup', { email, password, invitation: invitation.token })).status).toBe(201)
      await host.auth.drain()
      await host.auth.service.invitations.revoke(invitation.id)
      refuses = false
      expect(await answerOf(host, await newLink(host, email))).toEqual(isRequired)
      expect((await userOf(host, email)).isActive).toBe(false)
    })

    test('a sign-up whose link the host refused at the activation still needs its invitation with a later link', async () => {
      let refuses = false
      const host = await start({ settings: { signupMode: 'invite' }, options: { refusesEmailLink: () => refuses } })
      const [invitation, email] = [await invite(host), newAddress()]
      await post(host, '/signup', { email, password, invitation: invitation.token })
      const first = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
      refuses = true
      expect(await answerOf(host, first)).toEqual([403, 'EMAIL_LINK_FORBIDDEN'])
      await host.auth.service.invitations.revoke(invitation.id)
      refuses = false
      expect(await answerOf(host, await newLink(host, email))).toEqual(isRequired)
    })

    test('a sign-up of the service whose link the host refused still needs no approval with a later link', async () => {
      let refuses = false
      const host = await start({ settings: { signupMode: 'approve' }, options: { refusesEmailLink: () => refuses } })
      const email = newAddress()
      const [, link] = await host.auth.service.signUp({ email, password })
      await host.mails.next({ kind: 'activation', to: email })
      refuses = true
      expect(await answerOf(host, String(Object(link).token))).toEqual([403, 'EMAIL_LINK_FORBIDDEN'])
      refuses = false
      expect((await answerOf(host, await newLink(host, email)))[0]).toBe(200)
    })

    test('without activated_at, the purge of an expired link leaves the invitation, which a later link still needs', async () => {
      const opened = await start()
      const store = createKnexStore({ knex: opened.knex, users: { columns: { activatedAt: false } } })
      const host = await start({ settings: { signupMode: 'invite' }, options: { store } })
      const [invitation, email] = [await invite(host), newAddress()]
      await post(host, '/signup', { email, password, invitation: invitation.token })
      await host.mails.next({ kind: 'activation', to: email })
      host.clock.advance(20 * day)
      await purgeExpired(store, { before: host.clock.now() })
      expect(await answerOf(host, await newLink(host, email))).toEqual(isRequired)
      expect(host.calls).toEqual([])
    })

    test('a pending account that the purge leaves, because a row of the host refers to it, still needs its invitation', async () => {
      const host = await start({ settings: { signupMode: 'invite' } })
      const [invitation, email] = [await invite(host), newAddress()]
      await post(host, '/signup', { email, password, invitation: invitation.token })
      await host.mails.next({ kind: 'activation', to: email })
      if (database.name === 'sqlite') await host.knex.raw('create table carts (owner varchar(36) references auth_users (id))')
      else {
        await host.knex.raw('create table carts as select id as owner from auth_users where 1 = 0')
        await host.knex.raw('alter table carts add foreign key (owner) references auth_users (id)')
      }
      await host.knex('carts').insert({ owner: (await userOf(host, email)).id })
      await host.auth.service.invitations.revoke(invitation.id)
      host.clock.advance(20 * day)
      await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now(), logger: { warn: () => undefined } })
      expect(await answerOf(host, await newLink(host, email))).toEqual(isRequired)
      expect((await userOf(host, email)).isActive).toBe(false)
    })

    test('an invited sign-up waits for an administrator once invitations are switched off', async () => {
      const inviting = await start({ settings: { signupMode: 'approve' } })
      const [invitation, email] = [await invite(inviting), newAddress()]
      await post(inviting, '/signup', { email, password, invitation: invitation.token })
      const link = tokenOf(await inviting.mails.next({ kind: 'activation', to: email }))
      await inviting.auth.service.invitations.revoke(invitation.id)
      const host = await start({ settings: { signupMode: 'approve', invitationsEnabled: false } })
      expect(await answerOf(host, link)).toEqual([403, 'APPROVAL_PENDING'])
      expect(await userOf(host, email)).toMatchObject({ isActive: false, approvalRequestedAt: host.clock.now() })
    })

    test("a stranger's sign-up with an invitation that is used up since does not keep the owner out", async () => {
      const host = await start({ settings: { ...everyWay, signupMode: 'open' } })
      const invitation = await invite(host)
      const [byMail, byProvider] = [newAddress(), newAddress()]
      for (const email of [byMail, byProvider])
        await post(host, '/signup', { email, password: otherPassword, invitation: invitation.token })
      await host.auth.drain()
      await host.knex('auth_invitations').where({ id: invitation.id }).update({ uses_left: 0 })

      await post(host, '/email-login/request', { email: byMail })
      const token = tokenOf(await host.mails.next({ kind: 'email_login', to: byMail }))
      expect((await post(host, '/email-login/confirm', { token })).status).toBe(200)
      const { query, cookie } = await begin(host, { profile: newPerson({ email: byProvider }) })
      expect((await callBack(host, query, { cookie })).status).toBe(200)
      expect((await usesOf(host, invitation)).users).toEqual([])
      expect(host.calls).toEqual([])
    })
  })
}
