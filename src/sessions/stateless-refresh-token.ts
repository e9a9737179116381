import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { type AuthMethod, isAuthMethod } from '../core/amr'
import { InvalidTokenError } from '../core/errors'
import { isUnderAny } from '../core/keys'
import type { UserRecord } from '../store/auth-store'
import { authTimeOf, instantOfAuthTime } from './access-token'
import { epochSeconds, readPrivateToken, signPrivateToken } from './challenge'
import type { Login } from './login'

export interface IssuedRefreshToken {
  readonly token: string
  readonly authenticatedAt: Date | null
  readonly expiresAt: Date
  readonly createdAt: Date
}

/** Reusable until it expires; no logout revokes it, but a new password or a change of the second factor does (`digest`). */
export interface StatelessSession {
  readonly userId: string
  readonly amr: readonly AuthMethod[]
  /** Null: unknown, or the credential was added less than 24 hours ago. */
  readonly authenticatedAt: Date | null
  /** The latest end, in seconds since 1970. A refresh keeps it. */
  readonly end: number
  readonly digest: string
  /** False: the browser deletes the cookies when it closes. */
  readonly isPersistent: boolean
}

/** Call it inside the login's transaction: the token must contain the login's changes to the user. */
export async function issueStatelessToken(
  ctx: AuthContext,
  userId: string,
  { amr, isYoung, isPersistent = true }: Login,
): Promise<IssuedRefreshToken> {
  // The token is later compared with the row, and a host's table can store less of a user than this login knows.
  const user = await ctx.store.users.find(userId)
  if (!user) throw new InvalidTokenError()
  const at = ctx.now()
  const end = epochSeconds(at) + ctx.settings.refreshFamilyTtlSeconds
  return signStatelessToken(ctx, user, { amr, authenticatedAt: isYoung ? null : at, end, isPersistent }, at)
}

export function signStatelessToken(
  ctx: AuthContext,
  user: UserRecord,
  { amr, authenticatedAt, end, isPersistent }: Pick<StatelessSession, 'amr' | 'authenticatedAt' | 'end' | 'isPersistent'>,
  at: Date,
): IssuedRefreshToken {
  const iat = epochSeconds(at)
  const exp = Math.min(iat + ctx.settings.refreshTokenTtlSeconds, end)
  const [key] = ctx.keys.refresh
  const claims = {
    amr,
    auth_time: authTimeOf(authenticatedAt),
    dig: credentialDigest(key, user),
    end,
    exp,
    iat,
    sub: user.id,
    ...(!isPersistent && { tmp: true }),
    typ: 'refresh',
  }
  return { token: signPrivateToken(key, claims), authenticatedAt, expiresAt: new Date(exp * 1000), createdAt: at }
}

export function readStatelessToken(ctx: AuthContext, token: string, at: Date): StatelessSession {
  const claims = readPrivateToken(ctx.keys.refresh, token, { typ: 'refresh', at })
  if (!claims) throw new InvalidTokenError()
  const { amr, auth_time: authTime, dig, end, sub, tmp } = claims
  if (typeof sub !== 'string' || typeof dig !== 'string' || typeof end !== 'number') throw new InvalidTokenError()
  if (typeof authTime !== 'number') throw new InvalidTokenError()
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new InvalidTokenError()
  return { userId: sub, amr, authenticatedAt: instantOfAuthTime(authTime), end, digest: dig, isPersistent: tmp !== true }
}

export function isStillTrusted(ctx: AuthContext, { digest }: StatelessSession, user: UserRecord): boolean {
  return isUnderAny(ctx.keys.refresh, (key) => credentialDigest(key, user) === digest)
}

/** An HMAC, because clients see it: a plain hash would let an attacker test password guesses if the host's hashes are weak. */
function credentialDigest(key: KeyObject, { id, hashedPassword, totpEnabledAt, activatedAt }: UserRecord): string {
  const text = JSON.stringify(['credentials', id, hashedPassword, totpEnabledAt?.getTime() ?? null, activatedAt?.getTime() ?? null])
  return createHmac('sha256', key).update(text).digest('base64url')
}
