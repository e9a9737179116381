import type { Request, RequestHandler, Response } from 'express'
import { isSecondFactor } from '../amr'
import type { GuardSettings } from '../config/guard-settings'
import type { AuthContext } from '../context'
import {
  AccountInactiveError,
  AppError,
  ConfigurationError,
  ForbiddenError,
  InvalidTokenError,
  MfaRequiredError,
  ServiceUnavailableError,
  TokenExpiredError,
  UnauthorizedError,
} from '../errors'
import { describeStep, type Refusal } from '../http/description'
import { step } from '../http/routes'
import type { KeyList } from '../keys'
import type { UserRecord, UserStore } from '../store/auth-store'
import { readCredential } from './credentials'
import { rememberAuth, type TokenAuth } from './current-auth'
import { toPublicUser } from './public-user'
import { refuse } from './refusing'
import { requireSession } from './require-session'
import type { TokenKeys } from './token-keys'
import { verifyOnce } from './verify-once'

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
  /** requireUser, and `isAdmin` as the database has it now; else 403 FORBIDDEN. */
  requireAdmin(): RequestHandler
  /** A live server-side session, by its cookie, and its user; anything else is 401 UNAUTHORIZED. One query. */
  requireSession(): RequestHandler
}

export type GuardContext = Pick<AuthContext, 'now' | 'logger'> & {
  readonly settings: GuardSettings
  /** What an access token may be signed with. */
  readonly tokenKeys: TokenKeys
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions'> | null
  /** Null: guards without the secret, which ask the database about junk as well. */
  readonly sessionTokenKeys: KeyList | null
}

export function guardsFor(ctx: GuardContext): Guards {
  const find = authFinder(ctx)
  const authenticated = (check: (req: Request, auth: TokenAuth) => Promise<void> | void, ...refuses: readonly Refusal[]) => {
    const guard = guarding(ctx, (req) => {
      const auth = find(req)
      if (!auth) throw new UnauthorizedError()
      return auth instanceof Promise ? auth.then((found) => check(req, found)) : check(req, auth)
    })
    return describeStep(guard, { refuses: [...tokenRefusals, ...refuses], credential: 'access_token' })
  }
  return {
    requireAuth: () => authenticated(rememberAuth),
    optionalAuth: () =>
      guarding(ctx, (req) => {
        const auth = find(req)
        if (auth === null) return
        return auth instanceof Promise ? auth.then((found) => rememberAuth(req, found)) : rememberAuth(req, auth)
      }),
    requireMfa: () =>
      authenticated((req, auth) => {
        if (!auth.claims.amr.some(isSecondFactor)) throw new MfaRequiredError()
        rememberAuth(req, auth)
      }, MfaRequiredError),
    requireUser: () => {
      const users = usersOf(ctx, 'requireUser')
      return authenticated(async (req, { claims }) => {
        rememberAuth(req, { claims, user: toPublicUser(await loadUser(users, claims.sub)) })
      }, AccountInactiveError)
    },
    requireAdmin: () => {
      const users = adminsOf(ctx)
      return authenticated(
        async (req, { claims }) => {
          const user = await loadUser(users, claims.sub)
          if (user.isAdmin !== true) throw new ForbiddenError()
          rememberAuth(req, { claims, user: toPublicUser(user) })
        },
        AccountInactiveError,
        ForbiddenError,
      )
    },
    requireSession: () => describeStep(guarding(ctx, requireSession(ctx)), { refuses: [UnauthorizedError], credential: 'session_cookie' }),
  }
}

const tokenRefusals: readonly Refusal[] = [UnauthorizedError, InvalidTokenError, TokenExpiredError]

/** Null: no token was sent. A promise only where a key has to be fetched: one for each request is most of what a guard would cost. */
function authFinder(ctx: GuardContext): (req: Request) => TokenAuth | Promise<TokenAuth> | null {
  const verify = verifyOnce(ctx, ctx.tokenKeys)
  return (req) => {
    const credential = readCredential(ctx.settings, req)
    return credential && verify(credential.token)
  }
}

/** Closed on any failure: whatever is thrown in the check is an answer, and the handler behind is not reached. */
function guarding(ctx: GuardContext, check: (req: Request, res: Response) => Promise<void> | void): RequestHandler {
  return step(check, (error, req, res, next) => {
    const challenge = res.headersSent ? null : challengeOf(ctx, req, error)
    if (challenge !== null) res.setHeader('WWW-Authenticate', challenge)
    refuse(req, res, next, error, { logger: ctx.logger, defaultLocale: ctx.settings.defaultLocale })
  })
}

/** RFC 6750 section 3 tells a token that was refused from none at all; RFC 9470 section 3 one that lacks a factor. */
function challengeOf(ctx: GuardContext, req: Request, error: unknown): string | null {
  if (error instanceof MfaRequiredError) return 'Bearer error="insufficient_user_authentication"'
  if (!(error instanceof UnauthorizedError)) return null
  return wasTokenSent(ctx, req) ? 'Bearer error="invalid_token"' : 'Bearer'
}

function wasTokenSent(ctx: GuardContext, req: Request): boolean {
  try {
    return readCredential(ctx.settings, req) !== null
  } catch {
    return true // one that cannot be read
  }
}

function usersOf(ctx: GuardContext, guard: string): UserStore {
  if (!ctx.store) throw new ConfigurationError(`${guard}() reads the user row: pass \`store\` to createGuards().`)
  return ctx.store.users
}

function adminsOf(ctx: GuardContext): UserStore {
  const users = usersOf(ctx, 'requireAdmin')
  // An adapter that says of no field that it has it, has none.
  if (users.fields?.has('isAdmin') === true) return users
  throw new ConfigurationError(
    'requireAdmin() reads `is_admin`, and the users table has no such column; add one or map it (`users.columns.isAdmin`).',
  )
}

async function loadUser(users: UserStore, id: string): Promise<UserRecord> {
  const user = await findUser(users, id)
  if (!user) throw new UnauthorizedError()
  if (!user.isActive) throw new AccountInactiveError()
  return user
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
