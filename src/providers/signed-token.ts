import { constants, createHmac, createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from 'node:crypto'
import { type AppError, OAuthTokenRejectedError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import { constantTimeEqual } from '../core/opaque-token'
import { isPlainObject, parseJsonObject } from './provider-request'

export interface TokenHeader<Algorithm extends IdTokenAlgorithm = SignatureAlgorithm> {
  alg: Algorithm
  kid: string | null
  typ: string | null
}

interface ClaimRules {
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  /** Besides `exp`, `iss` and `sub`. */
  required?: readonly string[]
  now: Date
}

export type TokenClaims = Record<string, unknown> & { iss: string; sub: string; exp: number }

const MAX_TOKEN_LENGTH = 16_384
/** How far a provider's clock may be ahead of ours. The check of `exp` allows no difference. */
export const CLOCK_SKEW_SECONDS = 60

/** Rejects unknown critical extensions (RFC 7515 section 4.1.11). Never reads jku, x5u, jwk, x5c. @throws OAuthTokenRejectedError */
export function readHeader<Algorithm extends IdTokenAlgorithm>(token: unknown, algorithms: readonly Algorithm[]): TokenHeader<Algorithm> {
  const header = segment(token, 0)
  const alg = algorithms.find((algorithm) => algorithm === algorithmNamed(header['alg']))
  if (alg === undefined) throw signedTokenRefusal(unlisted(header['alg'], algorithms))
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64'))
    throw signedTokenRefusal('the header has a critical extension that doorward does not know')
  const { kid, typ } = header
  if (kid !== undefined && typeof kid !== 'string') throw signedTokenRefusal('kid is not a string')
  return { alg, kid: kid || null, typ: typeof typ === 'string' ? typ : null }
}

function unlisted(arrived: unknown, algorithms: readonly string[]): string {
  // An app or an attacker may have written the header, so only a short plain name is repeated.
  const name = typeof arrived === 'string' && /^[A-Za-z0-9-]{1,16}$/.test(arrived) ? arrived : 'not a name'
  const orBySecret = name === 'HS256' ? ". If the provider signs id_tokens with the client secret, set idTokenAlgorithms: ['HS256']" : ''
  return `algorithm not in the list (alg is ${name}): have the provider sign with one of ${algorithms.join(', ')}${orBySecret}`
}

/** Call it only for a verified token. Null: the header has no `typ`. */
export function typeOf(token: string): string | null {
  const { typ } = segment(token, 0)
  return typeof typ === 'string' ? typ : null
}

/** Use it only for a token that came directly from the token endpoint over TLS. */
export function readUnverifiedClaims(token: unknown): Record<string, unknown> {
  return segment(token, 1)
}

/** @throws OAuthTokenRejectedError when `key` did not sign this token with `alg` */
export function verifySignature(token: string, key: KeyObject, alg: IdTokenAlgorithm): Record<string, unknown> {
  const claims = segment(token, 1)
  if (!isSignedBy(token, key, alg))
    throw signedTokenRefusal(
      `the signature is not valid: check ${alg === 'HS256' ? 'clientSecret' : 'that jwksUri belongs to this provider'}`,
    )
  return claims
}

/** @throws OAuthTokenRejectedError */
export function checkClaims(claims: Record<string, unknown>, rules: ClaimRules): TokenClaims {
  const { iss, exp } = claims
  const sub = Number.isSafeInteger(claims['sub']) ? String(claims['sub']) : claims['sub']
  const seconds = rules.now.getTime() / 1000
  if (typeof iss !== 'string' || iss === '' || !rules.acceptsIssuer(iss, claims))
    throw signedTokenRefusal('iss is not the issuer: set issuer exactly as the provider spells it in its tokens')
  if (typeof sub === 'number')
    throw signedTokenRefusal('sub is a number that JavaScript cannot hold exactly: have the provider send it as a string')
  if (typeof sub !== 'string' || sub === '') throw signedTokenRefusal('sub is missing')
  if (typeof exp !== 'number' || !Number.isFinite(exp)) throw signedTokenRefusal('exp is missing')
  if (exp <= seconds) throw signedTokenRefusal(`expired ${Math.ceil(seconds - exp)} s ago (exp): ${clocks}`)
  for (const name of ['nbf', 'iat']) requirePast(claims, name, seconds)
  for (const name of rules.required ?? []) requirePresent(claims, name)
  return { ...claims, iss, sub, exp }
}

function requirePast(claims: Record<string, unknown>, name: string, seconds: number): void {
  const time = claims[name]
  if (time === undefined) return
  if (typeof time !== 'number' || !Number.isFinite(time)) throw signedTokenRefusal(`${name} is no time`)
  if (time > seconds + CLOCK_SKEW_SECONDS) throw signedTokenRefusal(`${name} is ${Math.ceil(time - seconds)} s ahead: ${clocks}`)
}

const clocks = 'check the clocks of this server and of the provider (NTP)'

function requirePresent(claims: Record<string, unknown>, name: string): void {
  const value = Object.hasOwn(claims, name) ? claims[name] : null
  if (value === null || value === undefined || value === '') throw signedTokenRefusal(`${name} is missing`)
}

/** RFC 7515 section 7.1. */
function segment(token: unknown, index: 0 | 1): Record<string, unknown> {
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH) throw signedTokenRefusal('not a token')
  const parts = token.split('.')
  // An encrypted token has five parts (RFC 7516 section 3.1).
  if (parts.length === 5)
    throw signedTokenRefusal('it is encrypted (JWE), which is not supported: register this client at the provider without encryption')
  if (parts.length !== 3 || !parts.every((part) => /^[\w-]*$/.test(part))) throw signedTokenRefusal('not a JWT')
  const content = parseJsonObject(Buffer.from(parts[index] ?? '', 'base64url'))
  if (!isPlainObject(content)) throw signedTokenRefusal('not a JWT')
  return content
}

export function reasonOf({ cause, code }: AppError): string {
  return cause instanceof Error ? cause.message : code
}

/** `reason` is the library's own sentence: which check failed, and what to do. It contains no text of the token. */
export function signedTokenRefusal(reason: string): OAuthTokenRejectedError {
  return new OAuthTokenRejectedError({ cause: withOwnMessage(new Error(reason)) })
}

/** RFC 7518 section 3.1, and Ed25519 of RFC 8037. The library accepts no other algorithm from a provider. */
export const SIGNATURE_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const
export type SignatureAlgorithm = (typeof SIGNATURE_ALGORITHMS)[number]
/** HS256 counts only for id_tokens, and only if the client names it in `idTokenAlgorithms`. Its key is the client secret. */
export type IdTokenAlgorithm = SignatureAlgorithm | 'HS256'

/** RFC 9864 calls EdDSA on Curve25519 `Ed25519`, and a provider may use either name. */
export function algorithmNamed(name: unknown): unknown {
  return name === 'Ed25519' ? 'EdDSA' : name
}

/** A compact JWS (RFC 7515 section 3.1). The key's type must fit `alg`. */
export function signJwt(claims: object, { key, alg, kid }: { key: KeyObject; alg: SignatureAlgorithm; kid: string | null }): string {
  const header = { alg, typ: 'JWT', ...(kid !== null && { kid }) }
  const signed = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${sign(hashOf(alg), Buffer.from(signed), { key, ...formOf(alg) }).toString('base64url')}`
}

/** The key's type must fit `alg` (`algorithmsFor`). */
export function isSignedBy(token: string, key: KeyObject, alg: IdTokenAlgorithm): boolean {
  const end = token.lastIndexOf('.')
  // A public key is no secret, so a MAC made with a public key proves nothing (RFC 8725 section 2.1).
  if (alg === 'HS256' || key.type !== 'public')
    return alg === 'HS256' && key.type === 'secret' && constantTimeEqual(macOf(token.slice(0, end), key), token.slice(end + 1))
  const signature = Buffer.from(token.slice(end + 1), 'base64url')
  return verify(hashOf(alg), Buffer.from(token.slice(0, end)), { key, ...formOf(alg) }, signature)
}

function macOf(signed: string, key: KeyObject): string {
  return createHmac('sha256', key).update(signed).digest('base64url')
}

/** Null: EdDSA needs no separate hash. */
function hashOf(alg: SignatureAlgorithm): string | null {
  return alg === 'EdDSA' ? null : `sha${alg.slice(2)}`
}

/** An ECDSA signature is R and S joined (RFC 7518 section 3.4). The salt of PSS is as long as the hash (section 3.5). */
function formOf(alg: SignatureAlgorithm) {
  if (alg.startsWith('PS')) return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }
  return alg.startsWith('ES') ? { dsaEncoding: 'ieee-p1363' as const } : {}
}

export interface VerificationKey {
  key: KeyObject
  algorithms: readonly SignatureAlgorithm[]
}

/** RFC 7517 section 4. Null for keys that must not check signatures. Node itself accepts even RSA with e = 1 or one bit. */
export function readVerificationKey(jwk: unknown): VerificationKey | null {
  if (!isPlainObject(jwk) || !isForSignatures(jwk) || Object.hasOwn(jwk, 'd') || !isOfSaneSize(jwk)) return null
  const key = importKey(jwk)
  const possible = key ? algorithmsFor(key) : []
  const algorithms = jwk['alg'] === undefined ? possible : possible.filter((algorithm) => algorithm === algorithmNamed(jwk['alg']))
  return key && algorithms.length > 0 ? { key, algorithms } : null
}

/** KeyObject.equals of two types leaves an error in OpenSSL's queue, and the next read of a private key fails (Node 20). */
export function isSamePublicKey(one: KeyObject, other: KeyObject): boolean {
  const [bytes, otherBytes] = [one, other].map((key) => key.export({ type: 'spki', format: 'der' }))
  return bytes !== undefined && otherBytes !== undefined && bytes.equals(otherBytes)
}

function isForSignatures({ use, key_ops: operations }: Record<string, unknown>): boolean {
  if (use !== undefined && use !== 'sig') return false
  return operations === undefined || (Array.isArray(operations) && operations.includes('verify'))
}

/** Before the import: 8192 bits are 1366 characters. */
function isOfSaneSize(jwk: Record<string, unknown>): boolean {
  return ['n', 'e', 'x', 'y'].every((name) => jwk[name] === undefined || String(jwk[name]).length <= 1400)
}

function importKey(jwk: Record<string, unknown>): KeyObject | null {
  const { kty, n, e, crv, x, y } = jwk
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return null
  try {
    const wanted = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, ...(kty === 'EC' && { y }) }
    return createPublicKey({ key: wanted as JsonWebKey, format: 'jwk' }) // the import rejects members of a wrong type
  } catch {
    return null // the member is not a key, but other keys of the set can be usable
  }
}

const RSA_ALGORITHMS: readonly SignatureAlgorithm[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
const CURVES: Readonly<Record<string, SignatureAlgorithm>> = { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }

/** Empty: the key may check no signature, for example because its size is not safe. */
export function algorithmsFor(key: KeyObject): readonly SignatureAlgorithm[] {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  if (key.asymmetricKeyType === 'ed25519') return ['EdDSA']
  if (key.asymmetricKeyType === 'ec') return CURVES[namedCurve] ? [CURVES[namedCurve]] : []
  if (key.asymmetricKeyType !== 'rsa') return []
  const isStrong = modulusLength >= 2048 && modulusLength <= 8192 && publicExponent >= 65_537n && publicExponent <= 0xffff_ffffn
  return isStrong ? RSA_ALGORITHMS : []
}
