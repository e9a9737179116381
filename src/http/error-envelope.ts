import type { ErrorRequestHandler, Request, Response } from 'express'
import {
  AppError,
  ConflictError,
  ForbiddenError,
  InternalError,
  MethodNotAllowedError,
  NotFoundError,
  PayloadTooLargeError,
  ReauthenticationRequiredError,
  ServiceUnavailableError,
  TooManyRequestsError,
  UnauthorizedError,
  UnsupportedMediaTypeError,
  ValidationError,
} from '../core/errors'
import { consoleLogger, describeError, type Logger, logCounted, safely } from '../core/logger'
import type { Languages } from '../core/texts/phrase-book'
import { refuseRequest } from './forgotten-call'
import { checkedLanguages, localeOf, type Speaking } from './locale'
import { sendJson, setResult, setSecurityHeaders } from './send'

/** `{ detail, code, details }`. The library has no other JSON format for errors. */
export function sendError(ctx: Speaking & { logger: Logger }, req: Request, res: Response, thrown: unknown): void {
  const error = readRefusal(ctx.logger, req, thrown)
  setResult(res, error)
  setSecurityHeaders(res)
  setRefusalHeaders(res, error)
  const locale = localeOf(ctx, req)
  const details = error.explains ? { ...error.details, message: ctx.texts.read(locale, error.explains) } : error.details
  sendJson(res, error.status, { detail: ctx.texts.read(locale, error.detail), code: error.code, details })
}

/** Logs errors of the server and overload, not errors of the client. The lines of overload (429 and 503) are counted. */
export function readRefusal(logger: Logger, req: Request, thrown: unknown): AppError {
  const error = toAppError(thrown)
  if (error.status === 500) logger.error(fieldsOf(req, error, describeError(error.cause ?? error)), failed)
  else if (error.status === 429 || (error.status === 503 && !(error instanceof ServiceUnavailableError && error.isLogged)))
    logOverload(logger, req, error)
  return error
}

/** Converts an error of Express or a body parser by its status. Any other value becomes a 500 without details. */
export function toAppError(thrown: unknown): AppError {
  if (thrown instanceof AppError) return thrown
  if (thrown instanceof URIError) return new ValidationError({ details: { errors: [{ path: 'url', rule: 'percent_encoding' }] } })
  const status = clientErrorStatus(thrown)
  if (status === null) return new InternalError({ cause: thrown })
  const type = byStatus.get(status) ?? ValidationError
  return new type(type === ValidationError ? { details: { errors: [{ path: '', rule: 'malformed' }] } } : {})
}

const byStatus: ReadonlyMap<number, new () => AppError> = new Map<number, new () => AppError>([
  [401, UnauthorizedError],
  [403, ForbiddenError],
  [404, NotFoundError],
  [405, MethodNotAllowedError],
  [409, ConflictError],
  [413, PayloadTooLargeError],
  [415, UnsupportedMediaTypeError],
  [429, TooManyRequestsError],
])

/** http-errors marks errors that the client caused with `expose` (body-parser, Express, most middleware). */
function clientErrorStatus(thrown: unknown): number | null {
  if (!(thrown instanceof Error)) return null
  const { status, expose } = thrown as { status?: unknown; expose?: unknown }
  // An error of an HTTP client has a status too, but no `expose`: it is the status of another server's response.
  if (expose !== true) return null
  return typeof status === 'number' && status >= 400 && status < 500 ? status : null
}

export function setRefusalHeaders(res: Response, error: AppError): void {
  if (error.status === 401 && !res.hasHeader('WWW-Authenticate')) res.setHeader('WWW-Authenticate', 'Bearer')
  if (error instanceof ReauthenticationRequiredError)
    // The form of RFC 9470 section 3.
    res.setHeader('WWW-Authenticate', `Bearer error="insufficient_user_authentication", max_age="${error.maxAgeSeconds}"`)
  const seconds = retryAfterSeconds(error)
  if (seconds !== null) res.setHeader('Retry-After', String(seconds))
}

function retryAfterSeconds(error: AppError): number | null {
  if (error.status !== 429 && error.status !== 503) return null
  const seconds = error.details['retry_after_seconds']
  if (typeof seconds === 'number' && Number.isFinite(seconds)) return Math.max(1, Math.ceil(seconds))
  return error instanceof ServiceUnavailableError ? error.retryAfterSeconds : 1
}

const failed = 'doorward: a request failed'

function logOverload(logger: Logger, req: Request, error: AppError): void {
  const { at: _, ...cause } = describeError(error.cause ?? error) // without a stack, because the line comes from a flood
  const [level, message] =
    error.status === 503 ? (['error', failed] as const) : (['warn', 'doorward: a rate limit refused requests'] as const)
  const kind = `${error.code} ${cause.name} ${cause.code}`
  logCounted(logger, { level, kind, fields: fieldsOf(req, error, cause), message })
}

function fieldsOf(req: Request, error: AppError, cause: object): object {
  // Logs the route's pattern and never the URL, because paths and queries contain one-time tokens, codes and states.
  const route: unknown = req.route?.path
  return {
    code: error.code,
    method: req.method,
    route: typeof route === 'string' ? route : null,
    cause,
  }
}

/**
 * Makes an error handler for the host's own routes that sends the JSON error envelope. Mount the handler last. Errors of the library keep
 * their status and code. The handler converts errors of body parsers as the router does. Any other error becomes 500 INTERNAL_ERROR with
 * empty details. Pass the same `languages` as to the router.
 * @throws ConfigurationError for an invalid language or text
 */
export function errorHandler(options: { logger?: Logger; languages?: Languages } = {}): ErrorRequestHandler {
  refuseRequest('errorHandler', [options])
  const { logger = consoleLogger, languages } = options
  return answerErrors({ logger: safely(logger), texts: checkedLanguages(languages), settings: { defaultLocale: 'en-US' } })
}

/** The host's error handler gets an error of our routes only if the response has already begun. */
export function answerErrors(ctx: Speaking & { logger: Logger }): ErrorRequestHandler {
  return (error, req, res, next) => {
    // A started response cannot be replaced. Express's own error handler closes the connection.
    if (res.headersSent) return next(error)
    sendError(ctx, req, res, error)
  }
}
