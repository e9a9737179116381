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
  /** True: the response sends the cookie again, so that the browser keeps it until the new end. */
  readonly hasSlid: boolean
}

interface SessionLookUp {
  readonly sessions: SessionStore
  /** Null: a guard without the secret cannot verify a MAC, so it queries the database for every text in token form. */
  readonly sessionTokenKeys: KeyList | null
}

export type SessionContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'sessionTtlSeconds'> }
type TokensContext = LiveContext & { readonly settings: Pick<AuthContext['settings'], 'refreshTokenTtlSeconds'> }

const slideAfterSeconds = 60

/** One query. Extends the session, at most once a minute. Null also if the account is inactive. */
export async function findLiveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findAliveSession(ctx, token)
  return found?.user.isActive ? found : null
}

/** Like `findLiveSession`, but also for an inactive account, whose session is not extended. */
export async function findAliveSession(ctx: SessionContext, token: string): Promise<LiveSession | null> {
  const found = await findByToken(ctx, 'session', token)
  const live = found && isAlive(found.session, ctx.now()) ? await moveOn(ctx, found, ctx.settings.sessionTtlSeconds) : null
  return live?.session.tokenHash === found?.session.tokenHash ? live : null
}

/** Does not use the token up, and does not extend the session. */
export async function findLiveTokens(ctx: LiveContext, token: string): Promise<SessionWithUser | null> {
  const found = await findByRefreshToken(ctx, token)
  return found?.user.isActive && isAlive(found.session, ctx.now()) ? found : null
}

/** At most once a minute. Null: the session has ended since `findLiveTokens` read it. */
export async function slideTokens(ctx: TokensContext, found: SessionWithUser): Promise<LiveSession | null> {
  const live = await moveOn(ctx, found, ctx.settings.refreshTokenTtlSeconds)
  return live?.user.isActive ? live : null
}

type LiveContext = SessionLookUp & Pick<AuthContext, 'now'>

/** Null: the session has ended since it was read. @param idleSeconds how long the session lasts after its last use */
async function moveOn(ctx: LiveContext, found: SessionWithUser, idleSeconds: number): Promise<LiveSession | null> {
  const isDue = found.user.isActive && ctx.now() >= after(found.session.lastSeenAt, slideAfterSeconds)
  if (!isDue) return { ...found, hasSlid: false }
  const session = await slide(ctx, found.session, idleSeconds)
  if (session) return { session, user: found.user, hasSlid: true }
  // The session has ended since the first read, or a parallel request extended it or replaced its token.
  const again = await ctx.sessions.find({ id: found.session.id })
  const isAsked = again?.session.id === found.session.id && again.user.id === found.user.id
  return isAsked && isAlive(again.session, ctx.now()) ? { ...again, hasSlid: false } : null
}

/** `/reauthenticate` may have replaced the value during this request, and the browser then has the new one. False without the secret. */
export async function hasNewerToken({ sessions, sessionTokenKeys: keys, now }: LiveContext, token: string): Promise<boolean> {
  const named = keys && readSessionToken(keys, 'session', token)
  const found = named && (await sessions.find({ id: named.id }))
  return found?.session.id === named?.id && found !== null && isAlive(found.session, now()) && found.user.isActive
}

/** Finds also an ended session. With the secret, a token with a wrong MAC causes no query. */
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
  // createGuards() uses the host's store directly, so its result is checked.
  const isAsked = found?.session.tokenHash === tokenHash && found.session.kind === kind && found.session.userId === found.user.id
  return isAsked ? found : null
}

/** Finds also an ended session. A used token finds none. */
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
  /** The real clock, in milliseconds. */
  readonly at: number
}

/** Milliseconds. A slow body can delay a handler, and the session can end meanwhile. Then the guard reads the row again. */
const believedMs = 1_000

const read = new WeakMap<Request, ReadRow>()

export function keepSessionRow(req: Request, sessions: SessionStore, row: SessionWithUser): void {
  read.set(req, { sessions, row, at: performance.now() })
}

export function sessionRowOf(req: Request, sessions: SessionStore, named: { id: string } | { token: string }): SessionWithUser | null {
  const known = read.get(req)
  if (known?.sessions !== sessions || performance.now() - known.at > believedMs) return null
  const { session } = known.row
  const isNamed = 'id' in named ? session.id === named.id : session.tokenHash === hashOpaqueToken(named.token)
  return isNamed ? known.row : null
}

export interface SessionTokenId {
  readonly id: string
  readonly generation: number
}

const secretBytes = 32
const idBytes = 16
const macBytes = 32
const signedBytes = secretBytes + idBytes + 4

/** 32 secret bytes, the session's id, the generation, and a MAC over these and the kind. @param keys the first key makes the MAC */
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

/** Rejects a made-up token without a query. Null: the MAC is wrong, or the token is of the other kind. */
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

/** For guards without the keys. */
function hasTokenShape(token: string): boolean {
  return tokenShape.test(token)
}

const tokenShape = new RegExp(`^[\\w-]{${((signedBytes + macBytes) / 3) * 4}}$`)

function macOf(key: KeyObject, kind: SessionKind, signed: Buffer): Buffer {
  return createHmac('sha256', key).update(kind).update('\0').update(signed).digest()
}

/** Null if `read` throws an AppError. */
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

/** Adds `isPersistent: false` only for a session whose cookies end with the browser. */
export function lasting({ isPersistent }: { isPersistent?: boolean }): { isPersistent?: false } {
  return isPersistent === false ? { isPersistent } : {}
}
