import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import type { Finality } from '../step-up/finality'
import type { SessionRecord } from '../store/auth-store'

const lifeSeconds = 900

/** A factor whose enrolment began. */
export interface BegunFactor {
  /** As it is stored, or will be. */
  readonly secret: string
  /** Null for the account's first factor, whose recovery codes are in their table already. */
  readonly recoveryCodes: readonly string[] | null
  /** The factor that confirmed the enrolment when it began, so that no link can undo it. */
  readonly isFinal: Finality
}

/** A factor that replaces an active one when it is confirmed. Until then it is in its token's row, and the user's row does not change. */
export interface Replacement extends BegunFactor {
  /** The hashes of its recovery codes. */
  readonly recoveryCodes: readonly string[]
}

/**
 * Stores for 15 minutes that a factor was begun, and in which session. That session may finish it even when it is no longer fresh. Call it
 * inside the transaction that stores the pending secret.
 * @param begun the secret as the user's row stores it, different for each enrolment; or its replacement
 * @param session null: any session of the account may finish it, because the host began it, or because the store keeps no sessions
 */
export async function beginEnrolment(ctx: AuthContext, userId: string, begun: BegunFactor, session: SessionRecord | null): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.consumeAllForUser(userId, now, 'MFA_ENROLMENT')
  await ctx.store.userTokens.insert({
    userId,
    tokenHash: enrolmentHash(userId, begun.secret),
    purpose: 'MFA_ENROLMENT',
    payload: writePayload(session?.id ?? null, begun),
    expiresAt: new Date(now.getTime() + lifeSeconds * 1000),
    usedAt: null,
    createdAt: now,
  })
}

/** Returns the replacement that an account began within the last 15 minutes. */
export async function findReplacement(ctx: AuthContext, userId: string): Promise<Replacement | null> {
  const begun = await findBegun(ctx, userId)
  return begun?.recoveryCodes ? { ...begun, recoveryCodes: begun.recoveryCodes } : null
}

/**
 * Returns the factor that confirmed a first enrolment when it began, if that was within the last 15 minutes. The stored secret identifies
 * the enrolment.
 */
export async function finalityOfFirst(ctx: AuthContext, userId: string, secret: string): Promise<Finality> {
  const begun = await findBegun(ctx, userId)
  return begun?.secret === secret && begun.isFinal
}

/** Returns null if there is none, or if it is a first factor that nothing confirmed. */
async function findBegun(ctx: AuthContext, userId: string): Promise<BegunFactor | null> {
  const [begun] = await ctx.store.userTokens.listOpen(userId, 'MFA_ENROLMENT', ctx.now())
  return begun ? readPayload(begun.payload).factor : null
}

/**
 * Returns true once, if this session began this secret within the last 15 minutes. Call it inside the transaction that activates the
 * factor.
 */
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

/**
 * Returns only the session's id if there is nothing else to store. Hashes are base64url, because 50 codes must fit (`payloadLength` in
 * readiness/table-needs.ts).
 */
function writePayload(sessionId: string | null, { secret, recoveryCodes, isFinal }: BegunFactor): string | null {
  if (recoveryCodes === null && isFinal === false) return sessionId
  const codes = recoveryCodes?.map((hash) => Buffer.from(hash, 'hex').toString('base64url')) ?? null
  return JSON.stringify([sessionId, secret, isFinal, codes])
}

function readPayload(payload: string | null): { sessionId: string | null; factor: BegunFactor | null } {
  if (!payload?.startsWith('[')) return { sessionId: payload, factor: null }
  const [sessionId, secret, isFinal, codes] = JSON.parse(payload) as [string | null, string, Finality, string[] | null] // as `writePayload` wrote it
  const recoveryCodes = codes?.map((code) => Buffer.from(code, 'base64url').toString('hex')) ?? null
  return { sessionId, factor: { secret, isFinal, recoveryCodes } }
}
