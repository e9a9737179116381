/**
 * Written by test/client/operations.test.ts from the OpenAPI document of a router with every feature on:
 * `npx vitest run --config test/vitest.config.mts test/client/operations.test.ts -u`
 */

export interface AccountExport { readonly exported_at: string; readonly user: AdminUser; readonly identities: readonly object[]; readonly sessions: readonly object[]; readonly passkeys: readonly object[]; readonly second_factor: object | null; readonly api_keys: readonly object[]; readonly invitations: readonly object[]; readonly devices: readonly object[] }

export interface AccountRestored { readonly message: string }

export interface AdminUser { readonly id: string; readonly email: string; readonly name: string | null; readonly is_active: boolean; readonly is_admin: boolean; readonly created_at: string; readonly updated_at: string; readonly last_login_at: string | null; readonly mfa_enabled: boolean; readonly email_verified_at: string | null; readonly activated_at: string | null; readonly approval_requested_at?: string | null; readonly deletion_requested_at?: string | null; readonly fields?: Readonly<Record<string, unknown>> }

export interface AdminUserList { readonly items: readonly AdminUser[]; readonly next_cursor: string | null }

export interface AuthorizeUrl { readonly authorize_url: string }

export interface ClientConfig { readonly delivery: 'bearer' | 'cookie' | 'both' | 'session'; readonly providers: readonly { readonly key: string; readonly name: string }[]; readonly features: { readonly signup: boolean; readonly password: boolean; readonly email_login: 'off' | 'link' | 'code' | 'both'; readonly passkeys: boolean; readonly second_factor: boolean }; readonly password: { readonly min_length: number } | null; readonly refresh_grace_seconds: number }

export interface CreatedInvitation { readonly id: string; readonly email: string | null; readonly data: unknown; readonly uses_left: number; readonly expires_at: string; readonly created_by: string | null; readonly created_at: string; readonly revoked_at: string | null; readonly token: string | null; readonly url: string | null }

export interface DeletionRequested { readonly message: string; readonly deletes_at: string }

export interface Enrolment { readonly secret: string; readonly provisioning_uri: string; readonly qr_svg: string; readonly recovery_codes: readonly string[] }

export interface Identity { readonly provider: string; readonly subject: string; readonly email: string | null; readonly email_verified: boolean | null; readonly name: string | null; readonly picture: string | null; readonly created_at: string; readonly last_login_at: string }

export interface Invitation { readonly id: string; readonly email: string | null; readonly data: unknown; readonly uses_left: number; readonly expires_at: string; readonly created_by: string | null; readonly created_at: string; readonly revoked_at: string | null }

export interface InvitationList { readonly items: readonly Invitation[]; readonly next_cursor: string | null }

export interface ListedSession { readonly id: string; readonly kind: 'tokens' | 'session'; readonly created_at: string; readonly last_seen_at: string; readonly expires_at: string; readonly ip: string | null; readonly user_agent: string | null; readonly amr: readonly string[]; readonly provider: string | null; readonly is_current: boolean }

export interface MailedCode { readonly message: string }

export interface Message { readonly message: string }

export interface Passkey { readonly id: string; readonly name: string | null; readonly created_at: string; readonly last_used_at: string | null; readonly is_backed_up: boolean; readonly aaguid: string }

export interface ProviderLogout { readonly logout_url: string | null }

export interface RecoveryCodes { readonly recovery_codes: readonly string[] }

export interface RequestedEmailLogin { readonly message: string; readonly request_token: string; readonly login_url: string | null; readonly code: string | null }

export interface ResentInvitation {  }

export interface ResentTask { readonly task_token: string }

export interface TrustedDevice { readonly id: string; readonly name: string | null; readonly created_at: string; readonly last_used_at: string | null; readonly ends_at: string; readonly is_current: boolean }

export interface Undone { readonly message: string; readonly address_restored: boolean }

export interface User { readonly id: string; readonly email: string; readonly name: string | null; readonly is_active: boolean; readonly is_admin: boolean; readonly created_at: string; readonly updated_at: string; readonly last_login_at: string | null; readonly mfa_enabled: boolean; readonly fields?: Readonly<Record<string, unknown>> }

export interface Verified { readonly message: string; readonly password_required?: true; readonly reset_token?: string }

