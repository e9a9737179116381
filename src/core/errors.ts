import { type LocalizedText, localized } from './texts/phrase-book'

/**
 * The errors of the library: a base class, one class per status, and one class per code. Clients should branch on `code`. `detail` is for
 * people and is in the language of the request. `ConfigurationError` and `NotImplementedError` are for developers and are never sent to a
 * client.
 */

export type { LocalizedText }

export interface AppErrorOptions {
  /** Data for the client, sent as `details` of the error envelope. The data must not contain a secret or a submitted value. */
  details?: Record<string, unknown>
  /** A sentence for people about these details. The response has the sentence as `details.message`, in the language of the request. */
  explains?: LocalizedText
  /** The cause, for logs only. */
  cause?: unknown
  /** A message for developers, which replaces the English `detail`: what failed and how to fix it. Never sent to a client. */
  message?: string
  /** For logs: why a guard rejected the request, as a stable word. The word is more exact than the code. Never sent to a client. */
  reason?: string
}

const isAppError = Symbol.for('doorward.app-error.v1')

/** An error with a response: `{ detail, code, details }` and a `status`. */
export class AppError extends Error {
  static readonly status: number = 500
  static readonly code: string = 'INTERNAL_ERROR'
  static readonly detail: LocalizedText = localized('error.internal_error')

  readonly status: number
  readonly code: string
  readonly detail: LocalizedText
  readonly details: Record<string, unknown>
  /** A sentence for people about `details`. Routes send the sentence as `details.message`. */
  readonly explains?: LocalizedText
  /** For logs: why a guard rejected the request, as a stable word. */
  readonly reason?: string

  constructor(options: AppErrorOptions = {}) {
    const type = new.target
    super(options.message ?? type.detail['en-US'], options.cause === undefined ? undefined : { cause: options.cause })
    this.name = type.name
    this.status = type.status
    this.code = type.code
    this.detail = type.detail
    if (options.explains) this.explains = options.explains
    // Not enumerable, so that code which copies the error into a response does not copy the reason.
    if (options.reason) Object.defineProperty(this, 'reason', { value: options.reason })
    this.details = options.details ?? {}
    Object.defineProperty(this, isAppError, { value: true }) // not enumerable, so that printing or copying the error omits the mark
  }
}

// Includes errors of another copy of the package in this process, because a host's store can use another copy.
Object.defineProperty(AppError, Symbol.hasInstance, {
  value(this: unknown, value: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true
    return this === AppError && typeof value === 'object' && value !== null && isAppError in value
  },
})

// ---- 401 -----------------------------------------------------------------------------------------------------------

export class UnauthorizedError extends AppError {
  static override readonly status = 401
  static override readonly code: string = 'UNAUTHORIZED'
  static override readonly detail: LocalizedText = localized('error.unauthorized')
}

/** The error for a wrong password, an unknown address and an inactive account. Clients cannot tell these cases apart. */
export class InvalidCredentialsError extends UnauthorizedError {
  static override readonly detail = localized('error.invalid_credentials')
}

export class InvalidTokenError extends UnauthorizedError {
  static override readonly code = 'INVALID_TOKEN'
  static override readonly detail = localized('error.invalid_token')
}

export class TokenExpiredError extends UnauthorizedError {
  static override readonly code = 'TOKEN_EXPIRED'
  static override readonly detail = localized('error.token_expired')
}

export class MfaCodeInvalidError extends UnauthorizedError {
  static override readonly code = 'MFA_CODE_INVALID'
  static override readonly detail = localized('error.mfa_code_invalid')
}

export class EmailLoginInvalidError extends UnauthorizedError {
  static override readonly code = 'EMAIL_LOGIN_INVALID'
  static override readonly detail = localized('error.email_login_invalid')
}

export class MfaTokenInvalidError extends UnauthorizedError {
  static override readonly code = 'MFA_TOKEN_INVALID'
  static override readonly detail = localized('error.mfa_token_invalid')
}

export class TaskTokenInvalidError extends UnauthorizedError {
  static override readonly code = 'TASK_TOKEN_INVALID'
  static override readonly detail = localized('error.task_token_invalid')
}

/** The error for an unknown passkey, an inactive account and a wrong signature. Clients cannot tell these cases apart. */
export class PasskeyRejectedError extends UnauthorizedError {
  static override readonly code = 'PASSKEY_REJECTED'
  static override readonly detail = localized('error.passkey_rejected')
}

