import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { clearProofCookie, readProofCookie, setProofCookie } from './proof-cookies'

/** A login that waits for its second factor, and the page to open afterwards. */
export interface KeptChallenge {
  readonly mfaToken: string
  /** The validated `return_to`. Null: use `landing`. */
  readonly returnTo: string | null
  /** The page to open without `returnTo`. Default: the account page. */
  readonly landing?: string
}

const challengeCookieName = 'mfa_challenge'

/** Stores the challenge in a cookie. The challenge is not in a URL, because logs and the browser history keep URLs. */
export function keepChallenge(ctx: AuthContext, res: Response, challenge: KeptChallenge): void {
  setProofCookie(ctx, res, challengeCookieName, JSON.stringify(challenge), ctx.settings.mfaTokenTtlSeconds)
}

export function readChallengeCookie(ctx: AuthContext, req: Request): KeptChallenge | null {
  return JSON.parse(readProofCookie(ctx, req, challengeCookieName) ?? 'null') as KeptChallenge | null // our MAC is valid, so `keepChallenge` wrote it
}

export function clearChallenge(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, challengeCookieName)
}
