import { type AuthMethod, isAuthMethod } from '../amr'
import type { AuthContext } from '../context'
import { InvalidTokenError, TokenExpiredError, UnauthorizedError } from '../errors'
import type { AccessKey, JwtAlgorithm } from '../keys'
import type { UserRecord } from '../store/auth-store'
import { isSigned, signatureOf, type VerifyingKey } from './signature'

/** Exactly these claims, no others (specification, access token claims; contract section 15.4). */
export interface AccessTokenClaims {
  /** The methods that ran for this session (RFC 8176 style). */
  readonly amr: readonly AuthMethod[]
  readonly email: string
  /** Seconds since 1970 (RFC 7519 section 2, NumericDate). */
  readonly exp: number
  readonly iat: number
  /** The session's id; absent where the store keeps no sessions. */
  readonly sid?: string
  /** The user's id. */
  readonly sub: string
  readonly typ: 'access'
}

/** Which key a token says it is under; nothing of it is believed before that key's own algorithm has checked the signature. */
export type AccessTokenHeader = Readonly<{ alg: 'HS256'; kid: null } | { alg: JwtAlgorithm; kid: string }>

const maxLength = 4096
const secretHeader: AccessTokenHeader = { alg: 'HS256', kid: null }
// The one header we sign under with the secret. Comparing it whole refuses every other one at once.
const encodedSecretHeader = `${encodeJson({ alg: 'HS256', typ: 'JWT' })}.`

/** What an access token says beside the user. */
interface TokenSession {
  readonly amr: readonly AuthMethod[]
  /** Null: the store keeps no sessions. */
  readonly sessionId: string | null
  /** The instant that is stored as the start of the session, or of its refresh; it becomes `iat`. */
  readonly at: Date
}

export function signAccessToken(
  ctx: Pick<AuthContext, 'accessKeys' | 'settings'>,
  user: Pick<UserRecord, 'id' | 'email'>,
  { amr, sessionId, at }: TokenSession,
): string {
  const key = signingKey(ctx)
  const iat = Math.floor(at.getTime() / 1000)
  const claims: AccessTokenClaims = {
    amr,
    email: user.email,
    exp: iat + ctx.settings.accessTokenTtlSeconds,
    iat,
    ...(sessionId !== null && { sid: sessionId }),
    sub: user.id,
    typ: 'access',
  }
  const signed = `${headerOf(key)}${encodeJson(claims)}`
  return `${signed}.${signatureOf(key, signed)}`
}

/** With the dot behind it. */
function headerOf({ algorithm, kid }: Pick<AccessKey, 'algorithm' | 'kid'>): string {
  return kid === null ? encodedSecretHeader : `${encodeJson({ alg: algorithm, typ: 'JWT', kid })}.`
}

function encodeJson(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function signingKey({ accessKeys: [first] }: Pick<AuthContext, 'accessKeys'>) {
  if (!first?.privateKey) throw new Error('the first access key signs; boot has made sure of it')
  return { ...first, privateKey: first.privateKey }
}

/**
 * The claims of a token of ours, from its signature alone: no database.
 * @throws InvalidTokenError (signature, shape, key), TokenExpiredError, UnauthorizedError (a token of another kind)
 */
export function verifyAccessToken(ctx: Pick<AuthContext, 'accessKeys' | 'now'>, token: string): AccessTokenClaims {
  const key = findAccessKey(ctx.accessKeys, readTokenHeader(token))
  if (!key) throw new InvalidTokenError()
  return verifyUnder(key, token, ctx.now())
}

/**
 * Shape and header of a compact JWS (RFC 7515 section 7.1). The header is exactly alg, typ and, unless it is under the
 * secret, kid: `crit`, `jku`, `jwk`, `x5c`, `b64` and whatever else is refused before a key is looked for (RFC 8725 section 3.10).
 * @throws InvalidTokenError
 */
export function readTokenHeader(token: string): AccessTokenHeader {
  if (token.length > maxLength || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) throw new InvalidTokenError()
  if (token.startsWith(encodedSecretHeader)) return secretHeader
  if (!token.startsWith(latest.encoded)) latest = readHeader(token.slice(0, token.indexOf('.') + 1))
  return latest.header
}

// All tokens of a key begin alike: what the last one said is not parsed again.
let latest: { encoded: string; header: AccessTokenHeader } = { encoded: encodedSecretHeader, header: secretHeader }

function readHeader(encoded: string): typeof latest {
  const header = parseHeader(encoded)
  const { alg, kid, typ } = header
  if (Object.keys(header).length !== 3 || typ !== 'JWT' || typeof kid !== 'string' || !isJwtAlgorithm(alg)) throw new InvalidTokenError()
  return { encoded, header: { alg, kid } }
}

function parseHeader(encoded: string): Record<string, unknown> {
  try {
    const header = parseJson(encoded)
    if (typeof header === 'object' && header !== null) return header as Record<string, unknown> // a list has no three such members
  } catch {
    // No JSON: one refusal for every header that is not ours.
  }
  throw new InvalidTokenError()
}

function isJwtAlgorithm(alg: unknown): alg is JwtAlgorithm {
  return alg === 'ES256' || alg === 'RS256' || alg === 'PS256'
}

/** By `kid`; the header's algorithm must be the key's, and never chooses it. */
export function findAccessKey(keys: readonly AccessKey[], { kid, alg }: AccessTokenHeader): AccessKey | null {
  const key = keys.find((candidate) => candidate.kid === kid)
  return key?.algorithm === alg ? key : null
}

/** @throws InvalidTokenError, TokenExpiredError, UnauthorizedError as `verifyAccessToken` */
export function verifyUnder(key: VerifyingKey, token: string, now: Date): AccessTokenClaims {
  if (!isSigned(key, token)) throw new InvalidTokenError()
  const claims = readClaims(parsePayload(token))
  refuseExpired(claims, now)
  return claims
}

/** Leeway 0: a token is expired from its `exp` on. An instant that is none expires everything. */
export function refuseExpired({ exp }: AccessTokenClaims, now: Date): void {
  if (!(now.getTime() < exp * 1000)) throw new TokenExpiredError()
}

/** After the signature: what is parsed here was written by a holder of the key. */
function parsePayload(token: string): unknown {
  try {
    return parseJson(token.slice(token.indexOf('.') + 1, token.lastIndexOf('.')))
  } catch {
    throw new InvalidTokenError()
  }
}

function parseJson(encoded: string): unknown {
  return JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8'))
}

/** Copied by name into a fresh object: a claim called `__proto__` goes nowhere. Frozen throughout: many requests share it. */
function readClaims(payload: unknown): AccessTokenClaims {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) throw new InvalidTokenError()
  const { amr, email, exp, iat, nbf, sid, sub, typ } = payload as Record<string, unknown>
  if (typ !== 'access') throw new UnauthorizedError()
  if (nbf !== undefined) throw new InvalidTokenError() // one more time to obey, and no token of ours has it
  if (typeof sub !== 'string' || sub.length < 1 || sub.length > 64) throw new InvalidTokenError()
  if (sid !== undefined && (typeof sid !== 'string' || sid.length < 1 || sid.length > 64)) throw new InvalidTokenError()
  if (typeof email !== 'string' || !Number.isFinite(exp) || !Number.isFinite(iat)) throw new InvalidTokenError()
  if (!Array.isArray(amr) || !amr.every(isAuthMethod)) throw new InvalidTokenError()
  return Object.freeze({
    amr: Object.freeze([...amr]),
    email,
    exp: Number(exp),
    iat: Number(iat),
    ...(sid !== undefined && { sid }),
    sub,
    typ,
  })
}
