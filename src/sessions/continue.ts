import { createHash } from 'node:crypto'
import type { Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import { amrFromText } from '../core/amr'
import { AccountInactiveError, CsrfValidationFailedError, InvalidTokenError, ValidationError } from '../core/errors'
import { string } from '../http/description'
import { queryValues } from '../http/locale'
import { continuePath, locationOf, readReturnTo, signInLocation } from '../http/return-to'
import type { Route } from '../http/routes'
import { refuseEmbedding, refusingCrossSite } from '../http/same-site'
import { sendRedirect } from '../http/send'
import { routeRateLimit } from '../rate-limits/rate-limiter'
import type { UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { authTimeOf, signAccessToken, verifyAccessToken } from './access-token'
import { askForClaims } from './ask-for-claims'
import { epochSeconds } from './challenge'
import { readProofCookie, setProofCookie } from './cookies'
import { readAccessCookie, readRefreshCookie, setTokenCookies } from './delivery'
import { findLiveTokens, readQuietly, slideTokens } from './find-session'
import { lasting } from './login'
import { refresh } from './refresh'
import type { ReissuedTokens } from './reissue-tokens'
import { isSuperseded } from './superseded-token'

/**
 * Returns the route to which `requireLogin` redirects browsers. Returns no route if `loginUrl` is not set. The route opens no session, so
 * an attacker's link to the route cannot log a person in.
 */
export function continueRoutes(ctx: AuthContext): Route[] {
  const { loginUrl } = ctx.settings
  const path = continuePath(ctx.settings)
  if (path === null || loginUrl === null) return []
  return [
    {
      method: 'GET',
      path,
      describes: {
        summary: 'Renew the access cookie on the way to a page',
        query: [{ name: 'return_to', description: 'The page: a path, or a URL of a trusted origin.', schema: string, required: true }],
        answers: [
          { status: 302, description: 'To the page, with a new access cookie. If the browser has no live session: to the sign-in page.' },
        ],
        credential: 'refresh_cookie',
      },
      before: [noForeignImages(ctx), routeRateLimit(ctx, 'continue')],
      handle: async (req, res) => sendRedirect(res, await nextStop(ctx, req, res, loginUrl)),
    },
  ]
}

/**
 * Returns a middleware that rejects images and frames of other sites. Otherwise such requests could use up a person's rate limit. The
 * middleware runs before the rate limit counts the request.
 */
function noForeignImages({ settings }: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    refuseEmbedding(settings, req)
    const mode = req.headers['sec-fetch-mode']
    const isOurs = mode === undefined || mode === 'navigate' || req.headers['sec-fetch-site'] === 'same-origin'
    if (!isOurs) throw new CsrfValidationFailedError({ details: { reason: 'site' } })
  })
}

async function nextStop(ctx: AuthContext, req: Request, res: Response, signInPage: string): Promise<string> {
  const returnTo = readReturnTo(ctx.settings, queryValues(req, 'return_to'))
  if (returnTo === null) throw new ValidationError({ details: { errors: [{ path: 'return_to', rule: 'any.required' }] } })
  const presented = readRefreshCookie(ctx, req)
  // If a browser comes back at once, the browser did not send our cookie to the page. The route must not redirect that browser in an
  // endless loop.
  const tokens =
    presented === null || wasSentBack(ctx, req, returnTo) ? null : await continueTokens(ctx, presented, readAccessCookie(ctx, req))
  if (tokens === null) return signInLocation(ctx.settings, signInPage, returnTo)
  setTokenCookies(ctx, res, tokens)
  markPage(ctx, req, res, returnTo)
  return locationOf(returnTo)
}

/** A page, and an end time in seconds since 1970. Until the end time, the browser counts as just redirected to the page. */
type Mark = readonly [page: string, end: number]

const cookieName = 'auth_continue'
const seconds = 10
/** The maximum number of pages that the marker remembers. There can be several pages, because a browser can have several tabs. */
const mostPages = 10

/** Returns true if this browser was redirected to the page less than 10 seconds ago. In that case the new access cookie did not help. */
function wasSentBack(ctx: AuthContext, req: Request, page: string): boolean {
  return readMarks(ctx, req).some(([marked]) => marked === digestOf(page))
}

function markPage(ctx: AuthContext, req: Request, res: Response, page: string): void {
  const mark: Mark = [digestOf(page), epochSeconds(ctx.now()) + seconds]
  setProofCookie(ctx, res, cookieName, JSON.stringify([mark, ...readMarks(ctx, req)].slice(0, mostPages)), seconds)
}

function readMarks(ctx: AuthContext, req: Request): Mark[] {
  const marks = JSON.parse(readProofCookie(ctx, req, cookieName) ?? '[]') as Mark[] // our MAC protects the value, so `markPage` wrote it
  return marks.filter(([, end]) => end > epochSeconds(ctx.now()))
}

/** Returns a digest of the page, because its URL can be longer than a cookie. */
function digestOf(page: string): string {
  return createHash('sha256').update(page).digest('base64url')
}

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
