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
import { refuseRequest } from '../http/forgotten-call'
import { step } from '../http/routes'
import type { KeyList } from '../keys'
import type { UserStore } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/public-user'
import { hostClaimsOfSession, sessionFinder } from './by-session-cookie'
import { readCredential } from './credentials'
import type { CsrfGuardOptions } from './csrf/csrf-guard'
import { siteCsrf } from './csrf/site-csrf'
import { getUser, type KnownAuth, rememberAuth } from './current-auth'
import { logRefusal, refuse } from './refusing'
import { type ClaimCheck, type ClaimName, claimCheck, type ExpectedClaim, type RoleOf, roleCheck } from './require-claim'
import { redirectToLogin } from './require-login'
import { requireSession } from './require-session'
import type { TokenKeys } from './token-keys'
import { verifyOnce } from './verify-once'

/** What a host puts in front of its own routes. A refusal is answered here, in the envelope, and goes no further. */
export interface Guards<Host extends HostTypes = HostTypes> {
  /** A valid access token, from the header or (where delivery includes cookies) the cookie. No database. */
  requireAuth(): RequestHandler
  /**
   * requireAuth for pages, in deliveries with cookies: a GET or HEAD whose `Accept` names `text/html` is sent to `loginUrl` with `return_to`,
   * instead of the 401. Nobody signs in while the refresh cookie works.
   * @throws ConfigurationError in delivery `bearer`, and without `loginUrl`
   */
  requireLogin(): RequestHandler
  /** requireAuth, but a request without a token passes as anonymous; a bad token is refused. */
  optionalAuth(): RequestHandler
  /** requireAuth, and a second factor was shown in this session; else 403 MFA_REQUIRED. */
  requireMfa(): RequestHandler
  /** requireAuth, and the user as the database has it now: gone 401, inactive 403 ACCOUNT_INACTIVE. */
  requireUser(): RequestHandler
  /** requireUser, and `isAdmin` as the database has it now; else 403 FORBIDDEN. */
  requireAdmin(): RequestHandler
  /**
   * requireAuth, and the claim has this value, by `===`, or your function of its value returns true; else 403 FORBIDDEN. A claim that is
   * not there is refused. A function that throws refuses, and is logged.
   * @throws ConfigurationError for a value that is neither a scalar nor a function
   */
  requireClaim<Name extends ClaimName<Host>>(name: Name, expected: ExpectedClaim<Host, Name>): RequestHandler
  /**
   * requireAuth, and the claim `roles`, a list of texts, has one of these; else 403 FORBIDDEN.
   * @throws ConfigurationError without a role
   */
  requireRole(...roles: readonly [RoleOf<Host>, ...RoleOf<Host>[]]): RequestHandler
  /**
   * requireUser, and the session of the request has not ended; else 401 INVALID_TOKEN. For routes where the minutes that an access token
   * outlives its session are too long. Behind `requireSession`, that session counts. One query.
   */
  requireLiveSession(): RequestHandler
  /**
   * requireLiveSession, and the person showed a credential within `maxAgeSeconds` (default: the setting `freshSessionSeconds`); else 403
   * REAUTHENTICATION_REQUIRED, whose `details.methods` say how to confirm it at `POST /reauthenticate`.
   * @throws ConfigurationError for a `maxAgeSeconds` that is no whole number of at least 1
   */
  requireFresh(options?: { maxAgeSeconds?: number }): RequestHandler
  /** A live server-side session, by its cookie, and its user; anything else is 401 UNAUTHORIZED. One query. */
  requireSession(): RequestHandler
  /**
   * `csrfGuard` that also trusts `publicUrl` and `trustedOrigins` of the settings, knows the names of their cookies, and takes
   * the token from the field `_csrf` of a parsed form where the header is missing. Pass the `secret` of `csrfToken()`.
   * @throws ConfigurationError for an option that is not what it has to be
   */
  csrf(options?: CsrfGuardOptions): RequestHandler
  /**
   * The user that `requireUser`, `requireAdmin` or `requireSession` loaded, with the types of your own fields.
   * @throws Error when none of them ran before
   */
  getUser(req: Request): WithFields<PublicUser, Host>
}

