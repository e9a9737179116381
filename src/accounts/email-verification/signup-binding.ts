import { createHash, createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { isUnderAny } from '../../core/keys'
import { hashOpaqueToken, newOpaqueToken } from '../../core/opaque-token'
import { cookiesAfter } from '../../http/cookies'
import { browserName } from '../../http/locale'
import { type PendingPasskey, readPendingPasskey } from '../../passkeys/pending-passkey'
import { readProofCookie, setProofCookie } from '../../sessions/cookies'
import type { UserRecord, UserTokenRecord } from '../../store/auth-store'

const cookieName = 'signup_binding'

/** A sign-up of a pending account, in the rows of its activation links. The browser that signed up keeps a `signupToken`. */
export interface SignupMark {
  /** See `signupIdOf`. */
  readonly id: string
  readonly at: Date
  /** For example `Firefox, Windows`. Null if the browser is unknown. */
  readonly browser: string | null
  /** False if "I forgot my password" made the link. Such a link alone never identifies the person who signed up. */
  readonly isLenient: boolean
  /** Null: a sign-up without a passkey. */
  readonly passkey: PendingPasskey | null
  /** The id of the invitation that the sign-up brought. Null: none. */
  readonly invitation: string | null
  /** The host itself signed the person up, so no administrator approves it. */
  readonly isApproved?: boolean
}

export function newSignupMark(
  ctx: Pick<AuthContext, 'now'>,
  user: SignedUp,
  userAgent?: string | null,
  { passkey = null, invitation = null }: Partial<Pick<SignupMark, 'passkey' | 'invitation'>> = {},
): SignupMark {
  return { id: signupIdOf(user), at: ctx.now(), browser: browserName(userAgent ?? ''), isLenient: true, passkey, invitation }
}

type SignedUp = Pick<UserRecord, 'id' | 'hashedPassword'>

/** The same password keeps the stored hash, and so the id. Another password stores another hash. */
function signupIdOf({ id, hashedPassword }: SignedUp): string {
  return createHash('sha256')
    .update(JSON.stringify([id, hashedPassword]))
    .digest('base64url')
}

const nonceBytes = 16

/**
 * A nonce and a MAC. Equal tokens of one sign-up would tell a client that it met its own pending account: that the address was free.
 * @param signupId null if the request signed nobody up; the token then looks the same, and identifies no sign-up
 */
export function newSignupToken({ keys }: Pick<AuthContext, 'keys'>, signupId: string | null): string {
  const nonce = randomBytes(nonceBytes)
  const mac = signupId === null ? randomBytes(nonceBytes) : macOf(keys['signup-token'][0], nonce, signupId)
  return Buffer.concat([nonce, mac]).toString('base64url')
}

export function isSignupToken({ keys }: Pick<AuthContext, 'keys'>, token: string, signupId: string): boolean {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== 2 * nonceBytes) return false
  const [nonce, mac] = [bytes.subarray(0, nonceBytes), bytes.subarray(nonceBytes)]
  return isUnderAny(keys['signup-token'], (key) => timingSafeEqual(macOf(key, nonce, signupId), mac))
}

function macOf(key: KeyObject, nonce: Buffer, signupId: string): Buffer {
  return createHmac('sha256', key).update(nonce).update(signupId).digest().subarray(0, nonceBytes)
}

export function signupMarkToText({ id, at, browser, isLenient, passkey, invitation, isApproved }: SignupMark): string {
  return JSON.stringify({
    id,
    at: at.toISOString(),
    browser,
    isLenient,
    ...(passkey && { passkey }),
    ...(invitation !== null && { invitation }),
    ...(isApproved && { isApproved }),
  })
}

/** Without its mark, the account would need no invitation any more, or an approval that the host has given. */
export function decidesEntry({ settings }: Pick<AuthContext, 'settings'>, { invitation, isApproved }: SignupMark): boolean {
  return invitation !== null || (isApproved === true && settings.signupMode === 'approve')
}

/** For an account without a link. Nobody has the token of the row; a further link takes the mark from it. */
export async function keepMark({ store, now }: AuthContext, userId: string, mark: SignupMark, expiresAt: Date): Promise<void> {
  await store.userTokens.insert({
    userId,
    tokenHash: hashOpaqueToken(newOpaqueToken()),
    purpose: 'ACTIVATION',
    payload: signupMarkToText(mark),
    expiresAt,
    usedAt: null,
    createdAt: now(),
  })
}

/** Null for a link that names no sign-up. */
export function signupMarkOf({ payload }: Pick<UserTokenRecord, 'payload'>): SignupMark | null {
  try {
    const { id, at, browser, isLenient, passkey, invitation, isApproved } = JSON.parse(payload ?? 'null') as Record<string, unknown> // JSON `null` throws here
    if (typeof id !== 'string' || typeof at !== 'string' || typeof isLenient !== 'boolean') return null
    return {
      id,
      at: new Date(at),
      browser: typeof browser === 'string' ? browser : null,
      isLenient,
      passkey: readPendingPasskey(passkey),
      invitation: typeof invitation === 'string' ? invitation : null,
      isApproved: isApproved === true,
    }
  } catch {
    return null
  }
}

/** Lasts as long as the activation link. */
export function setSignupBinding(ctx: AuthContext, res: Response, token: string): void {
  setBinding(ctx, res, { token, returnTo: null })
}

/** The page to which the person wants to return. Call it after `setSignupBinding`, for the same response. */
export function setSignupReturn(ctx: AuthContext, req: Request, res: Response, returnTo: string): void {
  const next = Object.defineProperty(Object.create(req) as Request, 'headers', {
    value: { ...req.headers, cookie: cookiesAfter(req, res) },
  })
  const token = readSignupBinding(ctx, next)
  if (token !== null) setBinding(ctx, res, { token, returnTo })
}

export function readSignupBinding(ctx: AuthContext, req: Request): string | null {
  return readBinding(ctx, req)?.token ?? null
}

/** The page was checked at the sign-up. */
export function readSignupReturn(ctx: AuthContext, req: Request): string | null {
  return readBinding(ctx, req)?.returnTo ?? null
}

interface Binding {
  readonly token: string
  readonly returnTo: string | null
}

/** One cookie with a space between: a token and a page contain none. */
function setBinding(ctx: AuthContext, res: Response, { token, returnTo }: Binding): void {
  const value = returnTo === null ? token : `${token} ${returnTo}`
  setProofCookie(ctx, res, cookieName, value, ctx.settings.activationTtlSeconds)
}

function readBinding(ctx: AuthContext, req: Request): Binding | null {
  const [token, returnTo = null] = (readProofCookie(ctx, req, cookieName) ?? '').split(' ', 2)
  return token ? { token, returnTo } : null
}
