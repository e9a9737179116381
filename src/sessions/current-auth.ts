import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import type { Settings } from '../core/config/every-setting'
import { InvalidTokenError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { type CookieSite, readCookie } from '../http/cookies'
import type { HostTypes, WithFields } from '../store/host-types'
import type { PublicUser } from '../store/user-records'
import { type AccessTokenClaims, verifyAccessToken } from './access-token'
import { clearLoginCookies, clearSessionCookie, readRefreshCookie, readSessionCookie } from './cookies'
import { setsTokenCookies } from './delivery'
import { isAlive, type PublicSession, readQuietly, readSessionToken } from './find-session'

interface CurrentAuth {
  /** With `tokenDelivery: 'session'`, made from the session. Null after requireSession. */
  readonly claims: AccessTokenClaims | null
  readonly user: PublicUser | null
  readonly session?: PublicSession
}

export interface KnownAuth extends CurrentAuth {
  readonly claims: AccessTokenClaims
}

export interface SessionAuth extends KnownAuth {
  readonly user: PublicUser
  readonly session: PublicSession
}

// Copies of the package in one process share this map under a global symbol. A WeakMap leaves the host's requests unchanged.
const key = Symbol.for('doorward.auth.v1')
const shared = globalThis as { [key]?: WeakMap<object, CurrentAuth> }
shared[key] ??= new WeakMap()
const remembered = shared[key]

/** Keeps the user that an earlier guard of the request loaded, if it is the same user. */
export function rememberAuth(req: Request, auth: CurrentAuth): void {
  const user = auth.user ?? remembered.get(req)?.user ?? null
  const isSame = user !== null && user.id === (auth.claims?.sub ?? user.id)
  remembered.set(req, isSame ? { ...auth, user } : auth)
}

export function findRequestAuth(req: Request): CurrentAuth | null {
  return remembered.get(req) ?? null
}

export function findSubject(req: Request): string | null {
  const auth = remembered.get(req)
  return auth?.claims?.sub ?? auth?.user?.id ?? null
}

/** A name of the session. If the token names no session, a name of the user. */
export function findSessionName(req: Request): string | null {
  const { claims, session } = remembered.get(req) ?? { claims: null }
  if (claims) return JSON.stringify(claims.sid === undefined ? ['user', claims.sub] : ['session', claims.sid])
  return session ? JSON.stringify(['session', session.id]) : null
}

/** Returns the claims of the access token; null if the request is anonymous, or if no guard ran. */
export function findAuth<Claims extends object = object>(req: Request): (AccessTokenClaims & Readonly<Claims>) | null {
  // The host declares the types of its own claims.
  return (remembered.get(req)?.claims ?? null) as (AccessTokenClaims & Readonly<Claims>) | null
}

/**
 * Returns the claims of the access token. `getAuth<{ roles: string[] }>(req)` declares your own claims.
 * @throws Error if no guard ran before. This error is a fault in the host's code, not a rejected request.
 */
export function getAuth<Claims extends object = object>(req: Request): AccessTokenClaims & Readonly<Claims> {
  const claims = findAuth<Claims>(req)
  if (!claims)
    throw new Error(
      `getAuth(req) was called on a request that passed no guard; put guards.requireAuth() before this handler, or use findAuth(req). ${seeTroubleshooting('no-guard-ran')}`,
    )
  return claims
}

/**
 * Returns the user of the request, as the guard read it from the database.
 * @throws Error if none of requireUser, requireAdmin and requireSession ran before
 */
export function getUser<Host extends HostTypes = HostTypes>(req: Request): WithFields<PublicUser, Host> {
  const user = remembered.get(req)?.user
  if (!user)
    throw new Error(
      `getUser(req) was called on a request whose user was not loaded; put guards.requireUser() before this handler. ${seeTroubleshooting('no-guard-ran')}`,
    )
  return user as WithFields<PublicUser, Host> // the host declares the types of its own fields
}

/**
 * Returns the server-side session of the request.
 * @throws Error if requireSession did not run before. This error is a fault in the host's code, not a rejected request.
 */
export function getSession(req: Request): PublicSession {
  const session = remembered.get(req)?.session
  if (!session)
    throw new Error(
      `getSession(req) was called on a request whose session was not loaded; put guards.requireSession() before this handler. ${seeTroubleshooting('no-guard-ran')}`,
    )
  return session
}

// RFC 6750 section 2.1: the scheme in any case, then spaces, then a text. The verifier later checks the token's form.
const bearer = /^Bearer +([^ ].*)$/i
// No character of a scheme's name (RFC 9110 section 5.6.2) may follow, so the name is exactly `Bearer`.
const bearerScheme = /^Bearer(?![\w!#$%&'*+.^`|~-])/i

export type AccessCredential = { token: string; from: 'header' | 'cookie' }

type DeliverySite = CookieSite & { readonly settings: Pick<Settings, 'tokenDelivery' | 'accessCookieName' | 'sessionCookieName'> }

/**
 * The header first, then the cookie if `tokenDelivery` has cookies; never the query or the body (RFC 6750 section 2.3). With
 * `tokenDelivery: 'session'`, the value of the session cookie.
 * @throws InvalidTokenError for a Bearer header without a token, two Authorization headers, or any Bearer header in delivery `session`
 */
export function readCredential(site: DeliverySite, req: Request): AccessCredential | null {
  const { tokenDelivery, accessCookieName, sessionCookieName } = site.settings
  const token = bearerToken(req)
  if (token !== null && tokenDelivery === 'session') throw new InvalidTokenError({ reason: 'bearer_in_session_delivery' })
  if (token !== null) return { token, from: 'header' }
  if (tokenDelivery === 'bearer') return null
  const cookie = readCookie(site, req, tokenDelivery === 'session' ? sessionCookieName : accessCookieName)
  return cookie === null ? null : { token: copyOf(cookie), from: 'cookie' }
}

export function hasBearer({ headers }: Request): boolean {
  return bearerScheme.test(headers.authorization ?? '')
}

/** The library can keep a token longer than its request. Without a copy, it would keep the whole header in memory. */
function copyOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8')
}

function bearerToken(req: Request): string | null {
  const header = req.headers.authorization
  if (header === undefined) return null
  if (isSentTwice(req.rawHeaders ?? [])) throw new InvalidTokenError({ reason: 'header_sent_twice' })
  // The usual form needs no regular expression.
  if (header.startsWith('Bearer ') && header.length > 7 && header[7] !== ' ') return header.slice(7)
  if (!bearerScheme.test(header)) return null
  const token = bearer.exec(header)?.[1]
  if (token === undefined) throw new InvalidTokenError({ reason: 'no_token_in_header' })
  return copyOf(token)
}

/** Node keeps only the first Authorization header, but a proxy before the app may have read the second. */
function isSentTwice(rawHeaders: readonly string[]): boolean {
  let times = 0
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length === 13 && name.toLowerCase() === 'authorization') times += 1
  }
  return times > 1
}

