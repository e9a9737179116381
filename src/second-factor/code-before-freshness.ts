import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { MfaNotEnrolledError, MfaThrottledError } from '../core/errors'
import { describeStep } from '../http/description'
import { readJsonBody } from '../http/json-body'
import { step } from '../http/routes'
import { codeDevice } from '../sessions/reauthentication/code-device'
import { isFresh, requestSessionOf } from '../sessions/reauthentication/fresh-session'
import { takeCode } from './code-limits'

/**
 * Returns a middleware that answers 422 MFA_NOT_ENROLLED or 429 MFA_THROTTLED to a code in a stale session, because these errors come
 * before 403 REAUTHENTICATION_REQUIRED. Place the middleware between `aliveSession` and `freshSession`. It does nothing in a fresh session,
 * because the route itself sends these errors. It counts no attempt.
 */
export function codeBeforeFreshness(ctx: AuthContext, { isRequired = false } = {}): RequestHandler {
  const check = step(async (req, res) => {
    const found = requestSessionOf(req)
    if (isFresh(found, ctx.settings.freshSessionSeconds)) return
    const { code, previous_token } = Object(await readJsonBody(req, res)) as Record<string, unknown> // not validated yet
    if (found.user.totpEnabledAt === null) {
      if (isRequired || typeof code === 'string') throw new MfaNotEnrolledError()
    } else if (typeof code === 'string') {
      const previous = typeof previous_token === 'string' ? { previous_token } : {}
      const device = await codeDevice(ctx, req, { code, ...previous })
      await (await takeCode(ctx, { userId: found.user.id, code, device })).giveBack()
    }
  })
  return describeStep(check, { refuses: [MfaNotEnrolledError, MfaThrottledError] })
}
