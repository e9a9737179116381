import { randomBytes } from 'node:crypto'
import { isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { MfaTokenInvalidError } from '../errors'
import { hashOpaqueToken } from '../opaque-token'
import type { UserRecord } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './account-digest'
import type { Destination } from './destination'
import type { Login } from './finish-login'
import { epochSeconds, readPrivateToken, signPrivateToken } from './private-token'

/** A first step that was taken: who, how, and what the account was like then. */
export interface Challenge extends Login {
  readonly userId: string
  /** Its one success is decided by this hash, unique among the user's tokens. */
  readonly idHash: string
  readonly digest: string
  readonly expiresAt: Date
  readonly destination: Destination | null
}

export function signChallenge(ctx: AuthContext, user: UserRecord, login: Login): string {
  const { amr, provider, isYoung = false, destination = null, isPersistent = true } = login
  const iat = epochSeconds(ctx.now())
  const [key] = ctx.keys.mfa
  return signPrivateToken(key, {
    amr,
    dig: accountDigest(key, user),
    ...(destination && { dst: destination }),
    exp: iat + ctx.settings.mfaTokenTtlSeconds,
    iat,
    jti: randomBytes(16).toString('base64url'),
    ...(provider !== null && { prv: provider }),
    ...(isYoung && { yng: true }),
    sub: user.id,
    ...(!isPersistent && { tmp: true }),
    typ: 'mfa',
  })
}

/** @throws MfaTokenInvalidError for whatever is not a living challenge of ours */
export function readChallenge(ctx: AuthContext, token: string): Challenge {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: ctx.now() })
  if (!claims) throw new MfaTokenInvalidError()
  const { amr, dig, dst = null, exp, jti, prv = null, sub, tmp, yng } = claims
  const isText = [dig, jti, sub].every((claim) => typeof claim === 'string' && claim.length > 0)
  if (!isText || !Array.isArray(amr) || !amr.every(isAuthMethod)) throw new MfaTokenInvalidError()
  return {
    userId: String(sub),
    amr,
    provider: prv === null ? null : String(prv),
    isYoung: yng === true,
    isPersistent: tmp !== true,
    idHash: hashOpaqueToken(String(jti)),
    digest: String(dig),
    expiresAt: new Date(Number(exp) * 1000),
    destination: dst as Destination | null, // as `signChallenge` wrote it
  }
}

/** Where a login leads whose challenge may be over. Null: nowhere in particular, or the token is not ours. */
export function destinationOfChallenge(ctx: AuthContext, token: string): Destination | null {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: longAgo })
  return (claims?.['dst'] ?? null) as Destination | null // as `signChallenge` wrote it
}

/** Every challenge is alive then. Not 0, which jsonwebtoken takes for now. */
const longAgo = new Date(1_000)

/** Uses a challenge up. Born used: the unique hash is what lets one of any number of racers through. @throws DuplicateRecordError */
export async function spendChallenge(
  ctx: AuthContext,
  { userId, idHash, expiresAt }: Pick<Challenge, 'userId' | 'idHash' | 'expiresAt'>,
): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: idHash,
    purpose: 'MFA_CHALLENGE',
    payload: null,
    expiresAt,
    usedAt: now,
    createdAt: now,
  })
}

/** True while nothing that lets people in has changed since the first step. */
export function isStillMeant(ctx: AuthContext, { digest }: Challenge, user: UserRecord | null): user is UserRecord {
  return user?.isActive === true && user.totpEnabledAt !== null && isAccountDigest(ctx.keys.mfa, user, digest)
}
