import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { AppError } from '../errors'
import { sendError } from '../http/error-envelope'
import type { Speaking } from '../http/locale'
import { step } from '../http/routes'
import { consoleLogger, type Logger, safely } from '../logger'
import { createPhraseBook } from '../texts/phrase-book'
import { seeTroubleshooting } from '../troubleshooting'

/** Where no router is known. */
const alone: Speaking & { logger: Logger } = {
  logger: safely(consoleLogger),
  texts: createPhraseBook(),
  settings: { defaultLocale: 'en-US' },
}

/**
 * A check that a host puts in front of its own routes. Closed on any failure: whatever is thrown in it is answered here,
 * in the envelope, and the handler behind it is not reached.
 */
export function refusing(check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return step(check, (error, req, res, next) => refuse(req, res, next, error))
}

export function refuse(req: Request, res: Response, next: NextFunction, error: unknown, ctx: Speaking & { logger: Logger } = alone): void {
  // The host answered while we were asking, say after a timeout of its own: there is nothing left to answer.
  if (res.headersSent) next(error)
  else sendError(ctx, req, res, error)
}

/** Tells the log why a guard refused with 401 or 403: a word, and no value of the request. */
export function logRefusal(logger: Logger, error: unknown): void {
  if (!(error instanceof AppError) || (error.status !== 401 && error.status !== 403)) return
  const { code, reason = String(error.details['reason'] ?? code.toLowerCase()) } = error
  logger.info({ code, reason }, `doorward: a guard refused a request. ${seeTroubleshooting('a-401-or-403-that-you-cannot-explain')}`)
}
