import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { isUnderAny, type KeyList } from '../core/keys'
import type { SessionKind } from '../store/auth-store'

/** The session of a token, and the number of rotations before the token. */
export interface SessionTokenId {
  readonly id: string
  readonly generation: number
}

const secretBytes = 32
const idBytes = 16
const macBytes = 32
const signedBytes = secretBytes + idBytes + 4

/**
 * Returns a refresh token or the value of a session cookie. The token consists of 32 secret bytes, the session's id, the generation, and a
 * MAC. The MAC covers the secret bytes, the id, the generation and the kind. For clients, the token is an opaque text.
 * @param keys the first key makes the MAC
 */
export function makeSessionToken(
  keys: KeyList,
  kind: SessionKind,
  { id, generation }: SessionTokenId,
  secret: Buffer = randomBytes(secretBytes),
): string {
  const generationBytes = Buffer.alloc(4)
  generationBytes.writeUInt32BE(generation)
  const signed = Buffer.concat([secret, Buffer.from(id.replaceAll('-', ''), 'hex'), generationBytes])
  if (secret.length !== secretBytes || signed.length !== signedBytes) throw new TypeError('A session id is a UUID')
  return Buffer.concat([signed, macOf(keys[0], kind, signed)]).toString('base64url')
}

/**
 * Returns the session's id and the generation in a token, after one of the keys verified its MAC. So the function rejects a made-up token
 * without a query. Null: the MAC is wrong, or the token is of the other kind.
 */
export function readSessionToken(keys: KeyList, kind: SessionKind, token: string): SessionTokenId | null {
  if (!tokenShape.test(token)) return null
  const bytes = Buffer.from(token, 'base64url')
  const signed = bytes.subarray(0, signedBytes)
  const mac = bytes.subarray(signedBytes)
  if (!isUnderAny(keys, (key) => timingSafeEqual(macOf(key, kind, signed), mac))) return null
  const hex = signed.toString('hex', secretBytes, secretBytes + idBytes)
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { id, generation: signed.readUInt32BE(secretBytes + idBytes) }
}

/** Returns true if the text has the shape of a token, for guards without the keys. */
export function hasTokenShape(token: string): boolean {
  return tokenShape.test(token)
}

const tokenShape = new RegExp(`^[\\w-]{${((signedBytes + macBytes) / 3) * 4}}$`)

function macOf(key: KeyObject, kind: SessionKind, signed: Buffer): Buffer {
  return createHmac('sha256', key).update(kind).update('\0').update(signed).digest()
}
