import { randomBytes } from 'node:crypto'
import type { AuthContext } from '../context'
import { type AuthMethod, isAuthMethod } from '../core/amr'
import type { Settings } from '../core/config/every-setting'
import { InvalidTokenError, TokenExpiredError, UnauthorizedError } from '../core/errors'
import type { AccessKey, JwtAlgorithm } from '../core/keys'
import type { UserRecord } from '../store/auth-store'
import { readSigned, signClaims, type VerifyingKey } from './access-keys'
import { type HostClaims, hostClaimsOf } from './ask-for-claims'

/** Our own claims. The token also has the claims of RFC 9068 with `accessTokenIssuer`, and the host's with `accessTokenClaims`. */
export interface AccessTokenClaims extends Partial<ProfileClaims> {
  /** The methods that this session used (in the style of RFC 8176). */
  readonly amr: readonly AuthMethod[]
  /**
   * When the person last showed a credential, in seconds since 1970; a refresh keeps it. 0: unknown, or the credential was added less than
   * 24 hours ago. Absent with `accessTokenSessionClaims: false`.
   */
  readonly auth_time?: number
  readonly email: string
  /** Seconds since 1970 (RFC 7519 section 2, NumericDate). */
  readonly exp: number
  readonly iat: number
  /** The same id as `sid`, in delivery `session`. Otherwise absent. */
  readonly sessionId?: string
  /** The session's id. Absent if the store keeps no sessions, and with `accessTokenSessionClaims: false`. */
  readonly sid?: string
  /** The user's id. */
  readonly sub: string
  readonly typ: 'access'
}

/** Trust no other part of a token before the key that the header names has verified the signature. */
export type AccessTokenHeader = Readonly<({ alg: 'HS256'; kid: null } | { alg: JwtAlgorithm; kid: string }) & { typ: 'JWT' | 'at+jwt' }>

const maxLength = 4096
// `readTokenHeader` compares the whole text, so it accepts no other header with HS256.
const secretHeaders = (['JWT', 'at+jwt'] as const).map((typ) => ({
  encoded: `${Buffer.from(JSON.stringify({ alg: 'HS256', typ })).toString('base64url')}.`,
  header: { alg: 'HS256', kid: null, typ } satisfies AccessTokenHeader,
}))

interface TokenSession {
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** When the person last showed a credential. Null: unknown, or the credential was added less than 24 hours ago. */
  readonly authenticatedAt: Date | null
  readonly at: Date
  readonly claims: HostClaims
}

export function signAccessToken(
  ctx: Pick<AuthContext, 'accessKeys' | 'settings'>,
  user: Pick<UserRecord, 'id' | 'email'>,
  { amr, sessionId, authenticatedAt, at, claims: hostClaims }: TokenSession,
): string {
  const key = signingKey(ctx)
  const iat = Math.floor(at.getTime() / 1000)
  const isTold = ctx.settings.accessTokenSessionClaims
  const profile = tokenProfileOf(ctx.settings)
  const claims: AccessTokenClaims = {
    ...hostClaims,
    ...(profile && newProfileClaims(profile)),
    amr,
    ...(isTold && { auth_time: authTimeOf(authenticatedAt) }),
    email: user.email,
    exp: iat + ctx.settings.accessTokenTtlSeconds,
    iat,
    ...(isTold && sessionId !== null && { sid: sessionId }),
    sub: user.id,
    typ: 'access',
  }
  return signClaims(key, { ...claims, typ: typeIn(ctx.settings, key) }, profile ? 'at+jwt' : 'JWT')
}

export function authTimeOf(authenticatedAt: Date | null): number {
  return authenticatedAt === null ? 0 : Math.floor(authenticatedAt.getTime() / 1000)
}

export function instantOfAuthTime(seconds: number): Date | null {
  return seconds === 0 ? null : new Date(seconds * 1000)
}

function signingKey({ accessKeys: [first] }: Pick<AuthContext, 'accessKeys'>) {
  if (!first?.privateKey) throw new Error('the first access key signs; boot has made sure of it')
  return { ...first, privateKey: first.privateKey }
}

/** Uses no database. @throws InvalidTokenError (signature, shape, key), TokenExpiredError, UnauthorizedError (another kind) */
export function verifyAccessToken(
  ctx: Pick<AuthContext, 'accessKeys' | 'now'> & { readonly settings: Parameters<typeof tokenProfileOf>[0] & RealmSetting },
  token: string,
): AccessTokenClaims {
  const header = readTokenHeader(token)
  const key = findAccessKey(ctx.accessKeys, header)
  if (!key) throw new InvalidTokenError()
  return verifyUnder(key, { token, header }, { now: ctx.now(), profile: tokenProfileOf(ctx.settings), settings: ctx.settings })
}

/**
 * The header of a compact JWS (RFC 7515 section 7.1) has exactly alg, typ and, unless the shared secret signed, kid. No other member
 * (`crit`, `jku`, `jwk`, `x5c`, `b64`) may influence the choice of the key (RFC 8725 section 3.10).
 */
export function readTokenHeader(token: string): AccessTokenHeader {
  if (token.length > maxLength || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) throw new InvalidTokenError({ reason: 'no_jwt' })
  const known = secretHeaders.find(({ encoded }) => token.startsWith(encoded))
  if (known) return known.header
  if (!latest || !token.startsWith(latest.encoded)) latest = readHeader(token.slice(0, token.indexOf('.') + 1))
  return latest.header
}

