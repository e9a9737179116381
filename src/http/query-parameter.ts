import type { Request } from 'express'

/**
 * Returns the value of a query parameter. Returns null if the parameter is missing, repeated, empty or too long. The function compares
 * names exactly: `code[]` and `code[x]` are other parameters than `code`.
 */
export function queryParameter(req: Request, name: string, maxLength: number): string | null {
  return onlyQueryValue(queryValues(req, name), maxLength)
}

/** Returns the only value of a parameter. Returns null if the value is missing, repeated, empty or too long. */
export function onlyQueryValue([value = '', ...others]: readonly string[], maxLength: number): string | null {
  return value !== '' && value.length <= maxLength && others.length === 0 ? value : null
}

/**
 * Returns all values of a parameter, from the URL. The function does not read `req.query`, because `req.query` depends on the host's parser
 * and on the version of Express.
 */
export function queryValues(req: Request, name: string): string[] {
  const start = req.url.indexOf('?')
  return start === -1 ? [] : new URLSearchParams(req.url.slice(start)).getAll(name)
}
