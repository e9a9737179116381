import type { Request } from 'express'
import type Joi from 'joi'
import { hasPasswords } from '../config/has-passwords'
import type { AuthContext } from '../context'
import { isDeviceOf, isDeviceOfAccount } from '../device/known-device'
import { InvalidCredentialsError, TokenExpiredError, ValidationError } from '../errors'
import { readCredential } from '../guards/credentials'
import { refuseForeignForm } from '../http/same-site'
import { passwordText } from '../http/validate'
import { hasPassword } from '../passwords/unusable-password'
import { type AccessTokenClaims, verifyAccessToken } from '../session/access-token'
import { findByRefreshToken, isAlive } from '../session/find-session'
import { readQuietly } from '../session/read-quietly'
import { isSuperseded } from '../session/superseded-token'
import { findRequestSession } from '../step-up/request-session'
import { withPassword } from '../step-up/with-password'
import type { SessionRecord, UserRecord } from '../store/auth-store'
import { localized } from '../texts/localized'
import { readSignupBinding } from './signup-binding'

/** What a request shows that may tell that the owner of the address is already in. Nothing of it is believed yet. */
export interface Evidence {
  /** Sessions that the request names, by access token, session cookie or refresh token. */
  readonly sessionIds?: readonly string[] | undefined
  /** Where the store keeps no sessions: the access token that the request shows. */
  readonly token?: ShownToken | null | undefined
  /** The signups of this browser or client. */
  readonly bindings?: readonly string[] | undefined
  /** The account's password. */
  readonly password?: string | undefined
  /** True: where nothing tells that the owner is in, and somebody knows a password, the page asks for it before anything is taken over. */
  readonly asksPassword?: boolean | undefined
}

/** A page has to ask for the account's password: a click, or a code, alone must not remove it. */
export class PasswordAskedError extends ValidationError {
  constructor() {
    super({ details: { errors: [{ path: 'password', rule: 'any.required' }] }, explains: localized('error.password_missing') })
  }
}

const asking = Symbol('the page can ask for the password')

/** Says of a page's request that its form can ask for the password. No client can say so. */
export function canAskForPassword(req: Request): void {
  Object.defineProperty(req, asking, { value: true })
}

interface ShownToken {
  readonly claims: AccessTokenClaims
  /** False where it came by cookie, and this browser has no device cookie of the account. */
  readonly isProven: (user: UserRecord) => boolean
}

/** Optional fields of the bodies of the routes that prove an address. */
export interface EvidenceBody {
  readonly password?: string | undefined
  readonly signup_token?: string | undefined
  readonly refresh_token?: string | undefined
}

/** The field of a body that takes the account's password as evidence; none where passwords are off. */
export function passwordField({ settings }: Pick<AuthContext, 'settings'>): Joi.SchemaMap {
  return hasPasswords(settings) ? { password: passwordText().allow('').optional() } : {}
}

/** What a route with that field refuses besides. */
export function passwordRefusals({ settings }: Pick<AuthContext, 'settings'>): (typeof InvalidCredentialsError)[] {
  return hasPasswords(settings) ? [InvalidCredentialsError] : []
}

/** Evidence about one account, after its password was verified and before its row is locked. */
export interface WeighedEvidence extends Pick<Evidence, 'sessionIds' | 'token' | 'bindings'> {
  /** The hash that the password of the request was verified against. */
  readonly verifiedHash: string | null
}

/**
 * Reads the evidence of a request. An access token in the header that has expired, of a session that is alive, is refused, because the
 * client can refresh it; going on without it would take the account over from the person who holds it. Cookies that another site's form
 * brought along are no evidence.
 * @throws TokenExpiredError
 */
export async function evidenceOf(ctx: AuthContext, req: Request, body: EvidenceBody = {}): Promise<Evidence> {
  const sessionIds = await provenSessions(ctx, req, body)
  const bindings = [body.signup_token, readSignupBinding(ctx, req)].filter((binding) => typeof binding === 'string')
  const password = (hasPasswords(ctx.settings) && body.password) || undefined
  return { sessionIds, token: shownToken(ctx, req), bindings, password, asksPassword: asking in req }
}

/**
 * Another subdomain can put the cookies of an attacker's session into the owner's browser, but no `__Host-` cookie. So a session that a
 * cookie names counts only where this browser also has the device cookie of its login. Clients show a header or a body of their own accord.
 */
async function provenSessions(ctx: AuthContext, req: Request, body: EvidenceBody): Promise<string[]> {
  const named = await sessionOfRequest(ctx, req, body)
  const shown = await sessionOfBody(ctx, body)
  const isProven = named !== null && (isByHeader(ctx, req) || isDeviceOf(ctx, req, named))
  return [...(isProven ? [named.id] : []), ...(shown ? [shown.id] : [])]
}

/** What is signed in without a row: nobody can end it, but a change of what lets people in makes it older than that. */
function shownToken(ctx: AuthContext, req: Request): ShownToken | null {
  if (ctx.store.sessions || !isOwn(ctx, req)) return null
  const credential = readQuietly(() => readCredential(ctx, req))
  const claims = credential && readQuietly(() => verifyAccessToken(ctx, credential.token))
  return claims && { claims, isProven: (user) => credential?.from === 'header' || isDeviceOfAccount(ctx, req, user) }
}

async function sessionOfBody(ctx: AuthContext, { refresh_token: token }: EvidenceBody): Promise<SessionRecord | null> {
  const { sessions } = ctx.store
  if (token === undefined || !sessions) return null
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, token)
  return found && isAlive(found.session, ctx.now()) ? found.session : null
}

