import type { ErrorRequestHandler, Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  LastLoginMethodError,
  OAuthAccountNotLinkedError,
  OAuthCodeMissingError,
  OAuthProviderNotConfiguredError,
  UnauthorizedError,
} from '../errors'
import { getAuth } from '../guards/current-auth'
import type { Guards } from '../guards/guards'
import { routeBudget } from '../guards/route-budget'
import { sameSiteWhenByCookie } from '../guards/same-site'
import { done } from '../http/description'
import { readRefusal } from '../http/error-envelope'
import { askedLocale, localeOf } from '../http/locale'
import { type Route, withBody } from '../http/routes'
import { sendEmpty, sendJson, sendRedirect } from '../http/send'
import { text } from '../http/validate'
import { sendChallengePage, wantsChallengePage } from '../pages/challenge-page'
import { normalizeProfile } from '../providers/normalize-profile'
import { sendLogin, setLoginCookies } from '../session/delivery'
import { openTokens } from '../session/open-session'
import { originOf } from '../session/session-cookie'
import { beginAttempt, takeAttempt } from './attempts'
import { describesCallback } from './describes-callback'
import { listIdentities, unlinkIdentity } from './identities'
import { identityBody, identitySchema } from './identity-body'
import { checkIssuerParameter } from './issuer-parameter'
import { finishLink, linkRoutes } from './link-routes'
import { logInWithIdentity } from './log-in-with-identity'
import { withProviderErrors } from './provider-errors'
import { queryParameter } from './query-parameter'
import { createRedirectFlow, type RedirectFlow } from './redirect-flow'
import { registeredProvider } from './registered-provider'
import { tellingFailures } from './telling-failures'
import { tokenRoutes } from './token-routes'

export function socialRoutes(ctx: AuthContext, guards: Guards): Route[] {
  const flow = createRedirectFlow(ctx)
  return [
    {
      method: 'GET',
      path: '/oauth/:provider/login',
      describes: {
        summary: 'Send the browser to the provider',
        answers: [{ status: 302, description: 'To the provider, with the attempt in a cookie.' }],
        refuses: [OAuthProviderNotConfiguredError],
      },
      refusesHead: true,
      handle: async (req, res) => {
        const { key } = registeredProvider(ctx, req)
        sendRedirect(res, await flow.authorizeUrl(beginAttempt(ctx, req, res, key, { purpose: 'login' })))
      },
    },
    {
      method: 'GET',
      path: '/oauth/:provider/callback',
      describes: describesCallback(ctx.settings),
      loginShaped: true,
      refusesHead: true,
      before: [routeBudget(ctx, 'oauth_callback')],
      handle: (req, res) => tellingFailures(ctx, String(req.params['provider']), () => callback(ctx, flow, req, res)),
      onError: ctx.settings.oauthErrorRedirect === null ? undefined : redirectError(ctx, ctx.settings.oauthErrorRedirect),
    },
    {
      method: 'GET',
      path: '/oauth/accounts',
      describes: {
        summary: 'The linked identities of the account',
        answers: [{ status: 200, description: 'The oldest first.', schema: { type: 'array', items: identitySchema } }],
      },
      before: [guards.requireAuth()],
      handle: async (req, res) => sendJson(res, 200, (await listIdentities(ctx, getAuth(req).sub)).map(identityBody)),
    },
    withBody({
      method: 'POST',
      path: '/oauth/accounts/unlink',
      describes: {
        summary: 'Unlink a provider from the account',
        answers: [done],
        refuses: [UnauthorizedError, AccountInactiveError, OAuthAccountNotLinkedError, LastLoginMethodError],
      },
      before: [guards.requireAuth(), sameSiteWhenByCookie(ctx)],
      body: Joi.object<{ provider: string }>({ provider: text(64) }),
      handle: async (req, res, body) => {
        await unlinkIdentity(ctx, getAuth(req).sub, body.provider, { locale: localeOf(req, ctx.settings.defaultLocale) })
        sendEmpty(res)
      },
    }),
    ...tokenRoutes(ctx),
    ...linkRoutes(ctx, guards, flow),
  ]
}

async function callback(ctx: AuthContext, flow: RedirectFlow, req: Request, res: Response): Promise<void> {
  const { key, client } = registeredProvider(ctx, req)
  const attempt = await takeAttempt(ctx, req, res, key)
  const code = queryParameter(req, 'code', 4096)
  if (code === null) throw new OAuthCodeMissingError()
  await withProviderErrors(ctx, key, async () => checkIssuerParameter(client, req))
  const tokens = await withProviderErrors(ctx, key, () => flow.exchange(attempt, code))
  // Made safe in here: an unusable profile is the provider's failure, and is told as one.
  const profile = await withProviderErrors(ctx, key, async () => normalizeProfile(key, await client.fetchUser(tokens)))
  if (attempt.purpose === 'link') return finishLink(ctx, req, res, attempt, profile)
  const locale = askedLocale(req) ?? attempt.locale ?? localeOf(req, ctx.settings.defaultLocale)
  const result = await logInWithIdentity(ctx, profile, openTokens(originOf(ctx, req)), { locale })
  const { oauthSuccessRedirect, tokenDelivery } = ctx.settings
  if (result.kind === 'challenge' && wantsChallengePage(ctx, req)) return sendChallengePage(ctx, req, res, result.mfaToken)
  if (oauthSuccessRedirect === null || result.kind === 'challenge') return sendLogin(ctx, res, result, tokenDelivery)
  setLoginCookies(ctx, res, result)
  sendRedirect(res, oauthSuccessRedirect)
}

/** A person comes back to the host's page with the code; the rest of the refusal is for logs. */
function redirectError(ctx: AuthContext, target: string): ErrorRequestHandler {
  return (error, req, res, next) => {
    if (res.headersSent) return next(error)
    sendRedirect(res, withError(target, readRefusal(ctx.logger, req, error).code))
  }
}

function withError(target: string, code: string): string {
  const [page = '', fragment] = target.split('#', 2)
  return `${page}${page.includes('?') ? '&' : '?'}error=${code}${fragment === undefined ? '' : `#${fragment}`}`
}
