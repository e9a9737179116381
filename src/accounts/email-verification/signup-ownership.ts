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

/** What a request shows about the account's owner. Not verified yet. */
export interface SignupOwnership {
  /**
   * The live session. A cookie's session counts only if this browser's device cookie names it too: another subdomain can set a session
   * cookie. No evidence at the first verification of an address. It finishes a change of the address that it began.
   */
  readonly requestSession?: SessionRecord | null | undefined
  /** From the access token in the header and the refresh token in the body. */
  readonly sessionIds?: readonly string[] | undefined
  /** The session that the device cookie names. Absent if the request may come from another site. */
  readonly deviceSession?: ((userId: string) => string | null) | undefined
  /** Only if the store keeps no sessions. */
  readonly token?: PresentedToken | null | undefined
  /** The `signup_token` of this browser or client. */
  readonly bindings?: readonly string[] | undefined
  readonly password?: string | undefined
  /** True if the page can ask for the password, before a take-over removes it. It asks only if nothing else identifies the owner. */
  readonly asksPassword?: boolean | undefined
}

/** A click or a code alone must not remove the password. */
export class PasswordAskedError extends ValidationError {
  constructor() {
    super({ details: { errors: [{ path: 'password', rule: 'any.required' }] }, explains: localized('error.password_missing') })
  }
}

const asking = Symbol('the page can ask for the password')

/** For a page whose form can ask for the password. A client cannot set this mark. */
export function canAskForPassword(req: Request): void {
  Object.defineProperty(req, asking, { value: true })
}

interface PresentedToken {
  readonly claims: AccessTokenClaims
  /** False if the token is from a cookie and this browser has no device cookie of the account. */
  readonly isProven: (user: UserRecord) => boolean
}

export interface SignupOwnershipBody {
  readonly password?: string | undefined
  readonly signup_token?: string | undefined
  readonly refresh_token?: string | undefined
}

/** None if passwords are off. */
export function passwordField({ settings }: Pick<AuthContext, 'settings'>): Joi.SchemaMap {
  return hasPasswords(settings) ? { password: passwordText().allow('').optional() } : {}
}

export function passwordRefusals({ settings }: Pick<AuthContext, 'settings'>): (typeof InvalidCredentialsError)[] {
  return hasPasswords(settings) ? [InvalidCredentialsError] : []
}

/** The request's password is verified. The account's row is not locked yet. */
export interface VerifiedSignupOwnership extends Pick<SignupOwnership, 'sessionIds' | 'deviceSession' | 'token' | 'bindings'> {
  /** Matched the request's password. Null if no password was verified. */
  readonly verifiedHash: string | null
}

/**
 * Cookies in a form post of another site do not count. Throws for an expired access token of a valid session, so that the client refreshes
 * it. Otherwise the token's owner would lose the account's password in a take-over.
 * @throws TokenExpiredError
 */
export async function signupOwnershipOf(ctx: AuthContext, req: Request, body: SignupOwnershipBody = {}): Promise<SignupOwnership> {
  const named = await sessionOfRequest(ctx, req, body)
  const isByClient = named !== null && isByHeader(ctx, req)
  const presented = await sessionOfBody(ctx, body)
  // Another subdomain can set an attacker's session cookie, so cookies of sessions do not count. It cannot set the device cookie.
  const sessionIds = [...(isByClient ? [named.id] : []), ...(presented ? [presented.id] : [])]
  const requestSession = isByClient || (named && sessionIdOfDevice(ctx, req, named.userId) === named.id) ? named : null
  const deviceSession = isNavigation(req) || comesFromHere(ctx, req) ? (userId: string) => sessionIdOfDevice(ctx, req, userId) : undefined
  const bindings = [body.signup_token, readSignupBinding(ctx, req)].filter((binding) => typeof binding === 'string')
  const password = (hasPasswords(ctx.settings) && body.password) || undefined
  return { requestSession, sessionIds, deviceSession, token: presentedToken(ctx, req), bindings, password, asksPassword: asking in req }
}

/** Another site's image or script is no navigation. */
function isNavigation({ method, headers }: Request): boolean {
  return method === 'GET' && (headers['sec-fetch-mode'] ?? 'navigate') === 'navigate'
}

/** Only if the store keeps no sessions: the app cannot revoke such a token, so it counts until the password or second factor changes. */
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

/** A header of another scheme, for example Basic, identifies no session, so the cookies count. */
function isByHeader(ctx: AuthContext, req: Request): boolean {
  const credential = readQuietly(() => readCredential(ctx, req))
  return credential?.from === 'header' && readQuietly(() => verifyAccessToken(ctx, credential.token)) !== null
}

/** For any account. @throws TokenExpiredError */
export async function sessionOfRequest(ctx: AuthContext, req: Request, body: SignupOwnershipBody = {}): Promise<SessionRecord | null> {
  await refuseExpiredToken(ctx, req)
  return isOwn(ctx, req) ? findRequestSession(ctx, req, body) : null
}

/**
 * Cookies count in a GET, for example a provider's callback, but not in a POST that another site can have sent. Another site cannot send our
 * token in a header.
 */
function isOwn(ctx: AuthContext, req: Request): boolean {
  return req.method === 'GET' || isByHeader(ctx, req) || comesFromHere(ctx, req)
}

/** An expired access cookie is ignored, because the refresh cookie identifies the session. */
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
 * Verifies the password only if no other evidence is enough. Call it before the transaction.
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

/** Call it in the transaction that has locked the user's row. @throws InvalidCredentialsError if a right password has changed */
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

/** True if a page must ask for the password, because nothing else identifies the owner. */
export async function wantsPassword(
  ctx: AuthContext,
  user: UserRecord,
  evidence: SignupOwnership,
  signup?: string | null,
): Promise<boolean> {
  if (!hasPasswords(ctx.settings)) return false
  return hasPassword(user) && !isFromSignupBrowser(ctx, evidence, signup) && !(await namesSession(ctx, user, evidence))
}

export function isFromSignupBrowser(
  ctx: AuthContext,
  { bindings = [] }: Pick<SignupOwnership, 'bindings'>,
  signup?: string | null,
): boolean {
  return typeof signup === 'string' && bindings.some((token) => isSignupToken(ctx, token, signup))
}

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

/** Like `namesSession`, but the session cannot end before the transaction does. */
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

/** `forgot`: the person has forgotten the password, which is then removed. */
export const oldPassword = Joi.object<OldPassword>({
  password: passwordText().allow('').optional(),
  forgot: Joi.string().valid('1').optional(),
})

/**
 * If the page asks, the person must enter the password or set `forgot`: a click alone must not remove a password.
 * @param isAsked given the other evidence of the request
 * @throws PasswordAskedError with a message for the person
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
