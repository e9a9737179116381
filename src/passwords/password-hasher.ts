import { ConfigurationError } from '../core/errors'
import { loadArgon2 } from './argon2-engine'
import { argon2Bounds, readArgon2Parameters } from './argon2-parameters'
import { loadBcrypt, readBcryptCost } from './bcrypt'
import { createHashQueue, hashQueueDefaults } from './hash-queue'
import { passwordRefusal } from './password-refusal'
import type { PasswordHasher } from './password-types'

export interface Argon2idOptions {
  /** Memory in KiB. Default 19456 (OWASP Password Storage Cheat Sheet). */
  memoryCost?: number
  /** The number of passes. Default 2. */
  timeCost?: number
  /** The number of lanes of argon2. Default 1. */
  parallelism?: number
  /** How many hashes run at once. Default: the number of cores, at most 4. */
  concurrency?: number
  /** How many hashes may wait: so many of known devices, and so many others. Default 64. */
  queue?: number
}

/**
 * A hasher for argon2id. `engine` is the package that hashes. If the host installed `@node-rs/argon2`, which is about twice as fast, the
 * hasher uses that package.
 */
export interface Argon2idHasher extends PasswordHasher {
  readonly engine: '@node-rs/argon2' | 'argon2'
}

/**
 * Creates a hasher for argon2id, with a random salt of 16 bytes, in the PHC format. If the queue is full or argon2 gets no memory, `hash`
 * and `verify` throw ServiceUnavailableError. That failure must not look like a wrong password.
 *
 * If the peer dependency `bcrypt` is installed, the hasher also verifies bcrypt hashes of an imported table. Only the first 72 bytes of a
 * password count, as in the system that made the hashes. A bcrypt hash needs a rehash, so the first login replaces it.
 *
 * @throws ConfigurationError for an unknown option, an option out of range, or a cost below OWASP's weakest recommendation
 */
export function argon2idHasher(options: Argon2idOptions = {}): Argon2idHasher {
  const { memoryCost, timeCost, parallelism, concurrency, queue } = resolveOptions(options)
  const run = createHashQueue({ concurrency, queue })
  const engine = loadArgon2()
  const bcrypt = once(loadBcrypt)
  const unreadable = (hash: string) => {
    if (readArgon2Parameters(hash) !== null) return null
    if (readBcryptCost(hash) === null) return 'unknown_format'
    return bcrypt() === null ? 'bcrypt_not_installed' : null
  }
  return {
    engine: engine.name,
    hashLength: `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$`.length + saltAndHashLength,

    async hash(password, options) {
      if (!password.isWellFormed()) throw passwordRefusal({ rule: 'malformed' })
      return run(() => engine.hash(password, { memoryCost, timeCost, parallelism }), options)
    },

    async verify(hash, password, options) {
      if (typeof password !== 'string' || !password.isWellFormed()) return false
      if (readArgon2Parameters(hash) !== null) return run(() => engine.verify(hash, password), options)
      const imported = readBcryptCost(hash) === null ? null : bcrypt()
      return imported === null ? false : run(() => imported.verify(hash, password), options)
    },

    needsRehash(hash) {
      const stored = readArgon2Parameters(hash)
      if (stored?.variant !== 'argon2id' || stored.version !== 0x13) return true
      return stored.memoryCost < memoryCost || stored.timeCost < timeCost || stored.saltBytes < 16 || stored.hashBytes < 32
    },

    unreadable,

    reads: (hash) => unreadable(hash) === null,
  }
}

/** The length of 16 bytes and 32 bytes in base64 without padding, and of the `$` between them. */
const saltAndHashLength = 22 + 1 + 43

/**
 * Returns a function that calls `load` at its first call, and then always returns the same value. The hasher uses this function to look for
 * `bcrypt` only once, because each search for a missing package reads many folders.
 */
function once<T>(load: () => T): () => T {
  let loaded: { value: T } | undefined
  return () => {
    loaded ??= { value: load() }
    return loaded.value
  }
}

/** The least accepted product of `memoryCost` and `timeCost`. OWASP's weakest recommendation is m=7168, t=5. */
const leastWork = 7_168 * 5

const ranges: Readonly<Record<keyof Argon2idOptions, { fallback: () => number; least: number; most: number }>> = {
  memoryCost: { fallback: () => 19_456, least: 7_168, most: argon2Bounds.memoryCost },
  timeCost: { fallback: () => 2, least: 1, most: argon2Bounds.timeCost },
  parallelism: { fallback: () => 1, least: 1, most: argon2Bounds.parallelism },
  concurrency: { fallback: hashQueueDefaults.concurrency, least: 1, most: 64 },
  queue: { fallback: hashQueueDefaults.queue, least: 0, most: 10_000 },
}

function resolveOptions(options: Argon2idOptions): Required<Argon2idOptions> {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(ranges, name))
  if (unknown !== undefined) throw new ConfigurationError(`argon2idHasher has no option ${JSON.stringify(unknown.slice(0, 64))}.`)
  const resolved = {
    memoryCost: inRange('memoryCost', options),
    timeCost: inRange('timeCost', options),
    parallelism: inRange('parallelism', options),
    concurrency: inRange('concurrency', options),
    queue: inRange('queue', options),
  }
  if (resolved.memoryCost * resolved.timeCost < leastWork) {
    throw new ConfigurationError('argon2idHasher: memoryCost and timeCost are too low together; 19456 and 2 are the defaults.')
  }
  return resolved
}

function inRange(name: keyof Argon2idOptions, options: Argon2idOptions): number {
  const { fallback, least, most } = ranges[name]
  const value = options[name] ?? fallback()
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw new ConfigurationError(`argon2idHasher: ${name} must be a whole number from ${least} to ${most}.`)
}
