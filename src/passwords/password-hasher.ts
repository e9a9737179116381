import { randomBytes } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import { loadBcrypt, readBcryptCost } from './bcrypt-hasher'
import { passwordRefusal } from './check-password'
import { createHashQueue, hashQueueDefaults } from './hash-queue'
import { whenInstalled } from './optional-package'
import type { PasswordHasher } from './password-types'

/** A stored hash names its costs. With m=2097152 in a row, each login would use 2 GiB and keep every core busy for seconds. */
const argon2Bounds = { memoryCost: 1_048_576, timeCost: 10, parallelism: 8 } as const

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

/** `engine` is the package that hashes: `@node-rs/argon2` if the host installed it, because it is about twice as fast. */
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

/** 16 bytes and 32 bytes in base64 without padding, and the `$` between them. */
const saltAndHashLength = 22 + 1 + 43

/** Looks for `bcrypt` only once, because each search for a missing package reads many folders. */
function once<T>(load: () => T): () => T {
  let loaded: { value: T } | undefined
  return () => {
    loaded ??= { value: load() }
    return loaded.value
  }
}

/** The product of `memoryCost` and `timeCost`. OWASP's weakest recommendation is m=7168, t=5. */
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

interface Argon2Parameters {
  readonly variant: 'argon2id' | 'argon2i' | 'argon2d'
  readonly version: number
  /** In KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
  readonly saltBytes: number
  readonly hashBytes: number
}

const shape =
  /^\$(?<variant>argon2id|argon2i|argon2d)\$v=(?<version>16|19)\$(?<parameters>[mtp]=\d{1,7},[mtp]=\d{1,7},[mtp]=\d{1,7})\$(?<salt>[A-Za-z0-9+/]{11,86})\$(?<hash>[A-Za-z0-9+/]{22,86})$/

/** Reads a PHC string. Null for every other value, and for a hash that is too costly or too short. */
function readArgon2Parameters(hash: unknown): Argon2Parameters | null {
  const found = typeof hash === 'string' && hash.length <= 256 ? shape.exec(hash)?.groups : undefined
  if (!found) return null
  const costs = new Map(`${found['parameters']}`.split(',').map((pair) => [pair.slice(0, 1), Number(pair.slice(2))]))
  const [memoryCost = 0, timeCost = 0, parallelism = 0] = [costs.get('m'), costs.get('t'), costs.get('p')]
  if (!isWithinBounds({ memoryCost, timeCost, parallelism })) return null
  return {
    variant: found['variant'] as Argon2Parameters['variant'], // the expression matches only these three
    version: Number(found['version']),
    memoryCost,
    timeCost,
    parallelism,
    saltBytes: decodedBytes(found['salt']),
    hashBytes: decodedBytes(found['hash']),
  }
}

function isWithinBounds(costs: Pick<Argon2Parameters, 'memoryCost' | 'timeCost' | 'parallelism'>): boolean {
  const { memoryCost, timeCost, parallelism } = costs
  const enoughMemory = memoryCost >= 8 * parallelism // RFC 9106 section 3.1
  const enough = timeCost >= 1 && parallelism >= 1 && enoughMemory
  return enough && memoryCost <= argon2Bounds.memoryCost && timeCost <= argon2Bounds.timeCost && parallelism <= argon2Bounds.parallelism
}

function decodedBytes(base64 = ''): number {
  return Math.floor((base64.length * 3) / 4)
}

interface Argon2Costs {
  /** In KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

/** PHC format, version 19, salt of 16 bytes, digest of 32 bytes. Each implementation reads the hashes of the other. */
interface Argon2Engine {
  readonly name: '@node-rs/argon2' | 'argon2'
  hash(password: string, costs: Argon2Costs): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** Prefers the faster `@node-rs/argon2`. @throws ConfigurationError if no implementation runs on this machine */
export function loadArgon2(): Argon2Engine {
  const rust = whenInstalled('@node-rs/argon2', () => require('@node-rs/argon2') as RustArgon2) // according to its types
  return rust ? rustEngine(rust) : nativeEngine()
}

interface RustArgon2 {
  hash(password: string, options: Argon2Costs & { algorithm: number }): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

const argon2id = 2

function rustEngine(rust: RustArgon2): Argon2Engine {
  return {
    name: '@node-rs/argon2',
    hash: (password, costs) => rust.hash(password, { ...costs, algorithm: argon2id }),
    async verify(hash, password) {
      try {
        return await rust.verify(hash, password)
      } catch {
        // `@node-rs/argon2` rejects some hashes that `argon2` reads, for example base64 with stray bits. So `argon2` decides.
        return nativeEngine().verify(hash, password)
      }
    },
  }
}

/** Not loaded earlier, because an app with `@node-rs/argon2` rarely needs `argon2`. */
function nativeEngine(): Argon2Engine {
  const argon2 = requireArgon2()
  return {
    name: 'argon2',
    hash: (password, costs) => argon2.hash(password, { ...costs, type: argon2id }),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

/** The package has binaries for the usual platforms. Elsewhere its install script compiles one, unless install scripts are off. */
function requireArgon2(): typeof import('argon2') {
  try {
    return require('argon2') as typeof import('argon2') // according to its types
  } catch (cause) {
    throw new ConfigurationError(
      'The package argon2 does not load: it has no binary for this platform, or its installation was interrupted. Run `npm rebuild argon2` (its install script compiles one), install @node-rs/argon2, or pass `passwordHasher`.',
      { cause },
    )
  }
}

/** A login with an unknown address takes as long as one with a wrong password. If hashing fails, the next call tries again. */
export function createDummyHash(hasher: PasswordHasher): () => Promise<string> {
  let made: Promise<string> | undefined
  return () => {
    if (made) return made
    const attempt = hasher.hash(randomBytes(32).toString('base64url'))
    made = attempt
    attempt.catch(() => {
      made = undefined
    })
    return attempt
  }
}
