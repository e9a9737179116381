import { whenInstalled } from './optional-package'

/** bcrypt reads 72 bytes of a password and ignores the rest. */
export const bcryptBytes = 72

/**
 * The costs that may be made, and the highest that is run. A row planted by an attacker with cost 31 would keep a thread busy for a day. 15
 * takes 1.5 s.
 */
export const bcryptCosts = { least: 10, most: 15 } as const

export interface Bcrypt {
  hash(password: string, cost: number): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/** Returns the cost of a bcrypt hash that may be run. Null for anything else. */
export function readBcryptCost(hash: unknown): number | null {
  const cost = typeof hash === 'string' ? /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1] : undefined
  return cost !== undefined && Number(cost) >= 4 && Number(cost) <= bcryptCosts.most ? Number(cost) : null
}

/** Loads the host's `bcrypt` (an optional peer dependency). Null if it is not installed. */
export function loadBcrypt(): Bcrypt | null {
  const bcrypt = whenInstalled('bcrypt', () => require('bcrypt') as BcryptPackage) // as its types say
  if (!bcrypt) return null
  return {
    hash: (password, cost) => bcrypt.hash(password, cost),
    async verify(hash, password) {
      const matches = await bcrypt.compare(password, asVariantB(hash))
      return matches && !password.includes('\0') // the key repeats the password and a NUL, so `a\0a` would match a hash of `a`
    },
  }
}

interface BcryptPackage {
  hash(password: string, cost: number): Promise<string>
  compare(password: string, hash: string): Promise<boolean>
}

/**
 * Returns the hash as `$2b$`. `$2y$` is PHP's name for it, which the package does not know. `$2a$` is the same up to 72 bytes. Above 254
 * bytes the package has an old bug for `$2a$`, a length modulo 256, by which another password matches.
 */
function asVariantB(hash: string): string {
  return `$2b$${hash.slice(4)}`
}
