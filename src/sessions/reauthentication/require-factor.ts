import type { RequestHandler } from 'express'
import type { AuthContext } from '../../context'
import { type AuthMethod, isSecondFactor } from '../../core/amr'
import { MfaRequiredError } from '../../core/errors'
import { describeStep } from '../../http/description'
import { step } from '../../http/routes'
import type { UserRecord } from '../../store/auth-store'
import { findAuth } from '../current-auth'
import { requestSessionOf } from './fresh-session'

/**
 * Rejects a session without the second factor, if the account has a second factor.
 * @param amr the methods of the session; undefined for a call without a session, which the function does not check
 * @throws MfaRequiredError
 */
export function requireFactor({ settings }: AuthContext, user: UserRecord, amr: readonly AuthMethod[] | undefined): void {
  if (amr && settings.mfaEnabled && user.totpEnabledAt && !amr.some(isSecondFactor)) throw new MfaRequiredError()
}

/** Returns `requireFactor` as a middleware for requests with an access token. The middleware runs after `aliveSession`. */
export function factorPresented(ctx: AuthContext): RequestHandler {
  const check = step((req) => requireFactor(ctx, requestSessionOf(req).user, findAuth(req)?.amr))
  return describeStep(check, { refuses: [MfaRequiredError] })
}