/** An Authorization header of another scheme, such as Basic, names no session: then the cookies do. */
function isByHeader(ctx: AuthContext, req: Request): boolean {
  const credential = readQuietly(() => readCredential(ctx, req))
  return credential?.from === 'header' && readQuietly(() => verifyAccessToken(ctx, credential.token)) !== null
}

/** Returns the live session of a request, of any account. Null: there is none. @throws TokenExpiredError */
export async function sessionOfRequest(ctx: AuthContext, req: Request, body: EvidenceBody = {}): Promise<SessionRecord | null> {
  await refuseExpiredToken(ctx, req)
  return isOwn(ctx, req) ? findRequestSession(ctx, req, body) : null
}

/** No other site can send a token of ours in a header. Any other header leaves it to the cookies to say who is in. */
function isOwn(ctx: AuthContext, req: Request): boolean {
  return req.method === 'GET' || isByHeader(ctx, req) || comesFromHere(ctx, req)
}

/** An expired access cookie is none: the browser cannot tell, and its refresh cookie names the session. */
async function refuseExpiredToken(ctx: AuthContext, req: Request): Promise<void> {
  const credential = readQuietly(() => readCredential(ctx, req))
  const read = (now: Date) => credential && readQuietly(() => verifyAccessToken({ ...ctx, now: () => now }, credential.token))
  if (credential?.from !== 'header' || read(ctx.now())) return
  const expired = read(new Date(0))
  if (expired && (await goesOn(ctx, expired))) throw new TokenExpiredError()
}

async function goesOn(ctx: AuthContext, claims: AccessTokenClaims): Promise<boolean> {
  const { sessions, users } = ctx.store
  if (!sessions) {
    const user = await users.find(claims.sub)
    return user?.isActive === true && !isSuperseded(ctx, claims, user)
  }
  const found = claims.sid === undefined ? null : await sessions.find({ id: claims.sid })
  return found !== null && isAlive(found.session, ctx.now())
}

function comesFromHere(ctx: AuthContext, req: Request): boolean {
  return (
    readQuietly(() => {
      refuseForeignForm(ctx, req)
      return true
    }) === true
  )
}

/**
 * Verifies the password of the request, unless something else in it is evidence already. Call it before the transaction.
 * @param signup the signup that a mailed link belongs to
 * @throws InvalidCredentialsError for a wrong password, TooManyRequestsError, PasswordAskedError where a page has to ask for it
 */
export async function weighEvidence(
  ctx: AuthContext,
  user: UserRecord,
  { password, asksPassword = false, ...evidence }: Evidence,
  signup?: string | null,
): Promise<WeighedEvidence> {
  const isKnown = belongsTo(evidence, signup) || (await namesSession(ctx, user, evidence))
  if (asksPassword && !isKnown && password === undefined && hasPasswords(ctx.settings) && hasPassword(user)) throw new PasswordAskedError()
  if (password === undefined || isKnown) return { ...evidence, verifiedHash: null }
  await withPassword(ctx, user, password, async () => undefined)
  return { ...evidence, verifiedHash: user.hashedPassword }
}

/**
 * Whether it is evidence for this account. Inside the transaction that has locked the user's row.
 * @throws InvalidCredentialsError where the password was right and has changed since
 */
export async function isEvidence(ctx: AuthContext, user: UserRecord, evidence: WeighedEvidence, signup?: string | null): Promise<boolean> {
  if (belongsTo(evidence, signup) || (await holdsSession(ctx, user, evidence))) return true
  if (evidence.verifiedHash === null) return false
  if (evidence.verifiedHash !== user.hashedPassword) throw new InvalidCredentialsError()
  return true
}

/** Whether a page asks for the password: nothing else tells that the owner is in, somebody knows one, and passwords are on. */
export async function wantsPassword(ctx: AuthContext, user: UserRecord, evidence: Evidence, signup?: string | null): Promise<boolean> {
  if (!hasPasswords(ctx.settings)) return false
  return hasPassword(user) && !belongsTo(evidence, signup) && !(await namesSession(ctx, user, evidence))
}

/** Whether the browser or client is the one of that signup. */
export function belongsTo({ bindings = [] }: Pick<Evidence, 'bindings'>, signup?: string | null): boolean {
  return typeof signup === 'string' && bindings.includes(signup)
}

/** Whether a living session of this account is among those of the request. */
export async function namesSession(
  ctx: AuthContext,
  user: UserRecord,
  { sessionIds = [], token }: Pick<Evidence, 'sessionIds' | 'token'>,
): Promise<boolean> {
  if (isTokenOf(ctx, user, token)) return true
  for (const id of sessionIds) {
    const found = await ctx.store.sessions?.find({ id })
    if (found?.session.userId === user.id && isAlive(found.session, ctx.now())) return true
  }
  return false
}

/** The same, and nobody ends the session before this transaction does. */
async function holdsSession(
  ctx: AuthContext,
  user: UserRecord,
  { sessionIds = [], token }: Pick<Evidence, 'sessionIds' | 'token'>,
): Promise<boolean> {
  if (isTokenOf(ctx, user, token)) return true
  for (const id of sessionIds) {
    const session = await ctx.store.sessions?.lock(id, ctx.now())
    if (session?.userId === user.id) return true
  }
  return false
}

function isTokenOf(ctx: AuthContext, user: UserRecord, token: ShownToken | null | undefined): boolean {
  return token?.claims.sub === user.id && !isSuperseded(ctx, token.claims, user) && token.isProven(user)
}
