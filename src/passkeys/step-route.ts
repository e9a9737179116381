import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaNotEnrolledError, MfaTokenInvalidError } from '../core/errors'
import { setResult } from '../http/outcome'
import { type Route, withBody } from '../http/routes'
import { sendJson } from '../http/send'
import { text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { optionsBody, requestOptionsSchema } from './options'
import { passkeyStepOptions } from './step-options'

/**
 * Returns the route that begins a second-factor step with a passkey. The route is the same for every `tokenDelivery`. `POST /mfa/verify`
 * finishes the login.
 */
export function passkeyStepRoute(ctx: AuthContext): Route {
  return withBody({
    method: 'POST',
    path: '/mfa/passkey/options',
    describes: {
      summary: 'Get the options to finish a login with a passkey',
      answers: [
        {
          status: 200,
          description: 'The options for `navigator.credentials.get()`, valid for 5 minutes with this `mfa_token`.',
          schema: requestOptionsSchema,
        },
      ],
      refuses: [MfaTokenInvalidError, MfaNotEnrolledError],
    },
    before: [routeRateLimit(ctx, 'mfa_passkey_options')],
    body: Joi.object<{ mfa_token: string }>({ mfa_token: text(4096) }),
    handle: async (_req, res, { mfa_token: mfaToken }) => {
      const begun = await passkeyStepOptions(ctx, mfaToken)
      setResult(res, begun)
      sendJson(res, 200, optionsBody(begun))
    },
  })
}
