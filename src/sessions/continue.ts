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
import { readAccessCookie, readProofCookie, readRefreshCookie, setProofCookie, setTokenCookies } from './cookies'
import { findLiveTokens, lasting, readQuietly, slideTokens } from './find-session'
import { refresh } from './refresh'
import type { ReissuedTokens } from './reissue-tokens'
import { isSuperseded } from './superseded-token'

/** The route to which `requireLogin` redirects browsers. It opens no session, so an attacker's link to it cannot log a person in. */
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

/** Images and frames of other sites could use up a person's rate limit. Runs before the rate limit counts the request. */
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
  // A browser that comes back at once did not send our cookie to the page. It must not be redirected in an endless loop.
  const tokens =
    presented === null || wasSentBack(ctx, req, returnTo) ? null : await continueTokens(ctx, presented, readAccessCookie(ctx, req))
  if (tokens === null) return signInLocation(ctx.settings, signInPage, returnTo)
  setTokenCookies(ctx, res, tokens)
  markPage(ctx, req, res, returnTo)
  return locationOf(returnTo)
}

/** Until `end`, in seconds since 1970, the browser counts as just redirected to the page. */
type Mark = readonly [page: string, end: number]

const cookieName = 'auth_continue'
const seconds = 10
/** A browser can have several tabs. */
const mostPages = 10

/** Within 10 seconds: the new access cookie did not help. */
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

/** The page's URL can be longer than a cookie. */
function digestOf(page: string): string {
  return createHash('sha256').update(page).digest('base64url')
}

/**
 * Does not use the refresh token up, so two tabs that open at once both get a token. Counts as a use of the session. If that extended the
 * session, the result has the current refresh token, so that its cookie lasts as long as the session. `iat` is the time before doorward
 * asked the host for claims, because the token describes the account at that time.
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
  // After the host's claims, because they take time. If a refresh gave the browser another token meanwhile, do not send the old one.
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

/** Only that token is fresh after a reauthentication without the refresh cookie: do not replace it. @param at seconds since 1970 */
function fresherAccess(
  ctx: AuthContext,
  token: string | null,
  { sessionId, user, at }: { sessionId: string | undefined; user: UserRecord; at: number },
): string | null {
  const claims = token === null ? null : readQuietly(() => verifyAccessToken(ctx, token))
  const isOfSession = claims?.sub === user.id && claims.sid === sessionId && (claims.auth_time ?? 0) > at
  return isOfSession && !isSuperseded(ctx, claims, user) ? token : null
}

/** The old refresh token stays valid. */
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
