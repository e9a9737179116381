import { createHmac, type KeyObject, randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { AuthContext } from '../context'
import { isAuthMethod } from '../core/amr'
import { MfaTokenInvalidError } from '../core/errors'
import { isUnderAny, type KeyList } from '../core/keys'
import { hashOpaqueToken } from '../core/opaque-token'
import type { UserRecord } from '../store/auth-store'
import { mayProve } from './account-state'
import type { Destination } from './destination'
import type { Login } from './login'

/** A login that finished its first step and needs a second factor. */
export interface Challenge extends Login {
  readonly userId: string
  /** Unique among the user's tokens, so a challenge succeeds only once. */
  readonly idHash: string
  readonly digest: string
  readonly expiresAt: Date
  readonly destination: Destination | null
}

export function signChallenge(ctx: AuthContext, user: UserRecord, login: Login): string {
  const { amr, provider, providerSid, isYoung = false, destination = null, isPersistent = true, isFromHost } = login
  const iat = epochSeconds(ctx.now())
  const [key] = ctx.keys.mfa
  return signPrivateToken(key, {
    amr,
    dig: accountDigest(key, user),
    ...(destination && { dst: destination }),
    ...(isFromHost && { hst: true }),
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

export function readChallenge(ctx: AuthContext, token: string): Challenge {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: ctx.now() })
  if (!claims) throw new MfaTokenInvalidError()
  const { amr, dig, dst = null, exp, hst, jti, prv = null, psd, sub, tmp, yng } = claims
  const isText = [dig, jti, sub].every((claim) => typeof claim === 'string' && claim.length > 0)
  if (!isText || !Array.isArray(amr) || !amr.every(isAuthMethod)) throw new MfaTokenInvalidError()
  return {
    userId: String(sub),
    amr,
    provider: prv === null ? null : String(prv),
    ...(psd !== undefined && { providerSid: String(psd) }),
    isYoung: yng === true,
    isPersistent: tmp !== true,
    ...(hst === true && { isFromHost: true }),
    idHash: hashOpaqueToken(String(jti)),
    digest: String(dig),
    expiresAt: new Date(Number(exp) * 1000),
    destination: dst as Destination | null, // as `signChallenge` wrote it
  }
}

/** Also of an expired challenge. Null: no destination, or the token is not ours. */
export function destinationOfChallenge(ctx: AuthContext, token: string): Destination | null {
  const claims = readPrivateToken(ctx.keys.mfa, token, { typ: 'mfa', at: longAgo })
  return (claims?.['dst'] ?? null) as Destination | null // as `signChallenge` wrote it
}

/** An expired challenge still counts at this time. Not 0, because jsonwebtoken reads 0 as the current time. */
const longAgo = new Date(1_000)

/** A used row with a unique hash: only one of several parallel requests succeeds. @throws DuplicateRecordError for the others */
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

/** False also if the account has changed since the first step. */
export function isStillMeant(ctx: AuthContext, { digest }: Challenge, user: UserRecord | null): user is UserRecord {
  return user !== null && mayProve(user) && user.totpEnabledAt !== null && isAccountDigest(ctx.keys.mfa, user, digest)
}

/**
 * An unfinished operation carries this digest. It becomes invalid with a new password, a new second factor, a deactivation, and a
 * verification or change of the address. An HMAC, because browsers see it: a plain hash would let an attacker test password guesses if the
 * host's hashes are weak.
 */
export function accountDigest(key: KeyObject, user: UserRecord): string {
  const { id, email, hashedPassword, totpEnabledAt, emailVerifiedAt, activatedAt, isActive } = user
  const text = JSON.stringify([
    'account',
    id,
    email,
    hashedPassword,
    totpEnabledAt?.getTime() ?? null,
    emailVerifiedAt?.getTime() ?? null,
    // A reactivation sets a new time, so a digest from before the deactivation stays invalid.
    activatedAt?.getTime() ?? null,
    isActive,
  ])
  return createHmac('sha256', key).update(text).digest('base64url')
}

export function isAccountDigest(keys: KeyList, user: UserRecord, digest: string): boolean {
  return isUnderAny(keys, (key) => accountDigest(key, user) === digest)
}

const maxLength = 4096
const header = { alg: 'HS256', typ: 'JWT' } as const
// The only valid header: comparing the whole text rejects every other algorithm, `crit` and `jku` at once.
const encodedHeader = `${Buffer.from(JSON.stringify(header)).toString('base64url')}.`

/** Each purpose has its own key, so a token of one purpose is invalid for every other (RFC 8725 section 3.12). */
export function signPrivateToken(key: KeyObject, claims: { typ: string; exp: number; iat: number } & Record<string, unknown>): string {
  return jwt.sign(claims, key, { algorithm: header.alg, header })
}

export function readPrivateToken(keys: KeyList, token: string, { typ, at }: { typ: string; at: Date }): Record<string, unknown> | null {
  if (token.length > maxLength || !token.startsWith(encodedHeader)) return null
  const claims = keys.map((key) => verified(key, token, at)).find((found) => found !== null)
  return claims?.['typ'] === typ && typeof claims['exp'] === 'number' ? claims : null
}

function verified(key: KeyObject, token: string, at: Date): Record<string, unknown> | null {
  try {
    const payload: unknown = jwt.verify(token, key, { algorithms: [header.alg], clockTimestamp: epochSeconds(at), clockTolerance: 0 })
    return typeof payload === 'object' && payload !== null ? (payload as Record<string, unknown>) : null
  } catch {
    return null
  }
}

export function epochSeconds(instant: Date): number {
  return Math.floor(instant.getTime() / 1000)
}
