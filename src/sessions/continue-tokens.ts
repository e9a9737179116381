import type { AuthContext } from '../context'
import { amrFromText } from '../core/amr'
import { AccountInactiveError, InvalidTokenError } from '../core/errors'
import type { UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/public-user'
import { authTimeOf, signAccessToken, verifyAccessToken } from './access-token'
import { askForClaims } from './ask-for-claims'
import { findLiveTokens, slideTokens } from './find-session'
import { lasting } from './login'
import { readQuietly } from './read-quietly'
import { refresh } from './refresh'
import type { ReissuedTokens } from './reissue-tokens'
import { isSuperseded } from './superseded-token'

/**
 * Gives a live session a new access token on the way to a page. The function does not use the refresh token up, and revokes nothing. So two
 * tabs that open at once both get a token. The call counts as a use of the session, at most once a minute. If the session was extended, the
 * result has the current refresh token and its later end. The cookie then lasts as long as the session.
 *
 * The access token describes the account at the time before doorward asked the host for claims. So `iat` is that time.
 * @param accessCookie the access cookie of the request; null without one
 * @returns null when the token names no live session of an active account
 * @throws ServiceUnavailableError when the host's claims are not available
 */
export async function continueTokens(ctx: AuthContext, presented: string, accessCookie: string | null): Promise<ReissuedTokens | null> {
  const { sessions } = ctx.store
  if (!sessions) return refreshStateless(ctx, presented, accessCookie)
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
  const authenticatedAt = session.authenticatedAt ?? null
  const fresher = fresherAccess(ctx, accessCookie, { sessionId: session.id, user, at: authTimeOf(authenticatedAt) })
  return {
    kind: 'session',
    userId: user.id,
    amr,
    accessToken: fresher ?? signAccessToken(ctx, user, { amr, sessionId: session.id, authenticatedAt, at, claims }),
    refreshToken: hasSlid ? presented : null,
    refreshTokenExpiresAt: hasSlid ? session.expiresAt : null,
    ...lasting(session),
  }
}

/**
 * Returns the access token of the request's cookie, if that token records a later authentication of the same session. A reauthentication on
 * a path without the refresh cookie makes only that access token fresh, so the response must not replace it.
 * @param at when the person of the session last showed a credential, in seconds since 1970
 */
function fresherAccess(
  ctx: AuthContext,
  token: string | null,
  { sessionId, user, at }: { sessionId: string | undefined; user: UserRecord; at: number },
): string | null {
  const claims = token === null ? null : readQuietly(() => verifyAccessToken(ctx, token))
  const isOfSession = claims?.sub === user.id && claims.sid === sessionId && (claims.auth_time ?? 0) > at
  return isOfSession && !isSuperseded(ctx, claims, user) ? token : null
}

/** Refreshes a session that the store does not keep. The old refresh token stays valid. */
async function refreshStateless(ctx: AuthContext, presented: string, accessCookie: string | null): Promise<ReissuedTokens | null> {
  try {
    const tokens = await refresh(ctx, presented)
    const user = accessCookie === null ? null : await ctx.store.users.find(tokens.userId)
    const at = verifyAccessToken(ctx, tokens.accessToken).auth_time ?? 0
    const fresher = user && fresherAccess(ctx, accessCookie, { sessionId: undefined, user, at })
    return fresher ? { ...tokens, accessToken: fresher } : tokens
  } catch (error) {
    if (error instanceof InvalidTokenError || error instanceof AccountInactiveError) return null
    throw error
  }
}
