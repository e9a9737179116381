import { refused } from './signed-token'

type Claims = Record<string, unknown>

/** Keycloak's `typ` and the `token_use` of Cognito and Hydra, of tokens that are no access tokens; `typ` may stand in the header, too. */
const otherKinds = ['id', 'id_token', 'refresh', 'refresh_token', 'offline', 'logout']
const accessTokenNames = ['bearer', 'access', 'access_token']
/** OpenID Connect Core sections 2 and 3.3.2.11. */
const idTokenClaims = ['nonce', 'at_hash', 'c_hash', 's_hash']
/** What says to whom, or for what, an access token was issued. */
const accessTokenClaims = ['azp', 'client_id', 'scope', 'scp']

/**
 * RFC 8725 section 3.11: an id_token has the same issuer, keys and audience as an access token, and travels to places where no access token
 * goes. A JWT that may be one is refused, unless its header says that it is an access token (RFC 9068 section 2.1).
 *
 * @param mustSayType only that header will do
 * @throws OAuthTokenRejectedError
 */
export function requireAccessToken(headerType: string | null, claims: Claims, { mustSayType }: { mustSayType: boolean }): void {
  const type = mediaType(headerType)
  const isNamed = isAccessTokenType(headerType)
  if (mustSayType && !isNamed)
    throw refused("the header's typ is not at+jwt: have the provider set it, or leave typ out of createTokenVerifier()")
  if ((type.endsWith('+jwt') && !isNamed) || otherKinds.includes(type)) throw refused('the token is of another kind')
  refuseNames(claims)
  if (!isNamed && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw refused('the token is an id_token')
}

/**
 * A JWT whose `aud` alone names this application may be an id_token, whose `aud` is the application: an access token also says who got it or
 * what it is for.
 *
 * @throws OAuthTokenRejectedError unless the header says that it is an access token
 */
export function refusePossibleIdToken(headerType: string | null, claims: Claims): void {
  if (isAccessTokenType(headerType) || accessTokenClaims.some((name) => isSaid(claims[name]))) return
  throw refused('the token may be an id_token: it has neither azp, client_id, scope nor scp, and its header no typ at+jwt')
}

function isAccessTokenType(headerType: string | null): boolean {
  return mediaType(headerType) === 'at+jwt'
}

/** RFC 7515 section 4.1.9: without case, and with or without `application/`. */
function mediaType(headerType: string | null): string {
  return (headerType ?? '').toLowerCase().replace(/^application\//, '')
}

/**
 * The same of what an introspection says, which has no header. Some providers repeat the nonce of the login there: then they say what it is.
 *
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherKinds(claims: Claims): void {
  refuseNames(claims)
  const saysSo = namesIn(claims).some((name) => accessTokenNames.includes(name))
  if (!saysSo && idTokenClaims.some((name) => Object.hasOwn(claims, name))) throw refused('the token is an id_token')
}

function refuseNames(claims: Claims): void {
  if (namesIn(claims).some((name) => otherKinds.includes(name))) throw refused('the token is of another kind')
}

function namesIn({ typ, token_use: use }: Claims): string[] {
  return [typ, use].flatMap((name) => (typeof name === 'string' ? [name.toLowerCase()] : []))
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null
}
