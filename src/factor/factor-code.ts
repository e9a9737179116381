import Joi from 'joi'
import {
  AccountInactiveError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../errors'
import { text } from '../http/validate'

/** Six digits or a recovery code. Any other string is a wrong code, not a malformed request. */
export const factorCode = Joi.string().allow('')

/** Body field: names the session that stays. */
export const keptRefreshToken = text(4096).optional()

/** Errors of a route that asks a person who is logged in for a code. */
export const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
export const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
