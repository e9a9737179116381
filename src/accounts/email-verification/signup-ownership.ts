import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../../context'
import { hasPasswords } from '../../core/config/every-setting'
import { InvalidCredentialsError, TokenExpiredError, ValidationError } from '../../core/errors'
import { localized } from '../../core/texts/phrase-book'
import { passwordText, validate } from '../../http/input'
import { refuseCrossSite } from '../../http/same-site'
import { hasPassword } from '../../passwords/verify-password'
import { type AccessTokenClaims, verifyAccessToken } from '../../sessions/access-token'
import { readCredential } from '../../sessions/current-auth'
import { isDeviceOfAccount, sessionIdOfDevice } from '../../sessions/devices/device-cookie'
import { findByRefreshToken, isAlive, readQuietly } from '../../sessions/find-session'
import { withPassword } from '../../sessions/reauthentication/reauthenticate'
import { findRequestSession } from '../../sessions/reauthentication/request-session'
import { isSuperseded } from '../../sessions/superseded-token'
import type { SessionRecord, UserRecord } from '../../store/auth-store'
import { isSignupToken, readSignupBinding } from './signup-binding'

/** The data of a request that may identify the account's owner. The data is not verified yet. */
export interface SignupOwnership {
  /**
   * The live session of the request. A session of a cookie counts only in a browser whose device cookie names it too, because another
   * subdomain can set an attacker's session cookie. The session is no evidence at the first verification of an address. It finishes a change
   * of the address that it began.
   */
  readonly requestSession?: SessionRecord | null | undefined
  /** The ids of the sessions that the access token in the header and the refresh token in the body identify. */
  readonly sessionIds?: readonly string[] | undefined
  /** Returns the id of the session that the device cookie names for an account. Absent if the request may come from another site. */
  readonly deviceSession?: ((userId: string) => string | null) | undefined
  /** The access token of the request, if the store keeps no sessions. */
  readonly token?: PresentedToken | null | undefined
  /** The `signup_token` of this browser or client. */
  readonly bindings?: readonly string[] | undefined
  readonly password?: string | undefined
  /**
   * True if the page can ask for the password. The page asks before a take-over, which removes the password. The page asks only if the
   * account has a password and nothing else identifies the owner.
   */
  readonly asksPassword?: boolean | undefined
}

/** The error for a page that must first ask for the account's password. A click or a code alone must not remove the password. */
export class PasswordAskedError extends ValidationError {
  constructor() {
    super({ details: { errors: [{ path: 'password', rule: 'any.required' }] }, explains: localized('error.password_missing') })
  }
}

const asking = Symbol('the page can ask for the password')

/** Marks the request of a page with a form that can ask for the password. A client cannot set this mark. */
export function canAskForPassword(req: Request): void {
  Object.defineProperty(req, asking, { value: true })
}

interface PresentedToken {
  readonly claims: AccessTokenClaims
  /** False if the token is from a cookie and this browser has no device cookie of the account. */
  readonly isProven: (user: UserRecord) => boolean
}

/** Optional body fields of the routes that verify an address. */
export interface SignupOwnershipBody {
  readonly password?: string | undefined
  readonly signup_token?: string | undefined
  readonly refresh_token?: string | undefined
}

/** Returns the body field for the account's password. Returns no field if passwords are off. */
export function passwordField({ settings }: Pick<AuthContext, 'settings'>): Joi.SchemaMap {
  return hasPasswords(settings) ? { password: passwordText().allow('').optional() } : {}
}

/** Returns the additional errors of a route that has the password field. */
export function passwordRefusals({ settings }: Pick<AuthContext, 'settings'>): (typeof InvalidCredentialsError)[] {
  return hasPasswords(settings) ? [InvalidCredentialsError] : []
}

/** Evidence about an account, after the request's password was verified, and before the account's row is locked. */
export interface VerifiedSignupOwnership extends Pick<SignupOwnership, 'sessionIds' | 'deviceSession' | 'token' | 'bindings'> {
  /** The hash that matched the request's password. Null if no password was verified. */
  readonly verifiedHash: string | null
}

/**
 * Reads the evidence of a request. If the header has an expired access token of a valid session, the function throws. The client can then
 * refresh the token. Without that error, the owner of the token would lose the account's password in a take-over. Cookies in a form post of
 * another site do not count.
 * @throws TokenExpiredError
 */
