import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { sendError } from '../http/error-envelope'
import { localeOf } from '../http/locale'
import { step } from '../http/routes'
import { consoleLogger, safely } from '../logger'

const logger = safely(consoleLogger)

/**
 * A check that a host puts in front of its own routes. Closed on any failure: whatever is thrown in it is answered here,
 * in the envelope, and the handler behind it is not reached.
 */
export function refusing(check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  const run = step(check)
  return (req, res, next) => {
    run(req, res, (error?: unknown) => (error === undefined ? next() : refuse(req, res, next, error)))
  }
}

export function refuse(req: Request, res: Response, next: NextFunction, error: unknown): void {
  // The host answered while we were asking, say after a timeout of its own: there is nothing left to answer.
  if (res.headersSent) next(error)
  else sendError(req, res, error, { logger, locale: localeOf(req, 'en-US') })
}
