import { locationOf } from '../http/return-to'
import type { BoundLogin } from '../router/request-service/request-service'
import { keepChallenge, keepTasks, readRefreshCookie } from '../sessions/cookies'
import { setsTokenCookies } from '../sessions/delivery'
import { findByRefreshToken } from '../sessions/find-session'
import type { GoOn } from './page-lines'
import type { Visit } from './page-site'

/** An account with a second factor goes to its page first. */
export async function afterLogin(visit: Visit, login: BoundLogin, landing = visit.reader.href('/account')): Promise<GoOn> {
  const { ctx, res, reader, returnTo } = visit
  if (login.kind === 'challenge') {
    keepChallenge(ctx, res, { mfaToken: login.mfaToken, returnTo })
    return { to: reader.href('/mfa') }
  }
  if (login.kind === 'tasks') {
    keepTasks(ctx, res, { taskToken: login.taskToken, returnTo })
    return { to: reader.href('/tasks') }
  }
  await endReplaced(visit)
  return { to: returnTo === null ? landing : locationOf(returnTo) }
}

/** The browser loses the old refresh token, so nobody could log out of its session. A session cookie's login revokes it itself. */
async function endReplaced({ ctx, req }: Visit): Promise<void> {
  const { sessions } = ctx.store
  const token = setsTokenCookies(ctx.settings.tokenDelivery) ? readRefreshCookie(ctx, req) : null
  if (token === null || !sessions) return
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, token)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
