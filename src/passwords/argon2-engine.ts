import { ConfigurationError } from '../core/errors'
import { whenInstalled } from './optional-package'

export interface Argon2Costs {
  /** Memory in KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

/**
 * An implementation of argon2id. Hashes are in the PHC format, version 19, with a salt of 16 bytes and a digest of 32 bytes. Each
 * implementation reads the hashes of the other implementation.
 */
export interface Argon2Engine {
  readonly name: '@node-rs/argon2' | 'argon2'
  hash(password: string, costs: Argon2Costs): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/**
 * Loads `@node-rs/argon2` if the host installed it, because that package is faster. Otherwise loads `argon2`, on which doorward depends.
 * @throws ConfigurationError if no implementation runs on this machine
 */
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

/**
 * Loads `argon2` and returns its engine. The module does not load `argon2` earlier, because an app with `@node-rs/argon2` rarely needs
 * `argon2`.
 */
function nativeEngine(): Argon2Engine {
  const argon2 = requireArgon2()
  return {
    name: 'argon2',
    hash: (password, costs) => argon2.hash(password, { ...costs, type: argon2id }),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

/**
 * Requires `argon2`. The package contains binaries for the usual platforms. For other platforms its install script compiles a binary. If
 * the host turned install scripts off, the package does not load there.
 */
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
