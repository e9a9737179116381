import type { Request, RequestHandler, Response } from 'express'
import { cookiesAfter } from '../../http/cookies'
import { awaitOutcome, outcomeOf } from '../../http/outcome'
import { type Route, settled } from '../../http/routes'

/** The input of a route. This input replaces the input of the host's request. */
export interface Given {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: object
}

/**
 * Runs one of our routes for the host's request. The order is: rate limits, cross-site rule, guards, handler. The route's cookies are sent
 * with the host's response. The route's body and status are not sent.
 * @returns the value that the handler noted (`setResult`), or undefined
 * @throws AppError the error that the route would have sent
 */
export function callRoute(
  { method, before = [], handle }: Pick<Route, 'method' | 'before' | 'handle'>,
  req: Request,
  res: Response,
  given: Given,
): Promise<unknown> {
  const cookies = res.getHeader('Set-Cookie')
  return new Promise<unknown>((resolve, reject) => {
    const steps: readonly RequestHandler[] = [...before, settled(handle)]
    const asked = requestWith(req, res, method, given)
    const answer = answerBeside(res, () => {
      const outcome = outcomeOf(answer)
      if (outcome instanceof Error) reject(outcome)
      else resolve(outcome)
    })
    awaitOutcome(answer)
    const go = (index: number, error?: unknown) => {
      if (error) reject(error)
      else steps[index]?.(asked, answer, (next?: unknown) => go(index + 1, next))
    }
    go(0)
  }).finally(() => {
    // A cache must not store a cookie, because the cache would give one person's session to another person.
    if (res.getHeader('Set-Cookie') !== cookies) res.setHeader('Cache-Control', 'no-store')
  })
}

/**
 * Returns a request with the host request's headers and client, but with another body. The route reads JSON, even if the host parsed a
 * form.
 */
function requestWith(req: Request, res: Response, method: string, { params = {}, body = {} }: Given): Request {
  const { 'transfer-encoding': _chunked, cookie: _old, ...others } = req.headers
  const cookie = cookiesAfter(req, res)
  const headers = { ...others, ...(cookie !== '' && { cookie }) }
  const length = String(Buffer.byteLength(JSON.stringify(body)))
  const changed = {
    method, // the route's method, so that the cross-site check treats a host's GET like the route's POST
    body,
    params,
    readableDidRead: true,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': length },
  }
  const asked: Request = Object.create(req)
  for (const [name, value] of Object.entries(changed)) Object.defineProperty(asked, name, { value, writable: true })
  return asked
}

/** Returns a response that passes only cookies on to the host's response. `done` is called when the response is complete. */
function answerBeside(res: Response, done: () => void): Response {
  const own: Record<PropertyKey, unknown> = {
    statusCode: 200,
    end: done,
    setHeader(name: string, value: string | string[]) {
      if (name.toLowerCase() === 'set-cookie') res.setHeader(name, value)
      return answer
    },
  }
  const answer: Response = new Proxy(res, {
    get(target, name) {
      if (name in own) return own[name]
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set(_target, name, value) {
      own[name] = value
      return true
    },
  })
  return answer
}
