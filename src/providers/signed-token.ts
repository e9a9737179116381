import type { KeyObject } from 'node:crypto'
import { type AppError, OAuthTokenRejectedError } from '../core/errors'
import { withOwnMessage } from '../core/logger'
import { algorithmNamed, type IdTokenAlgorithm, isSignedBy, type SignatureAlgorithm } from './jws'
import { isPlainObject, parseJsonObject } from './provider-request'

export interface TokenHeader<Algorithm extends IdTokenAlgorithm = SignatureAlgorithm> {
  alg: Algorithm
  kid: string | null
  typ: string | null
}

export interface ClaimRules {
  /** Returns true if this `iss` belongs to the expected issuer. */
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  /** Claims that must be present, besides `exp`, `iss` and `sub`. */
  required?: readonly string[]
  now: Date
}

export type TokenClaims = Record<string, unknown> & { iss: string; sub: string; exp: number }

const MAX_TOKEN_LENGTH = 16_384
/** How far a provider's clock may be ahead of ours, in seconds. The check of `exp` allows no difference. */
export const CLOCK_SKEW_SECONDS = 60

/**
 * Reads the header. Rejects an algorithm that is not in the list, and an unknown critical extension (RFC 7515 section 4.1.11). Never reads
 * jku, x5u, jwk and x5c.
 *
 * @throws OAuthTokenRejectedError
 */
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
  // Only a short plain name is repeated, because an app or an attacker may have written the header.
  const name = typeof arrived === 'string' && /^[A-Za-z0-9-]{1,16}$/.test(arrived) ? arrived : 'not a name'
  const orBySecret = name === 'HS256' ? ". If the provider signs id_tokens with the client secret, set idTokenAlgorithms: ['HS256']" : ''
  return `algorithm not in the list (alg is ${name}): have the provider sign with one of ${algorithms.join(', ')}${orBySecret}`
}

/** Returns `typ` from the header of a verified token. Null: the header has no `typ`. */
export function typeOf(token: string): string | null {
  const { typ } = segment(token, 0)
  return typeof typ === 'string' ? typ : null
}

/** Returns the claims without verification. Use it only for a token that came directly from the token endpoint over TLS. */
export function readUnverifiedClaims(token: unknown): Record<string, unknown> {
  return segment(token, 1)
}

/** Verifies the signature, and returns the claims. @throws OAuthTokenRejectedError when `key` did not sign this token with `alg` */
export function verifySignature(token: string, key: KeyObject, alg: IdTokenAlgorithm): Record<string, unknown> {
  const claims = segment(token, 1)
  if (!isSignedBy(token, key, alg))
    throw signedTokenRefusal(
      `the signature is not valid: check ${alg === 'HS256' ? 'clientSecret' : 'that jwksUri belongs to this provider'}`,
    )
  return claims
}

/** Checks the issuer, the subject, the times and the required claims. @throws OAuthTokenRejectedError */
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

/** Returns one base64url part of a compact JWS (RFC 7515 section 7.1), as an object. */
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

/** Returns the reason in the library's own words, for logs. */
export function reasonOf({ cause, code }: AppError): string {
  return cause instanceof Error ? cause.message : code
}

/**
 * Returns the error for a rejected token. `reason` is the library's own sentence: which check failed, and what to do. `reason` contains no
 * text of the token.
 */
export function signedTokenRefusal(reason: string): OAuthTokenRejectedError {
  return new OAuthTokenRejectedError({ cause: withOwnMessage(new Error(reason)) })
}
