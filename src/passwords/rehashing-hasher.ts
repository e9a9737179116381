import { ConfigurationError } from '../core/errors'
import { createHashQueue } from './hash-queue'
import type { PasswordReader } from './password-reader'
import type { PasswordHasher } from './password-types'

export interface RehashingHasherOptions {
  /** The hasher for every new hash, for example `argon2idHasher()`. */
  current: PasswordHasher
  /** The readers for the hashes of your earlier system. */
  legacy: readonly PasswordReader[]
}

/**
 * Returns a hasher that also reads the hashes of another system. At a person's next login, the login replaces the old hash with a hash of
 * `current`. The person does nothing. If several readers can read the hash, the hasher tries each reader until the password matches. This
 * happens, for example, if a pepper was added later.
 * @throws ConfigurationError if `current` is not a hasher, or if `legacy` is not a list of readers
 */
export function rehashingHasher(options: RehashingHasherOptions): PasswordHasher {
  const { current, legacy } = checkOptions(options)
  const run = createHashQueue()
  const readersOf = (hash: string) => legacy.filter((reader) => typeof hash === 'string' && reader.reads(hash))
  const isRead = (hash: string) => (current.unreadable?.(hash) ?? null) === null && (current.reads?.(hash) ?? true)
  return {
    ...(current.hashLength !== undefined && { hashLength: current.hashLength }),
    ...(current.maxPasswordBytes !== undefined && { maxPasswordBytes: current.maxPasswordBytes }),

    hash: (password, options) => current.hash(password, options),

    async verify(hash, password, options) {
      if (typeof password !== 'string' || !password.isWellFormed()) return false
      for (const reader of readersOf(hash)) if (await run(() => reader.verify(hash, password), options)) return true
      return isRead(hash) && current.verify(hash, password, options)
    },

    // If `current` can read a hash, `current` alone decides.
    needsRehash: (hash) => !isRead(hash) || current.needsRehash(hash),

    unreadable: (hash) => (readersOf(hash).length > 0 ? null : (current.unreadable?.(hash) ?? null)),

    reads: (hash) => readersOf(hash).length > 0 || isRead(hash),
  }
}

function checkOptions({ current, legacy }: RehashingHasherOptions): RehashingHasherOptions {
  if (!hasMethods(current, ['hash', 'verify', 'needsRehash']))
    throw new ConfigurationError('rehashingHasher: current must be a PasswordHasher; argon2idHasher() makes one.')
  if (!Array.isArray(legacy) || !legacy.every((reader) => hasMethods(reader, ['reads', 'verify'])))
    throw new ConfigurationError('rehashingHasher: legacy must be a list of readers, such as [djangoPbkdf2Reader()].')
  return { current, legacy: [...legacy] }
}

function hasMethods(value: unknown, names: readonly string[]): boolean {
  const methods = Object(value) as Record<string, unknown> // the host may pass any value
  return names.every((name) => typeof methods[name] === 'function')
}
