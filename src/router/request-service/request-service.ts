import type { Request, Response } from 'express'
import type { AccountExport } from '../../accounts/deletion/export-account'
import type { VerificationResult } from '../../accounts/verify-email'
import type { AuthContext } from '../../context'
import type { AuthMethod } from '../../core/amr'
import type { Guards } from '../../guards/guards'
import type { Method, Route } from '../../http/routes'
import { sendEmpty, setResult } from '../../http/send'
import type { CreatedInvitation, InvitationList, InvitationListQuery, NewInvitation } from '../../invitations/manage-invitations'
import { pathOfTask } from '../../login-tasks/routes'
import type { PasskeyOptions } from '../../passkeys/passkey-challenge'
import type { PublicPasskey } from '../../passkeys/register'
import type { PasskeyCreationOptions, PasskeyRequestOptions } from '../../passkeys/webauthn/ceremonies'
import type { Enrolment } from '../../second-factor/enroll'
import { getUser } from '../../sessions/current-auth'
import type { PublicSession } from '../../sessions/find-session'
import type { LoginChallenge, LoginOwesTasks } from '../../sessions/login'
import type { OpenSessionOptions } from '../../sessions/open-session'
import type { IdentityRecord } from '../../store/auth-store'
import type { HostTypes, WithFields } from '../../store/host-types'
import type { PublicUser } from '../../store/user-records'
import type { PublicTrustedDevice } from '../../trusted-devices/routes'
import { callRoute, type logoutOfHost, openSessionOfHost } from './call-route'

/**
 * A finished login, or a session that continues. With `tokenDelivery: 'bearer'`, the result has the tokens, and no cookies are set. With
 * every other `tokenDelivery`, the cookies have the tokens.
 */
export interface BoundSession {
  kind: 'session'
  userId: string
  amr: readonly AuthMethod[]
  /**
   * True if the account has no password, because the first verification of the address removed the password. Ask the person for a new
   * password.
   */
  passwordRequired?: true
  /** True: this login trusted the browser. Absent: `trustedDeviceDays` is 0, or the login cannot trust a browser. */
  deviceTrusted?: boolean
  /** Only with `tokenDelivery: 'session'`. */
  sessionId?: string
  expiresAt?: Date
  /** The expiry of the refresh token. Absent with `tokenDelivery: 'session'`. */
  refreshTokenExpiresAt?: Date | null
  /** Only with `tokenDelivery: 'bearer'`. */
  accessToken?: string
  refreshToken?: string | null
}

/**
 * A session, a challenge or tasks. For a challenge, ask the person for a code, and pass the code and `mfaToken` to `verifyMfa`. For tasks, do
 * the first of `tasks` with its method and `taskToken`.
 */
export type BoundLogin = BoundSession | LoginChallenge | LoginOwesTasks

export interface BoundSignup {
  /**
   * The account's id. If the account must be activated first, a taken address gets a random UUID, so a client cannot learn whether the
   * address is taken. Null if the account must be activated first and the table has no UUIDs as keys.
   */
  userId: string | null
  activationRequired: boolean
  /** The activation link. Set only if there is no mailer, or if `returnTokenInResponse` is on. */
  activationUrl: string | null
  /** Belongs to the mailed code, for clients without cookies. Only with `mailedCodes: 'both'`. */
  requestToken?: string
  /** Only with `tokenDelivery: 'bearer'`, for an account that is active at once. */
  accessToken?: string
  refreshToken?: string
  /** Present if the account is active at once, and owes tasks before its session begins. */
  tasks?: readonly string[]
  taskToken?: string
}

export interface BoundEmailLoginRequest {
  /** The token that belongs to the code, for clients without cookies. */
  requestToken: string
  /** The link and the code. Set only if there is no mailer, or if `returnTokenInResponse` is on. */
  loginUrl: string | null
  code: string | null
}

