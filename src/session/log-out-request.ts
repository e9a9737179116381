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

/** The name of the route limit of every logout. */
export const logoutLimit = 'logout'

/** What a logout needs of the rooms above this one. */
export interface LogoutRules {
  /** Counts the request. False: the client is past the rate limit of the route. */
  isWithinBudget(req: Request): Promise<boolean>
  /** Ends what else of this browser ends with a logout. `endedId`: of the session that it ended alone; null: none, or all of the account's. */
  endOthers(req: Request, res: Response, endedId: string | null): void
}

/** What a request shows of the session that is to end. `token` null: nothing. */
interface Presented {
  readonly kind: SessionKind
  readonly token: string | null
  readonly allSessions: boolean
}

/** What every logout takes in its body. */
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
    description: 'With `provider_logout`: where the browser ends its session at the provider, too; null where there is no such place.',
    schema: shape('ProviderLogout', { logout_url: stringOrNull }),
  },
]

/**
 * Ends the session of a logout, before its answer is sent. Past the rate limit it does one statement at most.
 * @returns what it found; past the rate limit nothing of the provider
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

/** 204; 200 where the client asked how the browser ends its session at the provider. */
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
