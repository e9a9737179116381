import { createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'

/** What a derived key is for. One key per purpose: nothing signed for one passes in another's place (RFC 8725 section 3.12). */
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
] as const

/** Under the secret of `csrfToken()`, which is not the router's. */
type CsrfPurpose = 'csrf' | 'csrf-binding'

/** One key per secret of `jwtSecret`, in its order: the first makes, all verify. */
export type KeyList = readonly [KeyObject, ...KeyObject[]]

/** HKDF-SHA256 (RFC 5869), empty salt, info `doorward/<purpose>/v1`, 32 bytes. Made once at boot: a KeyObject is costly. */
export function deriveKey(secret: string, purpose: KeyPurpose | CsrfPurpose): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', Buffer.from(secret, 'utf8'), Buffer.alloc(0), `doorward/${purpose}/v1`, 32)))
}

/** @param secrets one secret, or a list of at least one */
export function deriveKeyList(secrets: string | readonly string[], purpose: KeyPurpose | CsrfPurpose): KeyList {
  return Object.freeze([secrets].flat().map((secret) => deriveKey(secret, purpose))) as KeyList // never empty: the settings see to it
}

export type Keys = Readonly<Record<KeyPurpose, KeyList>>

export function deriveKeys(secrets: string | readonly string[]): Keys {
  return Object.freeze(
    Object.fromEntries(purposes.map((purpose) => [purpose, deriveKeyList(secrets, purpose)])) as Record<KeyPurpose, KeyList>,
  ) // every purpose is listed
}

/** Returns the place of the key that passes the check; -1: none does. Tries every key, so that the time does not tell which one passed. */
export function findKey(keys: KeyList, passes: (key: KeyObject) => boolean): number {
  return keys.reduce((found, key, place) => (passes(key) && found === -1 ? place : found), -1)
}

export function isUnderAny(keys: KeyList, passes: (key: KeyObject) => boolean): boolean {
  return findKey(keys, passes) !== -1
}

export type JwtAlgorithm = 'ES256' | 'RS256' | 'PS256'

/** A key of access tokens and the one algorithm it is for, fixed here and never by a token (RFC 8725 section 3.1). */
export type AccessKey = SecretAccessKey | NamedAccessKey

/** Of each secret one key, since tokens under a secret name none. */
export type SecretAccessKey = Readonly<{ kid: null; algorithm: 'HS256'; keys: KeyList; privateKey: KeyObject }>

/** One of `jwtKeys`: `key` checks signatures, `privateKey` makes them; null: retired. */
export type NamedAccessKey = Readonly<{ kid: string; algorithm: JwtAlgorithm; key: KeyObject; privateKey: KeyObject | null }>

/** The one access key there is without `jwtKeys`. */
export function secretAccessKey(keys: KeyList): SecretAccessKey {
  return Object.freeze({ kid: null, algorithm: 'HS256', keys, privateKey: keys[0] })
}