interface ReadHeader {
  readonly encoded: string
  readonly header: AccessTokenHeader
}

// All tokens of one key have the same header.
let latest: ReadHeader | null = null

function readHeader(encoded: string): ReadHeader {
  const header = parseHeader(encoded)
  const { alg, kid, typ } = header
  if (typ !== 'JWT' && typ !== 'at+jwt') throw new InvalidTokenError()
  if (Object.keys(header).length !== 3 || typeof kid !== 'string' || !isJwtAlgorithm(alg)) throw new InvalidTokenError()
  return { encoded, header: { alg, kid, typ } }
}

function parseHeader(encoded: string): Record<string, unknown> {
  try {
    const header: unknown = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'))
    if (typeof header === 'object' && header !== null) return header as Record<string, unknown> // `readHeader` rejects a list
  } catch {
    // The error below also covers text that is not JSON.
  }
  throw new InvalidTokenError()
}

function isJwtAlgorithm(alg: unknown): alg is JwtAlgorithm {
  return alg === 'ES256' || alg === 'RS256' || alg === 'PS256'
}

/** The header's algorithm must equal the key's: the header never chooses the algorithm. */
export function findAccessKey(keys: readonly AccessKey[], { kid, alg }: Pick<AccessTokenHeader, 'kid' | 'alg'>): AccessKey | null {
  const key = keys.find((candidate) => candidate.kid === kid)
  return key?.algorithm === alg ? key : null
}

export function verifyUnder(
  key: VerifyingKey,
  { token, header }: { token: string; header: AccessTokenHeader },
  { now, profile, settings }: { now: Date; profile: TokenProfile | null; settings: RealmSetting },
): AccessTokenClaims {
  const claims = readClaims(readSigned(key, token), header, { profile, typ: typeIn(settings, header) })
  refuseExpired(claims, now)
  return claims
}

/** No leeway. An invalid `now` rejects every token. */
export function refuseExpired({ exp }: AccessTokenClaims, now: Date): void {
  if (!(now.getTime() < exp * 1000)) throw new TokenExpiredError()
}

/** Never copies reserved names such as `__proto__`. Frozen, because many requests share them. Null `payload`: no valid signature. */
function readClaims(
  payload: unknown,
  header: AccessTokenHeader,
  { profile, typ: ownType }: { profile: TokenProfile | null; typ: string },
): AccessTokenClaims {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) throw new InvalidTokenError({ reason: 'signature' })
  const profileClaims = readProfileClaims(profile, header.typ, payload as Record<string, unknown>)
  const { amr, auth_time: authTime, email, exp, iat, nbf, sid, sub, typ } = payload as Record<string, unknown>
  if (typ !== ownType) throw new UnauthorizedError({ reason: 'no_access_token' })
  if (nbf !== undefined) throw new InvalidTokenError() // our tokens never have `nbf`, so it is not supported
  if (typeof sub !== 'string' || sub.length < 1 || sub.length > 64) throw new InvalidTokenError()
  if (sid !== undefined && (typeof sid !== 'string' || sid.length < 1 || sid.length > 64)) throw new InvalidTokenError()
  if (authTime !== undefined && !isSeconds(authTime)) throw new InvalidTokenError()
  if (typeof email !== 'string' || !Number.isFinite(exp) || !Number.isFinite(iat)) throw new InvalidTokenError()
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new InvalidTokenError()
  return Object.freeze({
    ...hostClaimsOf(payload),
    ...profileClaims,
    amr: Object.freeze([...amr]),
    ...(authTime !== undefined && { auth_time: authTime }),
    email,
    exp: Number(exp),
    iat: Number(iat),
    ...(sid !== undefined && { sid }),
    sub,
    typ: 'access',
  })
}

type RealmSetting = Pick<Settings, 'realm'>

/** The realm is in every derived key. A key of `jwtKeys` is not derived, so the claim has the realm. */
function typeIn({ realm }: RealmSetting, { kid }: { kid: string | null }): string {
  return realm === '' || kid === null ? 'access' : `access:${realm}`
}

function isSeconds(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** RFC 9068. */
interface TokenProfile {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly clientId: string
  /** True: tokens without the profile stay valid until they expire. */
  readonly acceptsLegacy: boolean
}

/** Claims that RFC 9068 section 2.2 adds. */
interface ProfileClaims {
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

export function tokenProfileOf(settings: ProfileSettings): TokenProfile | null {
  const { accessTokenIssuer: issuer, accessTokenAudience: given, accessTokenClientId, acceptLegacyAccessTokens: acceptsLegacy } = settings
  if (issuer === null || given === null) return null
  const audiences = typeof given === 'string' ? [given] : given
  return { issuer, audiences, clientId: accessTokenClientId ?? String(audiences[0]), acceptsLegacy }
}

function newProfileClaims({ issuer: iss, audiences, clientId: client_id }: TokenProfile): ProfileClaims {
  const aud = audiences.length === 1 ? String(audiences[0]) : audiences
  return { iss, aud, client_id, jti: randomBytes(16).toString('base64url') }
}

/** Null: the token does not have the form of RFC 9068. @param typ of the token's header */
function readProfileClaims(
  profile: TokenProfile | null,
  typ: 'JWT' | 'at+jwt',
  { iss, aud, client_id, jti }: Record<string, unknown>,
): ProfileClaims | null {
  if (typ === 'JWT') {
    // No router without the profile writes these claims. So another issuer signed the token with the same key.
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
