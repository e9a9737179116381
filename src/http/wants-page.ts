import type { Request } from 'express'

/** Whether the request is a browser's that shows its answer to a person: no script is there to read JSON. */
export function wantsPage(req: Request): boolean {
  return /\btext\/html\b/i.test(req.headers.accept ?? '')
}