/** So that the browser does not send them again. Call it after what may end sessions, and before the response sets cookies. */
export async function clearEndedCookies(ctx: AuthContext, req: Request, res: Response): Promise<void> {
  const { sessions } = ctx.store
  if (!sessions) return
  for (const { id, clear } of namedByCookies(ctx, req)) {
    const found = await sessions.find({ id })
    if (!found || !isAlive(found.session, ctx.now())) clear(ctx, res)
  }
}

interface NamedSession {
  readonly id: string
  readonly clear: (ctx: AuthContext, res: Response) => void
}

/** The MAC or signature is checked. A named session may have ended. */
function namedByCookies(ctx: AuthContext, req: Request): NamedSession[] {
  const ofTokens = setsTokenCookies(ctx.settings.tokenDelivery) ? (idOfAccessCookie(ctx, req) ?? idOfRefreshCookie(ctx, req)) : null
  const cookie = readSessionCookie(ctx, req)
  const ofCookie = cookie === null ? null : (readSessionToken(ctx.keys['session-token'], 'session', cookie)?.id ?? null)
  return [
    ...(ofTokens === null ? [] : [{ id: ofTokens, clear: clearLoginCookies }]),
    ...(ofCookie === null ? [] : [{ id: ofCookie, clear: clearSessionCookie }]),
  ]
}

function idOfAccessCookie(ctx: AuthContext, req: Request): string | null {
  const token = readCookie(ctx, req, ctx.settings.accessCookieName)
  return token === null ? null : (readQuietly(() => verifyAccessToken(ctx, token))?.sid ?? null)
}

function idOfRefreshCookie(ctx: AuthContext, req: Request): string | null {
  const token = readRefreshCookie(ctx, req)
  return token === null ? null : (readSessionToken(ctx.keys['session-token'], 'tokens', token)?.id ?? null)
}
