import { createHash } from 'node:crypto'
import { OAuthTokenAudienceMismatchError } from '../errors'
import type { SignatureAlgorithm } from './jws'
import type { KeySet } from './key-set'
import { checkClaims, readHeader, refused, type TokenClaims, verifySignature } from './signed-token'

export interface InHandRules {
  /** `clientId` and `extraAudiences`. */
  accepted: readonly string[]
  acceptsIssuer(issuer: string, claims: Record<string, unknown>): boolean
  keySet: KeySet
  /** Which signatures count: those that the provider lists. */
  algorithms: readonly SignatureAlgorithm[]
  /** What the app says it asked for; null: nothing. */
  nonce: string | null
  now: Date
}

/** A sheet of the system hands its token over at once; an older one was kept, by whomever. */
const oldestSeconds = 600

/**
 * Returns the claims of an id_token that did not come from our own exchange (OpenID Connect Core section 3.1.3.7). Only its signature says
 * where it came from, and only `nonce` and single use say that it was not taken from somebody. Whether it was used is for the caller.
 *
 * @throws OAuthTokenAudienceMismatchError (another application's), OAuthTokenRejectedError (any other rule),
 *   OAuthProviderUnavailableError (the keys cannot be read)
 */
export async function verifyIdTokenInHand(idToken: string, rules: InHandRules): Promise<TokenClaims> {
  const header = readHeader(idToken, rules.algorithms)
  const signed = verifySignature(idToken, (await rules.keySet.find(header)).key, header.alg)
  const claims = checkClaims(signed, { acceptsIssuer: rules.acceptsIssuer, required: ['aud', 'iat'], now: rules.now })
  refuseOtherThanIdTokens(header.typ, claims)
  requireParties(claims, rules.accepted)
  if (Number(claims['iat']) < rules.now.getTime() / 1000 - oldestSeconds) throw refused('the id_token is older than 10 minutes (iat)')
  requireNonce(claims, rules.nonce)
  return claims
}

/** RFC 8725 section 3.11: access tokens and logout tokens may have the same issuer, keys and audience. */
function refuseOtherThanIdTokens(headerType: string | null, claims: TokenClaims): void {
  const { typ, token_use: use, events } = claims
  const isOtherHeader = headerType !== null && headerType.toLowerCase() !== 'jwt'
  const isOtherName = [typ, use].some((name) => typeof name === 'string' && !['id', 'id_token', 'jwt'].includes(name.toLowerCase()))
  if (isOtherHeader || isOtherName || events !== undefined) throw refused('the token is of another kind than an id_token')
}

/** `aud` names us. Where `azp` says who asked for the token, that is us too; of several audiences it has to say so. */
function requireParties({ aud, azp }: TokenClaims, accepted: readonly string[]): void {
  const isOurs = (id: unknown) => typeof id === 'string' && id !== '' && accepted.includes(id)
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud]
  const isNamed = audiences.some(isOurs)
  const isAskedByUs = azp === undefined || azp === null ? audiences.length === 1 : isOurs(azp)
  if (!isNamed || !isAskedByUs) throw new OAuthTokenAudienceMismatchError()
}

/** Apple's sheet puts the SHA-256 of the app's nonce into the token, in hex. */
function requireNonce({ nonce }: TokenClaims, given: string | null): void {
  if (nonce === undefined && given === null) return
  const spellings = given === null ? [] : [given, createHash('sha256').update(given, 'utf8').digest('hex')]
  if (typeof nonce !== 'string' || !spellings.includes(nonce)) throw refused('nonce is not the one that the app sent along')
}
