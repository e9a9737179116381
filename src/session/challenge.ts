import { randomBytes } from 'node:crypto'
import { isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { MfaTokenInvalidError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { UserRecord } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './account-digest'
import type { Login } from './finish-login'
import { epochSeconds, readPrivateToken, signPrivateToken } from './private-token'

/** A first step that was taken: who, how, and what the account was like then (contract section 13, Challenge). */
export interface Challenge extends Login {
  readonly userId: string
  /** Its one success is decided by this hash, unique among the user's tokens. */
  readonly idHash: string
  readonly digest: string
  readonly expiresAt: Date
}

export function signChallenge(ctx: AuthContext, user: UserRecord, { amr, provider }: Login): string {
  const iat = epochSeconds(ctx.now())
  const [key] = ctx.keys.mfa
  return signPrivateToken(key, {
    amr,
    dig: accountDigest(key, user),
    exp: iat + ctx.settings.mfaTokenTtlSeconds,
    iat,
    jti: randomBytes(16).toString('base64url'),
    ...(provider !== null && { prv: provider }),
    sub: user.id,
    typ: 'mfa',
  })
}

/** @throws MfaTokenInvalidError for whatever is not a living challenge of ours */
export function readChallenge(ctx: AuthContext, token: string): Challenge {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: ctx.now() })
  if (!claims) throw new MfaTokenInvalidError()
  const { amr, dig, exp, jti, prv = null, sub } = claims
  const isText = [dig, jti, sub].every((claim) => typeof claim === 'string' && claim.length > 0)
  if (!isText || !Array.isArray(amr) || !amr.every(isAuthMethod)) throw new MfaTokenInvalidError()
  return {
    userId: String(sub),
    amr,
    provider: prv === null ? null : String(prv),
    idHash: hashOpaqueToken(String(jti)),
    digest: String(dig),
    expiresAt: new Date(Number(exp) * 1000),
  }
}

/** True while nothing that lets people in has changed since the first step. */
export function isStillMeant(ctx: AuthContext, { digest }: Challenge, user: UserRecord | null): user is UserRecord {
  return user?.isActive === true && user.totpEnabledAt !== null && isAccountDigest(ctx.keys.mfa, user, digest)
}