export type GuardContext = Pick<AuthContext, 'now' | 'logger' | 'notices' | 'texts'> & {
  /** Of the router; guards without one may know none. */
  readonly prefix?: string
  readonly settings: GuardSettings
  /** What an access token may be signed with. */
  readonly tokenKeys: TokenKeys
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions' | 'identities'> | null
  /** What the host adds in delivery `session`, where no token carries it. Left out: nothing. */
  readonly accessTokenClaims?: AuthContext['accessTokenClaims']
  /** Of the router, by registration key. */
  readonly providers?: AuthContext['providers']
  /** Null: guards without the secret, which ask the database about junk as well. */
  readonly sessionTokenKeys: KeyList | null
}

/** All guards but those of step-up/session-guards.ts. */
export type BaseGuards = Omit<Guards, 'requireLiveSession' | 'requireFresh'>

export function guardsFor(ctx: GuardContext): BaseGuards {
  const find = authFinder(ctx)
  const looking = (check: (req: Request, auth: KnownAuth | null) => Promise<void> | void) => (req: Request, res: Response) => {
    const auth = find(req, res)
    return auth instanceof Promise ? auth.then((found) => check(req, found)) : check(req, auth)
  }
  const asking = (check: AuthCheck) =>
    looking((req, auth) => {
      if (!auth) throw new UnauthorizedError({ reason: 'nobody_signed_in' })
      return check(req, auth)
    })
  const authenticated = (check: AuthCheck, ...refuses: readonly Refusal[]) =>
    describeStep(guarding(ctx, asking(check)), { refuses: [...tokenRefusals, ...refuses], credential: 'access_token' })
  const remember: AuthCheck = (req, auth) => rememberAuth(req, requireActive(auth))
  const hostClaims = ctx.settings.tokenDelivery === 'session' ? hostClaimsOfSession(ctx) : null
  const claiming = (check: ClaimCheck) => {
    const judge = (req: Request, auth: KnownAuth) => {
      check(auth.claims)
      rememberAuth(req, auth)
    }
    return authenticated(
      (req, auth) => (hostClaims ? hostClaims(req, requireActive(auth)).then((known) => judge(req, known)) : judge(req, auth)),
      ForbiddenError,
    )
  }
  const makers = withParentheses({
    requireAuth: () => authenticated(remember),
    requireLogin: () => guarding(ctx, asking(remember), redirectToLogin(ctx)),
    optionalAuth: () =>
      guarding(
        ctx,
        looking((req, auth) => (auth ? remember(req, auth) : undefined)),
      ),
    requireMfa: () =>
      authenticated((req, auth) => {
        if (!requireActive(auth).claims.amr.some(isSecondFactor)) throw new MfaRequiredError()
        rememberAuth(req, auth)
      }, MfaRequiredError),
    requireUser: () => {
      const users = usersOf(ctx, 'requireUser')
      return authenticated(async (req, auth) => rememberAuth(req, { ...auth, user: await loadUser(users, auth) }), AccountInactiveError)
    },
    requireAdmin: () => {
      const users = adminsOf(ctx)
      return authenticated(
        async (req, auth) => {
          const user = await loadUser(users, auth)
          if (user.isAdmin !== true) throw new ForbiddenError({ reason: 'not_admin' })
          rememberAuth(req, { ...auth, user })
        },
        AccountInactiveError,
        ForbiddenError,
      )
    },
    requireClaim: (name: unknown, expected: unknown) => claiming(claimCheck(name, expected, ctx.logger)),
    requireRole: (...roles: readonly unknown[]) => claiming(roleCheck(roles)),
    requireSession: () => describeStep(guarding(ctx, requireSession(ctx)), { refuses: [UnauthorizedError], credential: 'session_cookie' }),
    csrf: (options = {}) => siteCsrf(ctx, options),
  })
  return { ...makers, getUser }
}

