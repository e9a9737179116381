import { randomBytes } from 'node:crypto'
import { type CommandAnswer, UsageError } from './answer'

/** Returns 32 random bytes. The secret for `AUTH_JWT_SECRET` is base64url. The secret for `AUTH_MFA_SECRET_KEY` is base64. */
export function newSecret(words: readonly string[]): CommandAnswer {
  const [kind, ...more] = words
  if (more.length > 0 || (kind !== undefined && kind !== 'mfa')) throw new UsageError('Write `doorward secret` or `doorward secret mfa`.')
  const secret = randomBytes(32).toString(kind === 'mfa' ? 'base64' : 'base64url')
  return { json: { secret }, text: secret }
}
