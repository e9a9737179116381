import type { Request } from 'express'
import { countCookies, readCookie } from '../../http/cookies'

/** Contract section 3. */
export const csrfCookieName = 'csrf_token'

/** Two cookies of that name are none: one of them was put there from another path or a sibling host. */
export function readCsrfCookie(req: Request): string | null {
  return countCookies(req, csrfCookieName) === 1 ? readCookie(req, csrfCookieName) : null
}
