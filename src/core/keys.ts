import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** Each purpose has its own key, so that a signature is valid for only one purpose (RFC 8725 section 3.12). */
export type KeyPurpose = (typeof purposes)[number]

const purposes = [
  'access',
  'mfa',
  'refresh',
  'refresh-successor',
  'session-token',
  'state',
  'pkce',
  'nonce',
  'cursor',
  'proof-cookie',
  'event-digest',
  'device',
  'form-answer',
  'enrolment-page',
  'passkey-challenge',
  'webauthn-user-handle',
  'email-login',
  'email-login-code',
  'mailed-code',
  'signup-token',
  'csrf',
  'csrf-binding',
  'captcha',
  'tasks',
  'account-restore',
] as const

/** In the order of the secrets in `jwtSecret`. The first key signs, and all keys verify. */
export type KeyList = readonly [KeyObject, ...KeyObject[]]

/** HKDF-SHA256 (RFC 5869): empty salt, info `doorward/<purpose>/v1[/<realm>]`, 32 bytes. Call it at boot: a KeyObject is slow to make. */
export function deriveKey(secret: string, purpose: KeyPurpose, realm = ''): KeyObject {
  const info = `doorward/${purpose}/v1${realm === '' ? '' : `/${realm}`}`
  return createSecretKey(Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'utf8'), Buffer.alloc(0), info, 32)))
}

export function deriveKeyList(secrets: string | readonly string[], purpose: KeyPurpose, realm = ''): KeyList {
  return Object.freeze([secrets].flat().map((secret) => deriveKey(secret, purpose, realm))) as KeyList // the settings reject an empty list
}

export type Keys = Readonly<Record<KeyPurpose, KeyList>>

export function deriveKeys(secrets: string | readonly string[], realm = ''): Keys {
  return Object.freeze(
    Object.fromEntries(purposes.map((purpose) => [purpose, deriveKeyList(secrets, purpose, realm)])) as Record<KeyPurpose, KeyList>,
  ) // every purpose is listed
}

/** Tries every key, so that the time does not reveal which key passed. Returns -1 if none passed. */
export function findKey(keys: KeyList, passes: (key: KeyObject) => boolean): number {
  return keys.reduce((found, key, place) => (passes(key) && found === -1 ? place : found), -1)
}

export function isUnderAny(keys: KeyList, passes: (key: KeyObject) => boolean): boolean {
  return findKey(keys, passes) !== -1
}

export type JwtAlgorithm = 'ES256' | 'RS256' | 'PS256'

/** The token never chooses the algorithm (RFC 8725 section 3.1). */
export type AccessKey = SecretAccessKey | NamedAccessKey

/** For a router without `jwtKeys`. Contains the keys of all secrets, because such a token does not name its key. */
export type SecretAccessKey = Readonly<{ kid: null; algorithm: 'HS256'; keys: KeyList; privateKey: KeyObject }>

/** A key of `jwtKeys`. `key` verifies, and `privateKey` signs. Null: the key is retired. */
export type NamedAccessKey = Readonly<{ kid: string; algorithm: JwtAlgorithm; key: KeyObject; privateKey: KeyObject | null }>

export function secretAccessKey(keys: KeyList): SecretAccessKey {
  return Object.freeze({ kid: null, algorithm: 'HS256', keys, privateKey: keys[0] })
}
