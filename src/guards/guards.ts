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
import { refuseEarlierAccount } from '../sessions/superseded-token'
import type { UserStore } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type PublicUser, toPublicUser } from '../store/user-records'
import { type CsrfGuardOptions, siteCsrf } from './csrf/csrf-guard'
import { type Verifiers, verifiersFor } from './live-session/verify'
import { type GuardContext, logRefusal, refuse } from './refusing'
import { type ClaimCheck, type ClaimName, claimCheck, type ExpectedClaim, type RoleOf, roleCheck } from './require-claim'
import { redirectToLogin } from './require-login'
import { hostClaimsOfSession, requireSession, sessionFinder } from './require-session'
import { verifyOnce } from './verify-once'

/**
 * Guards for the host's own routes. A rejected request gets the JSON error envelope, and its route does not run. On a request that is not
 * Express's (`server.on('upgrade')`), the guard calls `next(error)` instead.
 */
export interface Guards<Host extends HostTypes = HostTypes> extends Verifiers<Host> {
  /**
   * Requires a valid access token from the header, or from the access cookie if `tokenDelivery` includes cookies. Reads no database, except
   * with `tokenDelivery: 'session'`.
   */
  requireAuth(): RequestHandler
  /**
   * Like requireAuth, for pages with cookies. A GET or HEAD that accepts `text/html` is redirected to `loginUrl` with `return_to`. Any
   * other request gets the 401. While the refresh cookie is valid, the person need not log in again.
   * @throws ConfigurationError with `tokenDelivery: 'bearer'`, and without `loginUrl`
   */
  requireLogin(): RequestHandler
  /** Like requireAuth, but a request without a token passes as anonymous. An invalid token is rejected. */
  optionalAuth(): RequestHandler
  /** Like requireAuth. The login of the session must also have used a second factor. Otherwise the guard sends 403 MFA_REQUIRED. */
  requireMfa(): RequestHandler
  /** Like requireAuth. Also loads the current user row: 401 for a deleted user, 403 ACCOUNT_INACTIVE for an inactive user. */
  requireUser(): RequestHandler
  /** Like requireUser. The current row must also have `isAdmin`. Otherwise the guard sends 403 FORBIDDEN. */
  requireAdmin(): RequestHandler
  /**
   * Like requireAuth. The claim must equal the value (`===`), or your function must return true for it. Otherwise 403 FORBIDDEN. A missing
   * claim is rejected. If the function throws, the guard logs the error and rejects the request.
   * @throws ConfigurationError if the expected value is not a scalar or a function
   */
  requireClaim<Name extends ClaimName<Host>>(name: Name, expected: ExpectedClaim<Host, Name>): RequestHandler
  /**
   * Like requireAuth. The list in the claim `roles` must contain one of these texts. Otherwise 403 FORBIDDEN.
   * @throws ConfigurationError without a role
   */
  requireRole(...roles: readonly [RoleOf<Host>, ...RoleOf<Host>[]]): RequestHandler
  /**
   * Like requireUser. The session of the request must also be live, otherwise 401 INVALID_TOKEN. Needs one query. Use it if the minutes
   * that an access token outlives its session are too long. After `requireSession`, it checks the session that `requireSession` found.
   */
  requireLiveSession(): RequestHandler
  /**
   * Like requireLiveSession. The person must also have entered a credential within `maxAgeSeconds` (default: `freshSessionSeconds`).
   * Otherwise 403 REAUTHENTICATION_REQUIRED, with the credentials that `POST /reauthenticate` accepts in `details.methods`. With
   * `freshSessionSeconds: 0` and without `maxAgeSeconds`, every live session passes.
   * @throws ConfigurationError if `maxAgeSeconds` is not a whole number of at least 1
   */
  requireFresh(options?: { maxAgeSeconds?: number }): RequestHandler
  /** Requires a live server-side session by its cookie, and loads its user with one query. Otherwise 401 UNAUTHORIZED. */
  requireSession(): RequestHandler
  /**
   * Like `csrfGuard`, with the router's settings: also trusts `publicUrl` and `trustedOrigins`, and knows the names of the cookies. Without
   * the header, reads the token from the field `_csrf` of a parsed form. A request with a Bearer header passes. The tokens are those of
   * `GET {prefix}/whoami` and `auth.csrfToken()`. For a `csrfToken()` of your own, pass its `secret`.
   * @throws ConfigurationError for a wrong option, or without `secret` if the guards have no `jwtSecret`
   */
  csrf(options?: CsrfGuardOptions): RequestHandler
  /**
   * Returns the user that `requireUser`, `requireAdmin` or `requireSession` loaded, with the types of your own fields.
   * @throws Error if none of these guards ran before
   */
  getUser(req: Request): WithFields<PublicUser, Host>
}

