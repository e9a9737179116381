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

/** Six digits or a recovery code; any other string is a wrong code, whatever its length and characters. */
export const factorCode = Joi.string().allow('')

/** In a body: names the session that goes on. */
export const keptRefreshToken = text(4096).optional()

/** How a route refuses that asks a signed-in person for a code. */
export const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
export const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
