import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { clearProofCookie, readProofCookie, setProofCookie } from './proof-cookies'

/** A login that waits for its second factor, and where it leads. */
export interface KeptChallenge {
  readonly mfaToken: string
  /** Checked. */
  readonly returnTo: string | null
  /** Where it leads without `returnTo`. Default: to the account. */
  readonly landing?: string
}

const name = 'mfa_challenge'

/** In a cookie, because an address stands in logs and in the history. */
export function keepChallenge(ctx: AuthContext, res: Response, challenge: KeptChallenge): void {
  setProofCookie(ctx, res, name, JSON.stringify(challenge), ctx.settings.mfaTokenTtlSeconds)
}

export function readChallengeCookie(ctx: AuthContext, req: Request): KeptChallenge | null {
  return JSON.parse(readProofCookie(ctx, req, name) ?? 'null') as KeptChallenge | null // under our MAC: what `keepChallenge` wrote
}

export function clearChallenge(ctx: AuthContext, res: Response): void {
  clearProofCookie(ctx, res, name)
}
