import { ConfigurationError } from '../errors'
import { createHashQueue } from './hash-queue'
import type { PasswordHasher } from './password-hasher'
import type { PasswordReader } from './password-reader'

export interface RehashingHasherOptions {
  /** Makes every new hash, such as `argon2idHasher()`. */
  current: PasswordHasher
  /** Read the hashes of the system you came from. */
  legacy: readonly PasswordReader[]
}

/**
 * A hasher that also reads the hashes of another system. At a person's next login such a hash is replaced by one of `current`, so nobody is
 * asked for anything. Where several read one form (a pepper that was added later, say), each is asked until the password matches.
 * @throws ConfigurationError for what is no hasher, and for what is no list of readers
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

    // One that `current` would make itself is its own, also where a reader knows the form.
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
  const methods = Object(value) as Record<string, unknown> // whatever was passed
  return names.every((name) => typeof methods[name] === 'function')
}
