import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Request } from 'express'
import type { AuthContext } from '../context'
import { type AuthMethod, amrFromText } from '../core/amr'
import { AppError, ConfigurationError } from '../core/errors'
import { isUnderAny, type KeyList } from '../core/keys'
import { hashOpaqueToken } from '../core/opaque-token'
import type { SessionKind, SessionRecord, SessionStore, SessionWithUser } from '../store/auth-store'

/** The part of a session that its owner may see, without the token and its hash. */
export interface PublicSession {
  /** Identifies the session in a list. The id is not a credential. */
  readonly id: string
  readonly userId: string
  /** `tokens`: an access token and a refresh token. `session`: a session cookie. */
  readonly kind: SessionKind
  /** The methods of the login that started the session. */
  readonly amr: readonly AuthMethod[]
  readonly createdAt: Date
  /** The time of the last use. doorward updates this time at most once a minute. */
  readonly lastSeenAt: Date
  readonly expiresAt: Date
  readonly ip: string | null
  readonly userAgent: string | null
  /** The name of the provider that the person signed in with, as in the option `providers`. Null: the person used no provider. */
  readonly provider: string | null
}

export function toPublicSession(session: SessionRecord): PublicSession {
  const { id, userId, kind, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider } = session
  const amr = Object.freeze(amrFromText(session.amr))
  return Object.freeze({ id, userId, kind, amr, createdAt, lastSeenAt, expiresAt, ip, userAgent, provider })
}

export interface LiveSession extends SessionWithUser {
  /** True: the session was just extended. The response sends the cookie again, so that the browser keeps it until the new end. */
  readonly hasSlid: boolean
}

/** The part of the context that finds a session by its cookie. */
interface SessionLookUp {
  readonly sessions: SessionStore
  /**
   * Null: a guard without the secret. The guard cannot verify a MAC, so it queries the database for every text with the form of a token.
   */
  readonly sessionTokenKeys: KeyList | null
}

export type SessionContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'sessionTtlSeconds'> }
type TokensContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'refreshTokenTtlSeconds'> }

const slideAfterSeconds = 60

/**
 * Returns the session of a cookie's value, with its user, by one query. Extends the session, at most once a minute. Null: the session is
 * unknown, expired or revoked, or the account is deleted or inactive.
 */
export async function findLiveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findAliveSession(ctx, token)
  return found?.user.isActive ? found : null
}

/**
 * Finds a session like `findLiveSession`, but also of an inactive account. The function does not extend the session of an inactive account.
 */
export async function findAliveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findByToken(ctx, 'session', token)
  const live = found && isAlive(found.session, ctx.now()) ? await moveOn(ctx, found, ctx.settings.sessionTtlSeconds) : null
  return live?.session.tokenHash === found?.session.tokenHash ? live : null
}

/**
 * Returns the live session of a refresh token and its active user. The function does not use the token up, and does not extend the session.
 */
export async function findLiveTokens(ctx: LiveContext, token: string): Promise<SessionWithUser | null> {
  const found = await findByRefreshToken(ctx, token)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found : null
}

/** Extends a session that `findLiveTokens` found, at most once a minute. Null: the session has ended since `findLiveTokens` read it. */
export async function slideTokens(ctx: TokensContext, found: SessionWithUser): Promise<LiveSession | null> {
  const live = await moveOn(ctx, found, ctx.settings.refreshTokenTtlSeconds)
  return live?.user.isActive ? live : null
}

type LiveContext = SessionLookUp & Pick<AuthContext, 'now'>

/**
 * Extends a session at most once a minute, if its user is active. Null: the session has ended since it was read.
 * @param idleSeconds how long the session lasts after its last use
 */
async function moveOn(ctx: LiveContext, found: SessionWithUser, idleSeconds: number): Promise<LiveSession | null> {
  const isDue = found.user.isActive && ctx.now() >= after(found.session.lastSeenAt, slideAfterSeconds)
  if (!isDue) return { ...found, hasSlid: false }
  const session = await slide(ctx, found.session, idleSeconds)
  if (session) return { session, user: found.user, hasSlid: true }
  // The session was not extended: it has ended since the first read, or a parallel request extended it or replaced its token. So this code
  // reads the session again.
  const again = await ctx.sessions.find({ id: found.session.id })
  const isAsked = again?.session.id === found.session.id && again.user.id === found.user.id
  return isAsked && isAlive(again.session, ctx.now()) ? { ...again, hasSlid: false } : null
}

/**
 * Returns true if the session of an old cookie value is still alive. `/reauthenticate` may have replaced the value during this request, and
 * the browser then has the new value. Without the secret, the function always returns false.
 */
export async function hasNewerToken({ sessions, sessionTokenKeys: keys, now }: LiveContext, token: string): Promise<boolean> {
  const named = keys && readSessionToken(keys, 'session', token)
  const found = named && (await sessions.find({ id: named.id }))
  return found?.session.id === named?.id && found !== null && isAlive(found.session, now()) && found.user.isActive
}

/** Returns the session of a cookie's value, even if the session has ended. With the secret, a token with a wrong MAC causes no query. */
export async function findBySessionCookie(lookUp: SessionLookUp, token: string): Promise<SessionWithUser | null> {
  return findByToken(lookUp, 'session', token)
}

