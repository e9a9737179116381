import type { Request } from 'express'

/** One string of a sane length; null when absent, repeated, nested (Express 4 reads `a[b]=1`), empty or too long. */
export function queryParameter(req: Request, name: string, maxLength: number): string | null {
  const value = req.query[name]
  return typeof value === 'string' && value !== '' && value.length <= maxLength ? value : null
}
