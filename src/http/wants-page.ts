import type { Request } from 'express'

/** Returns true if a browser shows the response to a person. Otherwise a script reads JSON. */
export function wantsPage(req: Request): boolean {
  return /\btext\/html\b/i.test(req.headers.accept ?? '')
}
