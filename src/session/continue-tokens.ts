import { amrFromText } from '../amr'
import { askForClaims } from '../claims/ask-for-claims'
import type { AuthContext } from '../context'
import { AccountInactiveError, InvalidTokenError } from '../errors'
import { toPublicUser } from '../store/public-user'
import { signAccessToken } from './access-token'
import { findLiveTokens, slideTokens } from './find-session'
import { lasting } from './finish-login'
import type { KeptTokens } from './keep-session'
import { refresh } from './refresh'

/**
 * Gives a live session a new access token on the way to a page. The function does not use the refresh token up, and revokes nothing. So two
 * tabs that open at once both get a token. The call counts as a use of the session, at most once a minute. If the session was extended, the
 * result has the current refresh token and its later end. The cookie then lasts as long as the session.
 *
 * The access token describes the account at the time before doorward asked the host for claims. So `iat` is that time.
 * @returns null when the token names no live session of an active account
 * @throws ServiceUnavailableError when the host's claims are not available
 */
export async function continueTokens(ctx: AuthContext, presented: string): Promise<KeptTokens | null> {
  const { sessions } = ctx.store
  if (!sessions) return refreshStateless(ctx, presented)
  const at = ctx.now()
  const lookUp = { ...ctx, sessions, sessionTokenKeys: ctx.keys['session-token'] }
  const found = await findLiveTokens(lookUp, presented)
  if (!found) return null
  const amr = amrFromText(found.session.amr)
  const claims = await askForClaims(ctx, toPublicUser(found.user), amr)
  // Extends the session only after the host returned its claims, because that takes time. If a refresh gave the browser another token
  // meanwhile, the response must not send the old token again.
  const live = await slideTokens(lookUp, found)
  if (!live) return null
  const { session, user, hasSlid } = live
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: signAccessToken(ctx, user, { amr, sessionId: session.id, authenticatedAt: session.authenticatedAt ?? null, at, claims }),
    refreshToken: hasSlid ? presented : null,
    refreshTokenExpiresAt: hasSlid ? session.expiresAt : null,
    ...lasting(session),
  }
}

/** Refreshes a session that the store does not keep. The old refresh token stays valid. */
async function refreshStateless(ctx: AuthContext, presented: string): Promise<KeptTokens | null> {
  try {
    return await refresh(ctx, presented)
  } catch (error) {
    if (error instanceof InvalidTokenError || error instanceof AccountInactiveError) return null
    throw error
  }
}