type AuthCheck = (req: Request, auth: KnownAuth) => Promise<void> | void

type GuardMakers = Omit<BaseGuards, 'getUser'>

/** A guard whose parentheses were forgotten is handed a request, and says so: it would hang otherwise. */
function withParentheses(guards: GuardMakers): GuardMakers {
  const makers = Object.entries(guards) as [string, (...given: unknown[]) => RequestHandler][]
  const checked = makers.map(([name, make]) => [
    name,
    (...given: unknown[]) => {
      refuseRequest(`guards.${name}`, given)
      return make(...given)
    },
  ])
  return Object.fromEntries(checked) as unknown as GuardMakers // the same makers under the same names
}

const tokenRefusals: readonly Refusal[] = [UnauthorizedError, InvalidTokenError, TokenExpiredError]

/** Null: nobody is signed in. */
type FindAuth = (req: Request, res: Response) => KnownAuth | null | Promise<KnownAuth | null>

/** For a token a promise only where a key has to be fetched: one for each request is most of what a guard would cost. */
function authFinder(ctx: GuardContext): FindAuth {
  if (ctx.settings.tokenDelivery === 'session') return sessionFinder(ctx)
  const verify = verifyOnce(ctx, ctx.tokenKeys)
  return (req) => {
    const credential = readCredential(ctx, req)
    return credential && verify(credential.token)
  }
}

/**
 * Closed on any failure: whatever is thrown in the check is an answer, and the handler behind is not reached.
 * @param answer true where it answered a refusal itself, instead of the envelope
 */
export function guarding(
  ctx: GuardContext,
  check: (req: Request, res: Response) => Promise<void> | void,
  answer: (error: unknown, req: Request, res: Response) => boolean = () => false,
): RequestHandler {
  return step(check, (error, req, res, next) => {
    if (!res.headersSent && answer(error, req, res)) return
    logRefusal(ctx.logger, error)
    const challenge = res.headersSent ? null : challengeOf(ctx, req, error)
    if (challenge !== null) res.setHeader('WWW-Authenticate', challenge)
    refuse(req, res, next, error, ctx)
  })
}

/** RFC 6750 section 3 tells a token that was refused from none at all; RFC 9470 section 3 one that lacks a factor. */
function challengeOf(ctx: GuardContext, req: Request, error: unknown): string | null {
  if (error instanceof MfaRequiredError) return 'Bearer error="insufficient_user_authentication"'
  if (!(error instanceof UnauthorizedError)) return null
  // A session that is over counts as no cookie.
  if (ctx.settings.tokenDelivery === 'session') return error instanceof InvalidTokenError ? 'Bearer error="invalid_token"' : 'Bearer'
  return wasTokenSent(ctx, req) ? 'Bearer error="invalid_token"' : 'Bearer'
}

function wasTokenSent(ctx: GuardContext, req: Request): boolean {
  try {
    return readCredential(ctx, req) !== null
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

/** A session comes with its user. */
async function loadUser(users: UserStore, { claims, user: known }: KnownAuth): Promise<PublicUser> {
  const user = known ?? (await findUser(users, claims.sub))
  if (!user) throw new UnauthorizedError({ reason: 'account_gone' })
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/** A token says nothing of that, and its account is not looked at. */
function requireActive(auth: KnownAuth): KnownAuth {
  if (auth.user?.isActive === false) throw new UnauthorizedError({ reason: 'account_inactive' })
  return auth
}

/** An adapter that fails tells us nothing about the user: closed, and worth trying again. */
async function findUser(users: UserStore, id: string): Promise<PublicUser | null> {
  try {
    const user = await users.find(id)
    return user?.id === id ? toPublicUser(user) : null // another's row, from a host's own adapter, is nobody's
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}
