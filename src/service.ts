import { randomUUID } from 'node:crypto'
import { confirmEmailChange, type EmailChange, proveEmailChange, sendEmailChange } from './account/change-email'
import { changePassword, type PasswordChange } from './account/change-password'
import { type FirstPassword, setFirstPassword } from './account/first-password'
import { type ProfileUpdate, updateProfile } from './account/update-profile'
import { confirmEmail, sendEmailVerification, type VerificationResult } from './account/verify-email'
import { activateUser } from './admin/activate-user'
import type { AdminUser } from './admin/admin-user'
import { deactivate } from './admin/deactivate'
import { findUser } from './admin/find-user'
import { listUsers, type UserList, type UserListQuery } from './admin/list-users'
import { type ActingAdmin, requireNamed } from './admin/lock-target'
import { type MfaReset, resetMfa } from './admin/reset-mfa'
import { revokeSessions } from './admin/revoke-sessions'
import { type UserUpdate, updateUser } from './admin/update-user'
import { requirePasswords } from './config/has-passwords'
import { type AuthContext, trustedStore } from './context'
import { readRequestToken, signRequestToken } from './email-login/asking-browser'
import { confirmEmailLogin, type EmailLoginProof } from './email-login/confirm-email-login'
import { requestEmailLogin, requireEmailLogins } from './email-login/request-email-login'
import { EmailTakenError } from './errors'
import type { AuthEventName } from './events'
import type { Evidence } from './first-proof/evidence'
import { readTypedAddress } from './http/email-address'
import type { Locale } from './http/locale'
import { readReturnTo } from './http/return-to'
import { activate } from './local/activate'
import { type LoginInput, logIn } from './local/log-in'
import { sendActivation } from './local/request-activation'
import { sendPasswordReset } from './local/request-password-reset'
import { type ResetInput, resetPassword } from './local/reset-password'
import { type SignUpInput, sendFirstLink, signUp } from './local/sign-up'
import type { Postman } from './mail/postman'
import type { LinkToken } from './mailbox/email-link'
import { findByAddress } from './mailbox/find-by-address'
import type { AskedFrom } from './mailbox/issue-email-login'
import type { ACTIVATION_WITHHELD } from './mailbox/refuses-email-link'
import { changePasswordWithMfa, type PasswordChangeWithMfa } from './mfa/change-password'
import { type Confirmation, confirmTotp } from './mfa/confirm'
import { type Disabling, disableTotp, type Regeneration, regenerateRecoveryCodes } from './mfa/disable'
import { type Enrolment, type EnrolmentOptions, enrollTotp } from './mfa/enroll'
import { type Verification, verifyMfa } from './mfa/verify-challenge'
import { exchangeCode, type OAuthCodeExchange } from './oauth-code/exchange-code'
import { logInWithPasskey, type PasskeyLogin, passkeyLoginOptions } from './passkeys/log-in'
import { listPasskeys, removePasskey, renamePasskey } from './passkeys/manage'
import type { PasskeyOptions } from './passkeys/options'
import type { PublicPasskey } from './passkeys/public-passkey'
import { type PasskeyRegistration, passkeyRegistrationOptions, registerPasskey } from './passkeys/register'
import { passkeyReauthenticationOptions, passkeyStepOptions } from './passkeys/step-options'
import type { OAuthUser } from './providers/provider-client'
import { guardedTransaction } from './readiness/guarded-store'
import type { IssuedCode } from './reauthentication/confirmation-code'
import { type Reauthenticated, reauthenticateById, requestCodeById, type ServiceReauthentication } from './reauthentication/reauthenticate'
import { newLoginAttempt } from './session/announce-failed-login'
import { findLiveSession, type PublicSession, sessionsOf, toPublicSession } from './session/find-session'
import type { LoginResult, OpenSession, TokenPair } from './session/finish-login'
import { listSessions, revokeSession } from './session/list-sessions'
import { type LoggedOut, logOut, logOutSession } from './session/log-out'
import { logoutUrlOf } from './session/logout-url'
import { type LoginResultOf, openDelivered, openServerSession, openTokens, type SessionLoginResult } from './session/open-session'
import { refresh } from './session/refresh'
import type { SessionOrigin } from './session/start-session'
import { revokeOtherSessions } from './session-list/revoke-other-sessions'
import { listIdentities, unlinkIdentity } from './social/identities'
import { linkIdentity } from './social/link-identity'
import { redeemLinkTicket } from './social/link-ticket'
import { logInWithIdentity } from './social/log-in-with-identity'
import { linkWithToken, logInWithToken, type TokenInHand } from './social/token-in-hand'
import { findActiveUser } from './step-up/find-active-user'
import type { AuthStore, IdentityRecord, UserRecord } from './store/auth-store'
import type { HostTypes, WithFields } from './store/host-types'
import { type PublicUser, toPublicUser } from './store/public-user'
import { type UndoInput, type UndoResult, undoChanges } from './undo/undo-changes'
import type { PasskeyCreationOptions, PasskeyRequestOptions } from './webauthn/ceremonies'

