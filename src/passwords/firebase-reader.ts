import { createCipheriv, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { ConfigurationError } from '../core/errors'
import { hasNul, type PasswordReader } from './password-reader'

/** The parameters from the Firebase console: Authentication, Users, "Password hash parameters". */
export interface FirebaseScryptParameters {
  /** `base64_signer_key`. */
  signerKey: string
  /** `base64_salt_separator`. */
  saltSeparator: string
  /** `rounds`, 8 at Firebase. */
  rounds: number
  /** `mem_cost`, 14 at Firebase. */
  memCost: number
}

const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt)
const mostMemory = 64 * 1024 * 1024
const keyBytes = 32

/**
 * Creates a reader for Firebase Authentication's variant of scrypt (https://firebaseopensource.com/projects/firebase/scrypt). Take each
 * account's `salt` and `passwordHash` from the export. Store them as `$firebase-scrypt$<salt>$<passwordHash>`.
 * @throws ConfigurationError if a parameter is malformed, or if the parameters would take more than 64 MiB
 */
export function firebaseScryptReader(parameters: FirebaseScryptParameters): PasswordReader {
  const { signerKey, saltSeparator, options } = checkParameters(parameters)
  return {
    name: 'firebase-scrypt',
    reads: (hash) => parse(hash, signerKey.length) !== null,
    async verify(hash, password) {
      const stored = parse(hash, signerKey.length)
      if (!stored || hasNul(password)) return false
      const key = await derive(password, Buffer.concat([stored.salt, saltSeparator]), keyBytes, options)
      // Firebase derives a key from the password, encrypts its signer key with that key, and stores the result.
      const cipher = createCipheriv('aes-256-ctr', key, Buffer.alloc(16))
      return timingSafeEqual(Buffer.concat([cipher.update(signerKey), cipher.final()]), stored.encrypted)
    },
  }
}

const form = /^\$firebase-scrypt\$([\w+/-]+={0,2})\$([\w+/-]+={0,2})$/

function parse(hash: string, bytes: number): { salt: Buffer; encrypted: Buffer } | null {
  const [, salt, text] = form.exec(hash) ?? []
  if (salt === undefined || text === undefined) return null
  const encrypted = Buffer.from(text, 'base64')
  return encrypted.length === bytes ? { salt: Buffer.from(salt, 'base64'), encrypted } : null
}

function checkParameters({ signerKey, saltSeparator, rounds, memCost }: FirebaseScryptParameters) {
  const key = bytesOf(signerKey)
  const separator = bytesOf(saltSeparator)
  if (key === null || key.length < 16) throw refused('signerKey must be the base64 text of base64_signer_key')
  if (separator === null) throw refused('saltSeparator must be the base64 text of base64_salt_separator')
  if (!Number.isInteger(rounds) || rounds < 1) throw refused('rounds must be a positive whole number')
  if (!Number.isInteger(memCost) || memCost < 1 || memCost > 30) throw refused('memCost must be a whole number from 1 to 30')
  const memory = 128 * 2 ** memCost * rounds
  if (memory > mostMemory) throw refused('rounds and memCost would take more than 64 MiB for each login')
  return { signerKey: key, saltSeparator: separator, options: { N: 2 ** memCost, r: rounds, p: 1, maxmem: 2 * mostMemory } }
}

function bytesOf(text: unknown): Buffer | null {
  return typeof text === 'string' && /^[\w+/-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : null
}

function refused(why: string): ConfigurationError {
  return new ConfigurationError(`firebaseScryptReader: ${why}.`)
}
