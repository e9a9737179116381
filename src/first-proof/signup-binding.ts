import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { browserName } from '../http/browser-name'
import { cookiesAfter } from '../http/cookies'
import { readProofCookie, setProofCookie } from '../session/proof-cookies'
import type { UserTokenRecord } from '../store/auth-store'

const cookieName = 'signup_binding'

/** One signup of an account that waits for its activation. Its links carry it, and the browser that signed up has its id. */
export interface SignupMark {
  /** Random; the first to bring it back with the link is the one who signed up. */
  readonly id: string
  readonly at: Date
  /** Such as `Firefox, Windows`; null: not known. */
  readonly browser: string | null
  /** False: asked for by "I forgot my password", so the link alone never stands for the person who signed up. */
  readonly isLenient: boolean
}

export function newSignupMark(ctx: Pick<AuthContext, 'now'>, userAgent?: string | null): SignupMark {
  return { id: newSignupId(), at: ctx.now(), browser: browserName(userAgent ?? ''), isLenient: true }
}

/** Also the made-up one of a signup that made no account: both look the same. */
export function newSignupId(): string {
  return randomBytes(32).toString('base64url')
}

/** For the payload of an activation link. */
export function signupMarkToText({ id, at, browser, isLenient }: SignupMark): string {
  return JSON.stringify({ id, at: at.toISOString(), browser, isLenient })
}

/** Null: a link of release 0.1.0, or none that we wrote. */
export function signupMarkOf({ payload }: Pick<UserTokenRecord, 'payload'>): SignupMark | null {
  try {
    const { id, at, browser, isLenient } = JSON.parse(payload ?? 'null') as Record<string, unknown> // null has no such members, and throws
    if (typeof id !== 'string' || typeof at !== 'string' || typeof isLenient !== 'boolean') return null
    return { id, at: new Date(at), browser: typeof browser === 'string' ? browser : null, isLenient }
  } catch {
    return null
  }
}

/** Lets this browser be known again as the one that signed up, as long as the activation link is good. */
export function setSignupBinding(ctx: AuthContext, res: Response, signupId: string): void {
  setBinding(ctx, res, { signupId, returnTo: null })
}

/** The same browser also knows where the person wanted to go: for the answer that has set the binding. */
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

/** Where the person who signed up in this browser wanted to go; checked then. */
export function readSignupReturn(ctx: AuthContext, req: Request): string | null {
  return readBinding(ctx, req)?.returnTo ?? null
}

interface Binding {
  readonly signupId: string
  readonly returnTo: string | null
}

/** Neither of the two has a blank in it. */
function setBinding(ctx: AuthContext, res: Response, { signupId, returnTo }: Binding): void {
  const value = returnTo === null ? signupId : `${signupId} ${returnTo}`
  setProofCookie(ctx, res, cookieName, value, ctx.settings.activationTtlSeconds)
}

function readBinding(ctx: AuthContext, req: Request): Binding | null {
  const [signupId, returnTo = null] = (readProofCookie(ctx, req, cookieName) ?? '').split(' ', 2)
  return signupId ? { signupId, returnTo } : null
}
