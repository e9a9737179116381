import type { ErrorRequestHandler } from 'express'
import { consoleLogger, type Logger, safely } from '../logger'
import type { Languages } from '../texts/texts'
import { checkedLanguages } from './checked-languages'
import { sendError } from './error-envelope'
import { refuseRequest } from './forgotten-call'
import type { Speaking } from './locale'

/**
 * The envelope for the host's own routes: mount it last. Errors of this library keep their status and code, what body
 * parsers raise before our router is mapped the same way, anything else is 500 INTERNAL_ERROR with empty details. `languages`: as the
 * router has them.
 * @throws ConfigurationError for a language or text that cannot be used
 */
export function errorHandler(options: { logger?: Logger; languages?: Languages } = {}): ErrorRequestHandler {
  refuseRequest('errorHandler', [options])
  const { logger = consoleLogger, languages } = options
  return answerErrors({ logger: safely(logger), texts: checkedLanguages(languages), settings: { defaultLocale: 'en-US' } })
}

/** The same under the prefix, so that nothing of ours reaches the host's error handler. */
export function answerErrors(ctx: Speaking & { logger: Logger }): ErrorRequestHandler {
  return (error, req, res, next) => {
    // Half an answer cannot be turned into another one: Express ends the connection.
    if (res.headersSent) return next(error)
    sendError(ctx, req, res, error)
  }
}
