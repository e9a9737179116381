import type { Request } from 'express'
import type { AccessTokenClaims } from '../session/access-token'
import type { PublicSession } from '../session/find-session'
import type { PublicUser } from './public-user'

/** What a guard found out about one request. */
export interface CurrentAuth {
  /** Null behind requireSession: there is no token. */
  readonly claims: AccessTokenClaims | null
  readonly user: PublicUser | null
  readonly session?: PublicSession
}

/** By an access token. */
export interface TokenAuth extends CurrentAuth {
  readonly claims: AccessTokenClaims
}

// On globalThis under a registered symbol: two copies of the package in one process agree on who is signed in. A WeakMap,
// so that nothing is written on the host's request.
const key = Symbol.for('doorward.auth.v1')
const shared = globalThis as { [key]?: WeakMap<object, CurrentAuth> }
shared[key] ??= new WeakMap()
const remembered = shared[key]

export function rememberAuth(req: Request, auth: CurrentAuth): void {
  remembered.set(req, auth)
}

/** The claims of the access token; null when the request is anonymous or no guard ran. */
export function findAuth(req: Request): AccessTokenClaims | null {
  return remembered.get(req)?.claims ?? null
}

/**
 * The claims of the access token.
 * @throws Error when no guard ran before: a programming mistake, not a refusal
 */
export function getAuth(req: Request): AccessTokenClaims {
  const claims = findAuth(req)
  if (!claims)
    throw new Error(
      'getAuth(req) was called on a request that passed no guard; put guards.requireAuth() before this handler, or use findAuth(req).',
    )
  return claims
}

/**
 * The signed-in user as the database has it now.
 * @throws Error when none of requireUser, requireAdmin and requireSession ran before
 */
export function getUser(req: Request): PublicUser {
  const user = remembered.get(req)?.user
  if (!user)
    throw new Error('getUser(req) was called on a request whose user was not loaded; put guards.requireUser() before this handler.')
  return user
}

/**
 * The server-side session of the request.
 * @throws Error when requireSession did not run before: a programming mistake, not a refusal
 */
export function getSession(req: Request): PublicSession {
  const session = remembered.get(req)?.session
  if (!session)
    throw new Error(
      'getSession(req) was called on a request whose session was not loaded; put guards.requireSession() before this handler.',
    )
  return session
}
