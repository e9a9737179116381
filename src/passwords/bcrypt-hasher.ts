import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { bcryptBytes, bcryptCosts, loadBcrypt, readBcryptCost } from './bcrypt'
import { createHashQueue } from './hash-queue'
import { passwordRefusal } from './password-refusal'
import type { PasswordHasher } from './password-types'

export interface BcryptOptions {
  /**
   * The base-2 logarithm of the number of rounds, 10 to 15. Default 12. OWASP recommends at least 10. A hash with cost 15 takes about 1.5
   * seconds on one core.
   */
  cost?: number
}

/**
 * Creates a hasher for bcrypt (`$2b$`), for hosts that must store bcrypt hashes. The host must install the peer dependency `bcrypt`. bcrypt
 * reads 72 bytes and stops at NUL. The hasher therefore rejects a longer password and a password with NUL, and does not cut them: `hash`
 * throws ValidationError, and `verify` returns false. If the queue is full, both methods throw ServiceUnavailableError.
 *
 * @throws ConfigurationError when `bcrypt` is missing, for an unknown option, or a cost out of range
 */
export function bcryptHasher(options: BcryptOptions = {}): PasswordHasher {
  const cost = resolveCost(options)
  const bcrypt = loadBcrypt()
  if (!bcrypt)
    throw new ConfigurationError(
      `bcryptHasher() needs the package bcrypt; run \`npm install bcrypt\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const run = createHashQueue()
  return {
    maxPasswordBytes: bcryptBytes,
    hashLength: 60,

    async hash(password, options) {
      if (Buffer.byteLength(password) > bcryptBytes) throw passwordRefusal({ rule: 'too_long', max: bcryptBytes })
      if (!password.isWellFormed() || password.includes('\0')) throw passwordRefusal({ rule: 'malformed' })
      return run(() => bcrypt.hash(password, cost), options)
    },

    async verify(hash, password, options) {
      if (readBcryptCost(hash) === null || typeof password !== 'string') return false
      if (!password.isWellFormed() || Buffer.byteLength(password) > bcryptBytes) return false
      return run(() => bcrypt.verify(hash, password), options)
    },

    needsRehash: (hash) => (readBcryptCost(hash) ?? 0) < cost,

    unreadable: (hash) => (readBcryptCost(hash) === null ? 'unknown_format' : null),

    reads: (hash) => readBcryptCost(hash) !== null,
  }
}

function resolveCost(options: BcryptOptions): number {
  const unknown = Object.keys(options).find((name) => name !== 'cost')
  if (unknown !== undefined) throw new ConfigurationError(`bcryptHasher has no option ${JSON.stringify(unknown.slice(0, 64))}.`)
  const { cost = 12 } = options
  if (Number.isInteger(cost) && cost >= bcryptCosts.least && cost <= bcryptCosts.most) return cost
  throw new ConfigurationError(`bcryptHasher: cost must be a whole number from ${bcryptCosts.least} to ${bcryptCosts.most}.`)
}
