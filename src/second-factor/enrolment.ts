import { createHash } from 'node:crypto'
import type { AuthContext } from '../context'
import type { Irreversibility } from '../sessions/reauthentication/irreversible-change'
import type { SessionRecord } from '../store/auth-store'

const lifeSeconds = 900

/** A factor that was begun and not yet confirmed. */
export interface BegunFactor {
  /** The encrypted secret, as the user's row stores it. */
  readonly secret: string
  /**
   * The hashes of the recovery codes. Null for the account's first factor, because the table already has the recovery codes of a first
   * factor.
   */
  readonly recoveryCodes: readonly string[] | null
  /**
   * If not false, an undo link cannot remove the factor (`Irreversibility`). The factor that the person showed at the start of the enrolment
   * decides this value.
   */
  readonly isFinal: Irreversibility
}

/**
 * A pending factor that will replace the active factor. The token's row stores the pending factor, so the user's row does not change before
 * the confirmation.
 */
export interface Replacement extends BegunFactor {
  /** The hashes of the recovery codes. */
  readonly recoveryCodes: readonly string[]
}

/**
 * Records an enrolment for 15 minutes, together with its session. That session may finish the enrolment even when the session is no longer
 * fresh. Call the function inside the transaction that stores the pending secret.
 * @param begun the new factor: the encrypted secret of the user's row, or a `Replacement`. Each enrolment has a different secret
 * @param session null: any session of the account may finish the enrolment, because the host began the enrolment, or because the store
 *   keeps no sessions
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

/** Returns the replacement that the account began within the last 15 minutes. */
export async function findReplacement(ctx: AuthContext, userId: string): Promise<Replacement | null> {
  const begun = await findBegun(ctx, userId)
  return begun?.recoveryCodes ? { ...begun, recoveryCodes: begun.recoveryCodes } : null
}

/**
 * Returns whether an undo link can remove a first factor (`Irreversibility`). Returns false if the enrolment began more than 15 minutes ago, or if
 * another enrolment began later. The stored secret identifies the enrolment.
 */
export async function irreversibilityOfFirst(ctx: AuthContext, userId: string, secret: string): Promise<Irreversibility> {
  const begun = await findBegun(ctx, userId)
  return begun?.secret === secret && begun.isFinal
}

/**
 * Returns the factor that the open enrolment stored. Returns null if no enrolment is open. Also returns null if the row has only the
 * session's id: the enrolment is for a first factor, and no passkey confirmed it.
 */
async function findBegun(ctx: AuthContext, userId: string): Promise<BegunFactor | null> {
  const [begun] = await ctx.store.userTokens.listOpen(userId, 'MFA_ENROLMENT', ctx.now())
  return begun ? readPayload(begun.payload).factor : null
}

/**
 * Finishes an enrolment. Returns true if this session began the enrolment of this secret within the last 15 minutes. A second call returns
 * false. Call the function inside the transaction that activates the factor.
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
 * Returns the payload of an enrolment's row. If only the session's id must be stored, the payload is the id alone. The hashes of the
 * recovery codes are base64url, because 50 of them must fit in the column (`payloadLength` in router/findings/readiness/table-needs.ts).
 */
function writePayload(sessionId: string | null, { secret, recoveryCodes, isFinal }: BegunFactor): string | null {
  if (recoveryCodes === null && isFinal === false) return sessionId
  const codes = recoveryCodes?.map((hash) => Buffer.from(hash, 'hex').toString('base64url')) ?? null
  return JSON.stringify([sessionId, secret, isFinal, codes])
}

function readPayload(payload: string | null): { sessionId: string | null; factor: BegunFactor | null } {
  if (!payload?.startsWith('[')) return { sessionId: payload, factor: null }
  const [sessionId, secret, isFinal, codes] = JSON.parse(payload) as [string | null, string, Irreversibility, string[] | null] // as `writePayload` wrote it
  const recoveryCodes = codes?.map((code) => Buffer.from(code, 'base64url').toString('hex')) ?? null
  return { sessionId, factor: { secret, isFinal, recoveryCodes } }
}
