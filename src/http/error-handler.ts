import type { ErrorRequestHandler } from 'express'
import { consoleLogger, type Logger, safely } from '../logger'
import { sendError } from './error-envelope'
import { refuseRequest } from './forgotten-call'
import { type Locale, localeOf } from './locale'

/**
 * The envelope for the host's own routes: mount it last. Errors of this library keep their status and code, what body
 * parsers raise before our router is mapped the same way, anything else is 500 INTERNAL_ERROR with empty details.
 */
export function errorHandler(options: { logger?: Logger } = {}): ErrorRequestHandler {
  refuseRequest('errorHandler', [options])
  return answerErrors(safely(options.logger ?? consoleLogger), 'en-US')
}

/** The same under the prefix, so that nothing of ours reaches the host's error handler. */
export function answerErrors(logger: Logger, defaultLocale: Locale): ErrorRequestHandler {
  return (error, req, res, next) => {
    // Half an answer cannot be turned into another one: Express ends the connection.
    if (res.headersSent) return next(error)
    sendError(req, res, error, { logger, locale: localeOf(req, defaultLocale) })
  }
}
