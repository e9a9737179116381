import { type AuthContext, transaction } from '../context'
import type { AuthMethod } from '../core/amr'
import { ConfigurationError } from '../core/errors'
import { type AuthRouter, testedContext } from '../router/create-auth-router'
import type { AnyLoginResult, Login, LoginClient, OpenedServerSession, TokenPair } from '../sessions/login'
import { beginSession, withAccessToken } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'

/** A `UserRecord`, or an object with the user's `id` or `email`. */
export type WhichUser = { id: string } | { email: string }

export interface LoginAsOptions {
  /** The methods with which the person logged in. Default `['pwd']`, and `['pwd', 'otp']` for an account with a second factor. */
  amr?: readonly AuthMethod[]
}

export interface SignedIn {
  userId: string
  accessToken: string
  refreshToken: string
  /** The header of a request with a bearer token: `request(app).get('/me').set(signedIn.bearer)`. */
  bearer: { authorization: string }
  /** The access cookie and the refresh cookie, for a router that delivers cookies: `.set(signedIn.cookies)`. */
  cookies: { cookie: string }
}

export interface SignedInSession {
  userId: string
  sessionId: string
  /** The session cookie: `.set(session.cookies)`. */
  cookies: { cookie: string }
}

/**
 * Returns a token pair for an account, for tests. A test needs no password, no provider and no second factor of the account. Pass the
 * router object itself. The function has no route, and rejects a router in production. It emits no event and counts against no rate limit.
 *
 * @throws ConfigurationError for a router in production (pass `environment: 'test'`, or set NODE_ENV)
 * @throws ConfigurationError for a router of another copy of doorward, and with `tokenDelivery: 'session'`, which has no tokens
 * @throws Error if the account does not exist or is inactive
 */
export async function loginAs(auth: AuthRouter, user: WhichUser, options: LoginAsOptions = {}): Promise<SignedIn> {
  const ctx = contextOf(auth)
  if (ctx.settings.tokenDelivery === 'session')
    throw new ConfigurationError("loginAs() gives tokens, and tokenDelivery 'session' has none: use openSessionAs().")
  const seen = await findWanted(ctx, user)
  const pair = await logInAs(ctx, seen, { gets: 'tokens', origin: {} }, options)
  const { userId, accessToken, refreshToken } = pair as TokenPair // the client gets tokens
  const { accessCookieName, refreshCookieName } = ctx.settings
  const cookie = cookieHeader({ [accessCookieName]: accessToken, [refreshCookieName]: refreshToken })
  return { userId, accessToken, refreshToken, bearer: { authorization: `Bearer ${accessToken}` }, cookies: { cookie } }
}

/**
 * Opens a server-side session for an account, for tests. Use it for `tokenDelivery: 'session'`, and for routes behind `requireSession`.
 *
 * @throws ConfigurationError as `loginAs`
 * @throws Error if the account does not exist or is inactive, or the store has no sessions
 */
export async function openSessionAs(auth: AuthRouter, user: WhichUser, options: LoginAsOptions = {}): Promise<SignedInSession> {
  const ctx = contextOf(auth)
  const client: LoginClient = { gets: 'session', origin: { ip: '127.0.0.1', userAgent: 'doorward/testing' } }
  const session = await logInAs(ctx, await findWanted(ctx, user), client, options)
  const { userId, sessionId, sessionToken } = session as OpenedServerSession // the client gets a session
  return { userId, sessionId, cookies: { cookie: cookieHeader({ [ctx.settings.sessionCookieName]: sessionToken }) } }
}

function contextOf(auth: AuthRouter): AuthContext {
  const ctx = testedContext(auth)
  if (ctx) return ctx
  throw new ConfigurationError(
    "loginAs() takes what createAuthRouter() returned, of this copy of doorward, and not in production: pass environment: 'test', or set NODE_ENV=test.",
  )
}

/** In a transaction that locks the user's row, as every login does. So a parallel revocation runs before or after it. */
async function logInAs(ctx: AuthContext, { id }: UserRecord, client: LoginClient, options: LoginAsOptions): Promise<AnyLoginResult> {
  const begun = await transaction(ctx, async (ctx) => {
    const user = await ctx.store.users.lock(id)
    if (!user) throw noSuchAccount()
    if (!user.isActive) throw new Error('loginAs(): the account is not active; activate it first.')
    return beginSession(ctx, client, user, loginOf(ctx, user, options))
  })
  return withAccessToken(ctx, begun)
}

async function findWanted({ store: { users } }: AuthContext, which: WhichUser): Promise<UserRecord> {
  const user = await ('id' in which ? users.find(which.id) : users.findByEmail(which.email.toLowerCase()))
  if (!user) throw noSuchAccount()
  return user
}

function noSuchAccount(): Error {
  return new Error('loginAs(): there is no such account.')
}

function loginOf({ settings }: AuthContext, user: UserRecord, { amr }: LoginAsOptions): Login {
  return { amr: amr ?? (settings.mfaEnabled && user.totpEnabledAt ? ['pwd', 'otp'] : ['pwd']), provider: null }
}

function cookieHeader(cookies: Record<string, string>): string {
  return Object.entries(cookies)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('; ')
}
