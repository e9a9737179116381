import type { Request } from 'express'

/**
 * Returns the value of a query parameter. Null: it is missing, repeated, empty or too long. Names are compared exactly: `code[]` and
 * `code[x]` are other parameters.
 */
export function queryParameter(req: Request, name: string, maxLength: number): string | null {
  return onlyValue(queryValues(req, name), maxLength)
}

/** Returns the only value of a parameter, under the same conditions. */
export function onlyValue([value = '', ...others]: readonly string[], maxLength: number): string | null {
  return value !== '' && value.length <= maxLength && others.length === 0 ? value : null
}

/**
 * Returns all values of a parameter, from the URL. It does not read `req.query`, which depends on the host's parser and differs between
 * Express 4 and 5.
 */
export function queryValues(req: Request, name: string): string[] {
  const start = req.url.indexOf('?')
  return start === -1 ? [] : new URLSearchParams(req.url.slice(start)).getAll(name)
}
