import { randomUUID } from 'node:crypto'
import { activate } from '../accounts/activate'
import { deleteUser } from '../accounts/deletion/delete-account'
import { type AccountExport, exportAccount } from '../accounts/deletion/export-account'
import { restoreAccount } from '../accounts/deletion/restore-account'
import { confirmEmailChange, type EmailChange, requireAsker, sendEmailChange, verifyEmailChange } from '../accounts/email-change'
import { type ACTIVATION_WITHHELD, findByAddress, type LinkToken } from '../accounts/email-links/email-link'
import type { AskedFrom } from '../accounts/email-links/issue-email-login'
import { confirmEmailLogin, type EmailLoginProof } from '../accounts/email-login/confirm-email-login'
import { readRequestToken, requestEmailLogin, requireEmailLogins, signRequestToken } from '../accounts/email-login/request-email-login'
import { newSignupToken } from '../accounts/email-verification/signup-binding'
import type { SignupOwnership } from '../accounts/email-verification/signup-ownership'
import { type CodeRequest, newCodeRequest, signCodeToken } from '../accounts/mailed-codes/code-request'
import { type CodeProof, presentedByHost, redeem, withSignup } from '../accounts/mailed-codes/redeem-code'
import { changePassword, type FirstPassword, type PasswordChange, setFirstPassword } from '../accounts/password-change'
import { type LoginInput, logIn } from '../accounts/password-login'
import { sendActivation, sendPasswordReset } from '../accounts/request-link'
import { type ResetByHost, resetPassword } from '../accounts/reset-password'
import { type SignUpInput, sendFirstLink, signUp } from '../accounts/sign-up'
import { type UndoInput, type UndoResult, undoChanges } from '../accounts/undo/undo-changes'
import { type ProfileUpdate, updateProfile } from '../accounts/update-profile'
import { confirmEmail, sendEmailVerification, type VerificationResult } from '../accounts/verify-email'
import {
  type ActingAdmin,
  type AdminUser,
  activateUser,
  approve,
  deactivate,
  decline,
  findUser,
  type MfaReset,
  requireNamed,
  resetMfa,
  revokeSessions,
  type UserUpdate,
  updateUser,
} from '../admin/change-user'
import { listUsers, type UserList, type UserListQuery } from '../admin/list-users'
import { type AuthContext, trustedStore } from '../context'
import { clientKey } from '../core/client-key'
import { requirePasswords } from '../core/config/every-setting'
import { ConfigurationError, EmailTakenError } from '../core/errors'
import type { AuthEventName } from '../core/events'
import { readTypedAddress } from '../http/email-address'
import type { Locale } from '../http/locale'
import { readReturnTo } from '../http/return-to'
import { type InvitationService, invitationService } from '../invitations/invitation-service'
import { expirePassword, type PasswordExpiry } from '../login-tasks/expire-password'
import {
  beginSecondFactor,
  completeTask,
  confirmDevice,
  finishSecondFactor,
  resendDeviceCode,
  setNewPassword,
  type TaskStep,
} from '../login-tasks/steps'
import type { MailQueue } from '../mail/mail-queue'
import { listPasskeys, removePasskey, renamePasskey } from '../passkeys/manage'
import type { PasskeyOptions } from '../passkeys/passkey-challenge'
import { logInWithPasskey, type PasskeyLogin, passkeyLoginOptions } from '../passkeys/passkey-login'
import { type PasskeyRegistration, type PublicPasskey, passkeyRegistrationOptions, registerPasskey } from '../passkeys/register'
import { passkeySignupOptions } from '../passkeys/sign-up'
import { passkeyReauthenticationOptions, passkeyStepOptions } from '../passkeys/step-route'
import type { PresentedPasskey } from '../passkeys/verify-passkey'
import type { PasskeyCreationOptions, PasskeyRequestOptions } from '../passkeys/webauthn/ceremonies'
import type { OAuthUser } from '../providers/provider-client'
import { changePasswordWithMfa, type PasswordChangeWithMfa } from '../second-factor/change-password'
import { type Confirmation, confirmTotp } from '../second-factor/confirm'
import { type Disabling, disableTotp, type Regeneration, regenerateRecoveryCodes } from '../second-factor/disable'
import { type Enrolment, type EnrolmentOptions, enrollTotp } from '../second-factor/enroll'
import { type ChallengeVerification, verifyMfa } from '../second-factor/verify-challenge'
import { newLoginAttempt } from '../sessions/devices/login-limits'
import { findLiveSession, type PublicSession, sessionsOf, toPublicSession } from '../sessions/find-session'
import { listSessions, revokeSession } from '../sessions/list-routes'
import { type LoggedOut, logOut, logOutSession, revokeOtherSessions } from '../sessions/log-out'
import { logoutUrlOf } from '../sessions/log-out-request'
import type { AnyLoginResult, LoginClient, LoginResult, LoginResultOf, SessionLoginResult, SessionOrigin } from '../sessions/login'
import type { OpenSessionOptions } from '../sessions/open-session'
import type { ConfirmationCode } from '../sessions/reauthentication/confirmation-code'
import {
  type Reauthenticated,
  reauthenticateById,
  requestCodeById,
  type ServiceReauthentication,
} from '../sessions/reauthentication/reauthenticate'
import { findActiveUser } from '../sessions/reauthentication/request-session'
import { refresh } from '../sessions/refresh'
import { announcingEnds } from '../sessions/session-ends'
import { exchangeCode, type OAuthCodeExchange } from '../social/app-redirect/exchange-code'
import { listIdentities, unlinkIdentity } from '../social/identities'
import { linkIdentity, redeemLinkTicket } from '../social/link-identity'
import { logInWithIdentity } from '../social/log-in-with-identity'
import { linkWithToken, logInWithToken, type TokenInHand } from '../social/token-in-hand'
import type { AuthStore, IdentityRecord, UserRecord } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/user-records'
import { listTrustedDevices, type PublicTrustedDevice, removeTrustedDevice } from '../trusted-devices/routes'
import { guardedTransaction } from './findings/readiness/readiness'