export interface RequestedLink {
  /** The link, if there is no mailer or `returnTokenInResponse` is on. Null if the link was mailed or no link was made. */
  url: string | null
  /** Belongs to the mailed code, for clients without cookies. Only with `mailedCodes: 'both'`. */
  requestToken?: string
}

/** The token of a mailed link, or its code. Without `requestToken`, the cookie of the browser's newest request identifies the request. */
export type MailedProof = string | { code: string; requestToken?: string }

/**
 * The service for one request, for forms that the host renders. Each method does what its route does. Each method counts against this
 * client's rate limits and rejects requests from other sites. If the route requires a live or fresh session, the method also requires that
 * session. The method sets or clears the cookies of `tokenDelivery` (with `both`, the cookies of `/cookie`). The method sends no response,
 * so your code must send a response.
 * @throws AppError the error that the route would have sent
 */
export interface BoundService<Host extends HostTypes = HostTypes> {
  /**
   * Returns the logged-in person of the request's credentials. Returns null if nobody is logged in, or if the account is inactive. The
   * method needs no guard and never throws.
   */
  currentUser(): Promise<WithFields<PublicUser, Host> | null>
  /** Signs a person up. `fields` are the other fields for your `signup.schema`. The password is required, unless `passwordLogin` is off. */
  signUp(input: { email: string; password?: string; name?: string | null; fields?: object } & CaptchaAnswer & Invited): Promise<BoundSignup>
  /** Returns `options` for `navigator.credentials.create()`. They are for this address. Keep `challenge` for `signUpWithPasskey`. */
  passkeySignupOptions(input: { email: string; name?: string | null } & Invited): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /** Like `signUp`, with a new passkey instead of a password. `credential` is the result of `navigator.credentials.create()`. */
  signUpWithPasskey(
    input: PasskeyProof & { email: string; name?: string | null; fields?: object } & CaptchaAnswer & Invited,
  ): Promise<BoundSignup>
  logIn(input: { email: string; password: string; remember?: boolean; previousToken?: string } & CaptchaAnswer): Promise<BoundLogin>
  /** With `trustDevice`, the browser needs no second factor for `trustedDeviceDays` days. */
  verifyMfa(input: { mfaToken: string; previousToken?: string; trustDevice?: boolean } & FactorProof): Promise<BoundLogin>
  /** The mailed code of the task `device`. */
  confirmDevice(input: { taskToken: string; code: string }): Promise<BoundLogin>
  /** Mails another code. The old token ends. */
  resendDeviceCode(input: { taskToken: string }): Promise<{ taskToken: string }>
  /** The task `new_password`. */
  setNewPassword(input: { taskToken: string; newPassword: string }): Promise<BoundLogin>
  /** Begins the task `second_factor`. The token stays valid. */
  beginSecondFactor(input: { taskToken: string }): Promise<Enrolment>
  finishSecondFactor(input: { taskToken: string; code: string }): Promise<BoundLogin>
  /** A task of your own. `complete` gets `body`. */
  completeTask(key: string, input: { taskToken: string; body?: object }): Promise<BoundLogin>
  /** Logs a person in with a provider's access token. */
  logInWithToken(input: { provider: string; accessToken: string } & Invited): Promise<BoundLogin>
  /**
   * Logs out, at every path of your app. The cookies of the request, or else its access token in the header or `refreshToken`, identify the
   * session. With `providerLogout`, returns the URL where the browser also ends its session at the provider. If the provider has no logout
   * page, the URL is null.
   * @throws UnauthorizedError if no cookie and no token of the request is ours; the cookies are cleared all the same
   */
  logOut(input: { allSessions?: boolean; providerLogout: true; refreshToken?: string }): Promise<{ logoutUrl: string | null }>
  logOut(input?: { allSessions?: boolean; refreshToken?: string }): Promise<void>
  /** `credential` and `challenge`: of the passkey of the sign-up, with the options of `passkeyLoginOptions`. */
  activate(proof: MailedProof, options?: { password?: string; signupToken?: string } & Partial<PasskeyProof>): Promise<BoundLogin>
  requestActivation(email: string, options?: CaptchaAnswer): Promise<RequestedLink>
  requestPasswordReset(email: string, options?: CaptchaAnswer): Promise<RequestedLink>
  resetPassword(
    input: ({ token: string } | { code: string; requestToken?: string }) & { newPassword: string; password?: string },
  ): Promise<BoundLogin>
  /** Mails a link or a code to log in with. `returnTo` is the page to which the browser is redirected after the mailed link. */
  requestEmailLogin(
    input: { email: string; returnTo?: string; previousToken?: string } & CaptchaAnswer & Invited,
  ): Promise<BoundEmailLoginRequest>
  /**
   * Logs a person in with the link's token or with the code. With `tokenDelivery: 'bearer'`, the code needs its `requestToken`. Otherwise
   * the cookie identifies the request.
   */
  confirmEmailLogin(
    input: ({ token: string } | { code: string; requestToken?: string }) & { password?: string; signupToken?: string },
  ): Promise<BoundLogin>
  changePassword(input: { currentPassword: string; newPassword: string } & FinalProof): Promise<void>
  changePasswordWithMfa(input: { newPassword: string; refreshToken?: string } & FactorProof): Promise<void>
  setFirstPassword(input: { newPassword: string } & FinalProof): Promise<void>
  updateProfile(input: { name?: string | null; fields?: object }): Promise<WithFields<PublicUser, Host>>
  requestEmailVerification(): Promise<RequestedLink>
  verifyEmail(proof: MailedProof, options?: { password?: string; refreshToken?: string }): Promise<VerificationResult>
  requestEmailChange(input: { newEmail: string; currentPassword?: string } & FinalProof): Promise<RequestedLink>
  changeEmail(proof: MailedProof, options?: { password?: string; refreshToken?: string }): Promise<void>
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
    previousToken?: string
    refreshToken?: string
  }): Promise<BoundSession>
  /**
   * Returns a URL at a linked provider, where the person confirms their identity. Redirect the browser to that URL. Afterwards the browser
   * is redirected to `returnTo`.
   */
  beginReauthentication(input: { provider: string; returnTo?: string }): Promise<{ authorizeUrl: string }>
  listIdentities(): Promise<IdentityRecord[]>
  /**
   * Returns a URL at a provider, where the person links an account. Redirect the browser to that URL. Afterwards the browser is redirected
   * to `returnTo`.
   */
  beginLink(input: { provider: string; returnTo?: string } & FinalProof): Promise<{ authorizeUrl: string }>
  unlinkIdentity(provider: string, options?: FinalProof): Promise<void>
  redeemLinkTicket(ticket: string, options?: { refreshToken?: string }): Promise<IdentityRecord>
  /** Returns `options` for `navigator.credentials.create()`. Send the options to the page, and keep `challenge` for `registerPasskey`. */
  passkeyRegistrationOptions(input?: FinalProof): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /** Adds a passkey. `credential` is the result of `navigator.credentials.create()` that the page sent. */
  registerPasskey(input: { credential: object; challenge: string; name?: string; refreshToken?: string }): Promise<PublicPasskey>
  /** Returns `options` for `navigator.credentials.get()`. Keep `challenge` for `logInWithPasskey`. */
  passkeyLoginOptions(): Promise<PasskeyOptions<PasskeyRequestOptions>>
  logInWithPasskey(input: { credential: object; challenge: string; remember?: boolean } & CaptchaAnswer): Promise<BoundLogin>
  /**
   * Returns passkey options. If you pass the `mfaToken` of a challenge, the options are for `verifyMfa`. Otherwise the options are for
   * `reauthenticate` and for changes that accept a passkey.
   */
  passkeyStepOptions(input?: { mfaToken: string } | { refreshToken?: string }): Promise<PasskeyOptions<PasskeyRequestOptions>>
  listPasskeys(): Promise<PublicPasskey[]>
  renamePasskey(passkeyId: string, name: string, options?: { refreshToken?: string }): Promise<PublicPasskey>
  removePasskey(passkeyId: string, options?: FinalProof): Promise<void>
  listSessions(): Promise<PublicSession[]>
  revokeSession(sessionId: string): Promise<void>
  revokeOtherSessions(input?: { refreshToken?: string }): Promise<void>
  /** Returns the trusted browsers, newest first. */
  listTrustedDevices(): Promise<PublicTrustedDevice[]>
  removeTrustedDevice(trustedDeviceId: string): Promise<void>
  /** Uses an invitation with the account that is logged in. */
  redeemInvitation(token: string, options?: { refreshToken?: string }): Promise<void>
  /** For an administrator. Creates an invitation, and mails it if `send` is true. */
  createInvitation(input?: Omit<NewInvitation, 'locale'> & { refreshToken?: string }): Promise<CreatedInvitation>
  /** For an administrator. Lists the invitations, newest first, without tokens. */
  listInvitations(query?: InvitationListQuery): Promise<InvitationList>
  /** For an administrator. */
  revokeInvitation(invitationId: string, options?: { refreshToken?: string }): Promise<void>
  /** For an administrator. Mails a new token. The old token ends. */
  resendInvitation(invitationId: string, options?: { refreshToken?: string }): Promise<void>
  /** For an administrator. Approves an account that waits (`signupMode: 'approve'`). */
  approve(userId: string, options?: { refreshToken?: string }): Promise<void>
  /** For an administrator. Declines an account that waits. */
  decline(userId: string, options?: { refreshToken?: string }): Promise<void>
  /**
   * Opens a session for a person whom you authenticated yourself, for example by SAML. It applies no cross-site rule and no limit, because
   * such a request can come from another site: check first that this browser began the login (`state`, `RelayState`).
   * @throws TypeError for wrong options; NotFoundError; AccountInactiveError; ApprovalPendingError; DeletionPendingError
   */
  openSession(userId: string, options?: OpenSessionOptions): Promise<BoundLogin>
  /**
   * Deletes the account of the logged-in person. `deletesAt` is when a closed account is deleted. Null: it is gone. Needs a credential of
   * the last minute, a `code` or a passkey if the account is deleted at once, and otherwise a fresh session.
   */
  deleteAccount(input?: FinalProof): Promise<{ deletesAt: Date | null }>
  /** Opens an account that waits for its deletion. `token` is of the mail, or of the answer to a right login. */
  restoreAccount(token: string): Promise<void>
  /** Returns what is known of the logged-in person. */
  exportAccount(): Promise<AccountExport>
}

