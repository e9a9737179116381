import type { ErrorCode } from './operations.js'

interface Refusal {
  readonly code?: ErrorCode | null
  readonly detail?: string
  readonly details?: Readonly<Record<string, unknown>>
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
  /** Null without the header `Retry-After`. */
  declare readonly retryAfterSeconds: number | null

  constructor(
    status: number,
    { code = null, detail = '', details = {} }: Omit<Refusal, 'code'> & { code?: AuthClientError['code'] },
    retryAfterSeconds: number | null = null,
  ) {
    super(detail || code || `The router answered ${status}.`)
    this.name = 'AuthClientError'
    this.status = status
    this.code = code
    this.detail = detail
    this.details = details
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The error envelope of a response. Empty if the body is another one, such as the page of a proxy. */
export async function refusalOf(response: Response): Promise<Refusal> {
  const body = await jsonOf(response.clone())
  return body && typeof body['code'] === 'string' && typeof body['detail'] === 'string' ? (body as Refusal) : {}
}

export async function jsonOf(response: Response): Promise<Record<string, unknown> | null> {
  try {
    return await response.json()
  } catch {
    return null
  }
}

export async function errorOf(response: Response): Promise<AuthClientError> {
  return new AuthClientError(response.status, await refusalOf(response), Number(response.headers.get('Retry-After')) || null)
}

/** The global `fetch`. @throws AuthClientError `NETWORK_ERROR` */
export function reach(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  return fetch(input, init).catch((cause) => {
    throw cause instanceof TypeError ? new AuthClientError(0, { code: 'NETWORK_ERROR' }) : cause // an abort stays one
  })
}
