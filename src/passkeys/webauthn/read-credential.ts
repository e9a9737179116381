import { createHash, createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto'

/** From `PublicKeyCredential.toJSON()`, only the fields that we need. Bytes are base64url. */
export interface PresentedAssertion {
  readonly id: string
  readonly clientDataJSON: string
  readonly authenticatorData: string
  readonly signature: string
  readonly userHandle: string | null
}

interface PresentedAttestation {
  readonly id: string
  readonly clientDataJSON: string
  readonly attestationObject: string
  readonly transports: readonly string[]
}

/** In characters of base64url. An id has at most 1,023 bytes (Web Authentication Level 3, section 4). The others are generous. */
const most = { id: 1_364, clientData: 4_096, authenticatorData: 2_048, signature: 2_048, userHandle: 88, attestation: 12_288 }

/** The column takes this much. A longer id is stored as its hash. */
const longestStored = 700

/** A hash has a colon, so that it never equals an id. */
export function storedId(id: string): string {
  return id.length <= longestStored ? id : `sha256:${createHash('sha256').update(id).digest('base64url')}`
}

/** Web Authentication Level 3, section 5.8.4. Unknown transports are dropped. */
const transportNames: ReadonlySet<unknown> = new Set(['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'])

export function readAssertion(credential: unknown): PresentedAssertion | null {
  const read = readCommon(credential)
  if (!read) return null
  const { id, clientDataJSON, response } = read
  const { authenticatorData, signature, userHandle } = response
  if (!isBytes(authenticatorData, most.authenticatorData) || !isBytes(signature, most.signature)) return null
  // Some authenticators send an empty handle for a credential without a handle.
  if (userHandle === undefined || userHandle === null || userHandle === '')
    return { id, clientDataJSON, authenticatorData, signature, userHandle: null }
  return isBytes(userHandle, most.userHandle) ? { id, clientDataJSON, authenticatorData, signature, userHandle } : null
}

export function readAttestation(credential: unknown): PresentedAttestation | null {
  const read = readCommon(credential)
  if (!read) return null
  const { id, clientDataJSON, response } = read
  const { attestationObject, transports } = response
  if (!isBytes(attestationObject, most.attestation)) return null
  const known = Array.isArray(transports) ? transports.filter((name) => transportNames.has(name)) : []
  return { id, clientDataJSON, attestationObject, transports: [...new Set(known)].sort() }
}

function readCommon(credential: unknown): { id: string; clientDataJSON: string; response: Record<string, unknown> } | null {
  const { id, rawId, type, response } = fieldsOf(credential)
  if (!isBytes(id, most.id) || rawId !== id || type !== 'public-key') return null
  const fields = fieldsOf(response)
  const { clientDataJSON } = fields
  return isBytes(clientDataJSON, most.clientData) ? { id, clientDataJSON, response: fields } : null
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** The spare bits of the last character must be 0 (RFC 4648 section 3.5), so each value has only one spelling. */
function isBytes(value: unknown, longest: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > longest) return false
  return Buffer.from(value, 'base64url').toString('base64url') === value
}

/** ES256, EdDSA and RS256 (RFC 9053 and RFC 8812), in the order of our preference. */
export const algorithms = [-7, -8, -257] as const

const [kty, alg] = [1, 3]
/** In bytes. The client chooses the RSA key, and a longer key makes verification slower. */
const [leastRsaBytes, mostRsaBytes, mostExponentBytes] = [256, 1_024, 4]
const leastExponent = 3n

/** RFC 9052 section 7. P-256, Ed25519, or RSA from 2,048 to 8,192 bits; type, curve and lengths must match the algorithm. */
export function readCoseKey(bytes: Buffer): KeyObject | null {
  try {
    const key = decodeCbor(bytes)
    const jwk = key instanceof Map ? jwkOf(key) : null
    const imported = jwk && createPublicKey({ key: jwk, format: 'jwk' })
    return imported && isFit(imported) ? imported : null
  } catch {
    return null // invalid CBOR, or a point that is not on the curve
  }
}

/** Zeros in front of a short modulus are no bits. An RSA key with the exponent 1 or an even exponent protects nothing. */
function isFit({ asymmetricKeyDetails: { modulusLength, publicExponent } = {} }: KeyObject): boolean {
  if (modulusLength === undefined || publicExponent === undefined) return true
  return modulusLength >= leastRsaBytes * 8 && publicExponent >= leastExponent && publicExponent % 2n === 1n
}

/** An ES256 signature must be exactly one DER sequence. Other algorithms have a fixed length, which the verification checks. */
export function isWholeSignature(publicKey: Buffer, signature: Buffer): boolean {
  const key = decodeCbor(publicKey)
  if (!(key instanceof Map) || key.get(alg) !== -7) return true
  return signature.length < 128 && signature[0] === 0x30 && signature[1] === signature.length - 2
}

function jwkOf(key: CborMap): JsonWebKey | null {
  const has = (size: number, wanted: Readonly<Record<number, number>>) =>
    key.size === size && Object.entries(wanted).every(([label, value]) => key.get(Number(label)) === value)
  const text = (label: number, isFit: (length: number) => boolean) => {
    const value = key.get(label)
    if (!Buffer.isBuffer(value) || !isFit(value.length)) throw new RangeError('no such parameter')
    return value.toString('base64url')
  }
  const is32 = (length: number) => length === 32
  if (has(5, { [kty]: 2, [alg]: -7, [-1]: 1 })) return { kty: 'EC', crv: 'P-256', x: text(-2, is32), y: text(-3, is32) }
  if (has(4, { [kty]: 1, [alg]: -8, [-1]: 6 })) return { kty: 'OKP', crv: 'Ed25519', x: text(-2, is32) }
  if (!has(4, { [kty]: 3, [alg]: -257 })) return null
  const modulus = text(-1, (length) => length >= leastRsaBytes && length <= mostRsaBytes)
  return { kty: 'RSA', n: modulus, e: text(-2, (length) => length >= 1 && length <= mostExponentBytes) }
}

/** The private key is discarded. Verifying an unknown credential with this key takes as long as a known one. */
export function newEs256Key(): string {
  const { x = '', y = '' } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  // The CBOR of {1: 2, 3: -7, -1: 1, -2: x, -3: y}
  const [head, before, between] = ['a5010203262001', '215820', '225820'].map((hex) => Buffer.from(hex, 'hex')) as [Buffer, Buffer, Buffer]
  return Buffer.concat([head, before, Buffer.from(x, 'base64url'), between, Buffer.from(y, 'base64url')]).toString('base64url')
}

/** The part that WebAuthn uses (CTAP 2.1 section 8). */
type CborValue = number | Buffer | string | boolean | null | readonly CborValue[] | CborMap
type CborMap = ReadonlyMap<number | string, CborValue>

const deepest = 4

/**
 * A single item of definite length (RFC 8949), with no bytes after it. The input is untrusted, so only the part of CBOR that WebAuthn uses
 * is supported.
 * @throws RangeError for any other input
 */
export function decodeCbor(bytes: Buffer): CborValue {
  const reader = new Reader(bytes)
  const value = reader.item(0)
  if (!reader.isAtEnd()) throw new RangeError('bytes after the item')
  return value
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  item(depth: number): CborValue {
    if (depth > deepest) throw new RangeError('nested too deep')
    const head = this.#take(1).readUInt8()
    const [kind, short] = [head >> 5, head & 31]
    if (kind === 7) return simple(short)
    const size = this.#size(short)
    if (kind === 0) return size
    if (kind === 1) return -1 - size
    if (kind === 2) return this.#take(size)
    if (kind === 3) return this.#take(size).toString('utf8')
    if (kind === 4) return this.#list(size, depth)
    if (kind === 5) return this.#map(size, depth)
    throw new RangeError('a kind that WebAuthn does not use')
  }

  #take(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError('cut off')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }

  #size(short: number): number {
    if (short < 24) return short
    if (short === 24) return this.#take(1).readUInt8()
    if (short === 25) return this.#take(2).readUInt16BE()
    if (short === 26) return this.#take(4).readUInt32BE()
    throw new RangeError('a length that nothing here has')
  }

  #list(size: number, depth: number): CborValue[] {
    const items: CborValue[] = []
    while (items.length < size) items.push(this.item(depth + 1))
    return items
  }

  #map(size: number, depth: number): CborMap {
    const entries = new Map<number | string, CborValue>()
    for (let count = 0; count < size; count += 1) {
      const key = this.item(depth + 1)
      if ((typeof key !== 'number' && typeof key !== 'string') || entries.has(key))
        throw new RangeError('a key that is none, or is there twice')
      entries.set(key, this.item(depth + 1))
    }
    return entries
  }
}

function simple(short: number): boolean | null {
  if (short === 20) return false
  if (short === 21) return true
  if (short === 22) return null
  throw new RangeError('a simple value that WebAuthn does not use')
}