/** For the option `captcha`. */
export interface CaptchaAnswer {
  captcha?: string
}

/** For a call that can create an account. Default: the cookie of the invitation's page. */
export interface Invited {
  /** The token of an invitation. */
  invitation?: string
}

/** A code of the second factor, or a passkey. */
export type FactorProof = { code: string; previousToken?: string } | PasskeyProof

/** A signature by a passkey. `challenge` comes with the options that the page used. */
export interface PasskeyProof {
  credential: object
  challenge: string
}

/** Optional credentials for a change. If the authenticator app or the passkey is older than a day, no undo link can revert the change. */
export interface FinalProof extends Partial<PasskeyProof> {
  code?: string
  /** A refresh token of the account. The client that has it counts as a known device. */
  previousToken?: string
  refreshToken?: string
}

/** The part of a route's input that the method's own input does not contain. */
interface Beside {
  readonly params?: Readonly<Record<string, string>>
  /** Fields of the host, with unchanged names. If doorward has a field of equal name, that field overrides the host's field. */
  readonly fields?: object
  readonly query?: object
}

/** The names of body fields that differ from the names of the method's input. */
const inBody: Readonly<Record<string, string>> = {
  accessToken: 'access_token',
  allSessions: 'all_sessions',
  challenge: 'challenge_token',
  currentPassword: 'current_password',
  emailCode: 'email_code',
  expiresInDays: 'expires_in_days',
  mfaToken: 'mfa_token',
  newEmail: 'new_email',
  newPassword: 'new_password',
  providerLogout: 'provider_logout',
  previousToken: 'previous_token',
  refreshToken: 'refresh_token',
  requestToken: 'request_token',
  taskToken: 'task_token',
  returnTo: 'return_to',
  signupToken: 'signup_token',
  trustDevice: 'trust_device',
}

