import type { AuthContext } from '../context'
import type { PasskeyInvalidError, PasskeyRejectedError } from '../core/errors'
import type { Ceremony } from './passkey-challenge'
import { CeremonyRefused } from './webauthn/refused'

/**
 * Logs why a passkey was refused, and throws the error for the client, which has no reason. `doctor` repeats the reason.
 * @param thrown an error of a ceremony; every other error is thrown as it is
 */
export function refusePasskey(
  ctx: Pick<AuthContext, 'logger' | 'notices'>,
  ceremony: Ceremony,
  thrown: unknown,
  Refusal: typeof PasskeyInvalidError | typeof PasskeyRejectedError,
): never {
  if (!(thrown instanceof CeremonyRefused)) throw thrown
  const reason = thrown.message
  ctx.logger.warn({ ceremony, reason }, 'doorward: a passkey was refused')
  const message = `a passkey was refused (${ceremony}): ${reason}.`
  ctx.notices.keep({ level: 'warn', entry: 'passkey-refused', message, about: `${ceremony} ${reason}` })
  throw new Refusal()
}
