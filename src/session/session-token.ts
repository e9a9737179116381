import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import { isUnderAny, type KeyList } from '../keys'
import { isOpaqueToken } from '../opaque-token'
import type { SessionKind } from '../store/auth-store'

/** Which session a token belongs to, and how many rotations came before it. */
export interface SessionTokenId {
  readonly id: string
  readonly generation: number
}

const secretBytes = 32
const idBytes = 16
const macBytes = 32
const signedBytes = secretBytes + idBytes + 4

/**
 * Returns a refresh token or the value of a session cookie: 32 secret bytes, the session's id, the generation, and a MAC over
 * the three and
 * the kind. It is opaque to everybody else.
 * @param keys the first one makes the MAC
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
 * Returns what a token says about itself, once one of the keys has checked its MAC: no query is needed to refuse what nobody
 * here made.
 * Null for everything else, and for a token of the other kind.
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

/** Tokens of release 0.1.0 have no MAC, so they are known by their hash alone. */
export function isOldSessionToken(token: string): boolean {
  return isOpaqueToken(token)
}

/** Whether a token could be one of ours, where no key is at hand to ask. */
export function hasTokenShape(token: string): boolean {
  return tokenShape.test(token) || isOldSessionToken(token)
}

const tokenShape = new RegExp(`^[\\w-]{${((signedBytes + macBytes) / 3) * 4}}$`)

function macOf(key: KeyObject, kind: SessionKind, signed: Buffer): Buffer {
  return createHmac('sha256', key).update(kind).update('\0').update(signed).digest()
}
