import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { readCredential } from './credentials'

/** For our own routes behind `requireAuth` that change something: what the access cookie alone vouches for must come from here. */
export function sameSiteWhenByCookie(ctx: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    if (readCredential(ctx, req)?.from === 'cookie') refuseCrossSite(ctx, req)
  })
}
