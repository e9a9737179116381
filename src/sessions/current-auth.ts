import type { Request } from 'express'
import { seeTroubleshooting } from '../core/troubleshooting'
import type { HostTypes, WithFields } from '../store/host-types'
import type { PublicUser } from '../store/public-user'
import type { AccessTokenClaims } from './access-token'
import type { PublicSession } from './find-session'

/** The result of a guard for one request. */
export interface CurrentAuth {
  /**
   * The claims of the access token. With `tokenDelivery: 'session'`, the guard makes the claims from the session. Null after
   * requireSession.
   */
  readonly claims: AccessTokenClaims | null
  readonly user: PublicUser | null
  readonly session?: PublicSession
}

/** The result for an access token. With `tokenDelivery: 'session'`, the result for the session cookie. */
export interface KnownAuth extends CurrentAuth {
  readonly claims: AccessTokenClaims
}

/** The result for a session cookie. The result contains the session and its user. */
export interface SessionAuth extends KnownAuth {
  readonly user: PublicUser
  readonly session: PublicSession
}

// Two copies of the package in one process share this map, because globalThis stores the map under a shared symbol. The map is a WeakMap,
// so the host's requests stay unchanged.
const key = Symbol.for('doorward.auth.v1')
const shared = globalThis as { [key]?: WeakMap<object, CurrentAuth> }
shared[key] ??= new WeakMap()
const remembered = shared[key]

/** Stores the result of a guard. If an earlier guard of the request loaded the same user, the stored result keeps that user. */
export function rememberAuth(req: Request, auth: CurrentAuth): void {
  const user = auth.user ?? remembered.get(req)?.user ?? null
  const isSame = user !== null && user.id === (auth.claims?.sub ?? user.id)
  remembered.set(req, isSame ? { ...auth, user } : auth)
}

/** Returns the result of the guards of this request; null if no guard ran. */
export function findRequestAuth(req: Request): CurrentAuth | null {
  return remembered.get(req) ?? null
}

/** Returns the id of the user that a guard found; null if no guard found a user. */
export function findSubject(req: Request): string | null {
  const auth = remembered.get(req)
  return auth?.claims?.sub ?? auth?.user?.id ?? null
}

/**
 * Returns a name of the session that a guard found. If the token names no session, the function returns a name of the user. Returns null if
 * no guard found a session or a user.
 */
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