async function findByToken(
  { sessions, sessionTokenKeys: keys }: SessionLookUp,
  kind: SessionKind,
  token: string,
): Promise<SessionWithUser | null> {
  const isPossible = keys ? readSessionToken(keys, kind, token) !== null : hasTokenShape(token)
  if (!isPossible) return null
  const tokenHash = hashOpaqueToken(token)
  const found = await sessions.find({ tokenHash, kind })
  // createGuards() uses the host's store directly, so this code checks the store's result.
  const isAsked = found?.session.tokenHash === tokenHash && found.session.kind === kind && found.session.userId === found.user.id
  return isAsked ? found : null
}

/** Returns the session whose current refresh token is `token`, even if the session has ended. A used token finds no session. */
export async function findByRefreshToken(lookUp: SessionLookUp, token: string): Promise<SessionWithUser | null> {
  return findByToken(lookUp, 'tokens', token)
}

export function isAlive({ revokedAt, expiresAt }: Pick<SessionRecord, 'revokedAt' | 'expiresAt'>, now: Date): boolean {
  return revokedAt === null && expiresAt > now
}

async function slide({ sessions, now }: LiveContext, session: SessionRecord, idleSeconds: number): Promise<SessionRecord | null> {
  const lastSeenAt = now()
  const slid = { lastSeenAt, expiresAt: earlier(after(lastSeenAt, idleSeconds), session.endsAt) }
  const isFirst = await sessions.touch(session.id, after(lastSeenAt, -slideAfterSeconds), slid, session.tokenHash)
  return isFirst ? { ...session, ...slid } : null
}

export function sessionsOf({ sessions }: AuthContext['store']): SessionStore {
  if (!sessions) throw new ConfigurationError('The store has no sessions; wire `sessions` in your AuthStore.')
  return sessions
}

interface ReadRow {
  readonly sessions: SessionStore
  readonly row: SessionWithUser
  /** When a guard read the row: the time of the real clock, in milliseconds. */
  readonly at: number
}

/**
 * How long the guards reuse the row, in milliseconds. Handlers of a request usually run immediately after one another. A slow body can
 * delay a handler, and the session can end during that time. So after this time, the guard reads the row again.
 */
const believedMs = 1_000

const read = new WeakMap<Request, ReadRow>()

/** Stores the row that a guard read. Later handlers of the request do not read the row again from the same store. */
export function keepSessionRow(req: Request, sessions: SessionStore, row: SessionWithUser): void {
  read.set(req, { sessions, row, at: performance.now() })
}

/** Returns the row of the session with this id or cookie. Returns null if no guard of this request read the row. */
export function sessionRowOf(req: Request, sessions: SessionStore, named: { id: string } | { token: string }): SessionWithUser | null {
  const known = read.get(req)
  if (known?.sessions !== sessions || performance.now() - known.at > believedMs) return null
  const { session } = known.row
  const isNamed = 'id' in named ? session.id === named.id : session.tokenHash === hashOpaqueToken(named.token)
  return isNamed ? known.row : null
}

/** The session of a token, and the number of rotations before the token. */
export interface SessionTokenId {
  readonly id: string
  readonly generation: number
}

const secretBytes = 32
const idBytes = 16
const macBytes = 32
const signedBytes = secretBytes + idBytes + 4

/**
 * Returns a refresh token or the value of a session cookie. The token consists of 32 secret bytes, the session's id, the generation, and a
 * MAC. The MAC covers the secret bytes, the id, the generation and the kind. For clients, the token is an opaque text.
 * @param keys the first key makes the MAC
 */
export function makeSessionToken(
  keys: KeyList,
  kind: SessionKind,
  { id, generation }: SessionTokenId,
  secret: Buffer = randomBytes(secretBytes),
): string {
  const generationBytes = Buffer.alloc(4)
  generationBytes.writeUInt32BE(generation)
  const signed = Buffer.concat([secret, Buffer.from(id.replaceAll('-', ''), 'hex'), generationBytes])
  if (secret.length !== secretBytes || signed.length !== signedBytes) throw new TypeError('A session id is a UUID')
  return Buffer.concat([signed, macOf(keys[0], kind, signed)]).toString('base64url')
}

/**
 * Returns the session's id and the generation in a token, after one of the keys verified its MAC. So the function rejects a made-up token
 * without a query. Null: the MAC is wrong, or the token is of the other kind.
 */
export function readSessionToken(keys: KeyList, kind: SessionKind, token: string): SessionTokenId | null {
  if (!tokenShape.test(token)) return null
  const bytes = Buffer.from(token, 'base64url')
  const signed = bytes.subarray(0, signedBytes)
  const mac = bytes.subarray(signedBytes)
  if (!isUnderAny(keys, (key) => timingSafeEqual(macOf(key, kind, signed), mac))) return null
  const hex = signed.toString('hex', secretBytes, secretBytes + idBytes)
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return { id, generation: signed.readUInt32BE(secretBytes + idBytes) }
}

/** Returns true if the text has the shape of a token, for guards without the keys. */
function hasTokenShape(token: string): boolean {
  return tokenShape.test(token)
}

const tokenShape = new RegExp(`^[\\w-]{${((signedBytes + macBytes) / 3) * 4}}$`)

function macOf(key: KeyObject, kind: SessionKind, signed: Buffer): Buffer {
  return createHmac('sha256', key).update(kind).update('\0').update(signed).digest()
}

/** Returns the result of `read`, or null if it rejects the token with an AppError. */
export function readQuietly<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof AppError) return null
    throw error
  }
}

export function after(instant: Date, seconds: number): Date {
  return new Date(instant.getTime() + seconds * 1000)
}

export function earlier(a: Date, b: Date): Date {
  return a < b ? a : b
}
