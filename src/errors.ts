/**
 * Every error of the library in one catalogue: a base class, a family per status, a leaf per code.
 * `code` is what clients branch on; `detail` is for people and follows the request's locale.
 * `ConfigurationError` and `NotImplementedError` are for the developer and never reach the wire.
 */

export interface LocalizedText {
  readonly 'en-US': string
  readonly 'pt-BR': string
}

export interface AppErrorOptions {
  /** What a client may use; goes out as the envelope's `details`. Never a secret, never a submitted value. */
  details?: Record<string, unknown>
  /** A sentence for people about these details: goes out as `details.message`, in the language of the request. */
  explains?: LocalizedText
  /** Why it happened; for logs only. */
  cause?: unknown
  /** For developers, in place of `detail` in English: what failed and how to mend it. Never on the wire. */
  message?: string
  /** For logs: why a guard refused, in a stable word that is more exact than the code. Never on the wire. */
  reason?: string
}

const isAppError = Symbol.for('doorward.app-error.v1')

/** An error with a place on the wire: `{ detail, code, details }` under `status`. */
export class AppError extends Error {
  static readonly status: number = 500
  static readonly code: string = 'INTERNAL_ERROR'
  static readonly detail: LocalizedText = { 'en-US': 'Something went wrong.', 'pt-BR': 'Algo deu errado.' }

  readonly status: number
  readonly code: string
  readonly detail: LocalizedText
  readonly details: Record<string, unknown>
  /** A sentence for people about `details`, which routes answer as `details.message`. */
  readonly explains?: LocalizedText
  /** Why a guard refused, in a stable word. For logs. */
  readonly reason?: string

  constructor(options: AppErrorOptions = {}) {
    const type = new.target
    super(options.message ?? type.detail['en-US'], options.cause === undefined ? undefined : { cause: options.cause })
    this.name = type.name
    this.status = type.status
    this.code = type.code
    this.detail = type.detail
    if (options.explains) this.explains = options.explains
    // Not enumerable: what copies an error onto the wire does not show it.
    if (options.reason) Object.defineProperty(this, 'reason', { value: options.reason })
    this.details = options.details ?? {}
    Object.defineProperty(this, isAppError, { value: true }) // not enumerable: nothing that prints or copies an error shows it
  }
}

// Another copy of the package in the same process (a store's, say) makes errors that are to be answered as what they are.
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
  static override readonly detail: LocalizedText = { 'en-US': 'Authentication is required.', 'pt-BR': 'É preciso se autenticar.' }
}

/** One refusal for a wrong password, an unknown address and an inactive account: nothing tells them apart. */
export class InvalidCredentialsError extends UnauthorizedError {
  static override readonly detail = { 'en-US': 'invalid email or password', 'pt-BR': 'e-mail ou senha inválidos' }
}

export class InvalidTokenError extends UnauthorizedError {
  static override readonly code = 'INVALID_TOKEN'
  static override readonly detail = { 'en-US': 'The token is not valid.', 'pt-BR': 'O token não é válido.' }
}

export class TokenExpiredError extends UnauthorizedError {
  static override readonly code = 'TOKEN_EXPIRED'
  static override readonly detail = { 'en-US': 'The token has expired.', 'pt-BR': 'O token expirou.' }
}

export class MfaCodeInvalidError extends UnauthorizedError {
  static override readonly code = 'MFA_CODE_INVALID'
  static override readonly detail = { 'en-US': 'invalid MFA code', 'pt-BR': 'código MFA inválido' }
}

export class MfaTokenInvalidError extends UnauthorizedError {
  static override readonly code = 'MFA_TOKEN_INVALID'
  static override readonly detail = {
    'en-US': 'The second-factor challenge is not valid any more.',
    'pt-BR': 'O desafio do segundo fator não é mais válido.',
  }
}

export class OAuthCodeInvalidError extends UnauthorizedError {
  static override readonly code = 'OAUTH_CODE_INVALID'
  static override readonly detail = {
    'en-US': 'This sign-in is over. Please start again.',
    'pt-BR': 'Este login terminou. Comece de novo.',
  }
}

export class OAuthStateMismatchError extends UnauthorizedError {
  static override readonly code = 'OAUTH_STATE_MISMATCH'
  static override readonly detail = {
    'en-US': 'This sign-in did not start here, or it took too long. Please try again.',
    'pt-BR': 'Este login não começou aqui ou demorou demais. Tente novamente.',
  }
}

export class OAuthProviderDeniedError extends UnauthorizedError {
  static override readonly code = 'OAUTH_PROVIDER_DENIED'
  static override readonly detail = { 'en-US': 'The provider did not grant access.', 'pt-BR': 'O provedor não concedeu acesso.' }
}

