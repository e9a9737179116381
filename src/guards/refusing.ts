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
  /** Undefined if the guards have no router. */
  readonly prefix?: string
  readonly settings: GuardSettings
  readonly tokenKeys: TokenKeys
  readonly isOwnCookie: (name: string, value: string) => boolean
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions' | 'identities'> | null
  /** For `tokenDelivery: 'session'`, where no token contains the host's claims. Undefined: the host has none. */
  readonly accessTokenClaims?: AuthContext['accessTokenClaims']
  readonly providers?: AuthContext['providers']
  /** Of the router. Guards without a router end no session. */
  readonly sessionEnds?: AuthContext['sessionEnds']
  /** Null if the guards do not know the secret. They then query the database also for a random cookie value. */
  readonly sessionTokenKeys: KeyList | null
  /** Of the device cookie and CSRF tokens. Null if the guards do not know the secret. */
  readonly keys: Pick<AuthContext['keys'], 'device' | 'proof-cookie' | 'csrf' | 'csrf-binding'> | null
}

/** For guards without a router. */
const alone: Speaking & { logger: Logger } = {
  logger: safely(consoleLogger),
  texts: createPhraseBook(),
  settings: { defaultLocale: 'en-US' },
}

/** A rejected request gets the JSON error envelope. If no response can be sent, calls `next(error)`. */
export function refusing(check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return step(check, (error, req, res, next) => refuse(req, res, next, error))
}

export function refuse(req: Request, res: Response, next: NextFunction, error: unknown, ctx: Speaking & { logger: Logger } = alone): void {
  if (isAnswerable(res)) sendError(ctx, req, res, error)
  else next(error)
}

/** Only the reason, and no value of the request. */
export function logRefusal(logger: Logger, error: unknown): void {
  if (!(error instanceof AppError) || (error.status !== 401 && error.status !== 403)) return
  const { code, reason = String(error.details['reason'] ?? code.toLowerCase()) } = error
  logger.info({ code, reason }, `doorward: a guard refused a request. ${seeTroubleshooting('a-401-or-403-that-you-cannot-explain')}`)
}
