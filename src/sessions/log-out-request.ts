import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Answer, done, shape, stringOrNull } from '../http/description'
import { type Route, withBody } from '../http/routes'
import { sameSite } from '../http/same-site'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { isPassportProvider } from '../providers/passport-provider'
import { clearSessionCookie, readSessionCookie } from './cookies'
import { clearEndedCookies } from './current-auth'
import { clearLoginCookies, readAccessCookie, readRefreshCookie, setsTokenCookies } from './delivery'
import { readDevices } from './devices/device-cookie'
import { endNamed, endNamedAtOnce, type LoggedOut, type LogoutTokens } from './log-out'

/** The name of the rate limit of all logout routes. */
export const logoutLimit = 'logout'

/** Functions that a logout needs from modules of a higher layer. */
export interface LogoutRules {
  /** Counts the request. False: the client exceeded the rate limit of the route. */
  isWithinRateLimit(req: Request): Promise<boolean>
  /**
   * Ends the unfinished provider logins of this browser. Removes the sessions that the logout revoked one by one from the device cookie,
   * and the browser stays a known device.
   */
  endOthers(req: Request, res: Response, endedIds: readonly string[]): void
}

/** The body of every logout route. */
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

/**
 * Revokes the sessions that the tokens name, before the response is sent. If the client exceeds the rate limit, the function runs at most
 * one statement, and the result has no provider.
 */
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

/** Returns everything in the cookies of a browser that can name its session. */
export function tokensOfCookies(ctx: AuthContext, req: Request): LogoutTokens {
  const isByTokens = setsTokenCookies(ctx.settings.tokenDelivery)
  return {
    device: readDevices(ctx, req)[0] ?? null,
    sessionToken: readSessionCookie(ctx, req),
    refreshToken: isByTokens ? readRefreshCookie(ctx, req) : null,
    accessToken: isByTokens ? readAccessCookie(ctx, req) : null,
  }
}

/** Clears the cookies of a session. The refresh cookie is cleared even if the request does not show it, because of its path. */
export function clearSessionCookies(ctx: AuthContext, req: Request, res: Response): void {
  const { tokenDelivery } = ctx.settings
  if (setsTokenCookies(tokenDelivery)) clearLoginCookies(ctx, res)
  if (tokenDelivery === 'session' || readSessionCookie(ctx, req) !== null) clearSessionCookie(ctx, res)
}

/** Sends 204, or 200 if the client asked for the provider's logout URL. */
export function sendLoggedOut(ctx: AuthContext, res: Response, { provider }: LoggedOut, { provider_logout: isAsked }: LogoutBody): void {
  if (!isAsked) return void sendEmpty(res)
  const logoutUrl = logoutUrlOf(ctx, provider)
  setResult(res, { logoutUrl })
  sendJson(res, 200, { logout_url: logoutUrl })
}

export const logoutSummary = 'Log out: revoke the session of this browser, or all sessions of the account'

/**
 * Revokes every live session that a cookie of the browser names, and clears the cookies. Always responds with 204 (200 with
 * `provider_logout`), because a logout requires no login.
 */
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

/** Revokes only the server-side session of the cookie, in every delivery. */
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
 * Returns the URL where a browser also ends its session at the provider (OpenID Connect RP-Initiated Logout 1.0 section 2). Null: the
 * session was started without a provider, or the provider has no such URL. The URL has no `id_token_hint`, because doorward stores no
 * id_token. So the provider can ask the person to confirm the logout.
 *
 * @param provider the registration key in the session's row; null: the session has no provider
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

/** Returns the absolute URL of a path of this site, because the provider needs an absolute URL. */
function absolute(target: string, publicUrl: string): string {
  return target.startsWith('/') ? `${publicUrl}${target}` : target
}
