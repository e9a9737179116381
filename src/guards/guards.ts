import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import { isSecondFactor } from '../core/amr'
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
} from '../core/errors'
import { describeStep, type Refusal } from '../http/description'
import { refuseRequest } from '../http/forgotten-call'
import { inNextTurn, isAnswerable, step } from '../http/routes'
import { getUser, type KnownAuth, readCredential, rememberAuth } from '../sessions/current-auth'
import type { UserStore } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/user-records'
import type { CsrfGuardOptions } from './csrf/csrf-guard'
import { siteCsrf } from './csrf/csrf-guard'
import type { GuardContext } from './refusing'
import { logRefusal, refuse } from './refusing'
import { type ClaimCheck, type ClaimName, claimCheck, type ExpectedClaim, type RoleOf, roleCheck } from './require-claim'
import { redirectToLogin } from './require-login'
import { hostClaimsOfSession, requireSession, sessionFinder } from './require-session'
import { verifyOnce } from './verify-once'

/**
 * Guards for the host's own routes. If a guard rejects a request, the guard sends the JSON error envelope, and the route does not run. On a
 * request that is not Express's (`server.on('upgrade')`), the guard calls `next(error)` instead.
 */
export interface Guards<Host extends HostTypes = HostTypes> {
  /**
   * Requires a valid access token from the header. If `tokenDelivery` includes cookies, the guard also accepts the access cookie. The guard
   * reads no database, except with `tokenDelivery: 'session'`.
   */
  requireAuth(): RequestHandler
  /**
   * Like requireAuth, for pages with cookies. If a GET or HEAD without a valid login accepts `text/html`, the guard redirects to `loginUrl`
   * with `return_to`. Any other request without a valid login gets the 401. If the refresh cookie is still valid, the person does not need
   * to log in again.
   * @throws ConfigurationError with `tokenDelivery: 'bearer'`, and without `loginUrl`
   */
  requireLogin(): RequestHandler
  /** Like requireAuth, but a request without a token passes as anonymous. The guard rejects an invalid token. */
  optionalAuth(): RequestHandler
  /** Like requireAuth. The login of the session must also have used a second factor. Otherwise the guard sends 403 MFA_REQUIRED. */
  requireMfa(): RequestHandler
  /**
   * Like requireAuth. The guard also loads the current user row. For a deleted user the guard sends 401, and for an inactive user 403
   * ACCOUNT_INACTIVE.
   */
  requireUser(): RequestHandler
  /** Like requireUser. The current row must also have `isAdmin`. Otherwise the guard sends 403 FORBIDDEN. */
  requireAdmin(): RequestHandler
  /**
   * Like requireAuth. The token must also have the claim. The claim must equal the value (`===`), or your function must return true for the
   * claim's value. Otherwise the guard sends 403 FORBIDDEN. The guard rejects a missing claim. If the function throws, the guard logs the
   * error and rejects the request.
   * @throws ConfigurationError if the expected value is not a scalar or a function
   */
  requireClaim<Name extends ClaimName<Host>>(name: Name, expected: ExpectedClaim<Host, Name>): RequestHandler
  /**
   * Like requireAuth. The list in the claim `roles` must also contain one of these texts. Otherwise the guard sends 403 FORBIDDEN.
   * @throws ConfigurationError without a role
   */
  requireRole(...roles: readonly [RoleOf<Host>, ...RoleOf<Host>[]]): RequestHandler
  /**
   * Like requireUser. The session of the request must also be live. Otherwise the guard sends 401 INVALID_TOKEN. An access token stays
   * valid for minutes after its session ends. Use this guard if those minutes are too long. After `requireSession`, the guard checks the
   * session that `requireSession` found. The guard needs one query.
   */
  requireLiveSession(): RequestHandler
  /**
   * Like requireLiveSession. The person must also have entered a credential within the last `maxAgeSeconds` (default: the setting
   * `freshSessionSeconds`). Otherwise the guard sends 403 REAUTHENTICATION_REQUIRED. `details.methods` of the error lists the credentials
   * that `POST /reauthenticate` accepts. With `freshSessionSeconds: 0` and without `maxAgeSeconds`, every live session passes.
   * @throws ConfigurationError if `maxAgeSeconds` is not a whole number of at least 1
   */
  requireFresh(options?: { maxAgeSeconds?: number }): RequestHandler
  /** Requires a live server-side session by its cookie, and loads its user with one query. Otherwise the guard sends 401 UNAUTHORIZED. */
  requireSession(): RequestHandler
  /**
   * Like `csrfGuard`, with the router's settings. The guard also trusts `publicUrl` and `trustedOrigins`, and knows the names of the
   * cookies. Without the header, the guard reads the token from the field `_csrf` of a parsed form. The tokens are those of
   * `GET {prefix}/whoami` and `auth.csrfToken()`. If you have a `csrfToken()` of your own, pass its `secret`. A request with a Bearer header
   * passes.
   * @throws ConfigurationError without `secret`, if the guards have no `jwtSecret`
   * @throws ConfigurationError for a wrong option
   */
  csrf(options?: CsrfGuardOptions): RequestHandler
  /**
   * Returns the user that `requireUser`, `requireAdmin` or `requireSession` loaded, with the types of your own fields.
   * @throws Error if none of these guards ran before
   */
  getUser(req: Request): WithFields<PublicUser, Host>
}