/** Every code of a refusal. */
export type ErrorCode =
  | 'ACCOUNT_INACTIVE'
  | 'APPROVAL_PENDING'
  | 'CAPTCHA_REQUIRED'
  | 'CAPTCHA_UNAVAILABLE'
  | 'CONFLICT'
  | 'CSRF_VALIDATION_FAILED'
  | 'DELETION_PENDING'
  | 'EMAIL_LINK_FORBIDDEN'
  | 'EMAIL_LOGIN_INVALID'
  | 'EMAIL_NOT_VERIFIED'
  | 'EMAIL_TAKEN'
  | 'FORBIDDEN'
  | 'INTERNAL_ERROR'
  | 'INVALID_FILTER_VALUE'
  | 'INVALID_TOKEN'
  | 'INVITATION_REQUIRED'
  | 'LAST_LOGIN_METHOD'
  | 'LOGIN_THROTTLED'
  | 'METHOD_NOT_ALLOWED'
  | 'MFA_ALREADY_ENROLLED'
  | 'MFA_CODE_INVALID'
  | 'MFA_FACTOR_TOO_NEW'
  | 'MFA_NOT_ENROLLED'
  | 'MFA_REQUIRED'
  | 'MFA_THROTTLED'
  | 'MFA_TOKEN_INVALID'
  | 'NOT_FOUND'
  | 'OAUTH_ACCOUNT_INACTIVE'
  | 'OAUTH_ACCOUNT_NOT_LINKED'
  | 'OAUTH_AUDIENCE_UNVERIFIABLE'
  | 'OAUTH_CODE_INVALID'
  | 'OAUTH_CODE_MISSING'
  | 'OAUTH_EMAIL_MISSING'
  | 'OAUTH_EMAIL_TAKEN'
  | 'OAUTH_EMAIL_UNVERIFIED'
  | 'OAUTH_ERROR'
  | 'OAUTH_IDENTITY_TAKEN'
  | 'OAUTH_PROVIDER_ALREADY_LINKED'
  | 'OAUTH_PROVIDER_DENIED'
  | 'OAUTH_PROVIDER_NOT_CONFIGURED'
  | 'OAUTH_PROVIDER_UNAVAILABLE'
  | 'OAUTH_REGISTRATION_DISABLED'
  | 'OAUTH_STATE_MISMATCH'
  | 'OAUTH_TOKEN_AUDIENCE_MISMATCH'
  | 'OAUTH_TOKEN_REJECTED'
  | 'PASSKEY_INVALID'
  | 'PASSKEY_LIMIT'
  | 'PASSKEY_REJECTED'
  | 'PASSKEY_TAKEN'
  | 'PASSWORD_ALREADY_SET'
  | 'PAYLOAD_TOO_LARGE'
  | 'REAUTHENTICATION_REQUIRED'
  | 'SERVICE_UNAVAILABLE'
  | 'SIGNUP_THROTTLED'
  | 'TASK_TOKEN_INVALID'
  | 'TOKEN_EXPIRED'
  | 'TOO_MANY_REQUESTS'
  | 'UNAUTHORIZED'
  | 'UNKNOWN_FILTER_KEY'
  | 'UNSUPPORTED_MEDIA_TYPE'
  | 'VALIDATION_ERROR'

/** Told beside `kind` if the router says it. */
interface Told {
  /** The first verification of the address removed the password: the person has to set a new one. */
  readonly password_required?: true
  /** Where the login began. */
  readonly return_to?: string
  /** This login trusted the browser: for a time, its logins by password need no second factor. */
  readonly device_trusted?: true
}

/** How a login ended: in a session, or with a step that is still to do. */
export type LoginResult = Told &
  (
    | { readonly kind: 'session'; readonly user: User }
    | { readonly kind: 'second_factor'; readonly methods: readonly ('otp' | 'passkey')[] }
    | { readonly kind: 'tasks'; readonly tasks: readonly string[] }
  )

/** `activation_required`: the person has to open the link in the mail first. */
export type SignUpResult = LoginResult | { readonly kind: 'activation_required' }

