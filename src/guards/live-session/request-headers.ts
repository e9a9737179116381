import type { Request } from 'express'

/** The headers of a request: those of an `http.IncomingMessage`, any other object of texts and lists, or a `Headers`. */
export type RequestHeaders = Iterable<readonly [string, string]> | { readonly [name: string]: string | readonly string[] | undefined }

/** An `http.IncomingMessage`, the handshake of Socket.IO, or any other object with the headers of a request. */
export interface RequestWithHeaders {
  readonly headers: RequestHeaders
  /** Of an `http.IncomingMessage`, whose `headers` keep only one of two Authorization headers. */
  readonly rawHeaders?: readonly string[]
}

/**
 * Returns a request that has only the headers that a guard reads, with names in lower case.
 * @throws TypeError without headers, which is a fault in the host's code
 */
export function requestOf(given: RequestWithHeaders): Request {
  const { headers, rawHeaders } = Object(given) as Partial<RequestWithHeaders> // a host without types can pass anything
  const values = valuesOf(headers)
  for (const name of sentTwice(rawHeaders ?? [])) values.get(name)?.push('')
  const authorizations = values.get('authorization') ?? []
  return {
    headers: Object.fromEntries([...values].filter(([, all]) => all.length > 0).map(([name, all]) => [name, oneOf(name, all)])),
    rawHeaders: authorizations.flatMap((value) => ['authorization', value]),
  } as unknown as Request // the readers of credentials use nothing else of a request
}

function valuesOf(headers: unknown): Map<string, string[]> {
  if (typeof headers !== 'object' || headers === null)
    throw new TypeError('guards.verify() needs the request of an upgrade or handshake, or another object with `headers`.')
  const values = new Map<string, string[]>(['authorization', 'cookie', 'host', 'origin', 'sec-fetch-site'].map((name) => [name, []]))
  const entries = Symbol.iterator in headers ? (headers as Iterable<[string, unknown]>) : Object.entries(headers)
  for (const [name, value] of entries) values.get(String(name).toLowerCase())?.push(...[value ?? []].flat().map(String))
  return values
}

/** A proxy may have read the other one of two values, so together they equal no expected value. Only cookies are a list. */
function oneOf(name: string, values: readonly string[]): string {
  return values.length === 1 || name === 'cookie' ? values.join('; ') : ''
}

function sentTwice(rawHeaders: readonly string[]): Set<string> {
  const [once, twice] = [new Set<string>(), new Set<string>()]
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = String(rawHeaders[index]).toLowerCase()
    if (once.has(name) && name !== 'cookie') twice.add(name)
    once.add(name)
  }
  return twice
}