export class OAuthAccountInactiveError extends UnauthorizedError {
  static override readonly code = 'OAUTH_ACCOUNT_INACTIVE'
  static override readonly detail = { 'en-US': 'This account is not active.', 'pt-BR': 'Esta conta não está ativa.' }
}

export class OAuthTokenAudienceMismatchError extends UnauthorizedError {
  static override readonly code = 'OAUTH_TOKEN_AUDIENCE_MISMATCH'
  static override readonly detail = {
    'en-US': 'The token was issued to another application.',
    'pt-BR': 'O token foi emitido para outro aplicativo.',
  }
}

export class OAuthTokenRejectedError extends UnauthorizedError {
  static override readonly code = 'OAUTH_TOKEN_REJECTED'
  static override readonly detail = { 'en-US': 'The provider does not accept this token.', 'pt-BR': 'O provedor não aceita este token.' }
}

// ---- 403 -----------------------------------------------------------------------------------------------------------

export class ForbiddenError extends AppError {
  static override readonly status = 403
  static override readonly code: string = 'FORBIDDEN'
  static override readonly detail: LocalizedText = { 'en-US': 'This is not allowed.', 'pt-BR': 'Isto não é permitido.' }
}

export class AccountInactiveError extends ForbiddenError {
  static override readonly code = 'ACCOUNT_INACTIVE'
  static override readonly detail = { 'en-US': 'This account is not active.', 'pt-BR': 'Esta conta não está ativa.' }
}

export class CsrfValidationFailedError extends ForbiddenError {
  static override readonly code = 'CSRF_VALIDATION_FAILED'
  static override readonly detail = { 'en-US': 'The request came from another site.', 'pt-BR': 'A requisição veio de outro site.' }
}

export class MfaRequiredError extends ForbiddenError {
  static override readonly code = 'MFA_REQUIRED'
  static override readonly detail = { 'en-US': 'A second factor is required.', 'pt-BR': 'É preciso um segundo fator.' }
}

export class MfaFactorTooNewError extends ForbiddenError {
  static override readonly code = 'MFA_FACTOR_TOO_NEW'
  static override readonly detail = {
    'en-US': 'This way to sign in was added less than a day ago. Please use another one, or wait.',
    'pt-BR': 'Esta forma de entrar foi adicionada há menos de um dia. Use outra ou aguarde.',
  }
}

/** `details.methods` says how to confirm one's identity. Answered with the challenge of RFC 9470, under 403 because clients refresh after a 401. */
export class ReauthenticationRequiredError extends ForbiddenError {
  static override readonly code = 'REAUTHENTICATION_REQUIRED'
  static override readonly detail = {
    'en-US': 'Please confirm that it is you, and try again.',
    'pt-BR': 'Confirme que é você e tente novamente.',
  }

  /** How old the last authentication may be, for the challenge. */
  readonly maxAgeSeconds: number

  constructor({ maxAgeSeconds = 0, ...options }: AppErrorOptions & { maxAgeSeconds?: number } = {}) {
    super(options)
    this.maxAgeSeconds = maxAgeSeconds
  }
}

export class EmailNotVerifiedError extends ForbiddenError {
  static override readonly code = 'EMAIL_NOT_VERIFIED'
  static override readonly detail = {
    'en-US': 'Please confirm your email address first.',
    'pt-BR': 'Confirme seu e-mail primeiro.',
  }
}

export class EmailLinkForbiddenError extends ForbiddenError {
  static override readonly code = 'EMAIL_LINK_FORBIDDEN'
  static override readonly detail = {
    'en-US': 'This account does not accept email links.',
    'pt-BR': 'Esta conta não aceita links por e-mail.',
  }
}

export class OAuthRegistrationDisabledError extends ForbiddenError {
  static override readonly code = 'OAUTH_REGISTRATION_DISABLED'
  static override readonly detail = { 'en-US': 'New accounts are not accepted.', 'pt-BR': 'Novas contas não são aceitas.' }
}

// ---- 404, 405 ------------------------------------------------------------------------------------------------------

export class NotFoundError extends AppError {
  static override readonly status = 404
  static override readonly code: string = 'NOT_FOUND'
  static override readonly detail: LocalizedText = { 'en-US': 'Not found.', 'pt-BR': 'Não encontrado.' }
}

export class OAuthProviderNotConfiguredError extends NotFoundError {
  static override readonly code = 'OAUTH_PROVIDER_NOT_CONFIGURED'
  static override readonly detail = { 'en-US': 'This provider is not configured.', 'pt-BR': 'Este provedor não está configurado.' }
}

