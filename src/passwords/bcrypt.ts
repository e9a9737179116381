import { whenInstalled } from './optional-package'

/** The number of bytes that bcrypt reads of a password. bcrypt ignores the rest. */
export const bcryptBytes = 72

/**
 * The lowest and the highest cost of a new hash. The highest cost is also the limit for a stored hash, because an attacker could write a
 * hash with cost 31 into a row. Verifying that hash would keep a thread busy for a day. Cost 15 takes 1.5 s.
 */
export const bcryptCosts = { least: 10, most: 15 } as const

export interface Bcrypt {
  hash(password: string, cost: number): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** Returns the cost of a bcrypt hash. Returns null if the text is not a bcrypt hash, or if its cost is out of range. */
export function readBcryptCost(hash: unknown): number | null {
  const cost = typeof hash === 'string' ? /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1] : undefined
  return cost !== undefined && Number(cost) >= 4 && Number(cost) <= bcryptCosts.most ? Number(cost) : null
}

/** Loads the host's `bcrypt` (an optional peer dependency). Returns null if the package is not installed. */
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
 * Returns the hash with the prefix `$2b$`. The package does not know `$2y$`, which is PHP's name for `$2b$`. With `$2a$`, the package has
 * an old bug: it takes the length of a password above 254 bytes modulo 256, so a different password can match. For passwords up to 72
 * bytes, `$2a$` gives the same result as `$2b$`.
 */
function asVariantB(hash: string): string {
  return `$2b$${hash.slice(4)}`
}
