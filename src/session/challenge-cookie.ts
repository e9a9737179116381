import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { clearProofCookie, readProofCookie, setProofCookie } from './proof-cookies'

/** A login that waits for its second factor, and its destination. */
export interface KeptChallenge {
  readonly mfaToken: string
  /** The validated destination. Null: use `landing`. */
  readonly returnTo: string | null
  /** The destination without `returnTo`. Default: the account page. */
  readonly landing?: string
}

const name = 'mfa_challenge'

/** Stores the challenge in a cookie, because a challenge in a URL would be kept in logs and in the history. */
export function keepChallenge(ctx: AuthContext, res: Response, challenge: KeptChallenge): void {
  setProofCookie(ctx, res, name, JSON.stringify(challenge), ctx.settings.mfaTokenTtlSeconds)
}

export function readChallengeCookie(ctx: AuthContext, req: Request): KeptChallenge | null {
  return JSON.parse(readProofCookie(ctx, req, name) ?? 'null') as KeptChallenge | null // signed by us, so it is what `keepChallenge` wrote
}

export function clearChallenge(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, name)
}
