import jwt from 'jsonwebtoken'
import { type AuthMethod, isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { InvalidTokenError, TokenExpiredError, UnauthorizedError } from '../errors'
import type { UserRecord } from '../store/auth-store'

/** Exactly these claims, no others (specification, access token claims). */
export interface AccessTokenClaims {
  /** The methods that ran for this session (RFC 8176 style). */
  readonly amr: readonly AuthMethod[]
  readonly email: string
  /** Seconds since 1970 (RFC 7519 section 2, NumericDate). */
  readonly exp: number
  readonly iat: number
  /** The user's id. */
  readonly sub: string
  readonly typ: 'access'
}

const maxLength = 4096
// The one header we sign under. Comparing it whole refuses every other algorithm, `crit`, `jku` and the rest at once
// (RFC 8725 sections 3.1 and 3.10), which jsonwebtoken would let through.
const header = { alg: 'HS256', typ: 'JWT' } as const
const encodedHeader = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`

export function signAccessToken(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): string {
  const iat = epochSeconds(ctx.now())
  const claims: AccessTokenClaims = {
    amr,
    email: user.email,
    exp: iat + ctx.settings.accessTokenTtlSeconds,
    iat,
    sub: user.id,
    typ: 'access',
  }
  return jwt.sign(claims, ctx.keys.access, { algorithm: header.alg, header })
}

/**
 * The claims of a token of ours, from its signature alone: no database.
 * @throws InvalidTokenError (signature or shape), TokenExpiredError, UnauthorizedError (a token of another kind)
 */
export function verifyAccessToken(ctx: Pick<AuthContext, 'keys' | 'now'>, token: string): AccessTokenClaims {
  if (token.length > maxLength || !token.startsWith(encodedHeader)) throw new InvalidTokenError()
  return readClaims(verifySignature(ctx, token))
}

function verifySignature({ keys, now }: Pick<AuthContext, 'keys' | 'now'>, token: string): unknown {
  try {
    return jwt.verify(token, keys.access, { algorithms: [header.alg], clockTimestamp: epochSeconds(now()), clockTolerance: 0 })
  } catch (error) {
    // Not every failure in there is a JsonWebTokenError: a payload `null` is a TypeError.
    throw error instanceof jwt.TokenExpiredError ? new TokenExpiredError() : new InvalidTokenError()
  }
}

/** Copied by name into a fresh object: a claim called `__proto__` goes nowhere. */
function readClaims(payload: unknown): AccessTokenClaims {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) throw new InvalidTokenError()
  const { amr, email, exp, iat, sub, typ } = payload as Record<string, unknown>
  if (typ !== 'access') throw new UnauthorizedError()
  if (typeof sub !== 'string' || sub.length < 1 || sub.length > 64) throw new InvalidTokenError()
  if (typeof email !== 'string' || typeof exp !== 'number' || typeof iat !== 'number') throw new InvalidTokenError()
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new InvalidTokenError()
  return Object.freeze({ amr: Object.freeze([...amr]), email, exp, iat, sub, typ })
}

function epochSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}
