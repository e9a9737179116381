import { createHash, type KeyObject } from 'node:crypto'

export interface AuthenticatorFlags {
  readonly isUserPresent: boolean
  readonly isUserVerified: boolean
  readonly isBackupEligible: boolean
  readonly isBackedUp: boolean
}

export interface AttestedCredential {
  readonly aaguid: string
  readonly credentialId: Buffer
  /** A COSE_Key. */
  readonly publicKey: Buffer
}

/** Returns authenticator data (Web Authentication Level 3, section 6.1). */
export function authenticatorData(rpId: string, flags: AuthenticatorFlags, counter: number, credential?: AttestedCredential): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt8(
    (flags.isUserPresent ? 0x01 : 0) |
      (flags.isUserVerified ? 0x04 : 0) |
      (flags.isBackupEligible ? 0x08 : 0) |
      (flags.isBackedUp ? 0x10 : 0) |
      (credential ? 0x40 : 0),
  )
  head.writeUInt32BE(counter, 1)
  const parts = [createHash('sha256').update(rpId).digest(), head]
  if (!credential) return Buffer.concat(parts)
  const { aaguid, credentialId, publicKey } = credential
  const length = Buffer.alloc(2)
  length.writeUInt16BE(credentialId.length)
  return Buffer.concat([...parts, Buffer.from(aaguid.replaceAll('-', ''), 'hex'), length, credentialId, publicKey])
}

/** Returns an attestation object of format `none` (section 8.7). */
export function attestationObject(data: Buffer): Buffer {
  return encodeCbor(
    new Map<string, Encodable>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', data],
    ]),
  )
}

/** Returns a COSE_Key (RFC 9052 section 7, with the parameters of RFC 9053 and RFC 8230). */
export function coseKey(algorithm: 'ES256' | 'EdDSA' | 'RS256', key: KeyObject): Buffer {
  const { x = '', y = '', n = '', e = '' } = key.export({ format: 'jwk' })
  const bytes = (text: string) => Buffer.from(text, 'base64url')
  const entries: Record<typeof algorithm, [number, Encodable][]> = {
    ES256: [
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes(x)],
      [-3, bytes(y)],
    ],
    EdDSA: [
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, bytes(x)],
    ],
    RS256: [
      [1, 3],
      [3, -257],
      [-1, bytes(n)],
      [-2, bytes(e)],
    ],
  }
  return encodeCbor(new Map(entries[algorithm]))
}

export type Encodable = number | string | Buffer | ReadonlyMap<number | string, Encodable>

/** Encodes the part of RFC 8949 that the tests need. */
export function encodeCbor(value: Encodable): Buffer {
  if (typeof value === 'number') return value < 0 ? headOf(1, -1 - value) : headOf(0, value)
  if (typeof value === 'string') return Buffer.concat([headOf(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (Buffer.isBuffer(value)) return Buffer.concat([headOf(2, value.length), value])
  return Buffer.concat([headOf(5, value.size), ...[...value].flatMap(([key, item]) => [encodeCbor(key), encodeCbor(item)])])
}

function headOf(kind: number, size: number): Buffer {
  if (size < 24) return Buffer.from([(kind << 5) | size])
  if (size < 256) return Buffer.from([(kind << 5) | 24, size])
  return Buffer.from([(kind << 5) | 25, size >> 8, size & 255])
}
