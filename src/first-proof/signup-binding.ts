import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { browserName } from '../http/browser-name'
import { cookiesAfter } from '../http/cookies'
import { readProofCookie, setProofCookie } from '../session/proof-cookies'
import type { UserTokenRecord } from '../store/auth-store'

const cookieName = 'signup_binding'

/** A sign-up of a pending account. The rows of its activation links contain the mark. The browser that signed up keeps the id. */
export interface SignupMark {
  /** A random id. A client that sends this id together with the link counts as the person who signed up. */
  readonly id: string
  readonly at: Date
  /** For example `Firefox, Windows`. Null if the browser is unknown. */
  readonly browser: string | null
  /** False if "I forgot my password" made the link. Such a link alone never identifies the person who signed up. */
  readonly isLenient: boolean
}

export function newSignupMark(ctx: Pick<AuthContext, 'now'>, userAgent?: string | null): SignupMark {
  return { id: newSignupId(), at: ctx.now(), browser: browserName(userAgent ?? ''), isLenient: true }
}

/** Returns a random id. A sign-up that creates no account gets an id too, so that a client cannot see the difference. */
export function newSignupId(): string {
  return randomBytes(32).toString('base64url')
}

/** Writes the mark as the payload of an activation link. */
export function signupMarkToText({ id, at, browser, isLenient }: SignupMark): string {
  return JSON.stringify({ id, at: at.toISOString(), browser, isLenient })
}

/** Reads the mark of an activation link. Returns null for a link of release 0.1.0 and for an unknown payload. */
export function signupMarkOf({ payload }: Pick<UserTokenRecord, 'payload'>): SignupMark | null {
  try {
    const { id, at, browser, isLenient } = JSON.parse(payload ?? 'null') as Record<string, unknown> // JSON `null` throws here
    if (typeof id !== 'string' || typeof at !== 'string' || typeof isLenient !== 'boolean') return null
    return { id, at: new Date(at), browser: typeof browser === 'string' ? browser : null, isLenient }
  } catch {
    return null
  }
}

/** Sets the cookie that identifies this browser as the browser that signed up. The cookie lasts as long as the activation link. */
export function setSignupBinding(ctx: AuthContext, res: Response, signupId: string): void {
  setBinding(ctx, res, { signupId, returnTo: null })
}

/**
 * Stores a page in the sign-up cookie: the page to which the person wants to return. Call the function after `setSignupBinding`, for the
 * same response.
 */
export function setSignupReturn(ctx: AuthContext, req: Request, res: Response, returnTo: string): void {
  const next = Object.defineProperty(Object.create(req) as Request, 'headers', {
    value: { ...req.headers, cookie: cookiesAfter(req, res) },
  })
  const signupId = readSignupBinding(ctx, next)
  if (signupId !== null) setBinding(ctx, res, { signupId, returnTo })
}

export function readSignupBinding(ctx: AuthContext, req: Request): string | null {
  return readBinding(ctx, req)?.signupId ?? null
}

/** Returns the page to which the person wanted to return when this browser signed up. The page was checked at the sign-up. */
export function readSignupReturn(ctx: AuthContext, req: Request): string | null {
  return readBinding(ctx, req)?.returnTo ?? null
}

interface Binding {
  readonly signupId: string
  readonly returnTo: string | null
}

/** Writes both values into one cookie, with a space between them. A sign-up id and a page contain no space. */
function setBinding(ctx: AuthContext, res: Response, { signupId, returnTo }: Binding): void {
  const value = returnTo === null ? signupId : `${signupId} ${returnTo}`
  setProofCookie(ctx, res, cookieName, value, ctx.settings.activationTtlSeconds)
}

function readBinding(ctx: AuthContext, req: Request): Binding | null {
  const [signupId, returnTo = null] = (readProofCookie(ctx, req, cookieName) ?? '').split(' ', 2)
  return signupId ? { signupId, returnTo } : null
}
