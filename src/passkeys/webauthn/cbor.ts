/** The part of CBOR that WebAuthn uses (CTAP 2.1 section 8): integers, bytes, texts, booleans, null, lists and maps. */
export type CborValue = number | Buffer | string | boolean | null | readonly CborValue[] | CborMap
export type CborMap = ReadonlyMap<number | string, CborValue>

const deepest = 4

/**
 * Decodes a single item of definite length (RFC 8949). No bytes may follow the item. The input is untrusted, so the decoder supports only
 * the part of CBOR that WebAuthn uses.
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
