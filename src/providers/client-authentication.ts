import { createPrivateKey, createPublicKey, KeyObject, randomUUID } from 'node:crypto'
import { ConfigurationError } from '../core/errors'
import type { HttpRequest } from '../core/http-client'
import { algorithmNamed, algorithmsFor, type SignatureAlgorithm, signJwt } from './signed-token'

/** OpenID Connect Core section 9. `none`: a client without a secret, whose login PKCE protects. */
export const CLIENT_AUTHENTICATIONS = ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'] as const
export type ClientAuthentication = (typeof CLIENT_AUTHENTICATIONS)[number]

/** The key of `private_key_jwt`. Register its public half at the provider. */
export interface ClientKey {
  /** PEM without a passphrase, or a KeyObject: RSA of 2048 to 8192 bits, EC on P-256, P-384 or P-521, or Ed25519. */
  privateKey: string | KeyObject
  /** The id of the key, if you registered several. */
  kid?: string
  /** Default: RS256 for an RSA key, and EdDSA (also named Ed25519) for an Ed25519 key. Default for an EC key, by its curve: ES256, ES384 or ES512. */
  alg?: SignatureAlgorithm | 'Ed25519'
}

/** How this application authenticates at a provider. */
export interface ClientCredentials {
  /** The client id. If it is empty, the client cannot verify that a token was issued to this application. */
  clientId: string
  /** The secret that the provider gave you; empty for a public client. Leave it out with `private_key_jwt` and `none`. */
  clientSecret?: string
  /**
   * How the client authenticates at the token endpoint, for introspection and for pushed authorization requests. Default:
   * `client_secret_post`. `discover()` chooses `client_secret_basic` if the provider lists that method or lists no method. Otherwise
   * `discover()` chooses `client_secret_post`.
   */
  clientAuthentication?: ClientAuthentication
  /** The key for `private_key_jwt`. That method requires a key, and no other method accepts a key. */
  clientKey?: ClientKey
}

/** If a response repeats one of the secrets, the error and the log show the response without it. */
export interface AuthenticatedRequest {
  request: HttpRequest & { method: 'POST' }
  secrets: readonly string[]
  /** `client_secret_basic` must encode characters of the id or the secret. Some providers do not decode them. */
  isEncoded?: boolean
}

export type Authenticate = (form: URLSearchParams) => AuthenticatedRequest

/** @throws ConfigurationError naming the option and the fix; never its value */
export function checkClientCredentials(owner: string, { clientSecret, clientAuthentication, clientKey }: ClientCredentials): void {
  const wrong = (what: string) => new ConfigurationError(`${owner}: ${what}.`)
  if (clientAuthentication !== undefined && !CLIENT_AUTHENTICATIONS.includes(clientAuthentication))
    throw wrong(`clientAuthentication must be one of ${CLIENT_AUTHENTICATIONS.join(', ')}`)
  if (clientAuthentication === 'private_key_jwt') readClientKey(owner, clientKey)
  else if (clientKey !== undefined) throw wrong("clientKey needs clientAuthentication: 'private_key_jwt'")
  if (clientAuthentication === 'private_key_jwt' || clientAuthentication === 'none') {
    if (clientSecret !== undefined && clientSecret !== '')
      throw wrong(`leave clientSecret out beside clientAuthentication: '${clientAuthentication}'`)
  } else if (typeof clientSecret !== 'string') {
    throw wrong("clientSecret must be a string; without one say clientAuthentication: 'none' (a public client) or 'private_key_jwt'")
  }
}

/**
 * RFC 6749 section 2.3.1, RFC 7523 section 2.2.
 * @param audience the `aud` of an assertion: the issuer, or the token endpoint if no issuer is known
 * @param freshSecret returns a secret for `client_secret_post`; null: use the secret of the options
 */
