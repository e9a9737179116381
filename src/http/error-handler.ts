import type { ErrorRequestHandler } from 'express'
import { consoleLogger, type Logger, safely } from '../core/logger'
import type { Languages } from '../core/texts/texts'
import { checkedLanguages } from './checked-languages'
import { sendError } from './error-envelope'
import { refuseRequest } from './forgotten-call'
import type { Speaking } from './locale'

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

/**
 * Makes the error handler of our own routes. The host's error handler gets an error of our routes only if the response has already begun.
 */
export function answerErrors(ctx: Speaking & { logger: Logger }): ErrorRequestHandler {
  return (error, req, res, next) => {
    // A started response cannot be replaced. Express's own error handler closes the connection.
    if (res.headersSent) return next(error)
    sendError(ctx, req, res, error)
  }
}