export async function signupOwnershipOf(ctx: AuthContext, req: Request, body: SignupOwnershipBody = {}): Promise<SignupOwnership> {
  const named = await sessionOfRequest(ctx, req, body)
  const isByClient = named !== null && isByHeader(ctx, req)
  const presented = await sessionOfBody(ctx, body)
  // The access cookie, the refresh cookie and the session cookie do not count, because another subdomain can set an attacker's session
  // cookie. It cannot set the device cookie, so the device cookie counts by itself.
  const sessionIds = [...(isByClient ? [named.id] : []), ...(presented ? [presented.id] : [])]
  const requestSession = isByClient || (named && sessionIdOfDevice(ctx, req, named.userId) === named.id) ? named : null
  const deviceSession = isNavigation(req) || comesFromHere(ctx, req) ? (userId: string) => sessionIdOfDevice(ctx, req, userId) : undefined
  const bindings = [body.signup_token, readSignupBinding(ctx, req)].filter((binding) => typeof binding === 'string')
  const password = (hasPasswords(ctx.settings) && body.password) || undefined
  return { requestSession, sessionIds, deviceSession, token: presentedToken(ctx, req), bindings, password, asksPassword: asking in req }
}

/** Returns true for a GET by which a browser opens a page. Another site's image or script is no navigation. */
function isNavigation({ method, headers }: Request): boolean {
  return method === 'GET' && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
}

/**
 * Returns the access token if the store keeps no sessions. The app cannot revoke such a token. After a change of the password or the
 * second factor, the token no longer counts.
 */
function presentedToken(ctx: AuthContext, req: Request): PresentedToken | null {
  if (ctx.store.sessions || !isOwn(ctx, req)) return null
  const credential = readQuietly(() => readCredential(ctx, req))
  const claims = credential && readQuietly(() => verifyAccessToken(ctx, credential.token))
  return claims && { claims, isProven: (user) => credential?.from === 'header' || isDeviceOfAccount(ctx, req, user) }
}

async function sessionOfBody(ctx: AuthContext, { refresh_token: token }: SignupOwnershipBody): Promise<SessionRecord | null> {
  const { sessions } = ctx.store
  if (token === undefined || !sessions) return null
  const found = await findByRefreshToken({ sessions, sessionTokenKeys: ctx.keys['session-token'] }, token)
  return found && isAlive(found.session, ctx.now()) ? found.session : null
}

/**
 * Returns true if a valid access token is in the Authorization header. A header of another scheme, for example Basic, identifies no
 * session, so the cookies count.
 */
function isByHeader(ctx: AuthContext, req: Request): boolean {
  const credential = readQuietly(() => readCredential(ctx, req))
  return credential?.from === 'header' && readQuietly(() => verifyAccessToken(ctx, credential.token)) !== null
}

/**
 * Returns the live session of a request, for any account. Returns null if the request has no live session.
 * @throws TokenExpiredError
 */
export async function sessionOfRequest(ctx: AuthContext, req: Request, body: SignupOwnershipBody = {}): Promise<SessionRecord | null> {
  await refuseExpiredToken(ctx, req)
  return isOwn(ctx, req) ? findRequestSession(ctx, req, body) : null
}

/**
 * Returns true if the cookies of the request count as evidence. They do not count in a POST that another site can have sent. They count in
 * a GET, for example the callback of a provider, and together with our token in a header, which another site cannot send.
 */
function isOwn(ctx: AuthContext, req: Request): boolean {
  return req.method === 'GET' || isByHeader(ctx, req) || comesFromHere(ctx, req)
}

/**
 * Throws if the header has an expired access token of a valid session. An expired access cookie is ignored, because the refresh cookie
 * identifies the session.
 */
export async function refuseExpiredToken(ctx: AuthContext, req: Request): Promise<void> {
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
      refuseCrossSite(ctx, req)
      return true
    }) === true
  )
}

/**
 * Verifies the password of the request if no other evidence is enough. Call the function before the transaction.
 * @param signup the sign-up that a mailed link belongs to
 * @throws InvalidCredentialsError for a wrong password, TooManyRequestsError, PasswordAskedError if a page must ask for the password
 */
export async function verifySignupOwnership(
  ctx: AuthContext,
  user: UserRecord,
  { password, asksPassword = false, ...evidence }: SignupOwnership,
  signup?: string | null,
): Promise<VerifiedSignupOwnership> {
  const isKnown = isFromSignupBrowser(ctx, evidence, signup) || (await namesSession(ctx, user, evidence))
  if (asksPassword && !isKnown && password === undefined && hasPasswords(ctx.settings) && hasPassword(user)) throw new PasswordAskedError()
  if (password === undefined || isKnown) return { ...evidence, verifiedHash: null }
  await withPassword(ctx, user, password, async () => undefined)
  return { ...evidence, verifiedHash: user.hashedPassword }
}