export class OAuthAccountNotLinkedError extends NotFoundError {
  static override readonly code = 'OAUTH_ACCOUNT_NOT_LINKED'
  static override readonly detail = {
    'en-US': 'This provider is not linked to your account.',
    'pt-BR': 'Este provedor não está vinculado à sua conta.',
  }
}

export class MethodNotAllowedError extends AppError {
  static override readonly status = 405
  static override readonly code = 'METHOD_NOT_ALLOWED'
  static override readonly detail = { 'en-US': 'This method is not allowed here.', 'pt-BR': 'Este método não é permitido aqui.' }
}

// ---- 409 -----------------------------------------------------------------------------------------------------------

export class ConflictError extends AppError {
  static override readonly status = 409
  static override readonly code: string = 'CONFLICT'
  static override readonly detail: LocalizedText = {
    'en-US': 'This conflicts with what is already there.',
    'pt-BR': 'Isto conflita com o que já existe.',
  }
}

export class EmailTakenError extends ConflictError {
  static override readonly code = 'EMAIL_TAKEN'
  static override readonly detail = {
    'en-US': 'This email already belongs to an account.',
    'pt-BR': 'Este e-mail já pertence a uma conta.',
  }
}

export class PasswordAlreadySetError extends ConflictError {
  static override readonly code = 'PASSWORD_ALREADY_SET'
  static override readonly detail = { 'en-US': 'This account already has a password.', 'pt-BR': 'Esta conta já tem uma senha.' }
}

export class MfaAlreadyEnrolledError extends ConflictError {
  static override readonly code = 'MFA_ALREADY_ENROLLED'
  static override readonly detail = { 'en-US': 'A second factor is already active.', 'pt-BR': 'Já existe um segundo fator ativo.' }
}

export class OAuthEmailTakenError extends ConflictError {
  static override readonly code = 'OAUTH_EMAIL_TAKEN'
  static override readonly detail = {
    'en-US': 'This email already belongs to an account. Sign in to it and link the provider from your settings.',
    'pt-BR': 'Este e-mail já pertence a uma conta. Entre nela e vincule o provedor nas configurações.',
  }
}

export class OAuthEmailUnverifiedError extends ConflictError {
  static override readonly code = 'OAUTH_EMAIL_UNVERIFIED'
  static override readonly detail = {
    'en-US': 'This email already belongs to an account, and the provider did not verify it.',
    'pt-BR': 'Este e-mail já pertence a uma conta, e o provedor não o verificou.',
  }
}

export class OAuthIdentityTakenError extends ConflictError {
  static override readonly code = 'OAUTH_IDENTITY_TAKEN'
  static override readonly detail = {
    'en-US': 'This identity is linked to another account.',
    'pt-BR': 'Esta identidade está vinculada a outra conta.',
  }
}

export class OAuthProviderAlreadyLinkedError extends ConflictError {
  static override readonly code = 'OAUTH_PROVIDER_ALREADY_LINKED'
  static override readonly detail = {
    'en-US': 'Another identity of this provider is already linked.',
    'pt-BR': 'Outra identidade deste provedor já está vinculada.',
  }
}

export class LastLoginMethodError extends ConflictError {
  static override readonly code = 'LAST_LOGIN_METHOD'
  static override readonly detail = {
    'en-US': 'This is the only way left to sign in to this account.',
    'pt-BR': 'Esta é a única forma restante de entrar nesta conta.',
  }
}

// ---- 413, 415, 422 -------------------------------------------------------------------------------------------------

export class PayloadTooLargeError extends AppError {
  static override readonly status = 413
  static override readonly code = 'PAYLOAD_TOO_LARGE'
  static override readonly detail = { 'en-US': 'The request body is too large.', 'pt-BR': 'O corpo da requisição é grande demais.' }
}

export class UnsupportedMediaTypeError extends AppError {
  static override readonly status = 415
  static override readonly code = 'UNSUPPORTED_MEDIA_TYPE'
  static override readonly detail = {
    'en-US': 'Send JSON (Content-Type: application/json).',
    'pt-BR': 'Envie JSON (Content-Type: application/json).',
  }
}

export class ValidationError extends AppError {
  static override readonly status = 422
  static override readonly code: string = 'VALIDATION_ERROR'
  static override readonly detail: LocalizedText = { 'en-US': 'The request is not valid.', 'pt-BR': 'A requisição não é válida.' }
}

export class MfaNotEnrolledError extends ValidationError {
  static override readonly code = 'MFA_NOT_ENROLLED'
  static override readonly detail = { 'en-US': 'This account has no second factor.', 'pt-BR': 'Esta conta não tem segundo fator.' }
}