export class OAuthCodeInvalidError extends UnauthorizedError {
  static override readonly code = 'OAUTH_CODE_INVALID'
  static override readonly detail = localized('error.oauth_code_invalid')
}

export class OAuthStateMismatchError extends UnauthorizedError {
  static override readonly code = 'OAUTH_STATE_MISMATCH'
  static override readonly detail = localized('error.oauth_state_mismatch')
}

export class OAuthProviderDeniedError extends UnauthorizedError {
  static override readonly code = 'OAUTH_PROVIDER_DENIED'
  static override readonly detail = localized('error.oauth_provider_denied')
}

export class OAuthAccountInactiveError extends UnauthorizedError {
  static override readonly code = 'OAUTH_ACCOUNT_INACTIVE'
  static override readonly detail = localized('error.oauth_account_inactive')
}

export class OAuthTokenAudienceMismatchError extends UnauthorizedError {
  static override readonly code = 'OAUTH_TOKEN_AUDIENCE_MISMATCH'
  static override readonly detail = localized('error.oauth_token_audience_mismatch')
}

export class OAuthTokenRejectedError extends UnauthorizedError {
  static override readonly code = 'OAUTH_TOKEN_REJECTED'
  static override readonly detail = localized('error.oauth_token_rejected')
}

// ---- 403 -----------------------------------------------------------------------------------------------------------

export class ForbiddenError extends AppError {
  static override readonly status = 403
  static override readonly code: string = 'FORBIDDEN'
  static override readonly detail: LocalizedText = localized('error.forbidden')
}

/** The option `captcha` asks for an answer, and the request has no right one. */
export class CaptchaRequiredError extends ForbiddenError {
  static override readonly code = 'CAPTCHA_REQUIRED'
  static override readonly detail = localized('error.captcha_required')
}

/** One error for a missing, unknown, used up, revoked or expired invitation, and for one that is for another address. */
export class InvitationRequiredError extends ForbiddenError {
  static override readonly code = 'INVITATION_REQUIRED'
  static override readonly detail = localized('error.invitation_required')
}

/** The credential is right, and the account waits for an administrator (`signupMode: 'approve'`). */
export class ApprovalPendingError extends ForbiddenError {
  static override readonly code = 'APPROVAL_PENDING'
  static override readonly detail = localized('error.approval_pending')
}

/**
 * The credential is right, and the account waits for its deletion. `details.deletes_at` says until when, and `details.restore_token` brings
 * the account back (`POST /account/restore`).
 */
export class DeletionPendingError extends ForbiddenError {
  static override readonly code = 'DELETION_PENDING'
  static override readonly detail = localized('error.deletion_pending')
}

export class AccountInactiveError extends ForbiddenError {
  static override readonly code = 'ACCOUNT_INACTIVE'
  static override readonly detail = localized('error.account_inactive')
}

export class CsrfValidationFailedError extends ForbiddenError {
  static override readonly code = 'CSRF_VALIDATION_FAILED'
  static override readonly detail = localized('error.csrf_validation_failed')
  override readonly detail: LocalizedText

  constructor(options: AppErrorOptions = {}) {
    const own = csrfDetails.get(options.details?.['reason'])
    super({ ...(own && { message: own['en-US'] }), ...options })
    this.detail = own ?? new.target.detail
  }
}

const csrfDetails: ReadonlyMap<unknown, LocalizedText> = new Map([
  ['no_cookie', localized('error.csrf_no_cookie')],
  ['no_token', localized('error.csrf_no_token')],
  ['mismatch', localized('error.csrf_mismatch')],
  ['signature', localized('error.csrf_signature')],
])

export class MfaRequiredError extends ForbiddenError {
  static override readonly code = 'MFA_REQUIRED'
  static override readonly detail = localized('error.mfa_required')
}

export class MfaFactorTooNewError extends ForbiddenError {
  static override readonly code = 'MFA_FACTOR_TOO_NEW'
  static override readonly detail = localized('error.mfa_factor_too_new')
}

/**
 * The person must authenticate again. `details.methods` lists the ways to do that. The response has the challenge of RFC 9470. The status
 * is 403, because after a 401 many clients would refresh their token, which does not help here.
 */
export class ReauthenticationRequiredError extends ForbiddenError {
  static override readonly code = 'REAUTHENTICATION_REQUIRED'
  static override readonly detail = localized('error.reauthentication_required')

  /** The maximum age of the last authentication in seconds, for the challenge. */
  readonly maxAgeSeconds: number