/** Without those of guards/session-guards.ts. */
export type BaseGuards = Omit<Guards, 'requireLiveSession' | 'requireFresh'>

export function guardsFor(ctx: GuardContext): BaseGuards {
  const verifyAccess = ctx.settings.tokenDelivery === 'session' ? null : verifyOnce(ctx, ctx.tokenKeys)
  const find: FindAuth = verifyAccess ? tokenFinder(ctx, verifyAccess) : sessionFinder(ctx)
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
  return { ...makers, ...verifiersFor(ctx, verifyAccess), getUser }
}

type AuthCheck = (req: Request, auth: KnownAuth) => Promise<void> | void

type GuardMakers = Omit<BaseGuards, 'getUser' | keyof Verifiers>

/** A host may forget the parentheses (`app.use(guards.requireAuth)`). Without this check, the request would then wait forever. */
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

/** Null if nobody is logged in. */
type FindAuth = (req: Request, res: Response) => KnownAuth | null | Promise<KnownAuth | null>

/** Returns a promise only to fetch a key, because a promise would be most of the guard's cost. */
function tokenFinder(ctx: GuardContext, verify: ReturnType<typeof verifyOnce>): FindAuth {
  return (req) => {
    const credential = readCredential(ctx, req)
    return credential && verify(credential.token)
  }
}

/**
 * If `check` returns no promise, the next handler runs in the next turn of the event loop. Of requests that arrive together, Node then
 * verifies all tokens first, which needs less CPU time (`http/routes.ts`). After `unitTimeoutSeconds` without the database: 503.
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
 * `WWW-Authenticate` distinguishes a rejected from a missing token (RFC 6750 section 3), and names a missing factor (RFC 9470 section 3).
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
  // An adapter without `fields` counts as one without the column `isAdmin`.
  if (users.fields?.has('isAdmin') === true) return users
  throw new ConfigurationError(
    'requireAdmin() reads `is_admin`, and the users table has no such column; add one or map it (`users.columns.isAdmin`).',
  )
}

/** Reads the database only for a token, because a session already contains its user. */
async function loadUser(users: UserStore, { claims, user: known }: KnownAuth): Promise<PublicUser> {
  const user = known ?? (await findUser(users, claims.sub))
  if (!user) throw new UnauthorizedError({ reason: 'account_gone' })
  if (!known) refuseEarlierAccount(claims, user)
  if (!user.isActive) throw new AccountInactiveError()
  return user
}

/** A token does not contain the user's state, so it passes without a query. */
function requireActive(auth: KnownAuth): KnownAuth {
  if (auth.user?.isActive === false) throw new UnauthorizedError({ reason: 'account_inactive' })
  return auth
}

/** If the adapter fails, the user is unknown: 503. */
async function findUser(users: UserStore, id: string): Promise<PublicUser | null> {
  try {
    const user = await users.find(id)
    // A faulty adapter of the host could return the row of another user.
    return user?.id === id ? toPublicUser(user) : null
  } catch (error) {
    throw error instanceof AppError ? error : new ServiceUnavailableError({ cause: error })
  }
}
