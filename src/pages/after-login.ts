import { locationOf } from '../http/return-to'
import type { BoundLogin } from '../router/request-service/request-service'
import { keepChallenge } from '../sessions/cookies'
import { readRefreshCookie, setsTokenCookies } from '../sessions/delivery'
import { findByRefreshToken } from '../sessions/find-session'
import type { GoOn } from './page-lines'
import type { Visit } from './page-site'

/** Redirects to the page from which the person came. If the account has a second factor, redirects to the second-factor page first. */
export async function afterLogin(visit: Visit, login: BoundLogin, landing = visit.reader.href('/account')): Promise<GoOn> {
  const { ctx, res, reader, returnTo } = visit
  if (login.kind === 'challenge') {
    keepChallenge(ctx, res, { mfaToken: login.mfaToken, returnTo })
    return { to: reader.href('/mfa') }
  }
  await endReplaced(visit)
  return { to: returnTo === null ? landing : locationOf(returnTo) }
}

/**
 * Revokes the session of the old refresh token. The browser loses that token, so the person could no longer log out of the old session.
 * With a session cookie, the login itself revokes the old session.
 */
async function endReplaced({ ctx, req }: Visit): Promise<void> {
  const { sessions } = ctx.store
  const token = setsTokenCookies(ctx.settings.tokenDelivery) ? readRefreshCookie(ctx, req) : null
  if (token === null || !sessions) return
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, token)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
