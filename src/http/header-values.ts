import type { Request } from 'express'

/**
 * Every value a header was sent with, in order. Node joins or drops repeated headers, each in its own way, and a proxy
 * before us may have read another one than we do: what must be said once is looked at as it came.
 */
export function headerValues(req: Request, name: string): readonly string[] {
  const raw = req.rawHeaders ?? []
  const sent = raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name)
  if (sent.length > 0) return sent
  const joined = req.headers[name] // adapters of other servers fill in this alone
  return joined === undefined ? [] : [joined].flat()
}

/** The value of a header that was sent exactly once; otherwise null. */
export function onlyValue(req: Request, name: string): string | null {
  const [value, ...others] = headerValues(req, name)
  return value === undefined || others.length > 0 ? null : value
}
