import { pbkdf2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { hasNul, mostIterations, type PasswordReader } from './password-reader'

const derive = promisify(pbkdf2)

const digests: Readonly<Record<string, { digest: string; bytes: number }>> = {
  pbkdf2_sha256: { digest: 'sha256', bytes: 32 },
  pbkdf2_sha1: { digest: 'sha1', bytes: 20 },
}

/** Reads Django's `pbkdf2_sha256$<iterations>$<salt>$<hash>` and `pbkdf2_sha1`, with up to 10,000,000 iterations. */
export function djangoPbkdf2Reader(): PasswordReader {
  return {
    name: 'django-pbkdf2',
    reads: (hash) => parse(hash) !== null,
    async verify(hash, password) {
      const stored = parse(hash)
      if (!stored || hasNul(password)) return false
      return timingSafeEqual(await derive(password, stored.salt, stored.iterations, stored.key.length, stored.digest), stored.key)
    },
  }
}

function parse(hash: string): { digest: string; iterations: number; salt: string; key: Buffer } | null {
  const [, name = '', iterations = '', salt = '', text = ''] = /^(pbkdf2_\w+)\$(\d{1,8})\$([^$]+)\$([A-Za-z0-9+/]+=*)$/.exec(hash) ?? []
  const kind = Object.hasOwn(digests, name) ? digests[name] : undefined
  const key = Buffer.from(text, 'base64')
  const isRight = kind !== undefined && key.length === kind.bytes && Number(iterations) >= 1 && Number(iterations) <= mostIterations
  return isRight ? { digest: kind.digest, iterations: Number(iterations), salt, key } : null
}
