import { createHash } from 'node:crypto'
import type { Request } from 'express'
import { ValidationError } from '../../core/errors'
import { headerValues } from '../../http/header-values'
import { findSubject } from '../../sessions/current-auth'

/**
 * Returns the idempotency key of a request; null if the request has no key.
 * @throws ValidationError if the header was sent twice, or is not 1 to 255 visible ASCII characters
 */
export function readIdempotencyKey(req: Request): string | null {
  const [key, ...others] = headerValues(req, 'idempotency-key')
  if (key === undefined) return null
  if (others.length === 0 && /^[\x21-\x7e]{1,255}$/.test(key)) return key
  const rule = others.length > 0 ? 'only_once' : 'visible_ascii_of_1_to_255'
  throw new ValidationError({ details: { errors: [{ path: 'Idempotency-Key', rule }] } })
}

/** Returns the cache key. The key is different for every caller and every request. */
export function cacheKeyOf(req: Request, key: string, caller: readonly unknown[]): string {
  const host = req.headers.host?.toLowerCase().replace(/:\d+$/, '') // one process can serve several tenants by host name
  return digestOf([req.method, host, req.baseUrl + req.url, key, caller])
}

/**
 * Returns the caller. The name from the host comes first, then the user that a guard verified, then the Authorization header. Returns null
 * if the caller is unknown. Cookies and IP addresses do not identify a caller, because cookies change with every login and people share IP
 * addresses.
 */
export function callerOf(req: Request, caller: ((req: Request) => string) | undefined): readonly unknown[] | null {
  const name: unknown = caller?.(req)
  if (typeof name === 'string' && name !== '') return ['named', name]
  const subject = findSubject(req)
  if (subject !== null) return ['user', subject]
  const credentials = headerValues(req, 'authorization').filter((value) => value !== '')
  return credentials.length > 0 ? ['credentials', credentials] : null
}

/**
 * Returns a digest of the parsed body. If no parser has read the body yet, the digest contains only headers.
 * @throws ValidationError if the body is nested too deep to be serialized
 */
export function fingerprintOf(req: Request): string {
  // The digest does not contain the boundary of a form, because each attempt has a new boundary.
  const type = req.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
  const length = req.readableDidRead ? null : req.headers['content-length']
  const body: unknown = req.body
  try {
    return digestOf([type, length, Buffer.isBuffer(body) ? body.toString('base64') : body])
  } catch {
    throw new ValidationError({ details: { errors: [{ path: '', rule: 'malformed' }] } })
  }
}

function digestOf(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts), 'utf8').digest('base64url')
}
