import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { readCredential } from './credentials'

/** Rejects a cross-site request that is authenticated by the access cookie, for our own routes that change something. */
export function sameSiteWhenByCookie(ctx: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    if (readCredential(ctx, req)?.from === 'cookie') refuseCrossSite(ctx, req)
  })
}
