import type { ErrorRequestHandler } from 'express'
import { consoleLogger, type Logger, safely } from '../logger'
import type { Languages } from '../texts/texts'
import { checkedLanguages } from './checked-languages'
import { sendError } from './error-envelope'
import { refuseRequest } from './forgotten-call'
import type { Speaking } from './locale'

/**
 * Makes an error handler that sends the envelope, for the host's own routes. Mount it last. Errors of this library keep their status and
 * code, and errors of body parsers are mapped in the same way as in our router. Any other error is 500 INTERNAL_ERROR with empty details.
 * `languages`: the same as the router's.
 * @throws ConfigurationError for a language or text that cannot be used
 */
export function errorHandler(options: { logger?: Logger; languages?: Languages } = {}): ErrorRequestHandler {
  refuseRequest('errorHandler', [options])
  const { logger = consoleLogger, languages } = options
  return answerErrors({ logger: safely(logger), texts: checkedLanguages(languages), settings: { defaultLocale: 'en-US' } })
}

/** Makes the error handler of our own routes, so that our errors never reach the host's error handler. */
export function answerErrors(ctx: Speaking & { logger: Logger }): ErrorRequestHandler {
  return (error, req, res, next) => {
    // A started response cannot be replaced, so Express closes the connection.
    if (res.headersSent) return next(error)
    sendError(ctx, req, res, error)
  }
}
