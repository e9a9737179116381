import type { AuthContext } from '../context'
import type { LoginResult } from './finish-login'

/** Tells observers how a login ended, once its unit has committed. */
export function announceLogin(ctx: AuthContext, result: LoginResult, about: { provider?: string } = {}): void {
  if (result.kind === 'session') ctx.events.emit('login', { userId: result.userId, amr: result.amr, ...about })
}
