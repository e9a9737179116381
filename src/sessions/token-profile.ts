import { randomBytes } from 'node:crypto'
import type { Settings } from '../core/config/every-setting'
import { InvalidTokenError } from '../core/errors'

/** The issuer and the audiences of access tokens, by the JWT profile of RFC 9068. */
export interface TokenProfile {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly clientId: string
  /** True: tokens without the profile stay valid until they expire. */
  readonly acceptsLegacy: boolean
}

/** Claims that RFC 9068 section 2.2 adds. */
export interface ProfileClaims {
  readonly iss: string
  readonly aud: string | readonly string[]
  readonly client_id: string
  /** The id of the token. */
  readonly jti: string
}

export type ProfileSettings = Pick<
  Settings,
  'accessTokenIssuer' | 'accessTokenAudience' | 'accessTokenClientId' | 'acceptLegacyAccessTokens'
>

/** Returns the token profile of the settings: issuer, audiences and client id. Null: tokens have no issuer and no audience. */
export function tokenProfileOf(settings: ProfileSettings): TokenProfile | null {
  const { accessTokenIssuer: issuer, accessTokenAudience: given, accessTokenClientId, acceptLegacyAccessTokens: acceptsLegacy } = settings
  if (issuer === null || given === null) return null
  const audiences = typeof given === 'string' ? [given] : given
  return { issuer, audiences, clientId: accessTokenClientId ?? String(audiences[0]), acceptsLegacy }
}

export function newProfileClaims({ issuer: iss, audiences, clientId: client_id }: TokenProfile): ProfileClaims {
  const aud = audiences.length === 1 ? String(audiences[0]) : audiences
  return { iss, aud, client_id, jti: randomBytes(16).toString('base64url') }
}

/**
 * Returns the claims of RFC 9068 in a verified payload. Null: the token does not have the form of RFC 9068.
 * @param typ the `typ` of the token's header
 * @throws InvalidTokenError when the issuer or the audience is wrong, or the settings require another form of token
 */
export function readProfileClaims(
  profile: TokenProfile | null,
  typ: 'JWT' | 'at+jwt',
  { iss, aud, client_id, jti }: Record<string, unknown>,
): ProfileClaims | null {
  if (typ === 'JWT') {
    // No router without the profile writes these claims. So such a token is of another issuer that signs with the same key.
    const isForeign = [iss, aud, client_id, jti].some((claim) => claim !== undefined)
    if (profile && (!profile.acceptsLegacy || isForeign)) throw new InvalidTokenError()
    return null
  }
  if (!profile || iss !== profile.issuer || typeof client_id !== 'string' || typeof jti !== 'string') throw new InvalidTokenError()
  const named: unknown[] = [aud].flat()
  if (!profile.audiences.some((audience) => named.includes(audience))) throw new InvalidTokenError({ reason: 'audience' })
  if (!named.every((audience) => typeof audience === 'string')) throw new InvalidTokenError()
  return { iss, aud: typeof aud === 'string' ? aud : Object.freeze(named as string[]), client_id, jti } // each value was checked above
}
