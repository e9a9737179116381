import { ConfigurationError } from '../errors'
import { loadArgon2 } from './argon2-engine'
import { argon2Bounds, readArgon2Parameters } from './argon2-parameters'
import { loadBcrypt, readBcryptCost } from './bcrypt'
import { createHashQueue, hashQueueDefaults } from './hash-queue'
import type { PasswordHasher } from './password-hasher'
import { passwordRefusal } from './password-refusal'

export interface Argon2idOptions {
  /** KiB; 19456 (OWASP Password Storage Cheat Sheet). */
  memoryCost?: number
  /** Passes; 2. */
  timeCost?: number
  /** Lanes; 1. */
  parallelism?: number
  /** Hashes at once; as many as there are cores, at most 4. */
  concurrency?: number
  /** Waiting hashes; 64. */
  queue?: number
}

/** Which package does the work: `@node-rs/argon2`, about twice as fast, where the host installed it. */
export interface Argon2idHasher extends PasswordHasher {
  readonly engine: '@node-rs/argon2' | 'argon2'
}

/**
 * argon2id with a random salt of 16 bytes, in the PHC format. Both `hash` and `verify` throw ServiceUnavailableError
 * when the queue is full or argon2 gets no memory: busy is not the same as a wrong password.
 *
 * bcrypt hashes of an imported table verify too where the peer `bcrypt` is installed, as the system that made them did:
 * by their first 72 bytes. They need a rehash, so that is over at the first login.
 *
 * @throws ConfigurationError for an unknown option, one out of range, or a cost below OWASP's weakest recommendation.
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

/** 16 bytes and 32 bytes in base64 without padding, and the `$` between them. */
const saltAndHashLength = 22 + 1 + 43

/** Asked for at the first bcrypt hash, and then never again: a search for what is not there reads many folders. */
function once<T>(load: () => T): () => T {
  let loaded: { value: T } | undefined
  return () => {
    loaded ??= { value: load() }
    return loaded.value
  }
}

/** OWASP's weakest equivalent is m=7168, t=5; less memory times passes than that is refused. */
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
