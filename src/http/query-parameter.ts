import type { Request } from 'express'

/**
 * One string of a sane length; null when absent, repeated, empty or too long. Names are taken as they stand: `code[]`
 * and `code[x]` are other parameters.
 */
export function queryParameter(req: Request, name: string, maxLength: number): string | null {
  return onlyValue(queryValues(req, name), maxLength)
}

/** The same of the values that a parameter came with. */
export function onlyValue([value = '', ...others]: readonly string[], maxLength: number): string | null {
  return value !== '' && value.length <= maxLength && others.length === 0 ? value : null
}

/** From the URL itself: what `req.query` holds is for the host's parser and middleware to say, and differs between Express 4 and 5. */
export function queryValues(req: Request, name: string): string[] {
  const start = req.url.indexOf('?')
  return start === -1 ? [] : new URLSearchParams(req.url.slice(start)).getAll(name)
}
