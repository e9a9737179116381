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

/** Guards for the host's own routes. A guard responds to a rejected request itself, with the JSON error envelope, and the route does not run. */
export interface Guards<Host extends HostTypes = HostTypes> {
  /** Requires a valid access token from the header or, if the delivery includes cookies, from the cookie. It reads no database. */
  requireAuth(): RequestHandler
  /**
   * Like requireAuth, for pages, in deliveries with cookies. A GET or HEAD whose `Accept` contains `text/html` is redirected to `loginUrl`
   * with `return_to`, instead of the 401. While the refresh cookie works, nobody has to sign in again.
   * @throws ConfigurationError in delivery `bearer`, and without `loginUrl`
   */
  requireLogin(): RequestHandler
  /** Like requireAuth, but a request without a token passes as anonymous. An invalid token is rejected. */
  optionalAuth(): RequestHandler
  /** Like requireAuth, and requires a second factor in this session; else 403 MFA_REQUIRED. */
  requireMfa(): RequestHandler
  /** Like requireAuth, and loads the current user row. A deleted user is 401, an inactive one 403 ACCOUNT_INACTIVE. */
  requireUser(): RequestHandler
  /** Like requireUser, and requires `isAdmin` in the current row; else 403 FORBIDDEN. */
  requireAdmin(): RequestHandler
  /**
   * Like requireAuth, and requires a claim: it must equal the value (`===`), or your function of its value must return true; else 403
   * FORBIDDEN. A missing claim is rejected. If the function throws, the error is logged and the request rejected.
   * @throws ConfigurationError for an expected value that is neither a scalar nor a function
   */
  requireClaim<Name extends ClaimName<Host>>(name: Name, expected: ExpectedClaim<Host, Name>): RequestHandler
  /**
   * Like requireAuth, and requires one of these texts in the list of the claim `roles`; else 403 FORBIDDEN.
   * @throws ConfigurationError without a role
   */
  requireRole(...roles: readonly [RoleOf<Host>, ...RoleOf<Host>[]]): RequestHandler
  /**
   * Like requireUser, and requires that the session of the request has not ended; else 401 INVALID_TOKEN. Use it if the minutes that an
   * access token outlives its session are too long. After `requireSession`, that session counts. One query.
   */
  requireLiveSession(): RequestHandler
  /**
   * Like requireLiveSession, and requires that the person showed a credential within `maxAgeSeconds` (default: the setting
   * `freshSessionSeconds`). Else 403 REAUTHENTICATION_REQUIRED; its `details.methods` list what `POST /reauthenticate` accepts.
   * @throws ConfigurationError for a `maxAgeSeconds` that is not a whole number of at least 1
   */
  requireFresh(options?: { maxAgeSeconds?: number }): RequestHandler
  /** Requires a live server-side session, by its cookie, and loads its user; else 401 UNAUTHORIZED. One query. */
  requireSession(): RequestHandler
  /**
   * Like `csrfGuard`, with the router's settings: it also trusts `publicUrl` and `trustedOrigins`, and knows the names of the cookies.
   * Without the header it reads the token from the field `_csrf` of a parsed form. Pass the `secret` of `csrfToken()`.
   * @throws ConfigurationError for a wrong option
   */
  csrf(options?: CsrfGuardOptions): RequestHandler
  /**
   * Returns the user that `requireUser`, `requireAdmin` or `requireSession` loaded, with the types of your own fields.
   * @throws Error when none of them ran before
   */
  getUser(req: Request): WithFields<PublicUser, Host>
}

export type GuardContext = Pick<AuthContext, 'now' | 'logger' | 'notices' | 'texts'> & {
  /** The router's prefix. Guards without a router may not know one. */
  readonly prefix?: string
  readonly settings: GuardSettings
  /** Keys that verify access tokens. */
  readonly tokenKeys: TokenKeys
  readonly store: Pick<AuthContext['store'], 'users' | 'sessions' | 'identities'> | null
  /** Adds the host's claims in delivery `session`, where no token contains them. Left out: there are none. */
  readonly accessTokenClaims?: AuthContext['accessTokenClaims']
  /** The router's clients by registration key. */
  readonly providers?: AuthContext['providers']
  /** Null: guards without the secret, which query the database also for random values. */
  readonly sessionTokenKeys: KeyList | null
}

/** All guards except those of step-up/session-guards.ts. */
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

/** Checks that each guard is called. If the host forgets the parentheses, the guard gets a request as its argument, and the request would hang. */
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

/** Finds the login of a request. Null: nobody is signed in. */
type FindAuth = (req: Request, res: Response) => KnownAuth | null | Promise<KnownAuth | null>

/**
 * Returns the function that finds the login of a request. For a token it returns a promise only if a key must be fetched, because a promise
 * is most of a guard's cost.
 */
function authFinder(ctx: GuardContext): FindAuth {
  if (ctx.settings.tokenDelivery === 'session') return sessionFinder(ctx)
  const verify = verifyOnce(ctx, ctx.tokenKeys)
  return (req) => {
    const credential = readCredential(ctx, req)
    return credential && verify(credential.token)
  }
}

/**
 * Makes a guard of a check. If the check throws, the guard sends an error and the next handler does not run.
 * @param answer returns true if it responded to the error itself, instead of the envelope
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

/**
 * Returns the `WWW-Authenticate` header of an error. It distinguishes a rejected token from a missing one (RFC 6750 section 3), and names a
 * missing factor (RFC 9470 section 3).
 */
function challengeOf(ctx: GuardContext, req: Request, error: unknown): string | null {
  if (error instanceof MfaRequiredError) return 'Bearer error="insufficient_user_authentication"'
  if (!(error instanceof UnauthorizedError)) return null
  // The cookie of an ended session counts as no cookie.
  if (ctx.settings.tokenDelivery === 'session') return error instanceof InvalidTokenError ? 'Bearer error="invalid_token"' : 'Bearer'
  return wasTokenSent(ctx, req) ? 'Bearer error="invalid_token"' : 'Bearer'
}

function wasTokenSent(ctx: GuardContext, req: Request): boolean {
  try {
    return readCredential(ctx, req) !== null
  } catch {
    return true // an unreadable token was sent
  }
}

function usersOf(ctx: GuardContext, guard: string): UserStore {
  if (!ctx.store) throw new ConfigurationError(`${guard}() reads the user row: pass \`store\` to createGuards().`)
  return ctx.store.users
}

function adminsOf(ctx: GuardContext): UserStore {
  const users = usersOf(ctx, 'requireAdmin')
  // An adapter without `fields` has no such field.
  if (users.fields?.has('isAdmin') === true) return users
  throw new ConfigurationError(
    'requireAdmin() reads `is_admin`, and the users table has no such column; add one or map it (`users.columns.isAdmin`).',
  )
}

/** Returns the active user of a login. A session already contains its user. */
async function loadUser(users: UserStore, { claims, user: known }: KnownAuth): Promise<PublicUser> {
  const user = known ?? (await findUser(users, claims.sub))
  if (!user) throw new UnauthorizedError({ reason: 'account_gone' })
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/** Rejects a session whose user is inactive. A token does not contain that, so it passes without a query. */
function requireActive(auth: KnownAuth): KnownAuth {
  if (auth.user?.isActive === false) throw new UnauthorizedError({ reason: 'account_inactive' })
  return auth
}

/** Finds a user. If the adapter fails, the request is rejected with 503, because the user is unknown then. */
async function findUser(users: UserStore, id: string): Promise<PublicUser | null> {
  try {
    const user = await users.find(id)
    return user?.id === id ? toPublicUser(user) : null // a host's adapter may return another user's row
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}
