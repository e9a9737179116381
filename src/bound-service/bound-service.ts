import type { Request, Response } from 'express'
import type { VerificationResult } from '../account/verify-email'
import type { AuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { getUser } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { noteOutcome } from '../http/outcome'
import type { Method, Route } from '../http/routes'
import { sendEmpty } from '../http/send'
import type { Enrolment } from '../mfa/enroll'
import type { PasskeyOptions } from '../passkeys/options'
import type { PublicPasskey } from '../passkeys/public-passkey'
import type { PublicSession } from '../session/find-session'
import type { LoginChallenge } from '../session/finish-login'
import type { IdentityRecord } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import type { PublicUser } from '../store/public-user'
import type { PasskeyCreationOptions, PasskeyRequestOptions } from '../webauthn/ceremonies'
import { playRoute } from './play-route'

/** A login that is finished, or a session that goes on. Its tokens are in the cookies, except in delivery `bearer`, which sets none. */
export interface BoundSession {
  kind: 'session'
  userId: string
  amr: readonly AuthMethod[]
  /** The account has no password any more, because the first proof of its address took it over: ask the person for one. */
  passwordRequired?: true
  /** In delivery `session`. */
  sessionId?: string
  expiresAt?: Date
  /** In the other deliveries: of the refresh token. */
  refreshTokenExpiresAt?: Date | null
  /** In delivery `bearer`. */
  accessToken?: string
  refreshToken?: string | null
}

/** For a challenge, ask the person for a code, and pass its `mfaToken` to `verifyMfa`. */
export type BoundLogin = BoundSession | LoginChallenge

export interface BoundSignup {
  /** Null where a taken address must look like a free one, and ids cannot be made up. */
  userId: string | null
  activationRequired: boolean
  /** Only where links stand in answers, because there is no mailer. */
  activationUrl: string | null
  /** In delivery `bearer`, of an account that is active at once. */
  accessToken?: string
  refreshToken?: string
}

export interface BoundEmailLoginRequest {
  /** Belongs to the code, for clients without cookies. */
  requestToken: string
  /** Only where links and codes stand in answers, because there is no mailer. */
  loginUrl: string | null
  code: string | null
}

export interface RequestedLink {
  /** Null: it is mailed, or there is none; only where there is no mailer do links stand in answers. */
  url: string | null
}

/**
 * The service, bound to a request: for forms that the host renders itself. Each verb does what its route does: it counts the limits of this
 * client, refuses other sites, asks for a living or a fresh session, and sets or clears the cookies of the configured delivery; with `both`
 * those of `/cookie`. Nothing is sent: answer the request yourself.
 * @throws AppError what the route would have refused with
 */
export interface BoundService<Host extends HostTypes = HostTypes> {
  /** The signed-in person, by the request's own credentials; null: nobody, or an inactive account. Needs no guard, and never throws. */
  currentUser(): Promise<WithFields<PublicUser, Host> | null>
  /** `fields`: what your `signup.schema` reads beside the three. The password is required, unless `passwordLogin` is off. */
  signUp(input: { email: string; password?: string; name?: string | null; fields?: object }): Promise<BoundSignup>
  logIn(input: { email: string; password: string; remember?: boolean; previousToken?: string }): Promise<BoundLogin>
  verifyMfa(input: { mfaToken: string; previousToken?: string } & FactorProof): Promise<BoundLogin>
  /** With a provider's access token. */
  logInWithToken(input: { provider: string; accessToken: string }): Promise<BoundLogin>
  /**
   * `refreshToken` in delivery `bearer`; otherwise the cookie says which session. With `providerLogout`: where the browser ends its session at
   * the provider, too; null where there is no such place.
   */
  logOut(input: { allSessions?: boolean; providerLogout: true; refreshToken?: string }): Promise<{ logoutUrl: string | null }>
  logOut(input?: { allSessions?: boolean; refreshToken?: string }): Promise<void>
  activate(token: string, options?: { password?: string; signupToken?: string }): Promise<BoundLogin>
  requestActivation(email: string): Promise<RequestedLink>
  requestPasswordReset(email: string): Promise<RequestedLink>
  resetPassword(input: { token: string; newPassword: string; password?: string }): Promise<BoundLogin>
  /** `returnTo`: where the page of the mailed link sends this browser afterwards. */
  requestEmailLogin(input: { email: string; returnTo?: string; previousToken?: string }): Promise<BoundEmailLoginRequest>
  /** By the link's token, or by the code; in delivery `bearer` with the code's `requestToken`, otherwise the cookie says which request. */
  confirmEmailLogin(
    input: ({ token: string } | { code: string; requestToken?: string }) & { password?: string; signupToken?: string },
  ): Promise<BoundLogin>
  changePassword(input: { currentPassword: string; newPassword: string } & FinalProof): Promise<void>
  changePasswordWithMfa(input: { newPassword: string; refreshToken?: string } & FactorProof): Promise<void>
  setFirstPassword(input: { newPassword: string } & FinalProof): Promise<void>
  updateProfile(input: { name?: string | null; fields?: object }): Promise<WithFields<PublicUser, Host>>
  requestEmailVerification(): Promise<RequestedLink>
  verifyEmail(token: string, options?: { password?: string; refreshToken?: string }): Promise<VerificationResult>
  requestEmailChange(input: { newEmail: string; currentPassword?: string } & FinalProof): Promise<RequestedLink>
  changeEmail(token: string, options?: { password?: string; refreshToken?: string }): Promise<void>
  enrollTotp(input?: FinalProof): Promise<Enrolment>
  confirmTotp(input: { code: string; refreshToken?: string }): Promise<BoundSession>
  disableTotp(input: { password?: string; refreshToken?: string } & FactorProof): Promise<void>
  regenerateRecoveryCodes(input: { refreshToken?: string } & FactorProof): Promise<string[]>
  /** Mails a code that confirms this session, for `reauthenticate({ emailCode })`. */
  requestConfirmationCode(input?: { refreshToken?: string }): Promise<void>
  reauthenticate(input: {
    password?: string
    code?: string
    credential?: object
    challenge?: string
    emailCode?: string
    ticket?: string
    refreshToken?: string
  }): Promise<BoundSession>
  /** Where to send the browser, so that the person confirms it is them at a linked provider; from there it goes to `returnTo`. */
  beginReauthentication(input: { provider: string; returnTo?: string }): Promise<{ authorizeUrl: string }>
  listIdentities(): Promise<IdentityRecord[]>
  /** Where to send the browser, so that the person links an account at a provider; from there it goes to `returnTo`. */
  beginLink(input: { provider: string; returnTo?: string } & FinalProof): Promise<{ authorizeUrl: string }>
  unlinkIdentity(provider: string, options?: FinalProof): Promise<void>
  redeemLinkTicket(ticket: string, options?: { refreshToken?: string }): Promise<IdentityRecord>
  /** `options` for `navigator.credentials.create()`; send them to the page, and keep `challenge` for `registerPasskey`. */
  passkeyRegistrationOptions(input?: FinalProof): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /** `credential`: what the page sent of `navigator.credentials.create()`. */
  registerPasskey(input: { credential: object; challenge: string; name?: string; refreshToken?: string }): Promise<PublicPasskey>
  /** `options` for `navigator.credentials.get()`; keep `challenge` for `logInWithPasskey`. */
  passkeyLoginOptions(): Promise<PasskeyOptions<PasskeyRequestOptions>>
  logInWithPasskey(input: { credential: object; challenge: string; remember?: boolean }): Promise<BoundLogin>
  /** With the `mfaToken` of a challenge for `verifyMfa`; else for `reauthenticate`, and for changes that take a passkey. */
  passkeyStepOptions(input?: { mfaToken: string } | { refreshToken?: string }): Promise<PasskeyOptions<PasskeyRequestOptions>>
  listPasskeys(): Promise<PublicPasskey[]>
  renamePasskey(passkeyId: string, name: string, options?: { refreshToken?: string }): Promise<PublicPasskey>
  removePasskey(passkeyId: string, options?: FinalProof): Promise<void>
  listSessions(): Promise<PublicSession[]>
  revokeSession(sessionId: string): Promise<void>
  revokeOtherSessions(input?: { refreshToken?: string }): Promise<void>
}

/** A code of the second factor, or a passkey in its place. */
export type FactorProof = { code: string } | PasskeyProof

/** `challenge`: of the options that the page answered. */
export interface PasskeyProof {
  credential: object
  challenge: string
}

/** What a change may bring along. With a code of the authenticator app, or a passkey, that is older than a day no link undoes it. */
export interface FinalProof extends Partial<PasskeyProof> {
  code?: string
  refreshToken?: string
}

/** What a route is asked with beside the verb's input. */
interface Beside {
  readonly params?: Readonly<Record<string, string>>
  /** The host's own, whose names are never changed. Ours win. */
  readonly fields?: object
}

/** Our names of the fields of bodies, where they differ. */
const inBody: Readonly<Record<string, string>> = {
  accessToken: 'access_token',
  allSessions: 'all_sessions',
  challenge: 'challenge_token',
  currentPassword: 'current_password',
  emailCode: 'email_code',
  mfaToken: 'mfa_token',
  newEmail: 'new_email',
  newPassword: 'new_password',
  providerLogout: 'provider_logout',
  previousToken: 'previous_token',
  refreshToken: 'refresh_token',
  requestToken: 'request_token',
  returnTo: 'return_to',
  signupToken: 'signup_token',
}

/** `auth.with` of a router with these routes. */
export function serviceBinder({ settings }: Pick<AuthContext, 'settings'>, routes: readonly Route[], guards: Guards) {
  const twins = settings.tokenDelivery === 'both' ? ['/cookie', ''] : ['']
  const routeOf = (verb: string, method: Method, path: string): Route => {
    const lines = twins.map((base) => routes.find((line) => line.method === method && line.path === base + path && !line.when))
    const line = lines.find((found) => found !== undefined)
    if (line) return line
    throw new Error(
      `auth.with(req, res).${verb}() does what ${method} ${path} does, and this router has no such route: its feature is off.`,
    )
  }
  const hidden = settings.tokenDelivery === 'bearer' ? internal : [...internal, ...carriedByCookies]

  return (req: Request, res: Response): BoundService => {
    if (res.headersSent) throw new Error('auth.with(req, res) sets cookies, and this response was sent already.')
    const ask = async (verb: string, method: Method, path: string, input: object = {}, { params = {}, fields = {} }: Beside = {}) => {
      const sent = Object.entries(input).filter(([, value]) => value !== undefined)
      const named = Object.fromEntries(sent.map(([name, value]) => [inBody[name] ?? name, value]))
      const outcome = await playRoute(routeOf(verb, method, path), req, res, { params, body: { ...fields, ...named } })
      return without(hidden, outcome) as never // what the route's handler notes; tests compare each with its type
    }
    return {
      async currentUser() {
        try {
          const handle: Route['handle'] = (asked, answer) => {
            noteOutcome(answer, getUser(asked))
            sendEmpty(answer)
          }
          return (await playRoute({ method: 'GET', before: [guards.requireUser()], handle }, req, res, {})) as PublicUser
        } catch {
          return null
        }
      },
      signUp: ({ fields, ...input }) => ask('signUp', 'POST', '/signup', input, fields && { fields }),
      logIn: (input) => ask('logIn', 'POST', '/login', input),
      verifyMfa: (input) => ask('verifyMfa', 'POST', '/mfa/verify', input),
      logInWithToken: ({ provider, ...input }) => ask('logInWithToken', 'POST', '/oauth/:provider/token', input, { params: { provider } }),
      logOut: (input: object = {}) => ask('logOut', 'POST', '/logout', input),
      activate: (token, options) => ask('activate', 'POST', '/activate', { token, ...options }),
      requestActivation: (email) => ask('requestActivation', 'POST', '/activation/request', { email }),
      requestPasswordReset: (email) => ask('requestPasswordReset', 'POST', '/password-reset/request', { email }),
      resetPassword: (input) => ask('resetPassword', 'POST', '/password-reset/confirm', input),
      requestEmailLogin: (input) => ask('requestEmailLogin', 'POST', '/email-login/request', input),
      confirmEmailLogin: (input) => ask('confirmEmailLogin', 'POST', '/email-login/confirm', input),
      changePassword: (input) => ask('changePassword', 'POST', '/password-change', input),
      changePasswordWithMfa: (input) => ask('changePasswordWithMfa', 'POST', '/password-change/mfa', input),
      setFirstPassword: (input) => ask('setFirstPassword', 'POST', '/password/first', input),
      updateProfile: (input) => ask('updateProfile', 'PATCH', '/me', input),
      requestEmailVerification: () => ask('requestEmailVerification', 'POST', '/email-verify/request'),
      verifyEmail: (token, options) => ask('verifyEmail', 'POST', '/email-verify/confirm', { token, ...options }),
      requestEmailChange: (input) => ask('requestEmailChange', 'POST', '/email-change/request', input),
      changeEmail: (token, options) => ask('changeEmail', 'POST', '/email-change/confirm', { token, ...options }),
      enrollTotp: (input) => ask('enrollTotp', 'POST', '/mfa/enroll', input),
      confirmTotp: (input) => ask('confirmTotp', 'POST', '/mfa/confirm', input),
      disableTotp: (input) => ask('disableTotp', 'POST', '/mfa/disable', input),
      regenerateRecoveryCodes: (input) => ask('regenerateRecoveryCodes', 'POST', '/mfa/recovery-codes', input),
      requestConfirmationCode: (input) => ask('requestConfirmationCode', 'POST', '/reauthenticate/email', input),
      reauthenticate: (input) => ask('reauthenticate', 'POST', '/reauthenticate', input),
      beginReauthentication: ({ provider, ...input }) =>
        ask('beginReauthentication', 'POST', '/oauth/:provider/reauthenticate', input, { params: { provider } }),
      beginLink: ({ provider, ...input }) => ask('beginLink', 'POST', '/oauth/:provider/link', input, { params: { provider } }),
      listIdentities: () => ask('listIdentities', 'GET', '/oauth/accounts'),
      unlinkIdentity: (provider, options) => ask('unlinkIdentity', 'POST', '/oauth/accounts/unlink', { provider, ...options }),
      redeemLinkTicket: (ticket, options) => ask('redeemLinkTicket', 'POST', '/oauth/link/redeem', { ticket, ...options }),
      passkeyRegistrationOptions: (input) => ask('passkeyRegistrationOptions', 'POST', '/passkeys/register/options', input),
      registerPasskey: (input) => ask('registerPasskey', 'POST', '/passkeys/register', input),
      passkeyLoginOptions: () => ask('passkeyLoginOptions', 'POST', '/passkeys/login/options'),
      logInWithPasskey: (input) => ask('logInWithPasskey', 'POST', '/passkeys/login', input),
      passkeyStepOptions: (input = {}) => {
        const path = 'mfaToken' in input ? '/mfa/passkey/options' : '/reauthenticate/passkey/options'
        return ask('passkeyStepOptions', 'POST', path, input)
      },
      listPasskeys: () => ask('listPasskeys', 'GET', '/passkeys'),
      renamePasskey: (id, name, options) => ask('renamePasskey', 'PATCH', '/passkeys/:id', { name, ...options }, { params: { id } }),
      removePasskey: (id, options) => ask('removePasskey', 'DELETE', '/passkeys/:id', options, { params: { id } }),
      listSessions: () => ask('listSessions', 'GET', '/sessions'),
      revokeSession: (id) => ask('revokeSession', 'DELETE', '/sessions/:id', {}, { params: { id } }),
      revokeOtherSessions: (input) => ask('revokeOtherSessions', 'POST', '/sessions/revoke-others', input),
    }
  }
}

/** What only the answer's cookies are made of. */
const internal = ['devices', 'newDevice', 'isPersistent', 'endedByLimit']
const carriedByCookies = ['accessToken', 'refreshToken', 'sessionToken']

function without(names: readonly string[], outcome: unknown): unknown {
  if (typeof outcome !== 'object' || outcome === null || Array.isArray(outcome)) return outcome
  return Object.fromEntries(Object.entries(outcome).filter(([name]) => !names.includes(name)))
}
