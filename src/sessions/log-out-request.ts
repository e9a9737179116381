import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Answer, done, shape, stringOrNull } from '../http/description'
import { setResult } from '../http/outcome'
import { sendEmpty, sendJson } from '../http/send'
import { clearLoginCookies, readAccessCookie, readRefreshCookie, setsTokenCookies } from './delivery'
import { readDevices } from './device-cookie'
import { clearEndedCookies } from './ended-cookies'
import { endNamed, endNamedAtOnce, type LoggedOut, type LogoutTokens } from './log-out'
import { logoutUrlOf } from './logout-url'
import { clearSessionCookie, readSessionCookie } from './session-cookie'

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
