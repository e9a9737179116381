import Joi from 'joi'
import {
  AccountInactiveError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../core/errors'
import { text } from '../http/validate'

/** Six digits or a recovery code. Any other string counts as a wrong code, not as a malformed request. */
export const factorCode = Joi.string().allow('')

/** The body field with the refresh token of the session that stays. */
export const keptRefreshToken = text(4096).optional()

/** Errors of a route that needs a logged-in person and a code. */
export const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
export const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
