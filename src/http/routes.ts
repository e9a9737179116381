import type { ErrorRequestHandler, Request, RequestHandler, Response, Router } from 'express'
import type Joi from 'joi'
import { AppError, InternalError, MethodNotAllowedError, ServiceUnavailableError } from '../errors'
import { inTime } from '../in-time'
import type { Description } from './description'
import { readJsonBody } from './json-body'
import { setSecurityHeaders } from './send'
import { validate } from './validate'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** One line of the route table. Tests, and what describes the API, read the same lines that are mounted. */
export interface Route {
  readonly method: Method
  /** Below the prefix; literal segments and `:name` only, which both Express majors read alike. */
  readonly path: string
  readonly describes: Description
  /** Ends in a login: its answer is a session pair or a challenge. */
  readonly loginShaped?: boolean
  /** Its answers about an account are sent on the grid of `timingGridMilliseconds` (`guards/answer-grid.ts`). */
  readonly isOnGrid?: boolean
  /** A GET that changes something: HEAD, which Express would send here, is refused with 405. */
  readonly refusesHead?: boolean
  /** Of several lines with one method and path: whether this one answers the request; else the next is asked. */
  readonly when?: (req: Request) => boolean
  /** What must hold before the body is read, in order: budgets, cross-site rules, guards. */
  readonly before?: readonly RequestHandler[]
  readonly body?: Joi.ObjectSchema
  readonly handle: (req: Request, res: Response) => Promise<void> | void
  /** Answers a refusal of this route itself, instead of the envelope. */
  readonly onError?: ErrorRequestHandler | undefined
}

/** A line whose body has been validated before `handle` sees it. */
export function withBody<T>(
  route: Omit<Route, 'handle'> & { body: Joi.ObjectSchema<T>; handle: (req: Request, res: Response, body: T) => Promise<void> | void },
): Route {
  return { ...route, handle: async (req, res) => route.handle(req, res, validate(route.body, await readJsonBody(req, res))) }
}

/** A known path with another method is 405; an unknown path is left to the host. */
export function mountRoutes(router: Router, routes: readonly Route[]): void {
  for (const path of new Set(routes.map((route) => route.path))) {
    const lines = routes.filter((route) => route.path === path)
    const refuse = refuseMethod(lines)
    for (const line of lines) {
      if (line.refusesHead) router.head(path, refuse)
      register(router, line)
    }
    router.all(path, refuse)
  }
}

function register(router: Router, { method, path, when, before = [], handle, onError }: Route): void {
  const handlers = [...(when ? [asking(when)] : []), secured, ...before, settled(handle), ...(onError ? [onError] : [])]
  if (method === 'GET') router.get(path, ...handlers)
  else if (method === 'POST') router.post(path, ...handlers)
  else if (method === 'PATCH') router.patch(path, ...handlers)
  else router.delete(path, ...handlers)
}

function asking(when: (req: Request) => boolean): RequestHandler {
  return (req, _res, next) => (when(req) ? next() : next('route'))
}

const secured: RequestHandler = (_req, res, next) => {
  setSecurityHeaders(res)
  next()
}

function refuseMethod(lines: readonly Route[]): RequestHandler {
  const methods = lines.flatMap((line) => (line.method === 'GET' && !line.refusesHead ? ['GET', 'HEAD'] : [line.method]))
  const allow = [...new Set(methods)].join(', ')
  return (_req, res, next) => {
    res.setHeader('Allow', allow)
    next(new MethodNotAllowedError())
  }
}

/**
 * Express 4 loses rejected promises, and both majors read a thrown `undefined` or 'route' as "go on": whatever a handler
 * throws arrives at the error handler as an Error.
 */
export function settled(handle: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return (req, res, next) => {
    withinRequest(new Promise<void>((resolve) => resolve(handle(req, res)))).catch((thrown: unknown) => next(asError(thrown)))
  }
}

/**
 * The same for a step that lets the request through when it is content; without a promise where it needs none. `refuse`
 * answers what it throws.
 */
export function step(check: (req: Request, res: Response) => Promise<void> | void, refuse: ErrorRequestHandler = passOn): RequestHandler {
  return (req, res, next) => {
    let pending: Promise<void> | void
    try {
      pending = check(req, res)
    } catch (thrown) {
      return void refuse(asError(thrown), req, res, next)
    }
    if (!pending) return next()
    withinRequest(pending)
      .then(
        () => next(),
        (thrown: unknown) => refuse(asError(thrown), req, res, next),
      )
      .catch(() => undefined) // Express catches what a handler throws; outside of it nobody waits for this promise
  }
}

const passOn: ErrorRequestHandler = (error, _req, _res, next) => next(error)

// Longer than all that a request may rightly wait for, which is three provider calls of ten seconds.
const deadlineMs = 40_000

/** An adapter that never settles must not hold the request for good. */
function withinRequest(work: Promise<void>): Promise<void> {
  return inTime(work, deadlineMs, () => new ServiceUnavailableError())
}

/** A `status` on an error of the host's store or hooks is not about this request's client: only our own errors speak to it. */
function asError(thrown: unknown): AppError {
  return thrown instanceof AppError ? thrown : new InternalError({ cause: thrown })
}
