import type { RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { refuseCrossSite, refusingCrossSite } from '../http/same-site'
import { readCredential } from './credentials'

/**
 * Protects routes of the library that change something. If the access cookie authenticates the request, the handler rejects cross-site
 * requests.
 */
export function sameSiteWhenByCookie(ctx: AuthContext): RequestHandler {
  return refusingCrossSite((req) => {
    if (readCredential(ctx, req)?.from === 'cookie') refuseCrossSite(ctx, req)
  })
}
