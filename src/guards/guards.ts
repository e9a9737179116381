import type { Request, RequestHandler, Response } from 'express'
import { isSecondFactor } from '../amr'
import type { AuthContext } from '../context'
import { AccountInactiveError, AppError, ConfigurationError, MfaRequiredError, ServiceUnavailableError, UnauthorizedError } from '../errors'
import { sendError } from '../http/error-envelope'
import { localeOf } from '../http/locale'
import { step } from '../http/routes'
import { type AccessTokenClaims, verifyAccessToken } from '../session/access-token'
import type { UserRecord, UserStore } from '../store/auth-store'
import { readCredential } from './credentials'
import { rememberAuth } from './current-auth'
import { toPublicUser } from './public-user'
import { requireSession } from './require-session'

/** What a host puts in front of its own routes. A refusal is answered here, in the envelope, and goes no further. */
export interface Guards {
  /** A valid access token, from the header or (where delivery includes cookies) the cookie. No database. */
  requireAuth(): RequestHandler
  /** The same, but a request without a token passes as anonymous; a bad token is refused. */
  optionalAuth(): RequestHandler
  /** requireAuth, and a second factor was shown in this session; else 403 MFA_REQUIRED. */
  requireMfa(): RequestHandler
  /** requireAuth, and the user as the database has it now: gone 401, inactive 403 ACCOUNT_INACTIVE. */
  requireUser(): RequestHandler
  /** A live server-side session, by its cookie, and its user; anything else is 401 UNAUTHORIZED. One query. */
  requireSession(): RequestHandler
}

export type GuardContext = Pick<AuthContext, 'settings' | 'keys' | 'now' | 'logger'> & {
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions'> | null
}

export function guardsFor(ctx: GuardContext): Guards {
  return {
    requireAuth: () => refusing(ctx, (req) => rememberAuth(req, { claims: authenticate(ctx, req), user: null })),
    optionalAuth: () =>
      refusing(ctx, (req) => {
        const claims = findClaims(ctx, req)
        if (claims) rememberAuth(req, { claims, user: null })
      }),
    requireMfa: () =>
      refusing(ctx, (req) => {
        const claims = authenticate(ctx, req)
        if (!claims.amr.some(isSecondFactor)) throw new MfaRequiredError()
        rememberAuth(req, { claims, user: null })
      }),
    requireUser: () => {
      const users = usersOf(ctx)
      return refusing(ctx, async (req) => {
        const claims = authenticate(ctx, req)
        const user = await findUser(users, claims.sub)
        if (user?.id !== claims.sub) throw new UnauthorizedError() // an adapter's near match is nobody
        if (!user.isActive) throw new AccountInactiveError()
        rememberAuth(req, { claims, user: toPublicUser(user) })
      })
    },
    requireSession: () => refusing(ctx, requireSession(ctx)),
  }
}

function authenticate(ctx: GuardContext, req: Request): AccessTokenClaims {
  const claims = findClaims(ctx, req)
  if (!claims) throw new UnauthorizedError()
  return claims
}

function findClaims(ctx: GuardContext, req: Request): AccessTokenClaims | null {
  const credential = readCredential(ctx.settings, req)
  return credential && verifyAccessToken(ctx, credential.token)
}

/** Closed on any failure: whatever is thrown in the check is an answer, and the handler behind is not reached. */
function refusing(ctx: GuardContext, check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  const run = step(check)
  return (req, res, next) => {
    run(req, res, (error?: unknown) => {
      if (error === undefined) return next()
      // The host answered while we were asking, say after a timeout of its own: there is nothing left to answer.
      if (res.headersSent) return next(error)
      // RFC 6750 section 3: tells a token that was refused from none at all.
      if (error instanceof UnauthorizedError)
        res.setHeader('WWW-Authenticate', error.code === 'UNAUTHORIZED' ? 'Bearer' : 'Bearer error="invalid_token"')
      sendError(req, res, error, { logger: ctx.logger, locale: localeOf(req, ctx.settings.defaultLocale) })
    })
  }
}

function usersOf(ctx: GuardContext): UserStore {
  if (!ctx.store) throw new ConfigurationError('requireUser() reads the user row: pass `store` to createGuards().')
  return ctx.store.users
}

/** An adapter that fails tells us nothing about the user: closed, and worth trying again. */
async function findUser(users: UserStore, id: string): Promise<UserRecord | null> {
  try {
    const user = await users.find(id)
    return user?.id === id ? user : null // another's row, from a host's own adapter, is nobody's
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}