/** A session that is alive, and whose it is. */
export interface FoundSession<Host extends HostTypes = HostTypes> {
  session: PublicSession
  user: WithFields<PublicUser, Host>
  /** It was moved on just now: send the cookie again, or the browser drops it at the end it knows. */
  hasSlid: boolean
}

/** What tells that the person who clicks a mailed link is the one who is in, or who signed up. */
export interface ProofOfPresence {
  /** A session of the account, which has to be alive. */
  sessionId?: string | undefined
  /** The account's password. A wrong one is refused. */
  password?: string | undefined
  /** `signup_token` of the signup. */
  signupToken?: string | undefined
  /** Of mails. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

export interface RequestedEmailLogin {
  /** Belongs to the code: `confirmEmailLogin({ code, requestToken })`. */
  requestToken: string
  url: string | null
  /** Eight digits. */
  code: string | null
  expiresAt: Date | null
}

export interface LogoutOptions {
  /** Ends every session of the account. Default false. */
  allSessions?: boolean
  /** True: returns where the browser ends its session at the provider, too. Default false. */
  providerLogout?: boolean
}

export interface ServiceLogout {
  /** Where the browser also ends its session at the provider; null: there is no such place, or the token named no session. */
  logoutUrl: string | null
}

/** A passkey in the place of a code comes with the `challenge` of `passkeyStepOptions({ userId, sessionId })` and that `sessionId`. */
export type ServiceEnrolment = Omit<EnrolmentOptions, 'session' | 'check'>

export interface ServicePasskeyRegistration extends Omit<PasskeyRegistration, 'session' | 'check'> {
  /** As in the options. */
  sessionId?: string | undefined
}

/**
 * The routes' operations without HTTP, for the host's jobs and transactions. They throw the same errors. A verb that logs somebody in returns
 * tokens, or with `tokenDelivery: 'session'` a server-side session (`createAuthRouter<{ delivery: 'session' }>` says so to the compiler); it
 * takes the `ip` and the `userAgent` that the person knows the session by, and `sessionToken`, the session that it takes the place of.
 */
