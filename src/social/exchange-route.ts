import Joi from 'joi'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { OAuthCodeInvalidError } from '../core/errors'
import { type Route, withBody } from '../http/routes'
import { text } from '../http/validate'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { newLoginAttempt } from '../sessions/announce-failed-login'
import { loginAnswer } from '../sessions/delivery'
import { loginClientWith, sendLogin } from '../sessions/devices/send-login'
import { exchangeCode } from './app-redirect/exchange-code'

interface ExchangeBody {
  code: string
  code_verifier: string
}

/**
 * Returns the route where an app exchanges its code for tokens. The tokens are only in the body. The route reads and sets no cookie, so
 * requests from other sites do no harm.
 */
export function exchangeRoutes(ctx: AuthContext): Route[] {
  if (ctx.settings.appRedirects.length === 0) return []
  return [
    withBody({
      method: 'POST',
      path: '/oauth/exchange',
      describes: {
        summary: 'Finish the login of an app: exchange the code for tokens',
        answers: [loginAnswer(ctx, 'bearer')],
        refuses: [OAuthCodeInvalidError],
      },
      loginShaped: true,
      before: [routeRateLimit(ctx, 'oauth_exchange')],
      body: Joi.object<ExchangeBody>({ code: text(512), code_verifier: text(512) }),
      handle: async (req, res, { code, code_verifier: codeVerifier }) => {
        const client = loginClientWith(ctx, req, 'tokens')
        const result = await exchangeCode(ctx, { code, codeVerifier }, client, newLoginAttempt(clientOf(req)))
        sendLogin(ctx, res, result, 'bearer')
      },
    }),
  ]
}