export class OAuthEmailMissingError extends ValidationError {
  static override readonly code = 'OAUTH_EMAIL_MISSING'
  static override readonly detail = {
    'en-US': 'The provider returned no usable email address.',
    'pt-BR': 'O provedor não retornou um e-mail utilizável.',
  }
}

export class OAuthCodeMissingError extends ValidationError {
  static override readonly code = 'OAUTH_CODE_MISSING'
  static override readonly detail = {
    'en-US': 'The provider returned neither a code nor an error.',
    'pt-BR': 'O provedor não retornou nem código nem erro.',
  }
}

export class UnknownFilterKeyError extends ValidationError {
  static override readonly code = 'UNKNOWN_FILTER_KEY'
  static override readonly detail = { 'en-US': 'Unknown filter.', 'pt-BR': 'Filtro desconhecido.' }
}

export class InvalidFilterValueError extends ValidationError {
  static override readonly code = 'INVALID_FILTER_VALUE'
  static override readonly detail = { 'en-US': 'The filter value is not valid.', 'pt-BR': 'O valor do filtro não é válido.' }
}

// ---- 429: `details.retry_after_seconds` is repeated in the Retry-After header ---------------------------------------

export class TooManyRequestsError extends AppError {
  static override readonly status = 429
  static override readonly code: string = 'TOO_MANY_REQUESTS'
  static override readonly detail: LocalizedText = { 'en-US': 'Too many requests. Please wait.', 'pt-BR': 'Requisições demais. Aguarde.' }
}

export class LoginThrottledError extends TooManyRequestsError {
  static override readonly code = 'LOGIN_THROTTLED'
  static override readonly detail = { 'en-US': 'Too many failed logins. Please wait.', 'pt-BR': 'Muitas tentativas de login. Aguarde.' }
}

export class SignupThrottledError extends TooManyRequestsError {
  static override readonly code = 'SIGNUP_THROTTLED'
  static override readonly detail = { 'en-US': 'Too many new accounts. Please wait.', 'pt-BR': 'Contas novas demais. Aguarde.' }
}

export class MfaThrottledError extends TooManyRequestsError {
  static override readonly code = 'MFA_THROTTLED'
  static override readonly detail = { 'en-US': 'Too many wrong codes. Please wait.', 'pt-BR': 'Códigos errados demais. Aguarde.' }
}

// ---- 500 and up ----------------------------------------------------------------------------------------------------

export class InternalError extends AppError {}

export class OAuthAudienceUnverifiableError extends AppError {
  static override readonly status = 501
  static override readonly code = 'OAUTH_AUDIENCE_UNVERIFIABLE'
  static override readonly detail = {
    'en-US': 'This provider cannot tell which application a token was issued to.',
    'pt-BR': 'Este provedor não informa para qual aplicativo um token foi emitido.',
  }
}

export class OAuthError extends AppError {
  static override readonly status = 502
  static override readonly code: string = 'OAUTH_ERROR'
  static override readonly detail: LocalizedText = {
    'en-US': 'The provider refused or gave an unusable answer.',
    'pt-BR': 'O provedor recusou ou deu uma resposta inutilizável.',
  }
}

export class OAuthProviderUnavailableError extends OAuthError {
  static override readonly code = 'OAUTH_PROVIDER_UNAVAILABLE'
  static override readonly detail = {
    'en-US': 'The provider cannot be reached. Please try again.',
    'pt-BR': 'O provedor não pode ser alcançado. Tente novamente.',
  }
}

/** `details.retry_after_seconds` is repeated in the Retry-After header; `retryAfterSeconds` when not given. */
export class ServiceUnavailableError extends AppError {
  static override readonly status = 503
  static override readonly code = 'SERVICE_UNAVAILABLE'
  static override readonly detail = {
    'en-US': 'The service is busy. Please try again.',
    'pt-BR': 'O serviço está ocupado. Tente novamente.',
  }

  readonly retryAfterSeconds: number = 1
  /** What stands behind it is logged elsewhere, and not with each request. */
  readonly isLogged: boolean = false
}

// ---- for developers, never on the wire -----------------------------------------------------------------------------

/** A wrong option or setting, found at construction; the message names the piece and the fix, never a value. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
}

// As `withOwnMessage` of logger.ts marks errors: logs may show the message. Not within the class, whose name the bundler would change.
Object.defineProperty(ConfigurationError.prototype, Symbol.for('doorward.own-message.v1'), { value: true })

/** A provider client was asked for something it was not configured to do. */
export class NotImplementedError extends Error {
  override readonly name = 'NotImplementedError'
}
