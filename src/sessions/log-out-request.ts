import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Answer, done, shape, stringOrNull } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { isPassportProvider } from '../providers/passport-provider'
import { clearLoginCookies, clearSessionCookie, readAccessCookie, readRefreshCookie, readSessionCookie } from './cookies'
import { clearEndedCookies } from './current-auth'
import { setsTokenCookies } from './delivery'
import { readDevices } from './devices/device-cookie'
import { endNamed, endNamedAtOnce, type LoggedOut, type LogoutTokens } from './log-out'

/** Shared by all logout routes. */
export const logoutLimit = 'logout'

/** From modules of a higher layer. */
export interface LogoutRules {
  /** Counts the request. */
  isWithinRateLimit(req: Request): Promise<boolean>
  /** Ends this browser's unfinished provider logins. Removes the ended sessions from the device cookie; the device stays known. */
  endOthers(req: Request, res: Response, endedIds: readonly string[]): void
}

export interface LogoutBody {
  all_sessions: boolean
  provider_logout: boolean
  refresh_token?: string
}

const flag = Joi.boolean().optional().default(false)
export const logoutFields = { all_sessions: flag, provider_logout: flag } as const

export const logoutAnswers: readonly Answer[] = [
  done,
  {
    status: 200,
    description:
      'With `provider_logout`: the URL where the browser logs out at the provider. Null if no provider opened the session, or if the provider has no such URL.',
    schema: shape('ProviderLogout', { logout_url: stringOrNull }),
  },
]

/** Runs before the response. Above the rate limit, it is at most one statement, and the result has no provider. */
export async function logOutRequest(
  ctx: AuthContext,
  rules: LogoutRules,
  [req, res]: readonly [Request, Response],
  tokens: LogoutTokens,
  { all_sessions: allSessions }: LogoutBody,
): Promise<LoggedOut> {
  const isWithinRateLimit = await rules.isWithinRateLimit(req)
  const ended = isWithinRateLimit ? await endNamed(ctx, tokens, { allSessions }) : await endNamedAtOnce(ctx, tokens)
  rules.endOthers(req, res, ended.endedIds)
  if (isWithinRateLimit) await clearEndedCookies(ctx, req, res)
  return ended
}

export function tokensOfCookies(ctx: AuthContext, req: Request): LogoutTokens {
  const isByTokens = setsTokenCookies(ctx.settings.tokenDelivery)
  return {
    device: readDevices(ctx, req)[0] ?? null,
    sessionToken: readSessionCookie(ctx, req),
    refreshToken: isByTokens ? readRefreshCookie(ctx, req) : null,
    accessToken: isByTokens ? readAccessCookie(ctx, req) : null,
  }
}

/** The refresh cookie is cleared even if the request does not show it, because of its path. */
export function clearSessionCookies(ctx: AuthContext, req: Request, res: Response): void {
  const { tokenDelivery } = ctx.settings
  if (setsTokenCookies(tokenDelivery)) clearLoginCookies(ctx, res)
  if (tokenDelivery === 'session' || readSessionCookie(ctx, req) !== null) clearSessionCookie(ctx, res)
}

export function sendLoggedOut(ctx: AuthContext, res: Response, { provider }: LoggedOut, { provider_logout: isAsked }: LogoutBody): void {
  if (!isAsked) return void sendEmpty(res)
  const logoutUrl = logoutUrlOf(ctx, provider)
  setResult(res, { logoutUrl })
  sendJson(res, 200, { logout_url: logoutUrl })
}

export const logoutSummary = 'Log out: revoke the session of this browser, or all sessions of the account'

/** Always 204 (200 with `provider_logout`), because a logout requires no login. */
export function logoutByCookies(ctx: AuthContext, path: '/logout' | '/cookie/logout', rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path,
    describes: {
      summary: logoutSummary,
      answers: logoutAnswers,
      credential: ctx.settings.tokenDelivery === 'session' ? 'session_cookie' : 'refresh_cookie',
      limit: logoutLimit,
    },
    before: [sameSite(ctx)],
    body: Joi.object<LogoutBody>(logoutFields),
    handle: async (req, res, body) => {
      const ended = await logOutRequest(ctx, rules, [req, res], tokensOfCookies(ctx, req), body)
      clearSessionCookies(ctx, req, res)
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}

export function logoutOfSession(ctx: AuthContext, rules: LogoutRules): Route {
  return withBody({
    method: 'POST',
    path: '/session/logout',
    describes: { summary: logoutSummary, answers: logoutAnswers, credential: 'session_cookie', limit: logoutLimit },
    before: [sameSite(ctx)],
    body: Joi.object<LogoutBody>(logoutFields),
    handle: async (req, res, body) => {
      const ended = await logOutRequest(ctx, rules, [req, res], { sessionToken: readSessionCookie(ctx, req) }, body)
      clearSessionCookie(ctx, res)
      sendLoggedOut(ctx, res, ended, body)
    },
  })
}

/**
 * OpenID Connect RP-Initiated Logout 1.0 section 2. Null without a provider, or without such a URL. Without `id_token_hint`, because
 * doorward stores no id_token: the provider can ask the person to confirm.
 * @param provider the registration key in the session's row
 */
export function logoutUrlOf({ providers, settings }: AuthContext, provider: string | null): string | null {
  const client = provider === null ? undefined : providers.get(provider)
  if (!client || isPassportProvider(client) || typeof client.endSessionUrl !== 'string') return null
  const url = new URL(client.endSessionUrl)
  url.searchParams.set('client_id', client.clientId)
  if (settings.logoutRedirect !== null)
    url.searchParams.set('post_logout_redirect_uri', absolute(settings.logoutRedirect, settings.publicUrl))
  return url.href
}

function absolute(target: string, publicUrl: string): string {
  return target.startsWith('/') ? `${publicUrl}${target}` : target
}
