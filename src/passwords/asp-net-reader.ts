import { pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { hasNul, mostIterations, type PasswordReader } from './password-reader'

const derive = promisify(pbkdf2)

const digests = ['sha1', 'sha256', 'sha512']
const version3 = 0x01
const headerBytes = 13
/** In bytes. Rejects a shorter key, because the first bytes of the right key would then be enough for a match. */
const keyBytes = 32
const leastSaltBytes = 16

/** Reads ASP.NET Core Identity's version 3: base64 of 0x01, the PRF, the iterations, the salt's length, the salt, the key. */
export function aspNetIdentityReader(): PasswordReader {
  return {
    name: 'aspnet-identity-v3',
    reads: (hash) => parse(hash) !== null,
    async verify(hash, password) {
      const stored = parse(hash)
      if (!stored || hasNul(password)) return false
      return timingSafeEqual(await derive(password, stored.salt, stored.iterations, stored.key.length, stored.digest), stored.key)
    },
  }
}

function parse(hash: string): { digest: string; iterations: number; salt: Buffer; key: Buffer } | null {
  if (!/^[A-Za-z0-9+/]{60,200}={0,2}$/.test(hash)) return null
  const bytes = Buffer.from(hash, 'base64')
  if (bytes[0] !== version3) return null
  const [digest, iterations, saltBytes] = [digests[bytes.readUInt32BE(1)], bytes.readUInt32BE(5), bytes.readUInt32BE(9)]
  const salt = bytes.subarray(headerBytes, headerBytes + saltBytes)
  const key = bytes.subarray(headerBytes + saltBytes)
  const isRight = saltBytes >= leastSaltBytes && key.length === keyBytes && iterations >= 1 && iterations <= mostIterations
  return digest !== undefined && isRight ? { digest, iterations, salt, key } : null
}
