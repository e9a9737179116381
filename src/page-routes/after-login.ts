import type { BoundLogin } from '../bound-service/bound-service'
import { locationOf } from '../http/return-to'
import { keepChallenge } from '../session/challenge-cookie'
import { readRefreshCookie, setsTokenCookies } from '../session/delivery'
import { findByRefreshToken } from '../session/find-session'
import type { GoOn } from './page-lines'
import type { Visit } from './page-site'

/** On to where the person came from; first to the page of the second factor, where there is one. */
export async function afterLogin(visit: Visit, login: BoundLogin, landing = visit.reader.href('/account')): Promise<GoOn> {
  const { ctx, res, reader, returnTo } = visit
  if (login.kind === 'challenge') {
    keepChallenge(ctx, res, { mfaToken: login.mfaToken, returnTo })
    return { to: reader.href('/mfa') }
  }
  await endReplaced(visit)
  return { to: returnTo === null ? landing : locationOf(returnTo) }
}

/** The browser forgets the tokens it came with: nobody could end their session by them any more. A session cookie's ends with the login. */
async function endReplaced({ ctx, req }: Visit): Promise<void> {
  const { sessions } = ctx.store
  const token = setsTokenCookies(ctx.settings.tokenDelivery) ? readRefreshCookie(ctx, req) : null
  if (token === null || !sessions) return
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, token)
  if (found) await sessions.revoke({ id: found.session.id }, ctx.now())
}
