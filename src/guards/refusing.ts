import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { AppError } from '../errors'
import { sendError } from '../http/error-envelope'
import { type Locale, localeOf } from '../http/locale'
import { step } from '../http/routes'
import { consoleLogger, type Logger, safely } from '../logger'

const logger = safely(consoleLogger)

/**
 * A check that a host puts in front of its own routes. Closed on any failure: whatever is thrown in it is answered here,
 * in the envelope, and the handler behind it is not reached.
 */
export function refusing(check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return step(check, (error, req, res, next) => refuse(req, res, next, error))
}

export function refuse(
  req: Request,
  res: Response,
  next: NextFunction,
  error: unknown,
  told: { logger: Logger; defaultLocale: Locale } = { logger, defaultLocale: 'en-US' },
): void {
  // The host answered while we were asking, say after a timeout of its own: there is nothing left to answer.
  if (res.headersSent) next(error)
  else sendError(req, res, error, { logger: told.logger, locale: localeOf(req, told.defaultLocale) })
}

/** Tells the log why a guard refused with 401 or 403: a word, and no value of the request. */
export function logRefusal(logger: Logger, error: unknown): void {
  if (!(error instanceof AppError) || (error.status !== 401 && error.status !== 403)) return
  const { code, reason = String(error.details['reason'] ?? code.toLowerCase()) } = error
  logger.info({ code, reason }, 'doorward: a guard refused a request')
}
