import type { AuthContext } from '../context'
import type { LoginChallenge, OpenedSession } from './finish-login'

/** Emits the result of a login. Call it after the transaction has committed. */
export function announceLogin(ctx: AuthContext, result: OpenedSession | LoginChallenge, about: { provider?: string } = {}): void {
  const { userId, amr } = result
  if (result.kind === 'challenge') {
    ctx.events.emit('challenge', { userId, amr })
    return
  }
  if (result.hasBegun === false) return
  ctx.events.emit('login', { userId, amr, ...about })
  if (result.endedByLimit) ctx.events.emit('session.revoked', { userId, count: result.endedByLimit, reason: 'limit' })
}
