import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { SessionKind } from '../store/auth-store'
import { clearEndedCookies } from './ended-cookies'
import { logOut, logOutByMac, logOutSession } from './log-out'

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

/** Ends the session of a logout, before its answer is sent. Past the rate limit it does one statement at most. */
export async function logOutRequest(
  ctx: AuthContext,
  rules: LogoutRules,
  [req, res]: readonly [Request, Response],
  presented: Presented,
): Promise<void> {
  const isWithinBudget = await rules.isWithinBudget(req)
  rules.endOthers(req, res, await endSession(ctx, presented, isWithinBudget))
  if (isWithinBudget) await clearEndedCookies(ctx, req, res)
}

async function endSession(ctx: AuthContext, { kind, token, allSessions }: Presented, isWithinBudget: boolean): Promise<string | null> {
  if (token === null) return null
  if (!isWithinBudget) return logOutByMac(ctx, kind, token)
  return kind === 'tokens' ? logOut(ctx, token, { allSessions }) : logOutSession(ctx, token, { allSessions })
}
