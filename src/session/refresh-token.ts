import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { type AuthMethod, amrToText } from '../amr'
import type { AuthContext } from '../context'
import { ConfigurationError } from '../errors'
import type { RefreshTokenStore } from '../store/auth-store'

export interface IssuedRefreshToken {
  /** The plaintext: handed out once, never stored. */
  token: string
  expiresAt: Date
  /** The row's: the access token of the pair says the same. */
  createdAt: Date
}

/** Starts a family. Inside the unit of work of the login it belongs to. */
export async function issueRefreshToken(ctx: AuthContext, userId: string, amr: readonly AuthMethod[]): Promise<IssuedRefreshToken> {
  const now = ctx.now()
  const { token, tokenHash } = newRefreshToken()
  const familyExpiresAt = after(now, ctx.settings.refreshFamilyTtlSeconds)
  const expiresAt = earlier(after(now, ctx.settings.refreshTokenTtlSeconds), familyExpiresAt)
  await refreshTokensOf(ctx).insert({
    id: randomUUID(),
    userId,
    tokenHash,
    familyId: randomUUID(),
    parentId: null,
    amr: amrToText(amr),
    expiresAt,
    familyExpiresAt,
    usedAt: null,
    revokedAt: null,
    createdAt: now,
  })
  return { token, expiresAt, createdAt: now }
}

/** 256 random bits; only the SHA-256 is stored. */
export function newRefreshToken(): { token: string; tokenHash: string } {
  const token = randomBytes(32).toString('base64url')
  return { token, tokenHash: hashRefreshToken(token) }
}

export function hashRefreshToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

export function refreshTokensOf(ctx: AuthContext): RefreshTokenStore {
  const { refreshTokens } = ctx.store
  if (!refreshTokens) throw new ConfigurationError('The store has no refresh tokens; wire `refreshTokens` in your AuthStore.')
  return refreshTokens
}

export function after(instant: Date, seconds: number): Date {
  return new Date(instant.getTime() + seconds * 1000)
}

function earlier(a: Date, b: Date): Date {
  return a < b ? a : b
}
