import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { JwtKey } from '../core/config/every-setting'
import { ConfigurationError } from '../core/errors'
import type { AccessKey, JwtAlgorithm, NamedAccessKey, SecretAccessKey } from '../core/keys'
import { algorithmsFor, isSamePublicKey } from '../providers/signed-token'

/** A guard needs no private key. @throws ConfigurationError with the position of the key and the fix, but never with a value of it */
export function readJwtKeys(jwtKeys: readonly JwtKey[]): NamedAccessKey[] {
  const keys = jwtKeys.map(readJwtKey)
  keys.forEach(({ key }, place) => {
    const earlier = keys.slice(0, place).findIndex((other) => isSamePublicKey(other.key, key))
    // Each kid has one algorithm, so one key with two kids could be used with two algorithms.
    if (earlier !== -1) throw wrong(place, `is key ${earlier + 1} under another kid; list each key once`)
  })
  return keys
}

/** The first key must have its private key, because a router signs with it. */
export function readSigningKeys(jwtKeys: readonly JwtKey[]): NamedAccessKey[] {
  const keys = readJwtKeys(jwtKeys)
  if (!keys[0]?.privateKey) throw wrong(0, 'signs, so it needs its privateKey; move a retired key further back')
  return keys
}

function readJwtKey({ kid, alg, privateKey: privatePem, publicKey: publicPem }: JwtKey, place: number): NamedAccessKey {
  const privateKey = privatePem === undefined ? null : readPrivateKey(privatePem, place)
  const given = publicPem === undefined ? null : readPublicKey(publicPem, place)
  const key = privateKey ? createPublicKey(privateKey) : given
  if (!key) throw wrong(place, 'needs a privateKey or a publicKey')
  if (given && !isSamePublicKey(given, key))
    throw wrong(place, 'has a publicKey that does not belong to its privateKey; leave it out or give the right one')
  if (!algorithmsFor(key).includes(alg)) throw wrong(place, needs[alg])
  return Object.freeze({ kid, algorithm: alg, key, privateKey })
}

const needs: Readonly<Record<JwtAlgorithm, string>> = {
  ES256: 'has alg ES256, which needs an EC key on P-256: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256',
  RS256: rsa('RS256'),
  PS256: rsa('PS256'),
}

function rsa(alg: string): string {
  return `has alg ${alg}, which needs an RSA key of 2048 to 8192 bits with exponent 65537: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:3072`
}

function readPrivateKey(pem: string, place: number): KeyObject {
  try {
    return createPrivateKey({ key: pem, format: 'pem' })
  } catch {
    // Without OpenSSL's message: it describes the value, and does not say what to do.
    throw wrong(place, `has a privateKey that is not an unencrypted private key in PEM; ${lineBreaks}`)
  }
}

/** Node would also make a public key from a private key or a certificate. `publicKey` must not contain a private key. */
function readPublicKey(pem: string, place: number): KeyObject {
  try {
    if (/^\s*-----BEGIN (RSA )?PUBLIC KEY-----/.test(pem)) return createPublicKey({ key: pem, format: 'pem' })
  } catch {
    // The error below also covers this case.
  }
  throw wrong(place, `has a publicKey that is not a public key in PEM (-----BEGIN PUBLIC KEY-----; openssl pkey -pubout); ${lineBreaks}`)
}

const lineBreaks = 'in JSON its line breaks are written \\n'

function wrong(place: number, what: string): ConfigurationError {
  return new ConfigurationError(`Setting jwtKeys (AUTH_JWT_KEYS): key ${place + 1} ${what}.`)
}

export type VerifyingKey = Pick<SecretAccessKey, 'algorithm' | 'keys'> | Pick<NamedAccessKey, 'algorithm' | 'key'>

interface SigningKey extends Pick<AccessKey, 'algorithm' | 'kid'> {
  readonly privateKey: KeyObject
}

/** A compact JWS (RFC 7515 section 7.1) with exactly alg, typ and, if the key has one, kid. */
export function signClaims({ algorithm, kid, privateKey }: SigningKey, claims: object, typ: 'JWT' | 'at+jwt' = 'JWT'): string {
  return jwt.sign(claims, privateKey, { algorithm, header: { alg: algorithm, typ }, ...(kid !== null && { keyid: kid }) })
}

/**
 * Accepts only the key's own algorithm (RFC 8725 section 3.1). The caller checks the characters and the header before, and the claims
 * after. The caller also checks `exp`, even for a remembered token, whose signature is not verified again.
 */
export function readSigned(verifying: VerifyingKey, token: string): unknown {
  if (verifying.algorithm !== 'HS256') return isCanonical(token) ? payloadOf(token, verifying.key, verifying.algorithm) : null
  // Every key, so that the time does not reveal which key signed.
  const payloads = verifying.keys.map((key) => payloadOf(token, key, 'HS256'))
  return payloads.find((payload) => payload !== null) ?? null
}

/** Spare bits, after the last full four characters, would allow sixteen texts for one signature (RFC 4648 section 3.5). */
function isCanonical(token: string): boolean {
  const length = token.length - token.lastIndexOf('.') - 1
  const end = token.slice(token.length - (length % 4))
  return Buffer.from(end, 'base64url').toString('base64url') === end
}

function payloadOf(token: string, key: KeyObject, algorithm: 'HS256' | JwtAlgorithm): unknown {
  try {
    return jwt.verify(token, key, { algorithms: [algorithm], ignoreExpiration: true, ignoreNotBefore: true })
  } catch {
    return null // jsonwebtoken gives the reason; the client must not learn it
  }
}
