import Joi from 'joi'
import { signupOwnershipOf } from '../accounts/email-verification/signup-ownership'
import type { AuthContext } from '../context'
import { clientOf } from '../core/client-key'
import { OAuthProviderNotConfiguredError } from '../core/errors'
import { localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { routeRateLimit } from '../rate-limits/route-rate-limit'
import { newLoginAttempt } from '../sessions/announce-failed-login'
import { loginAnswer } from '../sessions/delivery'
import { loginClient, sendLogin } from '../sessions/devices/send-login'
import { clearEndedCookies } from '../sessions/ended-cookies'
import { createClientShare } from './client-share'
import { idTokenPattern, noncePattern } from './id-token-in-hand'
import { accountRefusals, tokenRefusals } from './refusals'
import { accessTokenPattern, logInWithToken } from './token-in-hand'

export const accessTokenText = Joi.string().pattern(accessTokenPattern)

interface TokenBody {
  access_token?: string
  id_token?: string
  nonce?: string
}

/**
 * Returns the route for a login by an app's token. The route delivers tokens like the callback. With `both`, the tokens are in cookies and
 * in the body. Therefore the route has no second path below `/cookie`.
 */
export function tokenRoutes(ctx: AuthContext): Route[] {
  const { tokenDelivery } = ctx.settings
  const setsCookies = tokenDelivery !== 'bearer'
  const share = createClientShare()
  return [
    withBody({
      method: 'POST',
      path: '/oauth/:provider/token',
      describes: {
        summary: 'Log in with an access token or an id_token that an app already has',
        answers: [loginAnswer(ctx, tokenDelivery)],
        refuses: [...accountRefusals, ...tokenRefusals, OAuthProviderNotConfiguredError],
      },
      loginShaped: true,
      before: [...(setsCookies ? [sameSite(ctx)] : []), routeRateLimit(ctx, 'oauth_token')],
      body: Joi.object<TokenBody>({
        access_token: accessTokenText.optional(),
        id_token: Joi.string().pattern(idTokenPattern).optional(),
        nonce: Joi.string().pattern(noncePattern).optional(),
      })
        .xor('access_token', 'id_token')
        .without('access_token', 'nonce'),
      handle: async (req, res, { access_token: accessToken = '', id_token: idToken, nonce }) => {
        const provider = String(req.params['provider'])
        const locale = localeOf(ctx, req)
        const given = idToken === undefined ? { provider, accessToken } : { provider, idToken, nonce }
        const client = clientOf(req)
        const attempt = newLoginAttempt(client)
        const options = { locale, evidence: () => signupOwnershipOf(ctx, req), attempt }
        const result = await share.run(provider, client, () => logInWithToken(ctx, given, loginClient(ctx, req), options))
        await clearEndedCookies(ctx, req, res)
        sendLogin(ctx, res, result, tokenDelivery)
      },
    }),
  ]
}