export function createAuthenticate(
  credentials: ClientCredentials,
  { owner, audience, now, freshSecret }: { owner: string; audience: string; now: () => Date; freshSecret?: (now: Date) => string | null },
): Authenticate {
  const { clientId, clientSecret = '', clientAuthentication = 'client_secret_post', clientKey } = credentials
  const basic = basicCredentials(clientId, clientSecret)
  // A provider can decode the credentials and encode them again in its response, then without the form encoding.
  const secrets = [clientSecret, basic, Buffer.from(`${clientId}:${clientSecret}`).toString('base64')]
  const isEncoded = [clientId, clientSecret].some((text) => formEncode(text) !== text)
  if (clientAuthentication === 'client_secret_basic')
    return (form) => ({ request: formRequest(form, { authorization: `Basic ${basic}` }), secrets, isEncoded })
  const key = clientAuthentication === 'private_key_jwt' ? readClientKey(owner, clientKey) : null
  return (form) => {
    form.set('client_id', clientId)
    if (key) {
      const assertion = signJwt(assertionClaims({ clientId, audience, now: now() }), key)
      form.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
      form.set('client_assertion', assertion)
      return { request: formRequest(form), secrets: [assertion] }
    }
    // RFC 6749 section 2.3.1: a client without a secret may leave the parameter out.
    const secret = freshSecret?.(now()) ?? clientSecret
    if (secret !== '') form.set('client_secret', secret)
    return { request: formRequest(form), secrets: [...secrets, secret] }
  }
}

function formRequest(form: URLSearchParams, headers: Record<string, string> = {}): AuthenticatedRequest['request'] {
  const known = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' }
  return { method: 'POST', headers: { ...known, ...headers }, body: form.toString() }
}

/** Form-encodes both parts before it joins them (RFC 6749 section 2.3.1). */
function basicCredentials(clientId: string, clientSecret: string): string {
  return Buffer.from([clientId, clientSecret].map(formEncode).join(':')).toString('base64')
}

function formEncode(value: string): string {
  return new URLSearchParams({ v: value }).toString().slice(2)
}

const ASSERTION_SECONDS = 60

/** RFC 7523 section 3. Each request needs new claims, because a provider rejects a known `jti`. */
function assertionClaims({ clientId, audience, now }: { clientId: string; audience: string; now: Date }): object {
  const iat = Math.floor(now.getTime() / 1000)
  return { iss: clientId, sub: clientId, aud: audience, jti: randomUUID(), iat, exp: iat + ASSERTION_SECONDS }
}

interface SigningKey {
  key: KeyObject
  alg: SignatureAlgorithm
  kid: string | null
}

/** For `private_key_jwt`. @throws ConfigurationError */
function readClientKey(owner: string, clientKey: ClientKey | undefined): SigningKey {
  const wrong = (what: string) => new ConfigurationError(`${owner}: ${what}.`)
  if (typeof clientKey !== 'object' || clientKey === null)
    throw wrong("clientAuthentication: 'private_key_jwt' needs clientKey: { privateKey: PEM or KeyObject, kid?, alg? }")
  const unknown = Object.keys(clientKey).find((name) => !['privateKey', 'kid', 'alg'].includes(name))
  if (unknown !== undefined) throw wrong(`unknown option clientKey.${unknown}`)
  const { privateKey, kid, alg } = clientKey
  if (kid !== undefined && (typeof kid !== 'string' || kid === '')) throw wrong('clientKey.kid must be a string that is not empty')
  const key = importPrivateKey(privateKey)
  if (!key) throw wrong('clientKey.privateKey must be a private key without a passphrase, in PEM or as a KeyObject')
  const possible = algorithmsFor(createPublicKey(key))
  const chosen = alg === undefined ? possible[0] : possible.find((candidate) => candidate === algorithmNamed(alg))
  if (possible.length === 0) throw wrong('clientKey.privateKey must be RSA of 2048 to 8192 bits, EC on P-256, P-384 or P-521, or Ed25519')
  if (chosen === undefined) throw wrong(`clientKey.alg must be one that the key is for: ${possible.join(', ')}`)
  return { key, alg: chosen, kid: kid ?? null }
}

export function importPrivateKey(given: unknown): KeyObject | null {
  if (given instanceof KeyObject) return given.type === 'private' ? given : null
  if (typeof given !== 'string') return null
  try {
    return createPrivateKey({ key: given, format: 'pem' })
  } catch {
    return null // OpenSSL's message describes the value, and does not help
  }
}
