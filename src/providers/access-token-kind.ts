import { signedTokenRefusal } from './signed-token'

type Claims = Record<string, unknown>

/**
 * Names of token kinds that are not access tokens. Keycloak puts the name into the claim `typ`. Cognito and Hydra put the name into the
 * claim `token_use`. The `typ` of the JWT's header can also contain the name.
 */
const otherKinds = ['id', 'id_token', 'refresh', 'refresh_token', 'offline', 'logout']
const accessTokenNames = ['bearer', 'access', 'access_token']
/** Claims that only an id_token has (OpenID Connect Core sections 2 and 3.3.2.11). */
const idTokenClaims = ['nonce', 'at_hash', 'c_hash', 's_hash']
/** Claims that name the client or the scope of an access token. */
const accessTokenClaims = ['azp', 'client_id', 'scope', 'scp']

/**
 * Rejects a JWT that is not an access token, for example an id_token. An id_token can have the issuer, keys and audience of an access
 * token. But more parties see an id_token, so an id_token must not work as an access token (RFC 8725 section 3.11). A JWT with the header
 * `typ: at+jwt` counts as an access token (RFC 9068 section 2.1).
 *
 * @param mustSayType true: the function accepts only tokens with the header `typ: at+jwt`
 * @throws OAuthTokenRejectedError
 */
export function requireAccessToken(headerType: string | null, claims: Claims, { mustSayType }: { mustSayType: boolean }): void {
  const type = mediaType(headerType)
  const isNamed = isAccessTokenType(headerType)
  if (mustSayType && !isNamed)
    throw signedTokenRefusal("the header's typ is not at+jwt: have the provider set it, or leave typ out of createTokenVerifier()")
  if ((type.endsWith('+jwt') && !isNamed) || otherKinds.includes(type)) throw signedTokenRefusal('the token is of another kind')
  refuseNames(claims)
  if (!isNamed && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw signedTokenRefusal('the token is an id_token')
}

/**
 * Rejects a JWT that names this application only in `aud`. Such a JWT can be an id_token, because the `aud` of an id_token is the
 * application too. An access token also names its client or its scope.
 *
 * @throws OAuthTokenRejectedError unless the header says that the JWT is an access token
 */
export function refusePossibleIdToken(headerType: string | null, claims: Claims): void {
  if (isAccessTokenType(headerType) || accessTokenClaims.some((name) => isSaid(claims[name]))) return
  throw signedTokenRefusal('the token may be an id_token: it has neither azp, client_id, scope nor scp, and its header no typ at+jwt')
}

function isAccessTokenType(headerType: string | null): boolean {
  return mediaType(headerType) === 'at+jwt'
}

/** Returns the media type in lower case, without the optional `application/` (RFC 7515 section 4.1.9). */
function mediaType(headerType: string | null): string {
  return (headerType ?? '').toLowerCase().replace(/^application\//, '')
}

/**
 * Rejects tokens that are not access tokens. An introspection response has no JWT header, so the function reads the claims. Some
 * providers repeat the login's nonce in this response. In that case, a claim must say that the token is an access token.
 *
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherKinds(claims: Claims): void {
  refuseNames(claims)
  const saysSo = namesIn(claims).some((name) => accessTokenNames.includes(name))
  if (!saysSo && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw signedTokenRefusal('the token is an id_token')
}

function refuseNames(claims: Claims): void {
  if (namesIn(claims).some((name) => otherKinds.includes(name))) throw signedTokenRefusal('the token is of another kind')
}

function namesIn({ typ, token_use: use }: Claims): string[] {
  return [typ, use].flatMap((name) => (typeof name === 'string' ? [name.toLowerCase()] : []))
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null
}
