import type { ErrorCode } from './operations.js'
import type { Body } from './table.js'

interface Refusal {
  readonly code?: ErrorCode | null
  readonly detail?: string
  /** A host's own error can have none. */
  readonly details?: Readonly<Record<string, unknown>> | null
}

/** A response that is no success, or no response at all. */
export class AuthClientError extends Error {
  /** The status of the response. 0: there was none. */
  declare readonly status: number
  /** `NETWORK_ERROR`: there was no response. `USER_CHANGED`: another person signed in before the request was sent. Null: no code of doorward. */
  declare readonly code: ErrorCode | 'NETWORK_ERROR' | 'USER_CHANGED' | null
  /** A sentence for people. */
  declare readonly detail: string
  declare readonly details: Readonly<Record<string, unknown>>
  /** Null without the header `Retry-After`, and if it is below 1. */
  declare readonly retryAfterSeconds: number | null

  constructor(
    status: number,
    { code = null, detail = '', details }: Omit<Refusal, 'code'> & { code?: AuthClientError['code'] },
    retryAfterSeconds: number | null = null,
  ) {
    super(detail || code || `status ${status}`)
    Object.assign(this, { name: 'AuthClientError', status, code, detail, details: { ...details }, retryAfterSeconds })
  }
}

/** The error envelope. Empty if the body is another one, such as the page of a proxy. */
export function refusalIn(body: Body | null): Refusal {
  return typeof body?.['code'] === 'string' && typeof body['detail'] === 'string' ? (body as Refusal) : {}
}

export function errorOf({ status, headers }: Response, body: Body | null): AuthClientError {
  const wait = +(headers.get('Retry-After') as string)
  return new AuthClientError(status, refusalIn(body), wait >= 1 ? wait : null)
}

/** Without a response. */
export function failure(code: 'NETWORK_ERROR' | 'USER_CHANGED'): AuthClientError {
  return new AuthClientError(0, { code })
}

/** Null if the body is no JSON. */
export function jsonOf(response: Response): Promise<Body | null> {
  return response.json().catch(() => null)
}

/** The global `fetch`. @throws AuthClientError `NETWORK_ERROR` */
export function reach(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  return fetch(input, init).catch(lose)
}

/** @throws AuthClientError `NETWORK_ERROR` */
export function lose(): never {
  throw failure('NETWORK_ERROR')
}

export function jsonInit(method: string, body: Body): RequestInit {
  return { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } }
}
