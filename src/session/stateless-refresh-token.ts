import { createHmac, type KeyObject } from 'node:crypto'
import { type AuthMethod, isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { InvalidTokenError } from '../errors'
import { isUnderAny } from '../keys'
import type { UserRecord } from '../store/auth-store'
import { epochSeconds, readPrivateToken, signPrivateToken } from './private-token'

export interface IssuedRefreshToken {
  readonly token: string
  readonly expiresAt: Date
  readonly createdAt: Date
}

/**
 * The refresh token of a store that keeps none (contract section 10.9): it can be used any number of times until it
 * expires, and no logout reaches it. What lets people in is part of it, so that a reset, a password change or a change of
 * the second factor ends it all the same.
 */
export interface StatelessSession {
  readonly userId: string
  readonly amr: readonly AuthMethod[]
  /** Seconds since 1970: the absolute end, which a refresh does not move. */
  readonly end: number
  readonly digest: string
}

/** Begins a session. Inside the unit of work of its login, whose changes to the user it has to hold. */
export async function issueStatelessToken(ctx: AuthContext, userId: string, amr: readonly AuthMethod[]): Promise<IssuedRefreshToken> {
  // Compared with the row later, and a host's table may keep less of a user than this login knows: read as it is stored.
  const user = await ctx.store.users.find(userId)
  if (!user) throw new InvalidTokenError()
  const at = ctx.now()
  return signStatelessToken(ctx, user, amr, epochSeconds(at) + ctx.settings.refreshFamilyTtlSeconds, at)
}

export function signStatelessToken(
  ctx: AuthContext,
  user: UserRecord,
  amr: readonly AuthMethod[],
  end: number,
  at: Date,
): IssuedRefreshToken {
  const iat = epochSeconds(at)
  const exp = Math.min(iat + ctx.settings.refreshTokenTtlSeconds, end)
  const [key] = ctx.keys.refresh
  const claims = { amr, dig: credentialDigest(key, user), end, exp, iat, sub: user.id, typ: 'refresh' }
  return { token: signPrivateToken(key, claims), expiresAt: new Date(exp * 1000), createdAt: at }
}

/** @throws InvalidTokenError for whatever is not a living token of ours */
export function readStatelessToken(ctx: AuthContext, token: string, at: Date): StatelessSession {
  const claims = readPrivateToken(ctx.keys.refresh, token, { typ: 'refresh', at })
  if (!claims) throw new InvalidTokenError()
  const { amr, dig, end, sub } = claims
  if (typeof sub !== 'string' || typeof dig !== 'string' || typeof end !== 'number') throw new InvalidTokenError()
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new InvalidTokenError()
  return { userId: sub, amr, end, digest: dig }
}

/** True while nothing that lets people in has changed since the token was made. */
export function isStillTrusted(ctx: AuthContext, { digest }: StatelessSession, user: UserRecord): boolean {
  return isUnderAny(ctx.keys.refresh, (key) => credentialDigest(key, user) === digest)
}

/** Under a key, because it travels through clients and a host's password hashes may be weak. */
function credentialDigest(key: KeyObject, { id, hashedPassword, totpEnabledAt, activatedAt }: UserRecord): string {
  const text = JSON.stringify(['credentials', id, hashedPassword, totpEnabledAt?.getTime() ?? null, activatedAt?.getTime() ?? null])
  return createHmac('sha256', key).update(text).digest('base64url')
}
