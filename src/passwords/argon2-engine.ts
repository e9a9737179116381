import { ConfigurationError } from '../errors'
import { whenInstalled } from './optional-package'

export interface Argon2Costs {
  /** KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
}

/** argon2id in the PHC format, version 19, salt of 16 bytes, digest of 32; each reads what the other wrote. */
export interface Argon2Engine {
  readonly name: '@node-rs/argon2' | 'argon2'
  hash(password: string, costs: Argon2Costs): Promise<string>
  verify(hash: string, password: string): Promise<boolean>
}

/**
 * The faster one where the host installed it, else the one we bring.
 * @throws ConfigurationError where neither runs on this machine
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
        // It is the stricter reader (base64 with stray bits, for one): the other has the last word on what both know.
        return nativeEngine().verify(hash, password)
      }
    },
  }
}

/** Loaded when needed: beside the other it hardly ever is. */
function nativeEngine(): Argon2Engine {
  const argon2 = requireArgon2()
  return {
    name: 'argon2',
    hash: (password, costs) => argon2.hash(password, { ...costs, type: argon2id }),
    verify: (hash, password) => argon2.verify(hash, password),
  }
}

/** Its binaries come along for the usual platforms; for others its install script compiles one, unless it was not run. */
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
