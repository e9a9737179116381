import { refused } from './signed-token'

/** Keycloak's `typ` and the `token_use` of Cognito and Hydra, of tokens that are no access tokens; `typ` may stand in the header, too. */
const otherKinds = ['id', 'id_token', 'refresh', 'refresh_token', 'offline', 'logout']
const accessTokenNames = ['bearer', 'access', 'access_token']
/** RFC 9068 section 2.1. */
const accessTokenTypes = ['at+jwt', 'application/at+jwt']

/**
 * RFC 8725 section 3.11: an id_token has the same issuer, keys and audience as an access token, and travels to places where
 * no access token goes. Refused where it can be told: by what it calls itself, or by what only an id_token carries.
 *
 * @throws OAuthTokenRejectedError
 */
export function refuseOtherKinds(headerType: string | null, claims: Record<string, unknown>): void {
  const [type = '', ...names] = [headerType, claims['typ'], claims['token_use']].map((name) =>
    typeof name === 'string' ? name.toLowerCase() : '',
  )
  const isForeign = type.endsWith('+jwt') && !accessTokenTypes.includes(type)
  if (isForeign || [type, ...names].some((name) => otherKinds.includes(name))) throw refused('the token is of another kind')
  const saysSo = accessTokenTypes.includes(type) || names.some((name) => accessTokenNames.includes(name))
  // OpenID Connect Core sections 2 and 3.3.2.11. Some providers repeat the nonce in access tokens: then they say what it is.
  if (!saysSo && ['nonce', 'at_hash', 'c_hash', 's_hash'].some((name) => Object.hasOwn(claims, name)))
    throw refused('the token is an id_token')
}