/** Every operation of the router that has a method. */
export interface ClientOperations {
  /** Create an account with email and password. */ signUp(body: { email: string; name?: string | null; password?: string; captcha?: unknown; invitation?: string }): Promise<SignUpResult>
  /** Activate an account with the mailed link or code, and log in. */ activate(body: { request_token?: string; password?: string; credential?: object; challenge_token?: string; signup_token?: string; passkey?: true } & ({ token: string } | { code: string })): Promise<LoginResult>
  /** Request another activation mail. */ requestActivation(body: { email: string; previous_token?: string; captcha?: unknown }): Promise<{ readonly message: string; readonly activation_url: string | null; readonly request_token?: string }>
  /** Log in with email and password. */ logIn(body: { email: string; password: string; previous_token?: string; remember?: boolean; captcha?: unknown }): Promise<LoginResult>
  /** Log out: revoke this session, or all sessions of the account. */ logOut(body?: { all_sessions?: boolean; provider_logout?: boolean }): Promise<ProviderLogout | undefined>
  /** Confirm the session with a credential. */ reauthenticate(body: { challenge_token?: string; previous_token?: string } & ({ password: string } | { code: string } | { credential: object } | { email_code: string } | { ticket: string } | { passkey: true })): Promise<LoginResult>
  /** Request a mail with a code to confirm the session. */ requestConfirmationCode(body?: Record<string, never>): Promise<MailedCode>
  /** Undo changes to an account with the link from a mail. */ undo(body: { token: string }): Promise<Undone>
  readonly account: {
    /** Get the account of the signed-in person. */ get(): Promise<User>
    /** Change the name, and the fields of the application. */ update(body?: { name?: string | null; fields?: object }): Promise<User>
    /** Request a mail to verify the address. */ requestVerification(body?: { previous_token?: string }): Promise<{ readonly message: string; readonly verify_url: string | null; readonly request_token?: string }>
    /** Verify the address with the mailed link or code. */ verifyEmail(body: { request_token?: string; password?: string } & ({ token: string } | { code: string })): Promise<Verified>
    /** Request a mail to a new address. */ requestEmailChange(body: { new_email: string; current_password?: string; previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<{ readonly message: string; readonly confirm_url: string | null; readonly request_token?: string }>
    /** Change to the new address with the mailed link or code. */ confirmEmailChange(body: { request_token?: string; password?: string } & ({ token: string } | { code: string })): Promise<Message>
    /** Close the own account, and delete it later. */ delete(body?: { previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<DeletionRequested | undefined>
    /** Bring back an account that waits for its deletion. */ restore(body: { token: string }): Promise<AccountRestored>
    /** Download what is known about the own account. */ export(): Promise<AccountExport>
  }
  readonly password: {
    /** Change the password, and revoke all other sessions. */ change(body: { current_password: string; new_password: string; previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<undefined>
    /** Change the password with the second factor, and revoke all other sessions. */ changeWithFactor(body: { new_password: string; previous_token?: string; challenge_token?: string } & ({ code: string } | { credential: object } | { passkey: true })): Promise<undefined>
    /** Set the first password of an account without a password. */ setFirst(body: { new_password: string; previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<undefined>
    /** Request a mail to set a new password. */ requestReset(body: { email: string; previous_token?: string; captcha?: unknown }): Promise<{ readonly message: string; readonly reset_url: string | null; readonly request_token?: string }>
    /** Set a new password with the mailed link or code, and log in. */ reset(body: { request_token?: string; new_password: string; password?: string } & ({ token: string } | { code: string })): Promise<LoginResult>
  }
  readonly emailLogin: {
    /** Request a mail to log in. */ request(body: { email: string; return_to?: string; previous_token?: string; captcha?: unknown; invitation?: string }): Promise<RequestedEmailLogin>
    /** Log in with the mailed link or code. */ confirm(body: { request_token?: string; password?: string; signup_token?: string } & ({ token: string } | { code: string })): Promise<LoginResult>
  }
  readonly secondFactor: {
    /** Finish a login with a code of the second factor, a recovery code, or a passkey. */ verify(body: { previous_token?: string; challenge_token?: string; trust_device?: boolean } & ({ code: string } | { credential: object } | { passkey: true })): Promise<LoginResult>
    /** Begin to set up a second factor, or to replace the active second factor. */ enroll(body?: { previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<Enrolment>
    /** Activate the second factor with its first code, and revoke all other sessions. */ confirm(body: { code: string }): Promise<LoginResult>
    /** Remove the second factor. */ disable(body: { password?: string; previous_token?: string; challenge_token?: string } & ({ code: string } | { credential: object } | { passkey: true })): Promise<undefined>
    /** Make new recovery codes. */ recoveryCodes(body: { previous_token?: string; challenge_token?: string } & ({ code: string } | { credential: object } | { passkey: true })): Promise<RecoveryCodes>
  }
  readonly passkeys: {
    /** List the passkeys of the account. */ list(): Promise<readonly Passkey[]>
    /** Register the passkey that the browser created. */ register(body?: { previous_token?: string; code?: string; credential?: object; challenge_token?: string; name?: string; passkey?: true }): Promise<Passkey>
    /** Rename a passkey. */ rename(id: string, body: { name: string }): Promise<Passkey>
    /** Remove a passkey from the account, and revoke the other sessions that a passkey opened. */ remove(id: string, body?: { previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<undefined>
    /** Log in with a passkey. */ logIn(body?: { remember?: boolean; captcha?: unknown }): Promise<LoginResult>
    /** Create an account with a passkey that the browser created. */ signUp(body?: { email?: string; name?: string | null; invitation?: string; captcha?: unknown }): Promise<SignUpResult>
  }
  readonly sessions: {
    /** List the live sessions of the account, last used first. */ list(): Promise<readonly ListedSession[]>
    /** Revoke one session of the account. */ revoke(id: string): Promise<undefined>
    /** Revoke all sessions of the account except this session. */ revokeOthers(body?: Record<string, never>): Promise<undefined>
  }
  readonly providers: {
    /** List the linked identities of the account. */ list(): Promise<readonly Identity[]>
    /** Link a provider to the account, by a redirect or with an access token of the provider. */ link(provider: string, body?: { access_token?: string; return_to?: string; redirect_to?: string; previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<AuthorizeUrl | Identity>
    /** Unlink a provider from the account, and revoke the other sessions that it opened. */ unlink(body: { provider: string; previous_token?: string; code?: string; credential?: object; challenge_token?: string; passkey?: true }): Promise<undefined>
    /** Link an identity with the ticket from the callback. */ redeemLink(body: { ticket: string }): Promise<Identity>
    /** Confirm the session at a linked provider: get the URL for the browser. */ reauthenticate(provider: string, body?: { return_to?: string; redirect_to?: string }): Promise<AuthorizeUrl>
    /** Log in with an access token or an id_token that an app already has. */ logInWithToken(provider: string, body: { nonce?: string; invitation?: string } & ({ access_token: string } | { id_token: string })): Promise<LoginResult>
    /** Finish the login of an app: exchange the code for tokens. */ exchange(body: { code: string; code_verifier: string }): Promise<LoginResult>
  }
  readonly tasks: {
    /** Go on with a login: the mailed code for an unknown device. */ device(body: { code: string }): Promise<LoginResult>
    /** Mail another code for an unknown device. The old code and the old token end. */ resend(body?: Record<string, never>): Promise<ResentTask>
    /** Go on with a login: a new password. */ newPassword(body: { new_password: string }): Promise<LoginResult>
    /** Go on with a login: begin to set up the second factor. The token stays valid. */ enroll(body?: Record<string, never>): Promise<Enrolment>
    /** Go on with a login: confirm the new second factor with a code. */ confirm(body: { code: string }): Promise<LoginResult>
    /** Do a task of the host. */ complete(key: string, body?: Readonly<Record<string, unknown>>): Promise<LoginResult>
  }
  readonly trustedDevices: {
    /** List the browsers that need no second factor, newest first. */ list(): Promise<readonly TrustedDevice[]>
    /** Stop trusting one browser. */ remove(id: string): Promise<undefined>
  }
  readonly invitations: {
    /** Use an invitation with the account that is logged in. */ redeem(body: { token: string }): Promise<undefined>
  }
}

/** Operations on the accounts of other people. */
export interface AdminOperations {
  /** List the accounts, oldest first. */ list(query?: Readonly<Record<string, string | number | boolean>>): Promise<AdminUserList>
  /** Get one account. */ get(id: string): Promise<AdminUser>
  /** Change the name of an account, or whether it is an administrator. */ update(id: string, body?: { name?: string | null; is_admin?: boolean }): Promise<AdminUser>
  /** Deactivate an account, and revoke its sessions and mailed links, except undo links. */ deactivate(id: string, body?: Record<string, never>): Promise<undefined>
  /** Activate an account. */ activate(id: string, body?: Record<string, never>): Promise<undefined>
  /** Approve an account that waits. */ approve(id: string, body?: Record<string, never>): Promise<undefined>
  /** Decline an account that waits: it stays deactivated. */ decline(id: string, body?: Record<string, never>): Promise<undefined>
  /** Revoke all sessions of an account. */ revokeSessions(id: string, body?: Record<string, never>): Promise<undefined>
  /** Remove the second factor of an account. */ resetMfa(id: string, body?: { passkeys?: boolean }): Promise<undefined>
  /** Expire the password of an account: the next login must set a new one. Revokes its sessions, unless `keep_sessions`. */ expirePassword(id: string, body?: { keep_sessions?: boolean }): Promise<undefined>
  /** Delete an account at once, with everything in it. */ delete(id: string, body?: Record<string, never>): Promise<undefined>
  readonly invitations: {
    /** List the invitations, newest first. */ list(query?: Readonly<Record<string, string | number | boolean>>): Promise<InvitationList>
    /** Create an invitation, and mail it if it has an address. */ create(body?: { email?: string | null; data?: unknown; uses?: number; expires_in_days?: number; send?: boolean }): Promise<CreatedInvitation>
    /** Revoke an invitation. Accounts that have used it stay. */ revoke(id: string, body?: Record<string, never>): Promise<undefined>
    /** Mail an invitation again, with a new token. The old token ends. */ resend(id: string, body?: Record<string, never>): Promise<ResentInvitation>
  }
}
