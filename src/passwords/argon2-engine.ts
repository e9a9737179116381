import { ConfigurationError } from '../errors'
import { whenInstalled } from './optional-package'

export interface Argon2Costs {
  /** Memory in KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

/**
 * An implementation of argon2id, in the PHC format, version 19, with a salt of 16 bytes and a digest of 32. Each implementation reads the
 * hashes of the other.
 */
export interface Argon2Engine {
  readonly name: '@node-rs/argon2' | 'argon2'
  hash(password: string, costs: Argon2Costs): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/**
 * Loads the faster implementation if the host installed it, else the one that doorward depends on.
 * @throws ConfigurationError if neither runs on this machine
 */
export function loadArgon2(): Argon2Engine {
  const rust = whenInstalled('@node-rs/argon2', () => require('@node-rs/argon2') as RustArgon2) // as its types say
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
        // This implementation rejects some hashes that the other one reads (base64 with stray bits, for example), so the other one decides.
        return nativeEngine().verify(hash, password)
      }
    },
  }
}

/** Loaded only when needed, which is rare next to the other implementation. */
function nativeEngine(): Argon2Engine {
  const argon2 = requireArgon2()
  return {
    name: 'argon2',
    hash: (password, costs) => argon2.hash(password, { ...costs, type: argon2id }),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

/** Requires argon2. It contains binaries for the usual platforms. For others its install script compiles one, if that script was run. */
function requireArgon2(): typeof import('argon2') {
  try {
    return require('argon2') as typeof import('argon2') // as its types say
  } catch (cause) {
    throw new ConfigurationError(
      'The package argon2 does not load: it brings no binary for this platform, or its install was cut short. Run `npm rebuild argon2` (its install script compiles one), install @node-rs/argon2, or pass `passwordHasher`.',
      { cause },
    )
  }
}
