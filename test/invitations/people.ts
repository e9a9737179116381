import type supertest from 'supertest'
import { OidcClient } from '../../src'
import type { CreatedInvitation, NewInvitation } from '../../src/invitations/manage-invitations'
import { loginTemplate } from '../email-login/people'
import { type LocalHost, type LocalOptions, onLocal } from '../local/people'
import { signupSettings } from '../passkeys/newcomers'
import { newAuthenticator } from '../passkeys/people'
import type { Browser } from '../support/app'
import type { Database } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'

/** Nothing but what the test asks for refuses. */
export const unhurried = { login: false, signup: false, mail: false, links: false, routes: false } as const

/** What the hook was called with. */
export interface Call {
  userId: string
  email: string
  isActive: boolean
  data: unknown
  hasTransaction: boolean
}

export interface InvitingHost extends LocalHost {
  readonly calls: Call[]
}

/** `onLocal` with invitations, and a hook that remembers its calls. */
export function onInvitations(database: Database) {
  const { start, opened } = onLocal(database)
  return {
    opened,
    async start({ settings, options, ...rest }: LocalOptions = {}): Promise<InvitingHost> {
      const calls: Call[] = []
      const host = await start({
        providers: {
          corp: (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
        },
        ...rest,
        settings: { invitationsEnabled: true, ...settings },
        options: {
          throttle: unhurried,
          onInvitationAccepted: ({ id: userId, email, isActive }, data, { trx }) =>
            void calls.push({ userId, email, isActive, data, hasTransaction: trx !== null }),
          ...options,
        },
      })
      return Object.assign(host, { calls })
    },
  }
}

/** With every way to get an account. */
export const everyWay = {
  ...signupSettings,
  ...loginTemplate,
  emailLogin: 'both',
  emailLoginSignup: true,
  oauthEnabled: true,
  oauthLinkByVerifiedEmail: true,
} as const

export function invite(host: LocalHost, input: NewInvitation = {}): Promise<CreatedInvitation> {
  return host.auth.service.invitations.create(input)
}

/** A mailed invitation, with the token of its mail. */
export async function inviteByMail(host: LocalHost, email: string, input: NewInvitation = {}) {
  const invitation = await invite(host, { email, ...input })
  const mail = await host.mails.next({ kind: 'invitation', to: email })
  return { ...invitation, token: String(mail.url?.split('/').at(-1)), mail }
}

export async function usesOf({ knex }: LocalHost, { id }: { id: string }): Promise<{ left: number; users: string[] }> {
  const [row] = await knex('auth_invitations').where({ id }).select('uses_left')
  return { left: Number(row?.uses_left), users: await knex('auth_invitation_uses').where({ invitation_id: id }).pluck('user_id') }
}

export async function passkeySignup(
  host: LocalHost,
  email: string,
  invitation: object,
  browser: Browser = host.browser(),
): Promise<supertest.Response> {
  const options = await browser.post(`${host.prefix}/signup/passkey/options`).send({ email, ...invitation })
  if (options.status !== 200) return options
  const credential = newAuthenticator().create(options.body)
  return browser.post(`${host.prefix}/signup/passkey`).send({ email, credential, challenge_token: options.body.challenge_token })
}
