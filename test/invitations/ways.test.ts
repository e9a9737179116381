import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { newAddress, password, post } from '../local/people'
import { begin, callBack, newPerson } from '../social/redirect-steps'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { everyWay, type InvitingHost, invite, inviteByMail, onInvitations, passkeySignup, usesOf } from './people'

type Carried = { invitation?: string }

interface Way {
  /** Tries to get an account, up to an active one. Returns the answer that decided. */
  readonly enter: (host: InvitingHost, email: string, carried: Carried) => Promise<supertest.Response>
  readonly settings?: { autoActivate?: boolean; signupWith?: ['password'] }
  /** This way verifies the address itself. */
  readonly verifies?: true
  /** A refusal is silent: no mail, and the answer is the usual one. */
  readonly isSilent?: true
}

async function activated(host: InvitingHost, email: string, signup: supertest.Response): Promise<supertest.Response> {
  if (signup.status !== 201 || signup.body.activation_required === false) return signup
  const token = tokenOf(await host.mails.next({ kind: 'activation', to: email }))
  return post(host, '/activate', { token, signup_token: signup.body.signup_token })
}

/** Every way to get an account. */
const ways: Readonly<Record<string, Way>> = {
  'a sign-up by password': {
    enter: async (host, email, carried) => activated(host, email, await post(host, '/signup', { email, password, ...carried })),
  },
  'a sign-up by password that is active at once': {
    settings: { autoActivate: true, signupWith: ['password'] },
    enter: (host, email, carried) => post(host, '/signup', { email, password, ...carried }).then((response) => response),
  },
  'a sign-up by passkey': {
    enter: async (host, email, carried) => activated(host, email, await passkeySignup(host, email, carried)),
  },
  'a login by email': {
    verifies: true,
    isSilent: true,
    enter: async (host, email, carried) => {
      const asked = await post(host, '/email-login/request', { email, ...carried })
      await host.auth.drain()
      const mail = host.mails.mails.find(({ to, kind }) => to === email && kind === 'email_login')
      if (!mail) return asked
      return post(host, '/email-login/confirm', { token: tokenOf(mail) })
    },
  },
  'a provider': {
    verifies: true,
    enter: async (host, email, carried) => {
      const { query, cookie, location } = await begin(host, { query: { ...carried }, profile: newPerson({ email }) })
      expect(location).not.toContain('invitation')
      if (carried.invitation) expect(location).not.toContain(carried.invitation)
      return callBack(host, query, { cookie })
    },
  },
  "a provider's token": {
    verifies: true,
    enter: async (host, email, carried) => {
      const accessToken = host.provider.issueAccessToken({ profile: newPerson({ email }) })
      return post(host, '/oauth/corp/token', { access_token: accessToken, ...carried }).then((response) => response)
    },
  },
}

interface Given {
  readonly invitation: (host: InvitingHost, email: string) => Promise<{ id: string; token: string | null } | null>
  readonly isGood: boolean
}

const data = { team: 'a', roles: ['x'] }

/** Every invitation that a person can bring. */
const invitations: Readonly<Record<string, Given>> = {
  none: { isGood: true, invitation: async () => null },
  right: { isGood: true, invitation: (host) => invite(host, { data }) },
  'right, for this address': { isGood: true, invitation: (host, email) => invite(host, { email, data, send: false }) },
  'of another address': { isGood: false, invitation: (host) => invite(host, { email: newAddress(), send: false }) },
  'used up': {
    isGood: false,
    invitation: async (host) => {
      const invitation = await invite(host)
      await host.knex('auth_invitations').where({ id: invitation.id }).update({ uses_left: 0 })
      return invitation
    },
  },
  revoked: {
    isGood: false,
    invitation: async (host) => {
      const invitation = await invite(host)
      await host.auth.service.invitations.revoke(invitation.id)
      return invitation
    },
  },
  over: {
    isGood: false,
    invitation: async (host) => {
      const invitation = await invite(host, { expiresInDays: 1 })
      host.clock.advance(86_400)
      return invitation
    },
  },
  unknown: { isGood: false, invitation: async () => ({ id: '00000000-0000-4000-8000-000000000000', token: 'a'.repeat(43) }) },
}