/** Makes `auth.with` for a router with these routes. */
export function serviceBinder(ctx: AuthContext, routes: readonly Route[], guards: Guards, logout: ReturnType<typeof logoutOfHost>) {
  const { settings } = ctx
  const twins = settings.tokenDelivery === 'both' ? ['/cookie', ''] : ['']
  const routeOf = (verb: string, method: Method, path: string): Route => {
    const lines = twins.map((base) => routes.find((line) => line.method === method && line.path === base + path && !line.when))
    const line = lines.find((found) => found !== undefined)
    if (line) return line
    throw new Error(
      `auth.with(req, res).${verb}() needs the route ${method} ${path}, but this router does not have the route, because its feature is off.`,
    )
  }
  const hidden = settings.tokenDelivery === 'bearer' ? internal : [...internal, ...carriedByCookies]

  return (req: Request, res: Response): BoundService => {
    if (res.headersSent) throw new Error('auth.with(req, res) sets cookies, but this response was already sent.')
    const ask = async (verb: string, method: Method, path: string, input: object = {}, beside: Beside = {}) => {
      const { params = {}, fields = {}, query } = beside
      const given = { params, body: { ...fields, ...bodyOf(input) }, ...(query && { query: bodyOf(query) }) }
      const outcome = await callRoute(routeOf(verb, method, path), req, res, given)
      return without(hidden, outcome) as never // the value that the handler noted; tests compare each value with its type
    }
    return {
      async currentUser() {
        try {
          const handle: Route['handle'] = (asked, answer) => {
            setResult(answer, getUser(asked))
            sendEmpty(answer)
          }
          return (await callRoute({ method: 'GET', before: [guards.requireUser()], handle }, req, res, {})) as PublicUser
        } catch {
          return null
        }
      },
      signUp: ({ fields, ...input }) => ask('signUp', 'POST', '/signup', input, fields && { fields }),
      passkeySignupOptions: (input) => ask('passkeySignupOptions', 'POST', '/signup/passkey/options', input),
      signUpWithPasskey: ({ fields, ...input }) => ask('signUpWithPasskey', 'POST', '/signup/passkey', input, fields && { fields }),
      logIn: (input) => ask('logIn', 'POST', '/login', input),
      verifyMfa: (input) => ask('verifyMfa', 'POST', '/mfa/verify', input),
      confirmDevice: (input) => ask('confirmDevice', 'POST', '/tasks/device', input),
      resendDeviceCode: (input) => ask('resendDeviceCode', 'POST', '/tasks/device/resend', input),
      setNewPassword: (input) => ask('setNewPassword', 'POST', '/tasks/new-password', input),
      beginSecondFactor: (input) => ask('beginSecondFactor', 'POST', '/tasks/second-factor/enroll', input),
      finishSecondFactor: (input) => ask('finishSecondFactor', 'POST', '/tasks/second-factor/confirm', input),
      completeTask: (key, { body = {}, ...input }) => ask('completeTask', 'POST', pathOfTask(key), input, { fields: body }),
      logInWithToken: ({ provider, ...input }) => ask('logInWithToken', 'POST', '/oauth/:provider/token', input, { params: { provider } }),
      logOut: async (input: object = {}) => (await callRoute(logout, req, res, { body: bodyOf(input) })) as never,
      activate: (proof, options) => ask('activate', 'POST', '/activate', { ...mailed(proof), ...options }),
      requestActivation: (email, options) => ask('requestActivation', 'POST', '/activation/request', { email, ...options }),
      requestPasswordReset: (email, options) => ask('requestPasswordReset', 'POST', '/password-reset/request', { email, ...options }),
      resetPassword: (input) => ask('resetPassword', 'POST', '/password-reset/confirm', input),
      requestEmailLogin: (input) => ask('requestEmailLogin', 'POST', '/email-login/request', input),
      confirmEmailLogin: (input) => ask('confirmEmailLogin', 'POST', '/email-login/confirm', input),
      changePassword: (input) => ask('changePassword', 'POST', '/password-change', input),
      changePasswordWithMfa: (input) => ask('changePasswordWithMfa', 'POST', '/password-change/mfa', input),
      setFirstPassword: (input) => ask('setFirstPassword', 'POST', '/password/first', input),
      updateProfile: (input) => ask('updateProfile', 'PATCH', '/me', input),
      requestEmailVerification: () => ask('requestEmailVerification', 'POST', '/email-verify/request'),
      verifyEmail: (proof, options) => ask('verifyEmail', 'POST', '/email-verify/confirm', { ...mailed(proof), ...options }),
      requestEmailChange: (input) => ask('requestEmailChange', 'POST', '/email-change/request', input),
      changeEmail: (proof, options) => ask('changeEmail', 'POST', '/email-change/confirm', { ...mailed(proof), ...options }),
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
      listTrustedDevices: () => ask('listTrustedDevices', 'GET', '/trusted-devices'),
      openSession: async (userId, options = {}) =>
        without(hidden, await callRoute(openSessionOfHost(ctx, userId, options), req, res, {})) as never, // as above
      removeTrustedDevice: (id) => ask('removeTrustedDevice', 'DELETE', '/trusted-devices/:id', {}, { params: { id } }),
      redeemInvitation: (token, options) => ask('redeemInvitation', 'POST', '/invitations/redeem', { token, ...options }),
      createInvitation: (input) => ask('createInvitation', 'POST', '/admin/invitations', input),
      listInvitations: (query = {}) => ask('listInvitations', 'GET', '/admin/invitations', {}, { query }),
      revokeInvitation: (id, options) => ask('revokeInvitation', 'DELETE', '/admin/invitations/:id', options, { params: { id } }),
      resendInvitation: (id, options) => ask('resendInvitation', 'POST', '/admin/invitations/:id/resend', options, { params: { id } }),
      approve: (id, options) => ask('approve', 'POST', '/admin/users/:id/approve', options, { params: { id } }),
      decline: (id, options) => ask('decline', 'POST', '/admin/users/:id/decline', options, { params: { id } }),
      deleteAccount: (input) => ask('deleteAccount', 'POST', '/account/delete', input),
      restoreAccount: (token) => ask('restoreAccount', 'POST', '/account/restore', { token }),
      exportAccount: () => ask('exportAccount', 'GET', '/account/export'),
    }
  }
}

function mailed(proof: MailedProof): object {
  return typeof proof === 'string' ? { token: proof } : proof
}

function bodyOf(input: object): object {
  const sent = Object.entries(input).filter(([, value]) => value !== undefined)
  return Object.fromEntries(sent.map(([name, value]) => [inBody[name] ?? name, value]))
}

/** Values that are only for the cookies of the response. */
const internal = ['devices', 'newDevice', 'newTrust', 'isPersistent', 'endedByLimit']
const carriedByCookies = ['accessToken', 'refreshToken', 'sessionToken']

function without(names: readonly string[], outcome: unknown): unknown {
  if (typeof outcome !== 'object' || outcome === null || Array.isArray(outcome)) return outcome
  return Object.fromEntries(Object.entries(outcome).filter(([name]) => !names.includes(name)))
}
