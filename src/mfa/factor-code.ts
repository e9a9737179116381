import {
  AccountInactiveError,
  MfaCodeInvalidError,
  MfaNotEnrolledError,
  MfaThrottledError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../errors'
import { text } from '../http/validate'

/** Six digits or a recovery code; anything else that is text is a wrong code (contract section 12, MFA). */
export const factorCode = text(256).allow('')

/** In a body: names the session that goes on. */
export const keptRefreshToken = text(4096).optional()

/** How a route refuses that asks a signed-in person for a code. */
export const unauthorized = [UnauthorizedError, AccountInactiveError, TooManyRequestsError]
export const codeRefusals = [MfaCodeInvalidError, MfaNotEnrolledError, MfaThrottledError]