export interface AuthService<Host extends HostTypes = HostTypes> {
  /**
   * The second item: the activation link, `ACTIVATION_WITHHELD` (`refusesEmailLink` matched: no link, and no active
   * account), or null for an account born active. A taken address is an EmailTakenError here, whatever a route says; so is the one of a
   * pending account.
   */
  signUp(input: SignUpInput): Promise<[WithFields<UserRecord, Host>, LinkToken | typeof ACTIVATION_WITHHELD | null]>
  /** Counts the address, and `client` when given. */
  logIn(input: LoginInput & SessionOrigin): Promise<LoginResultOf<Host>>
  /** `passwordRequired` in the result: the signup's password is gone, because nothing told that the signup was the owner's. */
  activate(token: string, options?: ProofOfPresence & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Null: no such account, or none that waits for its activation. */
  requestActivation(email: string, options?: { locale?: Locale }): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null>
  /** Null: no such account, or none that may have such a link. */
  requestPasswordReset(email: string, options?: { locale?: Locale }): Promise<LinkToken | null>
  resetPassword(input: ResetInput & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * Mails a link or a code to sign in with. `requestToken` belongs to the code. `url`, `code` and `expiresAt` null: nothing that signs
   * anybody in was mailed, because the address has no account that may. Counts the mails to the address alone.
   */
  requestEmailLogin(email: string, options?: { locale?: Locale; returnTo?: string } & AskedFrom): Promise<RequestedEmailLogin>
  /** By the link's token, or by the code and its `requestToken`. */
  confirmEmailLogin(
    proof: { token: string } | { code: string; requestToken: string },
    options?: ProofOfPresence & SessionOrigin,
  ): Promise<LoginResultOf<Host>>
  changePassword(input: PasswordChange): Promise<void>
  /** For an account that has no password. The session is yours to check. */
  setFirstPassword(input: FirstPassword): Promise<void>
  /** What `PATCH /me` does: the name, and writable fields of yours as `signup.schema` lets them through. */
  updateProfile(input: ProfileUpdate): Promise<WithFields<PublicUser, Host>>
  /** `profile.provider` is the registration key. Believes the profile: verify it first. */
  logInWithIdentity(profile: OAuthUser, options?: { locale?: Locale } & SessionOrigin): Promise<LoginResultOf<Host>>
  /** With a provider's access token, after the provider said that it was issued to this application, and to whom; or with an id_token, once. */
  logInWithToken(input: TokenInHand, options?: { locale?: Locale } & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Begins the session of an app's code from `redirect_to`, or answers with a challenge. */
  exchangeOAuthCode(input: OAuthCodeExchange): Promise<LoginResult>
  refresh(refreshToken: string): Promise<LoginResult>
  logOut(refreshToken: string, options: { allSessions?: boolean; providerLogout: true }): Promise<ServiceLogout>
  logOut(refreshToken: string, options?: LogoutOptions): Promise<void>
  /** Oldest first. */
  listIdentities(userId: string): Promise<IdentityRecord[]>
  unlinkIdentity(userId: string, provider: string, options?: { locale?: Locale }): Promise<void>
  /** Links any profile, so first verify that the account's owner requested it. If it is already linked, returns the identity unchanged. */
  linkIdentity(userId: string, profile: OAuthUser, options?: { locale?: Locale }): Promise<IdentityRecord>
  /** The same with a provider's access token or id_token, which has to be one of this application. */
  linkWithToken(userId: string, input: TokenInHand, options?: { locale?: Locale }): Promise<IdentityRecord>
  /** Links the identity of a ticket from the callback of a link. `sessionId`: the session that began it; null without a table of sessions. */
  redeemLinkTicket(
    userId: string,
    ticket: string,
    options: { sessionId: string | null; locale?: Locale | undefined },
  ): Promise<IdentityRecord>
  changePasswordWithMfa(input: PasswordChangeWithMfa): Promise<void>
  /** Shown once: a pending factor, which counts for nothing until `confirmTotp`. With a `code` or passkey it replaces the active one. */
  enrollTotp(userId: string, options?: ServiceEnrolment): Promise<Enrolment>
  /**
   * Makes a session fresh, by its person's password, code or passkey. The other verbs do not ask whether a session is fresh: that is for routes, so
   * decide yourself who may call them (docs/fresh-sessions.md).
   */
  reauthenticate(input: ServiceReauthentication): Promise<Reauthenticated>
  /**
   * Mails a code that confirms this session, for `reauthenticate({ emailCode })`, and returns it. Null: the address gets no more mails now.
   * An EmailNotVerifiedError, MfaRequiredError or EmailLinkForbiddenError where a mailed code does not count.
   */
  requestConfirmationCode(userId: string, sessionId: string, options?: { locale?: Locale }): Promise<IssuedCode | null>
  confirmTotp(input: Confirmation & SessionOrigin): Promise<LoginResultOf<Host>>
  verifyMfa(input: Verification & SessionOrigin): Promise<LoginResultOf<Host>>
  disableTotp(input: Disabling): Promise<void>
  regenerateRecoveryCodes(input: Regeneration): Promise<string[]>
  /** A link to the account's own address; null: nothing was sent. */
  requestEmailVerification(userId: string, options?: { locale?: Locale }): Promise<LinkToken | null>
  /** The first proof of an address takes the account over, unless the options tell that its owner is already in. */
  verifyEmail(token: string, options?: ProofOfPresence): Promise<VerificationResult>
  /** A link to the new address; null: it is taken, and its owner was told. */
  requestEmailChange(input: EmailChange, options?: { locale?: Locale }): Promise<LinkToken | null>
  /** Without options you answer for the person: let nobody change an address by a click alone. With them: as the route does. */
  changeEmail(token: string, options?: ProofOfPresence): Promise<void>
  /** By the link of a notice: takes the account back to what it was before the change, and ends everything else. */
  undoChanges(input: UndoInput): Promise<UndoResult>
  /** Ends every session of an account, of both kinds; how many were alive. */
  revokeSessions(userId: string, acting?: ActingAdmin): Promise<number>
  /** Closes an account, and everything that was open with it: sessions, challenges, links. */
  deactivate(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Activates a pending or deactivated account; this does not verify its address. This and the other methods that accept `{ by }` refuse
   * what an administrator may not do (docs/admin.md) only if `by` is given.
   */
  activateUser(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Takes the second factor off an account whose owner lost it; sessions end, and the owner is told. Passkeys stay, unless
   * `options.passkeys`. Where the host itself acts, `acting` is undefined.
   */
  resetMfa(userId: string, acting?: ActingAdmin, options?: MfaReset): Promise<void>
  /** Oldest first, a page at a time, by the filters of `GET /admin/users`. */
  listUsers(query?: UserListQuery): Promise<UserList<Host>>
  /** As administrators see it; null: there is no such account. */
  findUser(userId: string): Promise<WithFields<AdminUser, Host> | null>
  updateUser(userId: string, changes: UserUpdate, acting?: ActingAdmin): Promise<WithFields<AdminUser, Host>>
  /** `options` for `navigator.credentials.create()`; keep `challenge` for `registerPasskey`. With a `sessionId`, only that session may register. */
  passkeyRegistrationOptions(input: { userId: string; sessionId?: string | undefined }): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /** Adds a passkey without a check, so first verify that the account's owner requested it. The name has 1 to 64 characters. */
  registerPasskey(input: ServicePasskeyRegistration): Promise<PublicPasskey>
  /** `options` for `navigator.credentials.get()`, the same for everybody; keep `challenge` for `logInWithPasskey`. */
  passkeyLoginOptions(): Promise<PasskeyOptions<PasskeyRequestOptions>>
  /** Counts `client` when given. */
  logInWithPasskey(input: PasskeyLogin & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * `options` for `navigator.credentials.get()` with a passkey of that account; keep `challenge`. With an `mfaToken` it is for `verifyMfa`, with
   * a session for `reauthenticate` and for changes that take a passkey in the place of a code. An MfaNotEnrolledError: the account has no passkey.
   */
  passkeyStepOptions(
    input: { mfaToken: string } | { userId: string; sessionId?: string | undefined },
  ): Promise<PasskeyOptions<PasskeyRequestOptions>>
  /** Oldest first. */
  listPasskeys(userId: string): Promise<PublicPasskey[]>
  /** A NotFoundError unless it is this account's. The name has 1 to 64 characters. */
  renamePasskey(userId: string, passkeyId: string, name: string): Promise<PublicPasskey>
  removePasskey(userId: string, passkeyId: string, options?: { locale?: Locale }): Promise<void>
  /** `logIn` into a server-side session: put `sessionToken` in the session cookie, and nowhere else. */
  logInToSession(input: LoginInput & SessionOrigin): Promise<SessionLoginResult>
  /** `verifyMfa` into a server-side session, whichever login the challenge is of. */
  verifyMfaToSession(input: Verification & SessionOrigin): Promise<SessionLoginResult>
  /** By the session cookie's value; null: there is no such live session. Moves it on, as `requireSession` does. */
  findSession(sessionToken: string): Promise<FoundSession<Host> | null>
  /** The living sessions of an account, of both kinds; the one that was used last is first. */
  listSessions(userId: string): Promise<PublicSession[]>
  /** Ends one of them; a NotFoundError unless it is this account's. */
  revokeSession(userId: string, sessionId: string): Promise<void>
  /** Ends all of them but one, which has to be alive and this account's; else an InvalidTokenError. Returns how many ended. */
  revokeOtherSessions(userId: string, sessionId: string): Promise<number>
  /** By the session cookie's value; silent about one nobody knows. */
  logOutSession(sessionToken: string, options: { allSessions?: boolean; providerLogout: true }): Promise<ServiceLogout>
  logOutSession(sessionToken: string, options?: LogoutOptions): Promise<void>
  /**
   * The same operations inside the host's own transaction: `service.using(store.using(trx))`. The host commits or rolls
   * back, also what a refusal would have kept. Events and mails wait for the host's commit, and are dropped with its
   * rollback, where the store says when that is (`afterCommit`); refusals are told at once.
   */
  using(store: AuthStore): AuthService<Host>
}

export function createService(ctx: AuthContext): AuthService {
  const localeOf = (options?: { locale?: Locale | undefined }) => options?.locale ?? ctx.settings.defaultLocale
  // What the host says of its delivery.
  const open = (origin: SessionOrigin) => openDelivered(ctx, origin) as OpenSession<TokenPair>
  /** For the verbs of a password, which have no route while `passwordLogin` is off. */
  const takingPasswords = () => {
    requirePasswords(ctx.settings)
    return ctx
  }
  const ownerOf = (email: string) => findByAddress(ctx, readTypedAddress(email))
  return {
    async signUp(input) {
      const signup = await signUp(ctx, { ...input, mayRepeat: false }, null)
      if (signup.kind === 'taken' || signup.kind === 'unchanged') throw new EmailTakenError()
      if (signup.kind === 'refused') throw signup.error
      return [signup.user, await sendFirstLink(ctx, signup, localeOf(input))]
    },
    logIn: async (input) => logIn(takingPasswords(), input, open(input)),
    activate: async (token, options = {}) =>
      activate(ctx, token, open(options), { evidence: evidenceFrom(ctx, options), locale: options.locale }),
    requestActivation: async (email, options) => sendActivation(ctx, await ownerOf(email), localeOf(options)),
    requestPasswordReset: async (email, options) => sendPasswordReset(takingPasswords(), await ownerOf(email), localeOf(options)),
    resetPassword: async (input) => resetPassword(takingPasswords(), input, open(input)),
    requestEmailLogin: (email, options = {}) => requestByService(ctx, readTypedAddress(email), { ...options, locale: localeOf(options) }),
    confirmEmailLogin: async (proof, options = {}) => {
      const attempt = newLoginAttempt(null)
      const evidence = evidenceFrom(ctx, options)
      return confirmEmailLogin(ctx, proofOf(ctx, proof), open(options), { evidence, locale: options.locale, attempt })
    },
    changePassword: async (input) => changePassword(takingPasswords(), input),
    setFirstPassword: async (input) => setFirstPassword(takingPasswords(), input),
    updateProfile: (input) => updateProfile(ctx, input),
    changePasswordWithMfa: async (input) => changePasswordWithMfa(takingPasswords(), input),
    enrollTotp: (userId, { session: _, check: __, ...options }: EnrolmentOptions = {}) => enrollTotp(ctx, userId, options),
    reauthenticate: (input) => reauthenticateById(ctx, input),
    requestConfirmationCode: (userId, sessionId, options) => requestCodeById(ctx, { userId, sessionId, locale: localeOf(options) }),
    confirmTotp: (input) => confirmTotp(ctx, input, open(input)),
    verifyMfa: (input) => verifyMfa(ctx, input, open(input)),
    disableTotp: (input) => disableTotp(ctx, input),
    regenerateRecoveryCodes: (input) => regenerateRecoveryCodes(ctx, input),
    requestEmailVerification: async (userId, options) => sendEmailVerification(ctx, await findActiveUser(ctx, userId), localeOf(options)),
    verifyEmail: async (token, options = {}) =>
      confirmEmail(ctx, token, { evidence: evidenceFrom(ctx, options), locale: localeOf(options) }),
    requestEmailChange: async (input, options) => sendEmailChange(ctx, await proveEmailChange(ctx, input), localeOf(options)),
    changeEmail: async (token, options) =>
      confirmEmailChange(ctx, token, { evidence: options && evidenceFrom(ctx, options), locale: options?.locale }),
    undoChanges: (input) => undoChanges(ctx, input),
    revokeSessions: async (userId, acting) => revokeSessions(ctx, userId, requireNamed(acting)),
    deactivate: async (userId, acting) => deactivate(ctx, userId, requireNamed(acting)),
    activateUser: async (userId, acting) => activateUser(ctx, userId, requireNamed(acting)),
    resetMfa: async (userId, acting, options) => resetMfa(ctx, userId, requireNamed(acting), options),
    listUsers: (query) => listUsers(ctx, query),
    findUser: (userId) => findUser(ctx, userId),
    updateUser: async (userId, changes, acting) => updateUser(ctx, userId, changes, requireNamed(acting)),
    logInWithIdentity: (profile, options = {}) => logInWithIdentity(ctx, profile, open(options), { locale: localeOf(options) }),
    logInWithToken: (input, options = {}) => logInWithToken(ctx, input, open(options), { locale: localeOf(options) }),
    exchangeOAuthCode: (input) => exchangeCode(ctx, input, openTokens()),
    refresh: (refreshToken) => refresh(ctx, refreshToken),
    logOut: (async (refreshToken: string, options?: LogoutOptions) =>
      leadingOn(ctx, await logOut(ctx, refreshToken, options), options)) as AuthService['logOut'],
    listIdentities: (userId) => listIdentities(ctx, userId),
    unlinkIdentity: (userId, provider, options) => unlinkIdentity(ctx, userId, provider, options),
    linkIdentity: async (userId, profile, options) => (await linkIdentity(ctx, userId, profile, { locale: options?.locale })).identity,
    redeemLinkTicket: async (userId, ticket, { sessionId, locale }) =>
      (await redeemLinkTicket(ctx, { owner: { userId, sessionId }, ticket, locale })).identity,
    linkWithToken: async (userId, input, options) => (await linkWithToken(ctx, userId, input, { locale: options?.locale })).identity,
    passkeyRegistrationOptions: async ({ userId, sessionId }) =>
      passkeyRegistrationOptions(ctx, { userId, session: sessionNamed(userId, sessionId) }),
    registerPasskey: ({ sessionId, ...input }) => registerPasskey(ctx, { ...input, session: sessionNamed(input.userId, sessionId) }),
    passkeyLoginOptions: async () => passkeyLoginOptions(ctx),
    logInWithPasskey: (input) => logInWithPasskey(ctx, input, open(input)),
    passkeyStepOptions: async (input) => {
      if ('mfaToken' in input) return passkeyStepOptions(ctx, input.mfaToken)
      return passkeyReauthenticationOptions(ctx, { userId: input.userId, session: sessionNamed(input.userId, input.sessionId) })
    },
    listPasskeys: (userId) => listPasskeys(ctx, userId),
    renamePasskey: (userId, passkeyId, name) => renamePasskey(ctx, userId, passkeyId, name),
    removePasskey: (userId, passkeyId, options) => removePasskey(ctx, userId, passkeyId, { locale: options?.locale }),
    logInToSession: async (input) => logIn(takingPasswords(), input, openServerSession(input)),
    verifyMfaToSession: (input) => verifyMfa(ctx, input, openServerSession(input)),
    findSession: (sessionToken) => findSession(ctx, sessionToken),
    listSessions: (userId) => listSessions(ctx, userId),
    revokeSession: (userId, sessionId) => revokeSession(ctx, userId, sessionId),
    revokeOtherSessions: (userId, sessionId) => revokeOtherSessions(ctx, { id: sessionId, userId }),
    logOutSession: (async (sessionToken: string, options?: LogoutOptions) =>
      leadingOn(ctx, await logOutSession(ctx, sessionToken, options), options)) as AuthService['logOutSession'],
    using: (store) => createService(insideHostTransaction(ctx, store)),
  }
}

async function requestByService(
  ctx: AuthContext,
  email: string,
  { locale, returnTo = undefined, ...origin }: AskedFrom & { locale: Locale; returnTo?: string },
): Promise<RequestedEmailLogin> {
  const id = randomUUID()
  const destination = readReturnTo(ctx.settings, returnTo === undefined ? [] : [returnTo])
  requireEmailLogins(ctx)
  const issued = await requestEmailLogin(ctx, { id, email, returnTo: destination, locale, device: null, earlierId: null, ...origin })
  const { url = null, code = null, expiresAt = null } = issued ?? {}
  return { requestToken: signRequestToken(ctx, id), url, code, expiresAt }
}

function proofOf(ctx: AuthContext, proof: { token: string } | { code: string; requestToken: string }): EmailLoginProof {
  return 'token' in proof ? proof : { code: proof.code, requestId: readRequestToken(ctx, proof.requestToken) }
}

function sessionNamed(userId: string, id: string | undefined) {
  return id === undefined ? null : { id, userId }
}

function evidenceFrom({ settings }: AuthContext, { sessionId, password, signupToken }: ProofOfPresence): Evidence {
  if (password !== undefined) requirePasswords(settings)
  const [sessionIds, bindings] = [sessionId, signupToken].map((one) => (one === undefined ? [] : [one]))
  return { sessionIds, bindings, password }
}

async function findSession(ctx: AuthContext, sessionToken: string): Promise<FoundSession | null> {
  const lookUp = { ...ctx, sessions: sessionsOf(ctx.store), sessionTokenKeys: ctx.keys['session-token'] }
  const found = await findLiveSession(lookUp, sessionToken)
  return found && { session: toPublicSession(found.session), user: toPublicUser(found.user), hasSlid: found.hasSlid }
}

/** What did not happen is true whatever becomes of the transaction. */
const refusals: ReadonlySet<AuthEventName> = new Set([
  'throttled',
  'login.failed',
  'refresh.reused',
  'provider.failed',
  'mail.failed',
  'mfa.failed',
])

function insideHostTransaction(ctx: AuthContext, hostStore: AuthStore): AuthContext {
  const trusted = trustedStore(hostStore, ctx.logger)
  const store = ctx.readiness ? guardedTransaction(trusted, ctx.readiness) : trusted
  const { afterCommit } = store
  if (!afterCommit) return { ...ctx, store }
  const { events, postman } = ctx
  const emit: typeof events.emit = (name, payload) =>
    refusals.has(name) ? events.emit(name, payload) : afterCommit(() => events.emit(name, payload))
  return {
    ...ctx,
    store,
    events: { ...events, emit },
    postman: postman && postmanAfterCommit(postman, afterCommit),
  }
}

/** Nobody says when the host rolls back, so a place is asked for and given back at once: what is posted in it waits for the commit. */
function postmanAfterCommit(postman: Postman, afterCommit: (effect: () => void) => void): Postman {
  return {
    ...postman,
    post: (...mail) => afterCommit(() => postman.post(...mail)),
    reserve() {
      const isRoom = postman.reserve()
      isRoom?.release()
      let isUsed = false
      return (
        isRoom && {
          post(mail, userId) {
            if (!isUsed) afterCommit(() => (postman.reserve() ?? postman).post(mail, userId))
            isUsed = true
          },
          release() {
            isUsed = true
          },
        }
      )
    },
  }
}

function leadingOn(ctx: AuthContext, { provider }: LoggedOut, options: LogoutOptions = {}): ServiceLogout | undefined {
  return options.providerLogout ? { logoutUrl: logoutUrlOf(ctx, provider) } : undefined
}
