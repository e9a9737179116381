import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import type { SessionRecord } from '../store/auth-store'

const lifeSeconds = 900

/** A factor that takes the place of an active one when it is confirmed. It waits in its token's row; the user's row stays as it is. */
export interface Replacement {
  /** As it will be stored. */
  readonly secret: string
  /** The hashes of its recovery codes. */
  readonly recoveryCodes: readonly string[]
  /** A code of the authenticator app began it, so no link undoes it. */
  readonly isFinal: boolean
}

/**
 * Remembers that a factor was begun, and in which session, for 15 minutes. What was begun in a fresh session may be finished by it, also
 * when it is no longer fresh. Inside the transaction that stores the pending secret.
 * @param pending the secret as it is stored in the user's row, where another enrolment has another one; or what replaces it
 * @param session null: any session of the account may finish it, because the host began it, or because the store keeps no sessions
 */
export async function beginEnrolment(
  ctx: AuthContext,
  userId: string,
  pending: string | Replacement,
  session: SessionRecord | null,
): Promise<void> {
  const now = ctx.now()
  const sessionId = session?.id ?? null
  const [secret, payload] = typeof pending === 'string' ? [pending, sessionId] : [pending.secret, writeReplacement(sessionId, pending)]
  await ctx.store.userTokens.consumeAllForUser(userId, now, 'MFA_ENROLMENT')
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: enrolmentHash(userId, secret),
    purpose: 'MFA_ENROLMENT',
    payload,
    expiresAt: new Date(now.getTime() + lifeSeconds * 1000),
    usedAt: null,
    createdAt: now,
  })
}

/** The replacement that an account has begun within 15 minutes. */
export async function findReplacement(ctx: AuthContext, userId: string): Promise<Replacement | null> {
  const [begun] = await ctx.store.userTokens.listOpen(userId, 'MFA_ENROLMENT', ctx.now())
  return begun ? readPayload(begun.payload).replacement : null
}

/** Single use: true where this secret was begun by this session within 15 minutes. Inside the transaction that makes the factor active. */
export async function finishEnrolment(ctx: AuthContext, userId: string, secret: string, session: SessionRecord | null): Promise<boolean> {
  const begun = await ctx.store.userTokens.find(enrolmentHash(userId, secret))
  if (begun?.userId !== userId) return false
  const { sessionId } = readPayload(begun.payload)
  if (sessionId !== null && sessionId !== session?.id) return false
  return (await ctx.store.userTokens.consume(begun.tokenHash, 'MFA_ENROLMENT', ctx.now())) !== null
}

function enrolmentHash(userId: string, secret: string): string {
  return createHash('sha256')
    .update(JSON.stringify(['mfa-enrolment', userId, secret]))
    .digest('hex')
}

/** Hashes as base64url: 50 codes have to fit (`payloadLength` in readiness/table-needs.ts). */
function writeReplacement(sessionId: string | null, { secret, recoveryCodes, isFinal }: Replacement): string {
  const codes = recoveryCodes.map((hash) => Buffer.from(hash, 'hex').toString('base64url'))
  return JSON.stringify([sessionId, secret, isFinal, codes])
}

/** Without a replacement it is the session's id alone. */
function readPayload(payload: string | null): { sessionId: string | null; replacement: Replacement | null } {
  if (!payload?.startsWith('[')) return { sessionId: payload, replacement: null }
  const [sessionId, secret, isFinal, codes] = JSON.parse(payload) as [string | null, string, boolean, string[]] // as `writeReplacement` wrote it
  return { sessionId, replacement: { secret, isFinal, recoveryCodes: codes.map((code) => Buffer.from(code, 'base64url').toString('hex')) } }
}
