import { randomBytes } from 'node:crypto'
import type { AuthContext } from '../context'
import { isAuthMethod } from '../core/amr'
import { MfaTokenInvalidError } from '../core/errors'
import { hashOpaqueToken } from '../core/opaque-token'
import type { UserRecord } from '../store/auth-store'
import { accountDigest, isAccountDigest } from './account-digest'
import type { Destination } from './destination'
import type { Login } from './login'
import { epochSeconds, readPrivateToken, signPrivateToken } from './private-token'

/**
 * A login that has finished its first step and needs a second factor. The challenge contains the account, the methods, and a digest of the
 * account after the first step.
 */
export interface Challenge extends Login {
  readonly userId: string
  /** The hash of the challenge's id. The hash is unique among the user's tokens, so a challenge succeeds only once. */
  readonly idHash: string
  readonly digest: string
  readonly expiresAt: Date
  readonly destination: Destination | null
}

export function signChallenge(ctx: AuthContext, user: UserRecord, login: Login): string {
  const { amr, provider, providerSid, isYoung = false, destination = null, isPersistent = true } = login
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
    ...(providerSid !== undefined && { psd: providerSid }),
    ...(isYoung && { yng: true }),
    sub: user.id,
    ...(!isPersistent && { tmp: true }),
    typ: 'mfa',
  })
}

/**
 * Reads a challenge.
 * @throws MfaTokenInvalidError unless the token is a challenge, is signed by us, and has not expired
 */
export function readChallenge(ctx: AuthContext, token: string): Challenge {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: ctx.now() })
  if (!claims) throw new MfaTokenInvalidError()
  const { amr, dig, dst = null, exp, jti, prv = null, psd, sub, tmp, yng } = claims
  const isText = [dig, jti, sub].every((claim) => typeof claim === 'string' && claim.length > 0)
  if (!isText || !Array.isArray(amr) || !amr.every(isAuthMethod)) throw new MfaTokenInvalidError()
  return {
    userId: String(sub),
    amr,
    provider: prv === null ? null : String(prv),
    ...(psd !== undefined && { providerSid: String(psd) }),
    isYoung: yng === true,
    isPersistent: tmp !== true,
    idHash: hashOpaqueToken(String(jti)),
    digest: String(dig),
    expiresAt: new Date(Number(exp) * 1000),
    destination: dst as Destination | null, // as `signChallenge` wrote it
  }
}

/**
 * Returns the destination of a challenge, even if the challenge has expired. Null: the challenge has no destination, or the token is not
 * ours.
 */
export function destinationOfChallenge(ctx: AuthContext, token: string): Destination | null {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: longAgo })
  return (claims?.['dst'] ?? null) as Destination | null // as `signChallenge` wrote it
}

/**
 * A time before the end of every challenge. At this time, an expired challenge still counts as valid. The time is not 0, because
 * jsonwebtoken reads 0 as the current time.
 */
const longAgo = new Date(1_000)

/**
 * Marks a challenge as used. The function inserts a row that is already used. The hash in the row is unique, so only one of several
 * parallel requests succeeds.
 * @throws DuplicateRecordError when the challenge was used before
 */
export async function consumeChallenge(
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

/** Returns true if the account is active, has a second factor, and has not changed since the first step. */
export function isStillMeant(ctx: AuthContext, { digest }: Challenge, user: UserRecord | null): user is UserRecord {
  return user?.isActive === true && user.totpEnabledAt !== null && isAccountDigest(ctx.keys.mfa, user, digest)
}
