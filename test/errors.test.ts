import { describe, expect, test } from 'vitest'
import * as catalogue from '../src/core/errors'

const { AppError, ConfigurationError, NotImplementedError } = catalogue

type ErrorClass = typeof AppError

/** Contract section 7 and the specification's two tables: code, status, family. */
const promised: [code: string, status: number, family: ErrorClass][] = [
  ['UNAUTHORIZED', 401, AppError],
  ['INVALID_TOKEN', 401, catalogue.UnauthorizedError],
  ['TOKEN_EXPIRED', 401, catalogue.UnauthorizedError],
  ['MFA_CODE_INVALID', 401, catalogue.UnauthorizedError],
  ['EMAIL_LOGIN_INVALID', 401, catalogue.UnauthorizedError],
  ['MFA_TOKEN_INVALID', 401, catalogue.UnauthorizedError],
  ['TASK_TOKEN_INVALID', 401, catalogue.UnauthorizedError],
  ['INVITATION_REQUIRED', 403, catalogue.ForbiddenError],
  ['PASSKEY_REJECTED', 401, catalogue.UnauthorizedError],
  ['OAUTH_CODE_INVALID', 401, catalogue.UnauthorizedError],
  ['OAUTH_STATE_MISMATCH', 401, catalogue.UnauthorizedError],
  ['OAUTH_PROVIDER_DENIED', 401, catalogue.UnauthorizedError],
  ['OAUTH_ACCOUNT_INACTIVE', 401, catalogue.UnauthorizedError],
  ['OAUTH_TOKEN_AUDIENCE_MISMATCH', 401, catalogue.UnauthorizedError],
  ['OAUTH_TOKEN_REJECTED', 401, catalogue.UnauthorizedError],
  ['FORBIDDEN', 403, AppError],
  ['ACCOUNT_INACTIVE', 403, catalogue.ForbiddenError],
  ['APPROVAL_PENDING', 403, catalogue.ForbiddenError],
  ['DELETION_PENDING', 403, catalogue.ForbiddenError],
  ['CAPTCHA_REQUIRED', 403, catalogue.ForbiddenError],
  ['CSRF_VALIDATION_FAILED', 403, catalogue.ForbiddenError],
  ['MFA_REQUIRED', 403, catalogue.ForbiddenError],
  ['EMAIL_LINK_FORBIDDEN', 403, catalogue.ForbiddenError],
  ['REAUTHENTICATION_REQUIRED', 403, catalogue.ForbiddenError],
  ['MFA_FACTOR_TOO_NEW', 403, catalogue.ForbiddenError],
  ['EMAIL_NOT_VERIFIED', 403, catalogue.ForbiddenError],
  ['OAUTH_REGISTRATION_DISABLED', 403, catalogue.ForbiddenError],
  ['NOT_FOUND', 404, AppError],
  ['OAUTH_PROVIDER_NOT_CONFIGURED', 404, catalogue.NotFoundError],
  ['OAUTH_ACCOUNT_NOT_LINKED', 404, catalogue.NotFoundError],
  ['METHOD_NOT_ALLOWED', 405, AppError],
  ['CONFLICT', 409, AppError],
  ['EMAIL_TAKEN', 409, catalogue.ConflictError],
  ['PASSWORD_ALREADY_SET', 409, catalogue.ConflictError],
  ['MFA_ALREADY_ENROLLED', 409, catalogue.ConflictError],
  ['PASSKEY_TAKEN', 409, catalogue.ConflictError],
  ['PASSKEY_LIMIT', 409, catalogue.ConflictError],
  ['OAUTH_EMAIL_TAKEN', 409, catalogue.ConflictError],
  ['OAUTH_EMAIL_UNVERIFIED', 409, catalogue.ConflictError],
  ['OAUTH_IDENTITY_TAKEN', 409, catalogue.ConflictError],
  ['OAUTH_PROVIDER_ALREADY_LINKED', 409, catalogue.ConflictError],
  ['LAST_LOGIN_METHOD', 409, catalogue.ConflictError],
  ['PAYLOAD_TOO_LARGE', 413, AppError],
  ['UNSUPPORTED_MEDIA_TYPE', 415, AppError],
  ['VALIDATION_ERROR', 422, AppError],
  ['MFA_NOT_ENROLLED', 422, catalogue.ValidationError],
  ['PASSKEY_INVALID', 422, catalogue.ValidationError],
  ['OAUTH_EMAIL_MISSING', 422, catalogue.ValidationError],
  ['OAUTH_CODE_MISSING', 422, catalogue.ValidationError],
  ['UNKNOWN_FILTER_KEY', 422, catalogue.ValidationError],
  ['INVALID_FILTER_VALUE', 422, catalogue.ValidationError],
  ['TOO_MANY_REQUESTS', 429, AppError],
  ['LOGIN_THROTTLED', 429, catalogue.TooManyRequestsError],
  ['SIGNUP_THROTTLED', 429, catalogue.TooManyRequestsError],
  ['MFA_THROTTLED', 429, catalogue.TooManyRequestsError],
  ['INTERNAL_ERROR', 500, AppError],
  ['OAUTH_AUDIENCE_UNVERIFIABLE', 501, AppError],
  ['OAUTH_ERROR', 502, AppError],
  ['OAUTH_PROVIDER_UNAVAILABLE', 502, catalogue.OAuthError],
  ['SERVICE_UNAVAILABLE', 503, AppError],
  ['CAPTCHA_UNAVAILABLE', 503, catalogue.ServiceUnavailableError],
]

