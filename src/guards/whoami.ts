import type { Request, Response } from 'express'
import { userBody, userSchema } from '../accounts/account-routes'
import type { AuthContext } from '../context'
import { isSecondFactor } from '../core/amr'
import { type Description, flag, instantOrNull, shape, stringOrNull } from '../http/description'
import type { Route } from '../http/routes'
import { isOwnRequest } from '../http/same-site'
import { sendJson } from '../http/send'
import { type AccessTokenClaims, verifyAccessToken } from '../sessions/access-token'
import { clearHint, hasHint, readRefreshCookie } from '../sessions/cookies'
import { type AccessCredential, hasBearer, readCredential, rememberAuth } from '../sessions/current-auth'
import { type Delivery, setsTokenCookies } from '../sessions/delivery'
import { findBySessionCookie, isAlive, readQuietly, readSessionToken } from '../sessions/find-session'
import { ageOf, isFresh, sinceFactor } from '../sessions/reauthentication/fresh-session'
import { findNamedSession, type NamedSession } from '../sessions/reauthentication/request-session'
import { routesByDelivery } from '../sessions/routes-by-delivery'
import { readStatelessToken } from '../sessions/stateless-refresh-token'
import { isOfEarlierAccount, isSuperseded } from '../sessions/superseded-token'
import type { UserRecord } from '../store/auth-store'
import { toPublicUser } from '../store/user-records'
import { siteTokens } from './csrf/csrf-guard'
import { giveToken, type TokenSource } from './csrf/csrf-token'
import { claimsOf as claimsOfSession, failClosed } from './require-session'

/** A page of another subdomain cannot read the cookie of the CSRF token. With `both`, only the `/cookie` route gets the refresh cookie. */
export function whoamiRoutes(ctx: AuthContext): Route[] {
  const tokens = siteTokens(ctx)
  return routesByDelivery(ctx, ({ base, delivery }) => [
    {
      method: 'GET',
      path: `${base}/whoami`,
      describes: describesWhoami(ctx),
      handle: async (req, res) => {
        const body = await whoami(ctx, tokens, req, res)
        if (delivery !== 'bearer' && isNobody(body) && hasHint(req)) clearHint(ctx, res)
        sendJson(res, 200, body)
      },
    },
  ])
}

function describesWhoami({ store, settings }: AuthContext): Description {
  const schema = shape('WhoAmI', {
    user: { oneOf: [userSchema(store.users), { type: 'null' }] },
    fresh_until: instantOrNull,
    csrf_token: stringOrNull,
    can_refresh: flag,
    delivery: { const: settings.tokenDelivery },
  })
  return {
    summary: 'Get who is signed in, and the CSRF token',
    answers: [{ status: 200, description: 'Also for nobody: `user` is null.', schema }],
  }
}

interface WhoAmI {
  readonly user: ReturnType<typeof userBody> | null
  readonly fresh_until: string | null
  /** Null: the cookies of the request do not count. */
  readonly csrf_token: string | null
  readonly can_refresh: boolean
  readonly delivery: Delivery
}

/** False if the cookies do not count: another site must not clear them. */
function isNobody({ user, csrf_token, can_refresh }: WhoAmI): boolean {
  return csrf_token !== null && user === null && !can_refresh
}

async function whoami(ctx: AuthContext, tokens: TokenSource, req: Request, res: Response): Promise<WhoAmI> {
  const { tokenDelivery: delivery } = ctx.settings
  const isByHeader = hasBearer(req)
  const isByCookie = !isByHeader && delivery !== 'bearer' && isOwnRequest(ctx, req)
  const found = isByHeader || isByCookie ? await findSignedIn(ctx, req) : null
  const user = found && toPublicUser(found.user)
  if (found) rememberAuth(req, { claims: found.claims, user }) // the CSRF token is bound to this session
  return {
    user: user && userBody(ctx.store.users, user),
    fresh_until: found && freshUntil(ctx, found),
    csrf_token: isByCookie ? giveToken(tokens, req, res).token : null,
    can_refresh: isByCookie && canRefresh(ctx, req),
    delivery,
  }
}

interface SignedIn {
  readonly claims: AccessTokenClaims
  readonly user: UserRecord
  /** Null if the store keeps no sessions. */
  readonly named: NamedSession | null
}

/** Whom `requireLiveSession()` would let in. Extends and clears nothing. */
async function findSignedIn(ctx: AuthContext, req: Request): Promise<SignedIn | null> {
  const credential = readQuietly(() => readCredential(ctx, req))
  const found = credential && (await failClosed(() => (isOfSession(ctx) ? ofCookie(ctx, credential) : ofToken(ctx, req, credential))))
  const isLive = found?.user.isActive && (found.named === null || isAlive(found.named.session, ctx.now()))
  return isLive ? found : null
}

function isOfSession({ settings }: AuthContext): boolean {
  return settings.tokenDelivery === 'session'
}

async function ofCookie({ store, keys }: AuthContext, { token }: AccessCredential): Promise<SignedIn | null> {
  const { sessions } = store
  const named = sessions ? await findBySessionCookie({ sessions, sessionTokenKeys: keys['session-token'] }, token) : null
  return named && { claims: claimsOfSession(named), user: named.user, named }
}

async function ofToken(ctx: AuthContext, req: Request, { token, from }: AccessCredential): Promise<SignedIn | null> {
  const claims = readQuietly(() => verifyAccessToken(ctx, token))
  if (!claims) return null
  const { sessions, users } = ctx.store
  if (!sessions) {
    const user = await users.find(claims.sub)
    return user && !isOfEarlierAccount(claims, user) ? { claims, user, named: null } : null
  }
  // Beside a Bearer header no cookie may name the session.
  const settings = from === 'header' ? ({ ...ctx.settings, tokenDelivery: 'bearer' } as const) : ctx.settings
  const named = await findNamedSession({ ...ctx, settings, sessions, sessionTokenKeys: ctx.keys['session-token'] }, req, claims)
  return named && { claims, user: named.user, named }
}

/** Until when `requireFresh()` lets this credential in; null if it does not now. */
function freshUntil(ctx: AuthContext, { claims, user, named }: SignedIn): string | null {
  const { freshSessionSeconds } = ctx.settings
  const now = ctx.now()
  const session = named?.session ?? null
  const found = { session, user, ageSeconds: ageOf(now, claims, named) }
  const { ageSeconds } = claims.amr.some(isSecondFactor) ? sinceFactor(ctx, found) : found
  if (!isFresh({ ageSeconds }, freshSessionSeconds) || (session === null && isSuperseded(ctx, claims, user))) return null
  const ends = [claims.exp, session ? session.expiresAt.getTime() / 1000 : claims.exp]
  if (freshSessionSeconds > 0 && ageSeconds !== null) ends.push(Math.round(now.getTime() - ageSeconds * 1000) / 1000 + freshSessionSeconds)
  return new Date(Math.floor(Math.min(...ends)) * 1000).toISOString()
}

/** Only the MAC or signature. The refresh asks the table. */
function canRefresh(ctx: AuthContext, req: Request): boolean {
  const token = setsTokenCookies(ctx.settings.tokenDelivery) ? readRefreshCookie(ctx, req) : null
  if (token === null) return false
  if (ctx.store.sessions) return readSessionToken(ctx.keys['session-token'], 'tokens', token) !== null
  return readQuietly(() => readStatelessToken(ctx, token, ctx.now())) !== null
}