/** A live session and its user. */
export interface FoundSession<Host extends HostTypes = HostTypes> {
  session: PublicSession
  user: WithFields<PublicUser, Host>
  /**
   * True: the call just extended the session. Send the cookie again, because otherwise the browser drops the cookie at the old end of the
   * session.
   */
  hasSlid: boolean
}

/** Shows that the person who opened a mailed link is logged in already, or is the person who signed up. */
export interface ProofOfPresence {
  /** A live session of the account. */
  sessionId?: string | undefined
  /** The account's password. A wrong password is rejected. */
  password?: string | undefined
  /** The `signup_token` that the sign-up returned. */
  signupToken?: string | undefined
  /** The language of mails. Default: `defaultLocale`. */
  locale?: Locale | undefined
}

export interface RequestedEmailLogin {
  /** Pass this token together with the code: `confirmEmailLogin({ code, requestToken })`. */
  requestToken: string
  url: string | null
  /** Eight digits. Null: no code was mailed. */
  code: string | null
  expiresAt: Date | null
}

/** For a login that can create an account. */
export interface WithInvitation {
  /** The token of an invitation. Required for a new account with `signupMode: 'invite'`. */
  invitation?: string | null | undefined
}

export interface LogoutOptions {
  /** Revokes every session of the account. Default false. */
  allSessions?: boolean
  /** True: the method returns the URL where the browser also ends its session at the provider. Default false. */
  providerLogout?: boolean
}

export interface ServiceLogout {
  /**
   * The URL where the browser also ends its session at the provider. Null: the provider has no such URL, or the token identified no
   * session.
   */
  logoutUrl: string | null
}

/**
 * Options of `enrollTotp`. To use a passkey instead of a code, call `passkeyStepOptions({ userId, sessionId })` first. Then pass the same
 * `sessionId`, the `challenge` and the `credential`.
 */
export type ServiceEnrolment = Omit<EnrolmentOptions, 'session' | 'check'>

export interface ServicePasskeyRegistration extends Omit<PasskeyRegistration, 'session' | 'check'> {
  /** The `sessionId` that you passed to `passkeyRegistrationOptions`. */
  sessionId?: string | undefined
}

/**
 * The operations of the routes without HTTP, for the host's jobs and transactions. The methods throw the errors of the routes. A method
 * that logs a person in returns tokens. With `tokenDelivery: 'session'`, the method returns a server-side session. `createAuthRouter<{
 * delivery: 'session' }>` declares that type to the compiler.
 *
 * A method that logs a person in also takes `ip`, `userAgent` and `sessionToken`. The person sees `ip` and `userAgent` in the list of
 * sessions. `sessionToken` identifies the session that the new session replaces.
 */
