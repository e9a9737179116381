import type { Request, RequestHandler, Response } from 'express'
import { cookiesAfter } from '../http/cookies'
import { outcomeOf } from '../http/outcome'
import { type Route, settled } from '../http/routes'

/** What a route is asked with, in the place of what the request brought. */
export interface Given {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: object
}

/**
 * Asks a route of ours in the name of the host's request: its limits, its cross-site rule, its guards and its handler, in their order. Its
 * cookies go out with the host's answer; its body and its status do not.
 * @returns what the handler noted (`noteOutcome`); undefined: nothing
 * @throws AppError what the route would have answered
 */
export function playRoute(
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
    const go = (index: number, error?: unknown) => {
      if (error) reject(error)
      else steps[index]?.(asked, answer, (next?: unknown) => go(index + 1, next))
    }
    go(0)
  }).finally(() => {
    // No cache may keep a cookie, and hand one person's session to the next.
    if (res.getHeader('Set-Cookie') !== cookies) res.setHeader('Cache-Control', 'no-store')
  })
}

/** The same headers and client, with another body: whatever form the host has parsed, the route reads JSON. */
function requestWith(req: Request, res: Response, method: string, { params = {}, body = {} }: Given): Request {
  const { 'transfer-encoding': _chunked, cookie: _old, ...others } = req.headers
  const cookie = cookiesAfter(req, res)
  const headers = { ...others, ...(cookie !== '' && { cookie }) }
  const length = String(Buffer.byteLength(JSON.stringify(body)))
  const changed = {
    method, // a GET of the host that changes something is judged as the POST that it stands for
    body,
    params,
    readableDidRead: true,
    headers: { ...headers, 'content-type': 'application/json', 'content-length': length },
  }
  const asked: Request = Object.create(req)
  for (const [name, value] of Object.entries(changed)) Object.defineProperty(asked, name, { value, writable: true })
  return asked
}

/** The host's response as far as cookies go; what else an answer of ours has is not sent. `done`: the answer is complete. */
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
