import type { Request } from 'express'

/**
 * Returns all values of a header, in order. Node joins or drops repeated headers, and a proxy before the app can have used another value.
 * So the function reads the raw headers.
 */
export function headerValues(req: Request, name: string): readonly string[] {
  const raw = req.rawHeaders ?? []
  const sent = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name)
  if (sent.length > 0) return sent
  const joined = req.headers[name] // adapters of other servers set only `req.headers`
  return joined === undefined ? [] : [joined].flat()
}

/** Returns the value of a header that was sent exactly once; otherwise null. */
export function onlyValue(req: Request, name: string): string | null {
  const [value, ...others] = headerValues(req, name)
  return value === undefined || others.length > 0 ? null : value
}
