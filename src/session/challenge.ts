import { createHash, randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import { type AuthMethod, isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { MfaTokenInvalidError } from '../errors'
import type { UserRecord } from '../store/auth-store'
import { accountDigest } from './account-digest'

/** A first step that was taken: who, how, and what the account was like then (contract section 13, Challenge). */
export interface Challenge {
  readonly userId: string
  readonly amr: readonly AuthMethod[]
  /** Its one success is decided by this hash, unique among the user's tokens. */
  readonly idHash: string
  readonly digest: string
  readonly expiresAt: Date
}

const maxLength = 4096
const header = { alg: 'HS256', typ: 'JWT' } as const
const encodedHeader = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`

/** Under a key of its own: refused in every other slot, as every other token is in this one. */
export function signChallenge(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): string {
  const iat = epochSeconds(ctx)
  const claims = {
    amr,
    dig: accountDigest(ctx.keys.mfa, user),
    exp: iat + ctx.settings.mfaTokenTtlSeconds,
    iat,
    jti: randomBytes(16).toString('base64url'),
    sub: user.id,
    typ: 'mfa',
  }
  return jwt.sign(claims, ctx.keys.mfa, { algorithm: header.alg, header })
}

/** @throws MfaTokenInvalidError for whatever is not a living challenge of ours */
export function readChallenge(ctx: AuthContext, token: string): Challenge {
  if (token.length > maxLength || !token.startsWith(encodedHeader)) throw new MfaTokenInvalidError()
  const { amr, dig, exp, jti, sub, typ } = verifySignature(ctx, token)
  const isText = [dig, jti, sub].every((claim) => typeof claim === 'string' && claim.length > 0)
  if (typ !== 'mfa' || typeof exp !== 'number' || !isText || !Array.isArray(amr) || !amr.every(isAuthMethod))
    throw new MfaTokenInvalidError()
  return { userId: String(sub), amr, idHash: sha256(String(jti)), digest: String(dig), expiresAt: new Date(exp * 1000) }
}

/** True while nothing that lets people in has changed since the first step. */
export function isStillMeant(ctx: AuthContext, { digest }: Challenge, user: UserRecord | null): user is UserRecord {
  return user?.isActive === true && user.totpEnabledAt !== null && accountDigest(ctx.keys.mfa, user) === digest
}

function verifySignature(ctx: AuthContext, token: string): Record<string, unknown> {
  try {
    const payload: unknown = jwt.verify(token, ctx.keys.mfa, {
      algorithms: [header.alg],
      clockTimestamp: epochSeconds(ctx),
      clockTolerance: 0,
    })
    if (typeof payload === 'object' && payload !== null) return payload as Record<string, unknown>
  } catch {
    // Signature, shape or time: one refusal.
  }
  throw new MfaTokenInvalidError()
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

function epochSeconds(ctx: AuthContext): number {
  return Math.floor(ctx.now().getTime() / 1000)
}
