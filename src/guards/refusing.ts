import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { AppError } from '../core/errors'
import { consoleLogger, type Logger, safely } from '../core/logger'
import { createPhraseBook } from '../core/texts/phrase-book'
import { seeTroubleshooting } from '../core/troubleshooting'
import { isAnswerable } from '../http/answerable'
import { sendError } from '../http/error-envelope'
import type { Speaking } from '../http/locale'
import { step } from '../http/routes'

/** The logger, the texts and the language of guards without a router. */
const alone: Speaking & { logger: Logger } = {
  logger: safely(consoleLogger),
  texts: createPhraseBook(),
  settings: { defaultLocale: 'en-US' },
}

/**
 * Makes a guard for the host's own routes. If the check throws, the guard sends the JSON error envelope and the next handler does not run.
 * If it cannot send a response, it calls `next(error)`.
 */
export function refusing(check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return step(check, (error, req, res, next) => refuse(req, res, next, error))
}

export function refuse(req: Request, res: Response, next: NextFunction, error: unknown, ctx: Speaking & { logger: Logger } = alone): void {
  if (isAnswerable(res)) sendError(ctx, req, res, error)
  else next(error)
}

/** Logs why a guard rejected a request with 401 or 403. The log contains only the reason, and no value of the request. */
export function logRefusal(logger: Logger, error: unknown): void {
  if (!(error instanceof AppError) || (error.status !== 401 && error.status !== 403)) return
  const { code, reason = String(error.details['reason'] ?? code.toLowerCase()) } = error
  logger.info({ code, reason }, `doorward: a guard refused a request. ${seeTroubleshooting('a-401-or-403-that-you-cannot-explain')}`)
}
