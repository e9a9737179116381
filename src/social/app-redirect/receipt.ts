import type { AuthContext } from '../../context'
import { hashOpaqueToken } from '../../core/opaque-token'
import { consumeChallenge, readChallenge } from '../../sessions/challenge'
import { after } from '../../sessions/instants'
import type { BegunLogin } from '../../sessions/start-login'
import { DuplicateRecordError } from '../../store/auth-store'

/** How long doorward recognizes a second use of a code, in seconds. */
const receiptSeconds = 86_400

/** The result of an exchange: a session, or a challenge. */
interface Receipt {
  readonly sessionId?: string | null
  readonly challenge?: { readonly idHash: string; readonly endsAt: number }
}

/**
 * Stores the result of an exchange, in the transaction of the exchange. The row counts as used. Only a client that has the code can find
 * the row.
 */
export async function leaveReceipt(ctx: AuthContext, code: string, begun: BegunLogin): Promise<void> {
  const now = ctx.now()
  await ctx.store.userTokens.insert({
    userId: begun.result.userId,
    tokenHash: receiptHash(code),
    purpose: 'OAUTH_CODE',
    payload: JSON.stringify(receiptOf(ctx, begun)),
    expiresAt: after(now, receiptSeconds),
    usedAt: now,
    createdAt: now,
  })
}

/**
 * Revokes the session or the challenge that a code was exchanged for. A second use shows that another client may have the code. A store
 * without sessions has no session to revoke.
 */
export async function endWhatItGave(ctx: AuthContext, code: string): Promise<void> {
  const row = await ctx.store.userTokens.find(receiptHash(code))
  if (!row?.payload) return
  const { sessionId, challenge } = JSON.parse(row.payload) as Receipt // as `leaveReceipt` wrote it
  const { userId } = row
  if (challenge) await endChallenge(ctx, { userId, idHash: challenge.idHash, expiresAt: new Date(challenge.endsAt) })
  if (!sessionId || !(await ctx.store.sessions?.revoke({ id: sessionId }, ctx.now()))) return
  ctx.events.emit('session.revoked', { userId, count: 1, reason: 'code_reused' })
}

async function endChallenge(ctx: AuthContext, challenge: Parameters<typeof consumeChallenge>[1]): Promise<void> {
  try {
    await consumeChallenge(ctx, challenge)
  } catch (error) {
    if (!(error instanceof DuplicateRecordError)) throw error // the person already finished the login, with the second factor
  }
}

function receiptOf(ctx: AuthContext, { result, access }: BegunLogin): Receipt {
  if (result.kind === 'session') return { sessionId: access?.sessionId ?? null }
  const { idHash, expiresAt } = readChallenge(ctx, result.mfaToken)
  return { challenge: { idHash, endsAt: expiresAt.getTime() } }
}

function receiptHash(code: string): string {
  return hashOpaqueToken(`receipt of ${code}`)
}
