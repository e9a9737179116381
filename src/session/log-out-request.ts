import type { Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { type Answer, done, shape, stringOrNull } from '../http/description'
import { noteOutcome } from '../http/outcome'
import { sendEmpty, sendJson } from '../http/send'
import type { SessionKind } from '../store/auth-store'
import { clearEndedCookies } from './ended-cookies'
import { type LoggedOut, logOut, logOutByMac, logOutSession } from './log-out'
import { logoutUrlOf } from './logout-url'

/** The name of the rate limit of all logout routes. */
export const logoutLimit = 'logout'

/** Functions that a logout needs from modules of a higher layer. */
export interface LogoutRules {
  /** Counts the request. False: the client exceeded the rate limit of the route. */
  isWithinBudget(req: Request): Promise<boolean>
  /**
   * Ends the unfinished provider logins of this browser. If the logout revoked one session, the function removes that session from the
   * device cookie, and the browser stays a known device.
   * @param endedId the id of the revoked session; null if the logout revoked no session, or all sessions of the account
   */
  endOthers(req: Request, res: Response, endedId: string | null): void
}

/** The session that the request wants to log out. If `token` is null, the request has no token. */
interface Presented {
  readonly kind: SessionKind
  readonly token: string | null
  readonly allSessions: boolean
}

/** The body of every logout route. */
export interface LogoutBody {
  all_sessions: boolean
  provider_logout: boolean
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
 * Revokes the session of a logout, before the response is sent. If the client exceeds the rate limit, the function runs at most one
 * statement.
 * @returns the revoked session; its provider is null if the client exceeds the rate limit
 */
export async function logOutRequest(
  ctx: AuthContext,
  rules: LogoutRules,
  [req, res]: readonly [Request, Response],
  presented: Presented,
): Promise<LoggedOut> {
  const isWithinBudget = await rules.isWithinBudget(req)
  const ended = await endSession(ctx, presented, isWithinBudget)
  rules.endOthers(req, res, ended.endedId)
  if (isWithinBudget) await clearEndedCookies(ctx, req, res)
  return ended
}

/** Sends 204, or 200 if the client asked for the provider's logout URL. */
export function sendLoggedOut(ctx: AuthContext, res: Response, { provider }: LoggedOut, { provider_logout: isAsked }: LogoutBody): void {
  if (!isAsked) return void sendEmpty(res)
  const logoutUrl = logoutUrlOf(ctx, provider)
  noteOutcome(res, { logoutUrl })
  sendJson(res, 200, { logout_url: logoutUrl })
}

async function endSession(ctx: AuthContext, { kind, token, allSessions }: Presented, isWithinBudget: boolean): Promise<LoggedOut> {
  if (token === null) return { endedId: null, provider: null }
  if (!isWithinBudget) return logOutByMac(ctx, kind, token)
  return kind === 'tokens' ? logOut(ctx, token, { allSessions }) : logOutSession(ctx, token, { allSessions })
}
