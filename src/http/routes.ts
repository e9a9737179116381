import timers from 'node:timers'
import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response, Router } from 'express'
import type Joi from 'joi'
import { clientOf } from '../core/client-key'
import type { Settings } from '../core/config/every-setting'
import { AppError, InternalError, MethodNotAllowedError, ServiceUnavailableError } from '../core/errors'
import {
  otherMount,
  type SetupWarning,
  type SetupWarnings,
  secureCookiesOverHttp,
  trustsEveryProxy,
  unparsedBody,
  unreadableClient,
  untrustedProxy,
} from '../core/setup-warnings'
import { withTimeout } from '../core/with-timeout'
import type { Description } from './description'
import { readJsonBody, takingRefreshTokenHeader, validate } from './input'
import { setSecurityHeaders } from './send'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** Tests and the API document read the same routes that are mounted. */
export interface Route {
  readonly method: Method
  /** Below the prefix. Contains only literal segments and `:name`, which Express 4 and 5 read in the same way. */
  readonly path: string
  readonly describes: Description
  /** The route ends in a login, so its response is a session or a challenge. */
  readonly delivers?: 'login'
  /** Sends its responses about an account at multiples of `timingGridMilliseconds` (`http/fixed-response-time.ts`). */
  readonly hidesAccount?: boolean
  /** This GET changes something: HEAD gets 405. Otherwise Express would call this route also for HEAD. */
  readonly refusesHead?: boolean
  /** False: the next route with the same method and path is tried. */
  readonly when?: (req: Request) => boolean
  /** Run before the body is read, in this order: rate limits, cross-site checks, guards. */
  readonly before?: readonly RequestHandler[]
  readonly body?: Joi.ObjectSchema
  readonly handle: (req: Request, res: Response) => Promise<void> | void
  /** Instead of the JSON error envelope. */
  readonly onError?: ErrorRequestHandler | undefined
}

/** `handle` gets a validated body. */
export function withBody<T>(
  route: Omit<Route, 'handle'> & { body: Joi.ObjectSchema<T>; handle: (req: Request, res: Response, body: T) => Promise<void> | void },
): Route {
  const withHeader = takingRefreshTokenHeader(route.body)
  return {
    ...route,
    handle: async (req, res) => route.handle(req, res, validate(route.body, withHeader(req, await readJsonBody(req, res)))),
  }
}

/** A known path with another method gets 405. An unknown path is left to the host. */
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
  const handlers = [
    ...(when ? [asking(when)] : []),
    method === 'GET' ? secured : securedLater,
    ...before,
    settled(handle),
    ...(onError ? [onError] : []),
  ]
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

/** In a measurement, the next turn of the event loop made a refresh faster, but not a GET. So only methods with a body use it. */
const securedLater: RequestHandler = (_req, res, next) => {
  setSecurityHeaders(res)
  inNextTurn(next)
}

function refuseMethod(lines: readonly Route[]): RequestHandler {
  const methods = lines.flatMap((line) => (line.method === 'GET' && !line.refusesHead ? ['GET', 'HEAD'] : [line.method]))
  const allow = [...new Set(methods)].join(', ')
  return (_req, res, next) => {
    res.setHeader('Allow', allow)
    next(new MethodNotAllowedError())
  }
}

/** Express 4 alone ignores a rejected promise. Express 4 and 5 alone do not treat a thrown `undefined` or 'route' as an error. */
export function settled(handle: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return (req, res, next) => {
    withinRequest(new Promise<void>((resolve) => resolve(handle(req, res)))).catch((thrown: unknown) => next(asError(thrown)))
  }
}

/** `refuse` handles an error of the check. If there is no promise, `proceed` calls the next handler; by default at once. */
export function step(
  check: (req: Request, res: Response) => Promise<void> | void,
  refuse: ErrorRequestHandler = passOn,
  proceed: (next: NextFunction) => void = (next) => next(),
  mostMs: number = deadlineMs,
): RequestHandler {
  return (req, res, next) => {
    let pending: Promise<void> | void
    try {
      pending = check(req, res)
    } catch (thrown) {
      return void refuse(asError(thrown), req, res, next)
    }
    if (!pending) return proceed(next)
    withinRequest(pending, mostMs)
      .then(
        () => next(),
        (thrown: unknown) => refuse(asError(thrown), req, res, next),
      )
      .catch(() => undefined) // prevents an unhandled rejection; Express handles what a handler throws
  }
}

const passOn: ErrorRequestHandler = (error, _req, _res, next) => next(error)

// In milliseconds. The slowest usual request needs less: three provider calls of at most ten seconds each.
const deadlineMs = 40_000

/** At most `deadlineMs`, so that the request does not hang forever if an adapter never settles. */
function withinRequest(work: Promise<void>, mostMs: number = deadlineMs): Promise<void> {
  return withTimeout(work, Math.min(mostMs, deadlineMs), () => new ServiceUnavailableError())
}

/** An error of the host's store or hooks can have a `status`, but that status is not meant for our client. */
function asError(thrown: unknown): AppError {
  return thrown instanceof AppError ? thrown : new InternalError({ cause: thrown })
}

/** False if the host has sent one, or for an upgrade: it has no response, and a `ServerResponse` made for it has no socket. */
export function isAnswerable(res: Partial<Response> | null | undefined): res is Response {
  if (typeof res?.status !== 'function' || typeof res.setHeader !== 'function' || res.headersSent) return false
  return res.socket !== null || res.destroyed === true // the socket of a client that hung up is gone too
}

// Kept at load, so that fake timers that a test installs later do not stop requests.
const { setImmediate } = timers

/** Node then runs one step of several requests one after the other. Its code stays in the processor's cache, which saves CPU time. */
export function inNextTurn(next: NextFunction): void {
  setImmediate(next)
}

interface Watched {
  readonly settings: Pick<Settings, 'cookieSecure' | 'publicUrl'>
  readonly prefix: string
  readonly notices: SetupWarnings
}

/** Logs signs of a wrong configuration, and passes every request on. Checks the mount path only for the first request. */
export function watchSetup({ settings, prefix, notices }: Watched): RequestHandler {
  let isFirst = true
  const tell = (notice: SetupWarning | null) => notice && notices.tell(notice)
  return (req, _res, next) => {
    if (isFirst) {
      isFirst = false
      tell(otherMount(req, prefix))
      tell(trustsEveryProxy(req))
    }
    tell(untrustedProxy(req))
    tell(secureCookiesOverHttp(req, settings))
    tell(unparsedBody(req))
    if (clientOf(req) === null) notices.tell(unreadableClient(req.ip))
    next()
  }
}