  constructor({ maxAgeSeconds = 0, ...options }: AppErrorOptions & { maxAgeSeconds?: number } = {}) {
    super(options)
    this.maxAgeSeconds = maxAgeSeconds
  }
}

export class EmailNotVerifiedError extends ForbiddenError {
  static override readonly code = 'EMAIL_NOT_VERIFIED'
  static override readonly detail = localized('error.email_not_verified')
}

export class EmailLinkForbiddenError extends ForbiddenError {
  static override readonly code = 'EMAIL_LINK_FORBIDDEN'
  static override readonly detail = localized('error.email_link_forbidden')
}

export class OAuthRegistrationDisabledError extends ForbiddenError {
  static override readonly code = 'OAUTH_REGISTRATION_DISABLED'
  static override readonly detail = localized('error.oauth_registration_disabled')
}

// ---- 404, 405 ------------------------------------------------------------------------------------------------------

export class NotFoundError extends AppError {
  static override readonly status = 404
  static override readonly code: string = 'NOT_FOUND'
  static override readonly detail: LocalizedText = localized('error.not_found')
}

export class OAuthProviderNotConfiguredError extends NotFoundError {
  static override readonly code = 'OAUTH_PROVIDER_NOT_CONFIGURED'
  static override readonly detail = localized('error.oauth_provider_not_configured')
}

export class OAuthAccountNotLinkedError extends NotFoundError {
  static override readonly code = 'OAUTH_ACCOUNT_NOT_LINKED'
  static override readonly detail = localized('error.oauth_account_not_linked')
}

export class MethodNotAllowedError extends AppError {
  static override readonly status = 405
  static override readonly code = 'METHOD_NOT_ALLOWED'
  static override readonly detail = localized('error.method_not_allowed')
}

// ---- 409 -----------------------------------------------------------------------------------------------------------

export class ConflictError extends AppError {
  static override readonly status = 409
  static override readonly code: string = 'CONFLICT'
  static override readonly detail: LocalizedText = localized('error.conflict')
}

export class EmailTakenError extends ConflictError {
  static override readonly code = 'EMAIL_TAKEN'
  static override readonly detail = localized('error.email_taken')
}

export class PasswordAlreadySetError extends ConflictError {
  static override readonly code = 'PASSWORD_ALREADY_SET'
  static override readonly detail = localized('error.password_already_set')
}

export class MfaAlreadyEnrolledError extends ConflictError {
  static override readonly code = 'MFA_ALREADY_ENROLLED'
  static override readonly detail = localized('error.mfa_already_enrolled')
}

export class OAuthEmailTakenError extends ConflictError {
  static override readonly code = 'OAUTH_EMAIL_TAKEN'
  static override readonly detail = localized('error.oauth_email_taken')
}

export class OAuthEmailUnverifiedError extends ConflictError {
  static override readonly code = 'OAUTH_EMAIL_UNVERIFIED'
  static override readonly detail = localized('error.oauth_email_unverified')
}

export class PasskeyTakenError extends ConflictError {
  static override readonly code = 'PASSKEY_TAKEN'
  static override readonly detail = localized('error.passkey_taken')
}

export class PasskeyLimitError extends ConflictError {
  static override readonly code = 'PASSKEY_LIMIT'
  static override readonly detail = localized('error.passkey_limit')
}

export class OAuthIdentityTakenError extends ConflictError {
  static override readonly code = 'OAUTH_IDENTITY_TAKEN'
  static override readonly detail = localized('error.oauth_identity_taken')
}

export class OAuthProviderAlreadyLinkedError extends ConflictError {
  static override readonly code = 'OAUTH_PROVIDER_ALREADY_LINKED'
  static override readonly detail = localized('error.oauth_provider_already_linked')
}

export class LastLoginMethodError extends ConflictError {
  static override readonly code = 'LAST_LOGIN_METHOD'
  static override readonly detail = localized('error.last_login_method')
}

// ---- 413, 415, 422 -------------------------------------------------------------------------------------------------

export class PayloadTooLargeError extends AppError {
  static override readonly status = 413
  static override readonly code = 'PAYLOAD_TOO_LARGE'
  static override readonly detail = localized('error.payload_too_large')
}

export class UnsupportedMediaTypeError extends AppError {
  static override readonly status = 415
  static override readonly code = 'UNSUPPORTED_MEDIA_TYPE'
  static override readonly detail = localized('error.unsupported_media_type')
}

