import type { AuthContext } from '../context'
import type { LoginChallenge, OpenedSession } from './finish-login'

/** Tells observers how a login ended, once its unit has committed. */
export function announceLogin(
  ctx: AuthContext,
  { kind, userId, amr }: OpenedSession | LoginChallenge,
  about: { provider?: string } = {},
): void {
  if (kind === 'session') ctx.events.emit('login', { userId, amr, ...about })
  else ctx.events.emit('challenge', { userId, amr })
}