/**
 * Returns true if the evidence identifies the owner of this account. Call the function inside the transaction that has locked the user's
 * row.
 * @throws InvalidCredentialsError if the password was right and has changed meanwhile
 */
export async function isSignupOwnership(
  ctx: AuthContext,
  user: UserRecord,
  evidence: VerifiedSignupOwnership,
  signup?: string | null,
): Promise<boolean> {
  if (isFromSignupBrowser(ctx, evidence, signup) || (await holdsSession(ctx, user, evidence))) return true
  if (evidence.verifiedHash === null) return false
  if (evidence.verifiedHash !== user.hashedPassword) throw new InvalidCredentialsError()
  return true
}

/**
 * Returns true if a page must ask for the password. Passwords must be on, the account must have a password, and nothing else identifies the
 * owner.
 */
export async function wantsPassword(
  ctx: AuthContext,
  user: UserRecord,
  evidence: SignupOwnership,
  signup?: string | null,
): Promise<boolean> {
  if (!hasPasswords(ctx.settings)) return false
  return hasPassword(user) && !isFromSignupBrowser(ctx, evidence, signup) && !(await namesSession(ctx, user, evidence))
}

/** Returns true if this browser or client made the sign-up with the id `signup`. */
export function isFromSignupBrowser(
  ctx: AuthContext,
  { bindings = [] }: Pick<SignupOwnership, 'bindings'>,
  signup?: string | null,
): boolean {
  return typeof signup === 'string' && bindings.some((token) => isSignupToken(ctx, token, signup))
}

/** Returns true if the request identifies a live session of this account. */
export async function namesSession(
  ctx: AuthContext,
  user: UserRecord,
  evidence: Pick<SignupOwnership, 'sessionIds' | 'deviceSession' | 'token'>,
): Promise<boolean> {
  if (isTokenOf(ctx, user, evidence.token)) return true
  for (const id of sessionsFor(user, evidence)) {
    const found = await ctx.store.sessions?.find({ id })
    if (found?.session.userId === user.id && isAlive(found.session, ctx.now())) return true
  }
  return false
}

/** Like `namesSession`, but locks the session, so that the session cannot end before the transaction ends. */
async function holdsSession(
  ctx: AuthContext,
  user: UserRecord,
  evidence: Pick<SignupOwnership, 'sessionIds' | 'deviceSession' | 'token'>,
): Promise<boolean> {
  if (isTokenOf(ctx, user, evidence.token)) return true
  for (const id of sessionsFor(user, evidence)) {
    const session = await ctx.store.sessions?.lock(id, ctx.now())
    if (session?.userId === user.id) return true
  }
  return false
}

function sessionsFor(
  { id }: UserRecord,
  { sessionIds = [], deviceSession }: Pick<SignupOwnership, 'sessionIds' | 'deviceSession'>,
): string[] {
  const ofDevice = deviceSession?.(id) ?? null
  return [...sessionIds, ...(ofDevice === null ? [] : [ofDevice])]
}

function isTokenOf(ctx: AuthContext, user: UserRecord, token: PresentedToken | null | undefined): boolean {
  return token?.claims.sub === user.id && !isSuperseded(ctx, token.claims, user) && token.isProven(user)
}

interface OldPassword {
  password?: string
  forgot?: string
}

/**
 * The fields of a page that asks for the account's password. With `forgot`, the person says that the password is forgotten, and the
 * password is removed.
 */
export const oldPassword = Joi.object<OldPassword>({
  password: passwordText().allow('').optional(),
  forgot: Joi.string().valid('1').optional(),
})

/**
 * Returns the evidence (`SignupOwnership`) of a page's form. If the page asks for the password, the person must enter the password or set
 * `forgot`, because a click alone must not remove a password.
 * @param isAsked returns true if the page asks for the password, given the other evidence of the request
 * @throws PasswordAskedError if the page asks, and the form has no password and no `forgot`. The error has a message for the person
 */
export async function signupOwnershipOfForm(
  ctx: AuthContext,
  req: Request,
  fields: unknown,
  isAsked: (evidence: SignupOwnership) => Promise<boolean>,
): Promise<SignupOwnership> {
  const { password = '', forgot } = validate(oldPassword, fields)
  const evidence = await signupOwnershipOf(ctx, req, { password })
  if (forgot !== undefined) return { ...evidence, password: undefined }
  if (password === '' && (await isAsked(evidence))) throw new PasswordAskedError()
  return evidence
}