export class ValidationError extends AppError {
  static override readonly status = 422
  static override readonly code: string = 'VALIDATION_ERROR'
  static override readonly detail: LocalizedText = localized('error.validation_error')
}

export class MfaNotEnrolledError extends ValidationError {
  static override readonly code = 'MFA_NOT_ENROLLED'
  static override readonly detail = localized('error.mfa_not_enrolled')
}

export class PasskeyInvalidError extends ValidationError {
  static override readonly code = 'PASSKEY_INVALID'
  static override readonly detail = localized('error.passkey_invalid')
}

export class OAuthEmailMissingError extends ValidationError {
  static override readonly code = 'OAUTH_EMAIL_MISSING'
  static override readonly detail = localized('error.oauth_email_missing')
}

export class OAuthCodeMissingError extends ValidationError {
  static override readonly code = 'OAUTH_CODE_MISSING'
  static override readonly detail = localized('error.oauth_code_missing')
}

export class UnknownFilterKeyError extends ValidationError {
  static override readonly code = 'UNKNOWN_FILTER_KEY'
  static override readonly detail = localized('error.unknown_filter_key')
}

export class InvalidFilterValueError extends ValidationError {
  static override readonly code = 'INVALID_FILTER_VALUE'
  static override readonly detail = localized('error.invalid_filter_value')
}

// ---- 429: `details.retry_after_seconds` is repeated in the Retry-After header ---------------------------------------

export class TooManyRequestsError extends AppError {
  static override readonly status = 429
  static override readonly code: string = 'TOO_MANY_REQUESTS'
  static override readonly detail: LocalizedText = localized('error.too_many_requests')
}

export class LoginThrottledError extends TooManyRequestsError {
  static override readonly code = 'LOGIN_THROTTLED'
  static override readonly detail = localized('error.login_throttled')
}

export class SignupThrottledError extends TooManyRequestsError {
  static override readonly code = 'SIGNUP_THROTTLED'
  static override readonly detail = localized('error.signup_throttled')
}

export class MfaThrottledError extends TooManyRequestsError {
  static override readonly code = 'MFA_THROTTLED'
  static override readonly detail = localized('error.mfa_throttled')
}

// ---- 500 and up ----------------------------------------------------------------------------------------------------

export class InternalError extends AppError {}

export class OAuthAudienceUnverifiableError extends AppError {
  static override readonly status = 501
  static override readonly code = 'OAUTH_AUDIENCE_UNVERIFIABLE'
  static override readonly detail = localized('error.internal_error')
}

export class OAuthError extends AppError {
  static override readonly status = 502
  static override readonly code: string = 'OAUTH_ERROR'
  static override readonly detail: LocalizedText = localized('error.oauth_error')
}

export class OAuthProviderUnavailableError extends OAuthError {
  static override readonly code = 'OAUTH_PROVIDER_UNAVAILABLE'
  static override readonly detail = localized('error.oauth_provider_unavailable')
}

/**
 * The service cannot handle the request now, so the client can try again later. The Retry-After header repeats
 * `details.retry_after_seconds`. Without that detail, the header has `retryAfterSeconds`.
 */
export class ServiceUnavailableError extends AppError {
  static override readonly status = 503
  static override readonly code: string = 'SERVICE_UNAVAILABLE'
  static override readonly detail: LocalizedText = localized('error.service_unavailable')

  readonly retryAfterSeconds: number = 1
  /** False: the error handler logs the error. True: other code logs the cause, so the error handler does not. */
  readonly isLogged: boolean = false
}

/** The check behind the option `captcha` fails or takes too long. The log has the cause. */
export class CaptchaUnavailableError extends ServiceUnavailableError {
  static override readonly code = 'CAPTCHA_UNAVAILABLE'
  static override readonly detail = localized('error.captcha_unavailable')

  override readonly retryAfterSeconds = 5
  override readonly isLogged = true
}

// ---- for developers, never sent to a client ------------------------------------------------------------------------

/** A wrong option or setting, found when an object is created. The message names the piece and the fix, never a value. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
}

// Marks the error as `withOwnMessage` of logger.ts does, so that logs show its message. The mark is set outside the class, because with a
// mark inside the class the bundler would change the class's name.
Object.defineProperty(ConfigurationError.prototype, Symbol.for('doorward.own-message.v1'), { value: true })

/** The app called a method of a provider client, but the client is not configured for that method. */
export class NotImplementedError extends Error {
  override readonly name = 'NotImplementedError'
}
