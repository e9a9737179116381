import type { NextFunction, Request, RequestHandler, Response } from 'express'
import type { AuthContext } from '../context'
import type { GuardSettings } from '../core/config/guard-settings'
import { AppError } from '../core/errors'
import type { KeyList } from '../core/keys'
import { consoleLogger, type Logger, safely } from '../core/logger'
import { createPhraseBook } from '../core/texts/phrase-book'
import { seeTroubleshooting } from '../core/troubleshooting'
import { sendError } from '../http/error-envelope'
import type { Speaking } from '../http/locale'
import { isAnswerable, step } from '../http/routes'
import type { TokenKeys } from './token-keys'

export type GuardContext = Pick<AuthContext, 'now' | 'logger' | 'notices' | 'texts'> & {
  /** The router's prefix. Undefined if the guards have no router. */
  readonly prefix?: string
  readonly settings: GuardSettings
  /** The keys that verify access tokens. */
  readonly tokenKeys: TokenKeys
  readonly isOwnCookie: (name: string, value: string) => boolean
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions' | 'identities'> | null
  /**
   * Returns the host's claims with `tokenDelivery: 'session'`, because no token contains the claims. If undefined, the host has no claims.
   */
  readonly accessTokenClaims?: AuthContext['accessTokenClaims']
  /** The router's providers by registration key. */
  readonly providers?: AuthContext['providers']
  /** Null if the guards do not know the secret. The guards then query the database also for a random cookie value. */
  readonly sessionTokenKeys: KeyList | null
  /** The keys of the device cookie and of CSRF tokens. Null if the guards do not know the secret. */
  readonly keys: Pick<AuthContext['keys'], 'device' | 'proof-cookie' | 'csrf' | 'csrf-binding'> | null
}

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