const modes = ['open', 'invite', 'approve'] as const

for (const database of await databases()) {
  describe(`every way to get an account on ${database.name}`, () => {
    const { start } = onInvitations(database)
    const cases = modes.flatMap((mode) =>
      Object.entries(ways)
        // Boot refuses `autoActivate` beside approvals.
        .filter(([, { settings }]) => mode !== 'approve' || !settings?.autoActivate)
        .flatMap(([way]) => Object.keys(invitations).map((given) => [mode, way, given] as const)),
    )

    test.each(cases)('31.1 and 31.3.5 in mode %s, %s, with an invitation: %s', async (mode, wayName, givenName) => {
      const [way, given] = [ways[wayName], invitations[givenName]]
      if (!way || !given) throw new Error('unknown')
      const host = await start({ settings: { ...everyWay, ...way.settings, signupMode: mode } })
      const approvals: unknown[] = []
      host.auth.events.on('approval.requested', (approval) => approvals.push(approval))
      const email = newAddress()
      const invitation = await given.invitation(host, email)
      const isGood = given.isGood && (mode !== 'invite' || invitation !== null)
      const waits = isGood && mode === 'approve' && invitation === null
      const response = await way.enter(host, email, invitation?.token ? { invitation: invitation.token } : {})
      const user = await createKnexStore({ knex: host.knex }).users.findByEmail(email)
      if (isGood) {
        expect([response.status, response.body.code]).toEqual(
          waits ? [403, 'APPROVAL_PENDING'] : [response.body.activation_required === false ? 201 : 200, undefined],
        )
        expect(user).toMatchObject({ isActive: !waits, activatedAt: expect.any(Date) })
        expect(user?.approvalRequestedAt ?? null).toEqual(waits ? host.clock.now() : null)
        await host.auth.drain()
        expect(approvals).toEqual(waits ? [{ userId: user?.id }] : [])
      } else {
        expect(user).toBeNull()
        if (way.isSilent) expect([response.status, host.mails.mails.filter(({ to }) => to === email)]).toEqual([202, []])
        else expect([response.status, response.body.code, response.body.details]).toEqual([403, 'INVITATION_REQUIRED', {}])
      }
      const isUsed = isGood && invitation !== null
      if (invitation && givenName !== 'unknown' && givenName !== 'used up')
        expect(await usesOf(host, invitation)).toEqual({ left: isUsed ? 0 : 1, users: isUsed ? [user?.id] : [] })
      expect(host.calls).toEqual(isUsed ? [{ userId: user?.id, email, isActive: true, data, hasTransaction: true }] : [])
    })

    test.each(Object.entries(ways).filter(([, { verifies }]) => verifies))(
      '31.2.4 %s needs no token if an open invitation was mailed to the address',
      async (_name, way) => {
        const host = await start({ settings: { ...everyWay, ...way.settings, signupMode: 'invite' } })
        const email = newAddress()
        const invitation = await inviteByMail(host, email)
        expect((await way.enter(host, email, {})).status).toBe(200)
        expect((await usesOf(host, invitation)).left).toBe(0)
      },
    )

    test.each(Object.entries(ways).filter(([, { isSilent }]) => !isSilent))(
      '31.2.5 %s with the last use, taken before the account becomes active: 403, and nothing has changed',
      async (_name, way) => {
        const host = await start({
          settings: { ...everyWay, ...way.settings, signupMode: 'invite' },
          options: {
            onInvitationAccepted: () => {
              throw Object.assign(new Error('the host refuses'), { status: 402 })
            },
          },
        })
        const [email, invitation] = [newAddress(), await invite(host)]
        const response = await way.enter(host, email, { invitation: String(invitation.token) })
        expect([response.status, response.body.code]).toEqual([500, 'INTERNAL_ERROR'])
        expect(await usesOf(host, invitation)).toEqual({ left: 1, users: [] })
        const user = await createKnexStore({ knex: host.knex }).users.findByEmail(email)
        expect(user?.isActive ?? false).toBe(false)
      },
    )
  })
}