/** Contract section 11: the code in PascalCase with `Error`; OAUTH_ERROR and its like have the word already. */
function classNameOf(code: string): string {
  const words = code.replace(/_ERROR$/, '').split('_')
  return `${words.map((word) => (word === 'OAUTH' ? 'OAuth' : word.charAt(0) + word.slice(1).toLowerCase())).join('')}Error`
}

function classOf(code: string): ErrorClass {
  const found = (catalogue as unknown as Record<string, ErrorClass | undefined>)[classNameOf(code)] // looked up by a computed name
  if (!found) throw new Error(`${classNameOf(code)} is not exported`)
  return found
}

const wireClasses = Object.values(catalogue).filter(
  (exported): exported is ErrorClass => typeof exported === 'function' && (exported === AppError || exported.prototype instanceof AppError),
)

describe.each(promised)('%s', (code, status, family) => {
  const Class = classOf(code)

  test(`is the code of ${classNameOf(code)} and answers ${status}`, () => {
    const error = new Class()

    expect({ code: error.code, status: error.status, name: error.name }).toEqual({ code, status, name: classNameOf(code) })
    expect({ code: Class.code, status: Class.status }).toEqual({ code, status })
  })

  test(`is caught by a handler for its family, ${family.name}`, () => {
    expect(Object.getPrototypeOf(Class)).toBe(family)
    expect(new Class()).toBeInstanceOf(family)
    expect(new Class()).toBeInstanceOf(Error)
  })

  test('can be built without arguments, with details {} and its text in both languages', () => {
    const error = new Class()

    expect(error.details).toEqual({})
    expect(error.cause).toBeUndefined()
    expect(error.message).toBe(error.detail['en-US'])
    expect(Object.keys(error.detail).sort()).toEqual(['en-US', 'pt-BR'])
    expect(error.detail['en-US']).toMatch(/\S/)
    expect(error.detail['pt-BR']).toMatch(/\S/)
    expect(error.detail['pt-BR']).not.toBe(error.detail['en-US'])
  })

  test('keeps the details and the cause it is given', () => {
    const cause = new Error('why')
    const error = new Class({ details: { provider: 'corp' }, cause })

    expect(error.details).toEqual({ provider: 'corp' })
    expect(error.cause).toBe(cause)
  })
})

test('a refused login is UNAUTHORIZED by code and family, in words of its own (contract section 2)', () => {
  const error = new catalogue.InvalidCredentialsError()

  expect(error).toBeInstanceOf(catalogue.UnauthorizedError)
  expect({ code: error.code, status: error.status, details: error.details }).toEqual({ code: 'UNAUTHORIZED', status: 401, details: {} })
  expect(error.detail['en-US']).toBe('invalid email or password')
  expect(error.detail['pt-BR']).toMatch(/\S/)
})

test('no error class is exported beside the promised ones, and no two errors share their details', () => {
  const names = [...promised.map(([code]) => classNameOf(code)), 'AppError', 'InvalidCredentialsError']
  expect(wireClasses.map((Class) => Class.name).sort()).toEqual(names.sort())
  expect(new AppError().details).not.toBe(new AppError().details)
})

test('an invalid second-factor code says "invalid MFA code", as the specification quotes it', () => {
  expect(new catalogue.MfaCodeInvalidError().detail['en-US']).toBe('invalid MFA code')
})

test('what is meant for the developer never passes for an error of the wire', () => {
  for (const Class of [ConfigurationError, NotImplementedError]) {
    const error = new Class('say what to do')
    expect(error).toBeInstanceOf(Error)
    expect(error).not.toBeInstanceOf(AppError)
    expect(error.name).toBe(Class.name)
  }
})
