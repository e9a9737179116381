import type { Request } from 'express'
import type { AccessTokenClaims } from '../session/access-token'
import type { PublicSession } from '../session/find-session'
import type { HostTypes, WithFields } from '../store/host-types'
import type { PublicUser } from '../store/public-user'
import { seeTroubleshooting } from '../troubleshooting'

/** What a guard found out about one request. */
export interface CurrentAuth {
  /** Null behind requireSession. In delivery `session` they are those of the session. */
  readonly claims: AccessTokenClaims | null
  readonly user: PublicUser | null
  readonly session?: PublicSession
}

/** By an access token, or by the session cookie in delivery `session`. */
export interface KnownAuth extends CurrentAuth {
  readonly claims: AccessTokenClaims
}

/** By the session cookie: its row was read, and that of its user. */
export interface SessionAuth extends KnownAuth {
  readonly user: PublicUser
  readonly session: PublicSession
}

// On globalThis under a registered symbol: two copies of the package in one process agree on who is signed in. A WeakMap,
// so that nothing is written on the host's request.
const key = Symbol.for('doorward.auth.v1')
const shared = globalThis as { [key]?: WeakMap<object, CurrentAuth> }
shared[key] ??= new WeakMap()
const remembered = shared[key]

/** Keeps the user that an earlier guard of this request loaded, where the token is of the same one. */
export function rememberAuth(req: Request, auth: CurrentAuth): void {
  const user = auth.user ?? remembered.get(req)?.user ?? null
  const isSame = user !== null && user.id === (auth.claims?.sub ?? user.id)
  remembered.set(req, isSame ? { ...auth, user } : auth)
}

/** Returns what a guard found out about this request; null where none ran. */
export function findRequestAuth(req: Request): CurrentAuth | null {
  return remembered.get(req) ?? null
}

/** Returns the user's id, whichever guard found it; null where none did. */
export function findSubject(req: Request): string | null {
  const auth = remembered.get(req)
  return auth?.claims?.sub ?? auth?.user?.id ?? null
}

/** Returns what names the session that a guard found, or its user where a token names no session; null where no guard found anybody. */
export function findSessionName(req: Request): string | null {
  const { claims, session } = remembered.get(req) ?? { claims: null }
  if (claims) return JSON.stringify(claims.sid === undefined ? ['user', claims.sub] : ['session', claims.sid])
  return session ? JSON.stringify(['session', session.id]) : null
}

/** The claims of the access token; null when the request is anonymous or no guard ran. */
export function findAuth<Claims extends object = object>(req: Request): (AccessTokenClaims & Readonly<Claims>) | null {
  return (remembered.get(req)?.claims ?? null) as (AccessTokenClaims & Readonly<Claims>) | null // what the host says of its own claims
}

/**
 * The claims of the access token; `getAuth<{ roles: string[] }>(req)` states those of your own.
 * @throws Error when no guard ran before: a programming mistake, not a refusal
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
 * The signed-in user as the database has it now.
 * @throws Error when none of requireUser, requireAdmin and requireSession ran before
 */
export function getUser<Host extends HostTypes = HostTypes>(req: Request): WithFields<PublicUser, Host> {
  const user = remembered.get(req)?.user
  if (!user)
    throw new Error(
      `getUser(req) was called on a request whose user was not loaded; put guards.requireUser() before this handler. ${seeTroubleshooting('no-guard-ran')}`,
    )
  return user as WithFields<PublicUser, Host> // what the host says of its own fields
}

/**
 * The server-side session of the request.
 * @throws Error when requireSession did not run before: a programming mistake, not a refusal
 */
export function getSession(req: Request): PublicSession {
  const session = remembered.get(req)?.session
  if (!session)
    throw new Error(
      `getSession(req) was called on a request whose session was not loaded; put guards.requireSession() before this handler. ${seeTroubleshooting('no-guard-ran')}`,
    )
  return session
}
