import { ConfigurationError } from '../core/errors'
import { seeTroubleshooting } from '../core/troubleshooting'
import { passwordRefusal } from './check-password'
import { createHashQueue } from './hash-queue'
import { whenInstalled } from './optional-package'
import type { PasswordReader } from './password-reader'
import type { PasswordHasher } from './password-types'

export interface BcryptOptions {
  /** The base-2 logarithm of the rounds, 10 to 15. Default 12. OWASP: at least 10. Cost 15 takes about 1.5 seconds on one core. */
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

/**
 * Reads `$2a$`, `$2b$` and PHP's `$2y$` with cost 4 to 15. Only the first 72 bytes of a password count, as in the system that made the
 * hash. `argon2idHasher()` already reads these hashes. Use this reader with `pepperedReader`, or with `rehashingHasher` and your own
 * hasher.
 * @throws ConfigurationError if the package `bcrypt` is not installed
 */
export function bcryptReader(): PasswordReader {
  const bcrypt = loadBcrypt()
  if (!bcrypt)
    throw new ConfigurationError(
      `bcryptReader() needs the package bcrypt; run \`npm install bcrypt\`. ${seeTroubleshooting('a-package-is-missing')}`,
    )
  const reads = (hash: string) => readBcryptCost(hash) !== null
  return { name: 'bcrypt', reads, verify: async (hash, password) => reads(hash) && bcrypt.verify(hash, password) }
}

/** bcrypt ignores the rest of a password. */
const bcryptBytes = 72

/** The highest cost also bounds stored hashes: a hash with cost 31 in a row would keep a thread busy for a day. Cost 15 takes 1.5 s. */
const bcryptCosts = { least: 10, most: 15 } as const

interface Bcrypt {
  hash(password: string, cost: number): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** Null: no bcrypt hash, or its cost is out of range. */
export function readBcryptCost(hash: unknown): number | null {
  const cost = typeof hash === 'string' ? /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1] : undefined
  return cost !== undefined && Number(cost) >= 4 && Number(cost) <= bcryptCosts.most ? Number(cost) : null
}

/** An optional peer dependency of the host. Null: not installed. */
export function loadBcrypt(): Bcrypt | null {
  const bcrypt = whenInstalled('bcrypt', () => require('bcrypt') as BcryptPackage) // according to its types
  if (!bcrypt) return null
  return {
    hash: (password, cost) => bcrypt.hash(password, cost),
    async verify(hash, password) {
      const matches = await bcrypt.compare(password, asVariantB(hash))
      return matches && !password.includes('\0') // bcrypt repeats `a` as `a\0a\0…`, so the password `a\0a` would match the hash of `a`
    },
  }
}

interface BcryptPackage {
  hash(password: string, cost: number): Promise<string>
  compare(password: string, hash: string): Promise<boolean>
}

/**
 * The package does not know `$2y$`, PHP's name for `$2b$`. With `$2a$`, it takes the length of a password above 254 bytes modulo 256, so a
 * different password can match. Up to 72 bytes, `$2a$` and `$2b$` give the same.
 */
function asVariantB(hash: string): string {
  return `$2b$${hash.slice(4)}`
}