/** All guards except the guards of guards/session-guards.ts. */
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

/**
 * Returns the guards with a check of their arguments. If the host forgets the parentheses (`app.use(guards.requireAuth)`), Express passes
 * the request as the argument. Without the check, that request would wait forever.
 */
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

/** Finds the login of a request; null if nobody is logged in. */
type FindAuth = (req: Request, res: Response) => KnownAuth | null | Promise<KnownAuth | null>

/**
 * Returns the function that finds the login of a request. For a token, that function returns a promise only if it must fetch a key, because
 * a promise would be most of the guard's cost.
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
 * Makes a guard from a check. If the check throws, the guard sends an error and the next handler does not run. If the check returns no
 * promise, the next handler runs in the next turn of the event loop. If several requests arrive together, Node then first verifies all
 * their tokens, and afterwards runs all their handlers. This needs less CPU time (`http/routes.ts`). If the database is silent for
 * `unitTimeoutSeconds`, the guard sends 503.
 * @param answer returns true if it has sent another response instead of the envelope
 */
export function guarding(
  ctx: GuardContext,
  check: (req: Request, res: Response) => Promise<void> | void,
  answer: (error: unknown, req: Request, res: Response) => boolean = () => false,
): RequestHandler {
  const refused: ErrorRequestHandler = (error, req, res, next) => {
    const canAnswer = isAnswerable(res)
    if (canAnswer && answer(error, req, res)) return
    logRefusal(ctx.logger, error)
    const challenge = canAnswer ? challengeOf(ctx, req, error) : null
    if (challenge !== null) res.setHeader('WWW-Authenticate', challenge)
    refuse(req, res, next, error, ctx)
  }
  return step(check, refused, inNextTurn, ctx.settings.unitTimeoutSeconds * 1000)
}

/**
 * Returns the `WWW-Authenticate` header of an error. The header distinguishes a rejected token from a missing token (RFC 6750 section 3).
 * The header also names a missing second factor (RFC 9470 section 3).
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
    return true // the request has a token that the guard cannot read
  }
}

function usersOf(ctx: GuardContext, guard: string): UserStore {
  if (!ctx.store) throw new ConfigurationError(`${guard}() reads the user row: pass \`store\` to createGuards().`)
  return ctx.store.users
}

function adminsOf(ctx: GuardContext): UserStore {
  const users = usersOf(ctx, 'requireAdmin')
  // An adapter without `fields` counts as an adapter without the column `isAdmin`.
  if (users.fields?.has('isAdmin') === true) return users
  throw new ConfigurationError(
    'requireAdmin() reads `is_admin`, and the users table has no such column; add one or map it (`users.columns.isAdmin`).',
  )
}

/** Returns the active user of a login. The function reads the database only for a token, because a session already contains its user. */
async function loadUser(users: UserStore, { claims, user: known }: KnownAuth): Promise<PublicUser> {
  const user = known ?? (await findUser(users, claims.sub))
  if (!user) throw new UnauthorizedError({ reason: 'account_gone' })
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/** Rejects a session with an inactive user. A token does not contain the user's state, so a token passes without a query. */
function requireActive(auth: KnownAuth): KnownAuth {
  if (auth.user?.isActive === false) throw new UnauthorizedError({ reason: 'account_inactive' })
  return auth
}

/** Finds a user. If the adapter fails, the guard rejects the request with 503, because the user is unknown. */
async function findUser(users: UserStore, id: string): Promise<PublicUser | null> {
  try {
    const user = await users.find(id)
    // The code checks the id, because a faulty adapter of the host could return the row of another user.
    return user?.id === id ? toPublicUser(user) : null
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}
