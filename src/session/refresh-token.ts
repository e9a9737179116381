import { createHmac, randomUUID } from 'node:crypto'
import { type AuthMethod, amrToText } from '../amr'
import type { AuthContext } from '../context'
import { hashOpaqueToken, newOpaqueToken } from '../opaque-token'
import type { RefreshTokenStore, UserRecord } from '../store/auth-store'
import { issueStatelessToken } from './stateless-refresh-token'

export interface IssuedRefreshToken {
  /** The plaintext: handed out once, never stored. */
  token: string
  expiresAt: Date
  /** The row's: the access token of the pair says the same. */
  createdAt: Date
}

/** Starts a family, or a stateless token where the store keeps none. Inside the unit of work of the login it belongs to. */
export async function issueRefreshToken(ctx: AuthContext, user: UserRecord, amr: readonly AuthMethod[]): Promise<IssuedRefreshToken> {
  const { refreshTokens } = ctx.store
  return refreshTokens ? startFamily(ctx, refreshTokens, user.id, amr) : issueStatelessToken(ctx, user.id, amr)
}

async function startFamily(
  ctx: AuthContext,
  refreshTokens: RefreshTokenStore,
  userId: string,
  amr: readonly AuthMethod[],
): Promise<IssuedRefreshToken> {
  const now = ctx.now()
  const token = newOpaqueToken()
  const familyExpiresAt = after(now, ctx.settings.refreshFamilyTtlSeconds)
  const expiresAt = earlier(after(now, ctx.settings.refreshTokenTtlSeconds), familyExpiresAt)
  await refreshTokens.insert({
    id: randomUUID(),
    userId,
    tokenHash: hashOpaqueToken(token),
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

/**
 * The token that replaces another, under the id its row will have. Without a grace window it is 256 random bits. With one,
 * whoever comes late is given the same again although no plaintext is stored: it follows from the predecessor and the id
 * under a key of ours (contract section 13, Grace). The database alone tells it to nobody, nor the predecessor alone.
 */
export function successorOf(ctx: AuthContext, predecessor: string, id: string): string {
  if (ctx.settings.refreshReuseGraceSeconds === 0) return newOpaqueToken()
  return createHmac('sha256', ctx.keys['refresh-successor'][0])
    .update(predecessor + id)
    .digest('base64url')
}

export function after(instant: Date, seconds: number): Date {
  return new Date(instant.getTime() + seconds * 1000)
}

function earlier(a: Date, b: Date): Date {
  return a < b ? a : b
}