export interface AuthService<Host extends HostTypes = HostTypes> {
  /**
   * Signs a person up. The second item is the activation link. If `refusesEmailLink` returned true, the second item is
   * `ACTIVATION_WITHHELD`: no link was made and the account is not active. If the account is active at once, the second item is null.
   * @throws EmailTakenError if any account has the address, even a pending account. The route can respond differently
   */
  signUp(input: SignUpInput): Promise<[WithFields<UserRecord, Host>, LinkToken | typeof ACTIVATION_WITHHELD | null]>
  /**
   * Returns `options` for `navigator.credentials.create()`, which are for this address. Keep `challenge` for `signUpWithPasskey`.
   * @throws ConfigurationError if `signupWith` does not have `passkey`
   */
  passkeySignupOptions(input: { email: string; name?: string | null }): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /**
   * Like `signUp`, with a new passkey instead of a password. `credential` is the result of `navigator.credentials.create()`. The passkey
   * works from the activation on.
   * @throws EmailTakenError as `signUp`; PasskeyInvalidError
   */
  signUpWithPasskey(input: Omit<SignUpInput, 'password'> & PresentedPasskey): ReturnType<AuthService<Host>['signUp']>
  /**
   * Logs a person in by password. Counts against the rate limit of the address. If `client` is given, counts against the client's limit
   * too.
   */
  logIn(input: LoginInput & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * Activates an account by the link's token, or by the code and the `requestToken` of its link. If the result has `passwordRequired`, the
   * activation removed the password of the sign-up, because no evidence showed that the owner of the address had signed up. `credential`
   * and `challenge` are evidence: the passkey of the sign-up has signed the options of `passkeyLoginOptions`.
   */
  activate(proof: string | CodeProof, options?: ProofOfPresence & Partial<PresentedPasskey> & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Mails an activation link and returns the link. Returns null if no account with this address waits for its activation. */
  requestActivation(email: string, options?: { locale?: Locale }): Promise<LinkToken | typeof ACTIVATION_WITHHELD | null>
  /** Mails a reset link and returns the link. Returns null if no account with this address may have a reset link. */
  requestPasswordReset(email: string, options?: { locale?: Locale }): Promise<LinkToken | null>
  /** Sets a new password by the link's token, or by the code and the `requestToken` of its link. */
  resetPassword(input: ResetByHost & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * Mails a link or a code to log in with. `requestToken` belongs to the code. If no account with this address may log in by email, nothing
   * is mailed. `url`, `code` and `expiresAt` are then null. Counts only against the rate limit of mails to the address.
   */
  requestEmailLogin(
    email: string,
    options?: { locale?: Locale; returnTo?: string } & AskedFrom & WithInvitation,
  ): Promise<RequestedEmailLogin>
  /** Logs a person in by the link's token, or by the code and its `requestToken`. */
  confirmEmailLogin(
    proof: { token: string } | { code: string; requestToken: string },
    options?: ProofOfPresence & SessionOrigin,
  ): Promise<LoginResultOf<Host>>
  changePassword(input: PasswordChange): Promise<void>
  /** Sets the password of an account without a password. Verify the session before the call. */
  setFirstPassword(input: FirstPassword): Promise<void>
  /** Changes the name and your writable fields, as `PATCH /me` does. `signup.schema` validates the fields. */
  updateProfile(input: ProfileUpdate): Promise<WithFields<PublicUser, Host>>
  /**
   * Logs a person in with a provider's profile. The method trusts the profile, so verify the profile first. `profile.provider` is the
   * registration key.
   */
  logInWithIdentity(profile: OAuthUser, options?: { locale?: Locale } & WithInvitation & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * Logs a person in with a provider's token. For an access token, the method asks the provider which application and which person the
   * token belongs to. An id_token works once.
   */
  logInWithToken(input: TokenInHand, options?: { locale?: Locale } & WithInvitation & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Starts the session for the one-time code that an app got at `redirect_to`, or returns a challenge. */
  exchangeOAuthCode(input: OAuthCodeExchange): Promise<LoginResult>
  /**
   * Opens a session for a person whom you authenticated yourself, for example by SAML. It is a login: the second factor, the tasks of a login
   * and the limit of sessions hold. The limits of logins do not.
   * @throws TypeError for wrong options; NotFoundError; AccountInactiveError; ApprovalPendingError; DeletionPendingError
   */
  openSession(userId: string, options?: OpenSessionOptions & SessionOrigin): Promise<LoginResultOf<Host>>
  refresh(refreshToken: string): Promise<LoginResult>
  logOut(refreshToken: string, options: { allSessions?: boolean; providerLogout: true }): Promise<ServiceLogout>
  logOut(refreshToken: string, options?: LogoutOptions): Promise<void>
  /** Returns the linked identities, oldest first. */
  listIdentities(userId: string): Promise<IdentityRecord[]>
  unlinkIdentity(userId: string, provider: string, options?: { locale?: Locale }): Promise<void>
  /**
   * Links any profile, so first verify that the account's owner requested the link. If the identity is already linked, returns the identity
   * unchanged.
   */
  linkIdentity(userId: string, profile: OAuthUser, options?: { locale?: Locale }): Promise<IdentityRecord>
  /** Like `linkIdentity`, with a provider's access token or id_token. The token must have been issued to this application. */
  linkWithToken(userId: string, input: TokenInHand, options?: { locale?: Locale }): Promise<IdentityRecord>
  /**
   * Links the identity of a ticket that the callback of a link returned. `sessionId` is the session that started the link. Pass null if the
   * store keeps no sessions.
   */
  redeemLinkTicket(
    userId: string,
    ticket: string,
    options: { sessionId: string | null; locale?: Locale | undefined },
  ): Promise<IdentityRecord>
  changePasswordWithMfa(input: PasswordChangeWithMfa): Promise<void>
  /**
   * Creates a pending factor and returns its secret. The secret cannot be read again. The factor has no effect until `confirmTotp`. With a
   * `code` or a passkey, `confirmTotp` then replaces the active factor.
   */
  enrollTotp(userId: string, options?: ServiceEnrolment): Promise<Enrolment>
  /**
   * Makes a session fresh with the person's password, code or passkey. Some routes require a fresh session, but the methods of this service
   * do not check that. You decide who may call these methods (docs/fresh-sessions.md).
   */
  reauthenticate(input: ServiceReauthentication): Promise<Reauthenticated>
  /**
   * Mails a code that confirms this session, for `reauthenticate({ emailCode })`. Returns the code, or null if the address may get no
   * further mail now.
   */
  requestConfirmationCode(userId: string, sessionId: string, options?: { locale?: Locale }): Promise<ConfirmationCode | null>
  confirmTotp(input: Confirmation & SessionOrigin): Promise<LoginResultOf<Host>>
  verifyMfa(input: ChallengeVerification & SessionOrigin): Promise<LoginResultOf<Host>>
  /** The mailed code of the task `device`, for a login that owes it. Each of these six methods does one task of a login. */
  confirmDevice(input: TaskStep & { code: string } & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Mails another code. The old token and the old code end. */
  resendDeviceCode(input: TaskStep & SessionOrigin): Promise<{ taskToken: string }>
  /** The task `new_password`. */
  setNewPassword(input: TaskStep & { newPassword: string } & SessionOrigin): Promise<LoginResultOf<Host>>
  /** Begins the task `second_factor`. The token stays valid, and only this login can confirm the factor. */
  beginSecondFactor(input: TaskStep): Promise<Enrolment>
  finishSecondFactor(input: TaskStep & { code: string } & SessionOrigin): Promise<LoginResultOf<Host>>
  /** A task of your own. `complete` gets `body`. */
  completeTask(key: string, input: TaskStep & { body?: object | undefined } & SessionOrigin): Promise<LoginResultOf<Host>>
  disableTotp(input: Disabling): Promise<void>
  regenerateRecoveryCodes(input: Regeneration): Promise<string[]>
  /** Mails a verification link to the account's own address and returns the link. Returns null if no mail was sent. */
  requestEmailVerification(userId: string, options?: { locale?: Locale }): Promise<LinkToken | null>
  /**
   * Verifies an address by the link's token, or by the code and the `requestToken` of its link. The first verification takes the account over, unless the options show that the owner is
   * logged in. A take-over removes everything that an attacker may have added.
   */
  verifyEmail(proof: string | CodeProof, options?: ProofOfPresence): Promise<VerificationResult>
  /**
   * Mails a link to the new address and returns the link. Returns null if no link was mailed. If another account has the new address, the
   * owner of that account gets a notice. With `session`, the change belongs to that session: it ends with the session, and only that
   * session or the account's password can finish it. Without `session`, the route takes the link; pass the code to `changeEmail` yourself.
   */
  requestEmailChange(input: EmailChange, options?: { locale?: Locale }): Promise<LinkToken | null>
  /**
   * Changes the address by the link's token, or by the code and the `requestToken` of its link. Without options, verify the person yourself, because a click alone must not change an address.
   * With options, the method checks what the route checks. If the session that requested the change has ended, the link is invalid.
   */
  changeEmail(proof: string | CodeProof, options?: ProofOfPresence): Promise<void>
  /**
   * Undoes changes by the link of a notice. Restores the account's address and second factor, and removes what was added since. Invalidates
   * the password, every session and every link.
   */
  undoChanges(input: UndoInput): Promise<UndoResult>
  /** Revokes every session of an account: token sessions and server-side sessions. Returns how many sessions were live. */
  revokeSessions(userId: string, acting?: ActingAdmin): Promise<number>
  /** Deactivates an account and revokes its sessions, challenges and links. */
  deactivate(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Activates a pending or deactivated account. Does not verify the address. Each method that accepts `{ by }` checks what this
   * administrator may do (docs/admin.md). Without `by`, the methods check no administrator.
   */
  activateUser(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Approves an account that waits for an administrator (`signupMode: 'approve'`). The person gets a mail.
   * @throws NotFoundError, ConflictError for an account that does not wait; ForbiddenError if `by` is not an active administrator
   */
  approve(userId: string, acting?: ActingAdmin): Promise<void>
  /** Declines an account that waits. It stays deactivated, and the person gets a mail. @throws the errors of `approve` */
  decline(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Removes the second factor of an account, for an owner who lost the factor. Revokes the account's sessions and sends the owner a notice.
   * `options.passkeys` also removes passkeys. Leave `acting` out if no administrator acts.
   */
  resetMfa(userId: string, acting?: ActingAdmin, options?: MfaReset): Promise<void>
  /**
   * Makes the password good only for a login that then sets a new one (the task `new_password`). Revokes the account's sessions, unless
   * `keepSessions`. Needs `newPasswordTask()` in the option `loginTasks`.
   */
  expirePassword(userId: string, options?: PasswordExpiry): Promise<void>
  /**
   * Deletes an account at once, with everything in it.
   * @throws NotFoundError; ConflictError for the last administrator, and if a row of your tables refers to the account; what `onDelete` throws.
   * With `by`: ForbiddenError unless that is an administrator, ConflictError if it is the account itself
   */
  deleteUser(userId: string, acting?: ActingAdmin): Promise<void>
  /**
   * Opens an account that waits for its deletion. `token` is of the mail, or of the answer to a right login.
   * @throws InvalidTokenError
   */
  restoreAccount(token: string): Promise<void>
  /**
   * Returns what doorward and your app know of a person, as the route `/account/export` does.
   * @throws NotFoundError; ServiceUnavailableError if `onExport` fails
   */
  exportUser(userId: string): Promise<AccountExport>
  /** Returns accounts by page, oldest first, with the filters of `GET /admin/users`. */
  listUsers(query?: UserListQuery): Promise<UserList<Host>>
  /** Returns an account as administrators see it. Returns null if no such account exists. */
  findUser(userId: string): Promise<WithFields<AdminUser, Host> | null>
  updateUser(userId: string, changes: UserUpdate, acting?: ActingAdmin): Promise<WithFields<AdminUser, Host>>
  /**
   * Returns `options` for `navigator.credentials.create()`. Keep `challenge` for `registerPasskey`. With a `sessionId`, only that session
   * may register.
   */
  passkeyRegistrationOptions(input: { userId: string; sessionId?: string | undefined }): Promise<PasskeyOptions<PasskeyCreationOptions>>
  /** Adds a passkey without a check, so first verify that the account's owner requested the passkey. The name has 1 to 64 characters. */
  registerPasskey(input: ServicePasskeyRegistration): Promise<PublicPasskey>
  /**
   * Returns `options` for `navigator.credentials.get()`. Except for the challenge, the options are the same for everyone. Keep `challenge`
   * for `logInWithPasskey`.
   */
  passkeyLoginOptions(): Promise<PasskeyOptions<PasskeyRequestOptions>>
  /** Logs a person in with a passkey. If `client` is given, counts against the client's rate limit. */
  logInWithPasskey(input: PasskeyLogin & SessionOrigin): Promise<LoginResultOf<Host>>
  /**
   * Returns `options` for `navigator.credentials.get()` with a passkey of the account. Keep `challenge`. With an `mfaToken`, the challenge
   * is for `verifyMfa`. With a session, the challenge is for `reauthenticate`, and for changes that accept a passkey instead of a code.
   * @throws MfaNotEnrolledError if the account has no passkey
   */
  passkeyStepOptions(
    input: { mfaToken: string } | { userId: string; sessionId?: string | undefined },
  ): Promise<PasskeyOptions<PasskeyRequestOptions>>
  /** Returns the passkeys of an account, oldest first. */
  listPasskeys(userId: string): Promise<PublicPasskey[]>
  /**
   * Renames a passkey. The name has 1 to 64 characters.
   * @throws NotFoundError unless the passkey belongs to this account
   */
  renamePasskey(userId: string, passkeyId: string, name: string): Promise<PublicPasskey>
  removePasskey(userId: string, passkeyId: string, options?: { locale?: Locale }): Promise<void>
  /** Like `logIn`, but starts a server-side session. Put `sessionToken` only into the session cookie. */
  logInToSession(input: LoginInput & SessionOrigin): Promise<SessionLoginResult>
  /** Like `verifyMfa`, but starts a server-side session, for the challenge of any login. */
  verifyMfaToSession(input: ChallengeVerification & SessionOrigin): Promise<SessionLoginResult>
  /**
   * Returns the session of a cookie's value, and extends the session as `requireSession` does. Returns null if no live session has this
   * value.
   */
  findSession(sessionToken: string): Promise<FoundSession<Host> | null>
  /** Returns the live sessions of an account: token sessions and server-side sessions. The session that was used last comes first. */
  listSessions(userId: string): Promise<PublicSession[]>
  /**
   * Revokes a session.
   * @throws NotFoundError unless the session belongs to this account
   */
  revokeSession(userId: string, sessionId: string): Promise<void>
  /**
   * Revokes all sessions of an account except one. Returns how many sessions were revoked.
   * @throws InvalidTokenError unless `sessionId` is a live session of this account
   */
  revokeOtherSessions(userId: string, sessionId: string): Promise<number>
  /**
   * Returns the trusted browsers of an account, newest first.
   * @throws ConfigurationError if `trustedDeviceDays` is 0
   */
  listTrustedDevices(userId: string): Promise<PublicTrustedDevice[]>
  /**
   * Stops trusting a browser. Its next login by password needs the second factor.
   * @throws NotFoundError unless the trusted device belongs to this account; ConfigurationError if `trustedDeviceDays` is 0
   */
  removeTrustedDevice(userId: string, trustedDeviceId: string): Promise<void>
  /** Manages invitations. The methods throw a ConfigurationError while `invitationsEnabled` is off. */
  readonly invitations: InvitationService
  /** Logs out by the session cookie's value. An unknown value is not an error. */
  logOutSession(sessionToken: string, options: { allSessions?: boolean; providerLogout: true }): Promise<ServiceLogout>
  logOutSession(sessionToken: string, options?: LogoutOptions): Promise<void>
  /**
   * Returns the same operations inside the host's own transaction: `service.using(store.using(trx))`, or `service.using(joined.store)` of
   * `store.join()`. The host commits or rolls back. A rollback also removes the rows that a rejected request has stored. If the store has `afterCommit`, events and mails wait for the host's
   * commit, and a rollback drops them. Exception: the events of a rejected request are emitted at once.
   */
  using(store: AuthStore): AuthService<Host>
  /**
   * Deletes old rows at once, as the purge that runs by itself does. Returns how many rows of each table were deleted.
   * @throws ServiceUnavailableError if the database cannot be reached; ConfigurationError on the service of a transaction of the host
   */
  purge(): Promise<Record<string, number>>
}

/** The type of the result follows from what the client gets. Inside doorward, every login has one type of result. */
function delivered<Result extends AnyLoginResult>(login: Promise<AnyLoginResult>): Promise<Result> {
  return login as Promise<Result>
}

/** @param hostStore as the host passed it. Null: inside a transaction of the host */
export function createService(ctx: AuthContext, hostStore: AuthStore | null): AuthService {
  const localeOf = (options?: { locale?: Locale | undefined }) => options?.locale ?? ctx.settings.defaultLocale
  const client = (origin: SessionOrigin): LoginClient => ({ gets: ctx.settings.tokenDelivery === 'session' ? 'session' : 'tokens', origin })
  const step = (input: TaskStep & SessionOrigin) => ({ client: { ...client(input), locale: localeOf(input) } })
  /**
   * Returns the context for methods that need a password. If `passwordLogin` is off, throws, because the routes of these methods do not
   * exist then.
   */
  const takingPasswords = () => {
    requirePasswords(ctx.settings)
    return ctx
  }
  const keyed = <Input extends { client?: string | null | undefined }>(input: Input): Input => ({
    ...input,
    client: clientKey(input.client) ?? input.client,
  })
  const signUpByService = async (input: SignUpInput, shown: PresentedPasskey | null = null): ReturnType<AuthService['signUp']> => {
    const code = newCodeRequest(ctx, 'ACTIVATION', input)
    const signup = await signUp(ctx, { ...input, mayRepeat: false }, null, { passkey: shown, codeRequest: code })
    if (signup.kind === 'taken' || signup.kind === 'unchanged') throw new EmailTakenError()
    if (signup.kind === 'refused') throw signup.error
    const link = await sendFirstLink(ctx, signup, localeOf(input), code)
    return [signup.user, withRequest(ctx, link, code && { ...code, signup: newSignupToken(ctx, signup.mark.id) })]
  }
  const ownerOf = (email: string) => findByAddress(ctx, readTypedAddress(email))
  return {
    signUp: (input) => signUpByService(input),
    passkeySignupOptions: async (input) => passkeySignupOptions(requirePasskeySignup(ctx), input),
    signUpWithPasskey: async ({ credential, challenge, ...input }) => {
      requirePasskeySignup(ctx)
      return signUpByService(input, { credential, challenge })
    },
    logIn: async (input) => delivered(logIn(takingPasswords(), keyed(input), client(input))),
    activate: async (given, { credential, challenge = '', ...options } = {}) => {
      const presented = presentedByHost(ctx, 'ACTIVATION', given)
      const passkey = credential === undefined ? null : { credential, challenge }
      const evidence = withSignup(signupOwnershipFrom(ctx, options), presented)
      const { locale } = options
      return delivered(redeem(ctx, presented, (proof) => activate(ctx, proof, client(options), { evidence, passkey, locale })))
    },
    requestActivation: async (email, options) => {
      const code = newCodeRequest(ctx, 'ACTIVATION')
      return withRequest(ctx, await sendActivation(ctx, await ownerOf(email), localeOf(options), { code }), code)
    },
    requestPasswordReset: async (email, options) => {
      const code = newCodeRequest(takingPasswords(), 'PASSWORD_RESET')
      return withRequest(ctx, await sendPasswordReset(ctx, await ownerOf(email), localeOf(options), { code }), code)
    },
    resetPassword: async (input) => {
      const presented = presentedByHost(takingPasswords(), 'PASSWORD_RESET', 'code' in input ? input : input.token)
      return delivered(redeem(ctx, presented, (token) => resetPassword(ctx, { ...input, token }, client(input))))
    },
    requestEmailLogin: (email, options = {}) => requestByService(ctx, readTypedAddress(email), { ...options, locale: localeOf(options) }),
    confirmEmailLogin: async (proof, options = {}) => {
      const attempt = newLoginAttempt(null)
      const evidence = signupOwnershipFrom(ctx, options)
      return delivered(confirmEmailLogin(ctx, proofOf(ctx, proof), client(options), { evidence, locale: options.locale, attempt }))
    },
    changePassword: async (input) => void (await changePassword(takingPasswords(), input)),
    setFirstPassword: async (input) => void (await setFirstPassword(takingPasswords(), input)),
    updateProfile: (input) => updateProfile(ctx, input),
    changePasswordWithMfa: async (input) => void (await changePasswordWithMfa(takingPasswords(), input)),
    enrollTotp: (userId, { session: _, check: __, ...options }: EnrolmentOptions = {}) => enrollTotp(ctx, userId, options),
    reauthenticate: (input) => reauthenticateById(ctx, input),
    requestConfirmationCode: (userId, sessionId, options) => requestCodeById(ctx, { userId, sessionId, locale: localeOf(options) }),
    confirmTotp: (input) => delivered(confirmTotp(ctx, input, client(input))),
    verifyMfa: (input) => delivered(verifyMfa(ctx, input, client(input))),
    confirmDevice: (input) => delivered(confirmDevice(ctx, input, step(input))),
    resendDeviceCode: (input) => resendDeviceCode(ctx, input, step(input)),
    setNewPassword: async (input) => delivered(setNewPassword(takingPasswords(), input, step(input))),
    beginSecondFactor: (input) => beginSecondFactor(ctx, input),
    finishSecondFactor: (input) => delivered(finishSecondFactor(ctx, input, step(input))),
    completeTask: (key, { body = {}, ...input }) => delivered(completeTask(ctx, key, { ...input, body: { ...body } }, step(input))),
    disableTotp: (input) => disableTotp(ctx, input),
    regenerateRecoveryCodes: (input) => regenerateRecoveryCodes(ctx, input),
    requestEmailVerification: async (userId, options) => {
      const code = newCodeRequest(ctx, 'EMAIL_VERIFICATION')
      return withRequest(ctx, await sendEmailVerification(ctx, await findActiveUser(ctx, userId), localeOf(options), { code }), code)
    },
    verifyEmail: async (given, options = {}) => {
      const evidence = signupOwnershipFrom(ctx, options)
      const presented = presentedByHost(ctx, 'EMAIL_VERIFICATION', given)
      return redeem(ctx, presented, (proof) => confirmEmail(ctx, proof, { evidence, locale: localeOf(options) }))
    },
    requestEmailChange: async (input, options) => {
      const code = newCodeRequest(ctx, 'EMAIL_CHANGE', {}, { userId: input.userId, sessionId: input.session?.id ?? null })
      return withRequest(ctx, await sendEmailChange(ctx, await verifyEmailChange(ctx, input), localeOf(options), code), code)
    },
    changeEmail: async (given, options) => {
      const presented = presentedByHost(ctx, 'EMAIL_CHANGE', given)
      const evidence = options && signupOwnershipFrom(ctx, options)
      if (evidence) await requireAsker(ctx, presented, evidence)
      await redeem(ctx, presented, (proof) => confirmEmailChange(ctx, proof, { evidence, locale: options?.locale }))
    },
    undoChanges: (input) => undoChanges(ctx, input),
    revokeSessions: async (userId, acting) => revokeSessions(ctx, userId, requireNamed(acting)),
    deactivate: async (userId, acting) => deactivate(ctx, userId, requireNamed(acting)),
    activateUser: async (userId, acting) => activateUser(ctx, userId, requireNamed(acting)),
    approve: async (userId, acting) => approve(ctx, userId, requireNamed(acting)),
    decline: async (userId, acting) => decline(ctx, userId, requireNamed(acting)),
    resetMfa: async (userId, acting, options) => resetMfa(ctx, userId, requireNamed(acting), options),
    expirePassword: (userId, options) => expirePassword(ctx, userId, undefined, options),
    deleteUser: async (userId, acting) => deleteUser(ctx, userId, requireNamed(acting)),
    restoreAccount: (token) => restoreAccount(ctx, token),
    exportUser: (userId) => exportAccount(ctx, userId),
    listUsers: (query) => listUsers(ctx, query),
    findUser: (userId) => findUser(ctx, userId),
    updateUser: async (userId, changes, acting) => updateUser(ctx, userId, changes, requireNamed(acting)),
    logInWithIdentity: (profile, options = {}) =>
      delivered(logInWithIdentity(ctx, profile, client(options), { locale: localeOf(options), invitation: options.invitation ?? null })),
    logInWithToken: (input, options = {}) =>
      delivered(logInWithToken(ctx, input, client(options), { locale: localeOf(options), invitation: options.invitation ?? null })),
    exchangeOAuthCode: (input) => exchangeCode(ctx, input, { gets: 'tokens', origin: {} }),
    openSession: async (userId, { ip, userAgent, sessionToken, ...options } = {}) => {
      const { openSession } = await import('../sessions/open-session.js') // loaded at the first call
      return delivered(openSession(ctx, userId, options, client({ ip, userAgent, sessionToken })))
    },
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
    logInWithPasskey: (input) => delivered(logInWithPasskey(ctx, keyed(input), client(input))),
    passkeyStepOptions: async (input) => {
      if ('mfaToken' in input) return passkeyStepOptions(ctx, input.mfaToken)
      return passkeyReauthenticationOptions(ctx, { userId: input.userId, session: sessionNamed(input.userId, input.sessionId) })
    },
    listPasskeys: (userId) => listPasskeys(ctx, userId),
    renamePasskey: (userId, passkeyId, name) => renamePasskey(ctx, userId, passkeyId, name),
    removePasskey: (userId, passkeyId, options) => removePasskey(ctx, userId, passkeyId, { locale: options?.locale }),
    logInToSession: async (input) => delivered(logIn(takingPasswords(), keyed(input), { gets: 'session', origin: input })),
    verifyMfaToSession: (input) => delivered(verifyMfa(ctx, input, { gets: 'session', origin: input })),
    findSession: (sessionToken) => findSession(ctx, sessionToken),
    listSessions: (userId) => listSessions(ctx, userId),
    revokeSession: (userId, sessionId) => revokeSession(ctx, userId, sessionId),
    revokeOtherSessions: async (userId, sessionId) => (await revokeOtherSessions(ctx, { id: sessionId, userId })).count,
    listTrustedDevices: async (userId) => listTrustedDevices(ctx, userId),
    removeTrustedDevice: async (userId, id) => removeTrustedDevice(ctx, userId, id),
    invitations: invitationService(ctx),
    logOutSession: (async (sessionToken: string, options?: LogoutOptions) =>
      leadingOn(ctx, await logOutSession(ctx, sessionToken, options), options)) as AuthService['logOutSession'],
    using: (store) => createService(insideHostTransaction(ctx, store), null),
    async purge() {
      if (!hostStore) throw new ConfigurationError('purge() runs outside of transactions: call auth.service.purge().')
      const { purgeNow } = await import('../admin/purge/purge-now.js') // loaded at the first call
      return purgeNow(ctx, hostStore)
    },
  }
}

/** The boot checks of this sign-up run only if `signupWith` has it. @throws ConfigurationError */
function requirePasskeySignup(ctx: AuthContext): AuthContext {
  if (ctx.settings.signupWith.includes('passkey')) return ctx
  throw new ConfigurationError("Sign-up with a passkey is off: add 'passkey' to signupWith (AUTH_SIGNUP_WITH).")
}

async function requestByService(
  ctx: AuthContext,
  email: string,
  { locale, returnTo = undefined, invitation = null, ...origin }: AskedFrom & { locale: Locale; returnTo?: string } & WithInvitation,
): Promise<RequestedEmailLogin> {
  const id = randomUUID()
  const destination = readReturnTo(ctx.settings, returnTo === undefined ? [] : [returnTo])
  requireEmailLogins(ctx)
  const issued = await requestEmailLogin(ctx, {
    id,
    email,
    returnTo: destination,
    locale,
    device: null,
    earlierId: null,
    invitation,
    ...origin,
  })
  const { url = null, code = null, expiresAt = null } = issued ?? {}
  return { requestToken: signRequestToken(ctx, id), url, code, expiresAt }
}

/** The link was mailed with a code, so it also has the token of the code's request. */
function withRequest<Link extends LinkToken | typeof ACTIVATION_WITHHELD | null>(
  ctx: AuthContext,
  link: Link,
  code: CodeRequest | null,
): Link {
  if (!code || link === null || typeof link === 'symbol') return link
  const made: LinkToken = link
  return { ...made, requestToken: signCodeToken(ctx, code) } as Link // still a link
}

function proofOf(ctx: AuthContext, proof: { token: string } | { code: string; requestToken: string }): EmailLoginProof {
  return 'token' in proof ? proof : { code: proof.code, requestId: readRequestToken(ctx, proof.requestToken) }
}

function sessionNamed(userId: string, id: string | undefined) {
  return id === undefined ? null : { id, userId }
}

function signupOwnershipFrom({ settings }: AuthContext, { sessionId, password, signupToken }: ProofOfPresence): SignupOwnership {
  if (password !== undefined) requirePasswords(settings)
  const [sessionIds, bindings] = [sessionId, signupToken].map((one) => (one === undefined ? [] : [one]))
  return { sessionIds, bindings, password }
}

async function findSession(ctx: AuthContext, sessionToken: string): Promise<FoundSession | null> {
  const lookUp = { ...ctx, sessions: sessionsOf(ctx.store), sessionTokenKeys: ctx.keys['session-token'] }
  const found = await findLiveSession(lookUp, sessionToken)
  return found && { session: toPublicSession(found.session), user: toPublicUser(found.user), hasSlid: found.hasSlid }
}

/**
 * The events of rejected requests. Inside a host's transaction, these events are emitted at once, because they stay true if the transaction
 * is rolled back.
 */
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
  const store = announcingEnds(ctx.readiness ? guardedTransaction(trusted, ctx.readiness) : trusted, ctx.sessionEnds)
  const { afterCommit } = store
  if (!afterCommit) return { ...ctx, store }
  const { events, mailQueue } = ctx
  const emit: typeof events.emit = (name, payload) =>
    refusals.has(name) ? events.emit(name, payload) : afterCommit(() => events.emit(name, payload))
  return {
    ...ctx,
    store,
    events: { ...events, emit },
    mailQueue: mailQueue && postmanAfterCommit(mailQueue, afterCommit),
  }
}

/**
 * Returns a mail queue that sends mails after the host's commit. `reserve` only checks that the queue has a free place, and releases the place
 * at once. Otherwise a place could stay reserved forever, because nothing tells the queue about a rollback of the host's transaction.
 */
function postmanAfterCommit(mailQueue: MailQueue, afterCommit: (effect: () => void) => void): MailQueue {
  return {
    ...mailQueue,
    post: (...mail) => afterCommit(() => mailQueue.post(...mail)),
    reserve() {
      const isRoom = mailQueue.reserve()
      isRoom?.release()
      let isUsed = false
      return (
        isRoom && {
          post(mail, userId) {
            if (!isUsed) afterCommit(() => (mailQueue.reserve() ?? mailQueue).post(mail, userId))
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
