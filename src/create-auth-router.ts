import type { Request, Response, Router } from 'express'
import express from 'express'
import { continueRoutes } from './account/continue-routes'
import { accountRoutes } from './account/routes'
import { serverSessionRoutes } from './account/session-routes'
import { adminRoutes } from './admin/routes'
import { type BoundService, serviceBinder } from './bound-service/bound-service'
import { isProduction } from './config/environment'
import { hasPasswords } from './config/has-passwords'
import type { AuthContext } from './context'
import { createContext } from './create-context'
import { keepDeviceAfterLogout } from './device/send-login'
import type { DoctorOptions, DoctorReport } from './doctor/check'
import { drainer } from './drain'
import { emailLoginRoutes } from './email-login/routes'
import type { AuthEvents } from './events'
import { type GuardContext, type Guards, guardsFor } from './guards/guards'
import { isWithinRouteBudget } from './guards/route-budget'
import { ownKeys } from './guards/token-keys'
import { answerErrors } from './http/error-handler'
import { mountRoutes } from './http/routes'
import { watchSetup } from './http/watch-setup'
import { localRoutes } from './local/routes'
import { mfaRoutes } from './mfa/routes'
import { withOpenApi } from './openapi/chapters'
import type { Chapter } from './openapi/document'
import { createOperations } from './operations/operations'
import { OPERATIONS } from './operations/operations-key'
import type { AuthRouterOptions } from './options'
import { pageRoutes } from './page-routes/routes'
import { wellKnownRoutes } from './page-routes/well-known'
import { passkeyRoutes } from './passkeys/routes'
import { reauthenticationRoutes } from './reauthentication/routes'
import { type AuthService, createService } from './service'
import { keySetRoutes } from './session/key-set-route'
import { type LogoutRules, logoutLimit } from './session/log-out-request'
import { metadataRoutes, rootMetadataRoutes } from './session/metadata-route'
import { sessionRoutes } from './session/routes'
import { sessionListRoutes } from './session-list/routes'
import { endOwnAttempts } from './social/attempts'
import { socialRoutes } from './social/routes'
import { withSessionGuards } from './step-up/session-guards'
import type { HostTypes } from './store/host-types'
import { undoRoutes } from './undo/routes'

/** `app.use('/auth', auth)` */
export interface AuthRouter<Host extends HostTypes = HostTypes> extends Router {
  readonly guards: Guards<Host>
  /** The same operations without HTTP. */
  readonly service: AuthService<Host>
  /**
   * The service for one request, for forms that you render yourself: `await auth.with(req, res).logIn({ email, password })` counts the limits
   * of the client, refuses other sites and sets the cookies. It sends nothing, and throws what the route would have answered.
   */
  readonly with: (req: Request, res: Response) => BoundService<Host>
  readonly events: AuthEvents
  /**
   * What belongs at the root of the site: `app.use(auth.wellKnown)`. It answers below `/.well-known/` alone. With `accessTokenIssuer` and
   * `jwtKeys`: the metadata that verifiers of access tokens look for. With `pagesEnabled`: the addresses of the pages where a password is
   * changed and passkeys are made, for password managers.
   */
  readonly wellKnown: Router
  /**
   * Waits until the tables have been compared with what the store writes. Call it before `listen`. Resolves at once for a store that is
   * not looked at (`checkTables: false`, or an adapter without `check`).
   *
   * @throws ConfigurationError that lists every `error`; the tables are looked at again each time it is called
   */
  ready(): Promise<void>
  /**
   * Ends the work after answers, for a process that stops: mails that wait for another attempt are tried at once. Resolves when all is
   * done, or after 10 seconds; a second call waits for the same end. Afterwards nothing of ours keeps the process alive, and a mail
   * is tried once only. Call it after `server.close()` and before the database is closed.
   */
  drain(): Promise<void>
  /**
   * Looks at settings, database, mail server, providers and limits, and says what is wrong, why it matters and how to mend it. Takes at most
   * 5 seconds. Holds no secret; show it at an address of yours that is not public.
   */
  doctor(about?: DoctorOptions): Promise<DoctorReport>
}

/**
 * Checks everything once, and returns the router to mount at `prefix`. `createAuthRouter<{ fields: { firstName: string } }>(…)` states the
 * types of your own fields.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createAuthRouter<Host extends HostTypes = HostTypes>(options: AuthRouterOptions<Host>): AuthRouter<Host> {
  return routerOf(options as AuthRouterOptions) as AuthRouter<Host> // what the host says of its own fields
}

function routerOf(options: AuthRouterOptions): AuthRouter {
  const ctx = createContext(options)
  const guardContext: GuardContext = { ...ctx, tokenKeys: ownKeys(ctx.accessKeys), sessionTokenKeys: ctx.keys['session-token'] }
  const guards = withSessionGuards(guardContext, guardsFor(guardContext))
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use(watchSetup(ctx))
  const routes = withOpenApi(ctx, chaptersOf(ctx, guards)).flatMap((chapter) => chapter.routes)
  const bind = serviceBinder(ctx, routes, guards)
  mountRoutes(router, [...pageRoutes({ ctx, guards, bind }), ...routes])
  router.use(answerErrors(ctx))
  const wellKnown = express.Router({ caseSensitive: true, strict: true })
  mountRoutes(wellKnown, [...rootMetadataRoutes(ctx), ...wellKnownRoutes(ctx)])
  wellKnown.use(answerErrors(ctx))
  const auth: AuthRouter = Object.assign(router, {
    guards,
    service: createService(ctx),
    with: bind,
    events: ctx.events,
    wellKnown,
    ready: async () => ctx.readiness?.ready(),
    drain: drainer(ctx),
    doctor: async (about = {}) => (await import('./doctor/examine.js')).examine({ ctx, options, about }), // loaded when it is asked for
  })
  Object.defineProperty(auth, OPERATIONS, { value: createOperations(ctx, options.store) })
  if (!isProduction(options.environment)) testedContexts.set(auth, ctx)
  return auth
}

const testedContexts = new WeakMap<AuthRouter, AuthContext>()

/** For `doorward/testing` alone, which no route leads to. Null: a router of production, or of another copy of the package. */
export function testedContext(auth: AuthRouter): AuthContext | null {
  return testedContexts.get(auth) ?? null
}

function chaptersOf(ctx: AuthContext, guards: Guards): Chapter[] {
  const takesPasswords = hasPasswords(ctx.settings)
  const logout: LogoutRules = {
    isWithinBudget: (req) => isWithinRouteBudget(ctx, logoutLimit, req),
    endOthers(req, res, endedId) {
      if (endedId !== null) keepDeviceAfterLogout(ctx, req, res, endedId)
      endOwnAttempts(ctx, req, res)
    },
  }
  return [
    {
      name: 'Social login',
      about: 'OAuth 2.0 and OpenID Connect, and the identities linked to an account.',
      routes: ctx.settings.oauthEnabled ? socialRoutes(ctx, guards) : [],
    },
    { name: 'Tokens', about: 'A session of tokens goes on, and ends.', routes: [...sessionRoutes(ctx, logout), ...continueRoutes(ctx)] },
    {
      name: 'Local accounts',
      about: takesPasswords ? 'Email and password: signup, activation, login, reset.' : 'An email address: signup, activation.',
      routes: localRoutes(ctx),
    },
    { name: 'Login by email', about: 'Signing in by a mailed link or code.', routes: emailLoginRoutes(ctx) },
    {
      name: 'The signed-in person',
      about: takesPasswords ? 'Their own account: password, address and sessions.' : 'Their own account: address and sessions.',
      routes: [...accountRoutes(ctx, guards), ...reauthenticationRoutes(ctx, guards), ...sessionListRoutes(ctx, guards)],
    },
    { name: 'Second factor', about: 'One-time codes (RFC 6238) and recovery codes.', routes: mfaRoutes(ctx, guards) },
    {
      name: 'Passkeys',
      about: 'Web Authentication Level 3: signing in by a passkey, and a person’s own passkeys.',
      routes: passkeyRoutes(ctx, guards),
    },
    { name: 'Server-side sessions', about: 'Sessions kept in rows, by one cookie.', routes: serverSessionRoutes(ctx, guards, logout) },
    { name: 'Undo', about: 'Takes an account back by the link of a notice.', routes: undoRoutes(ctx) },
    { name: 'Administration', about: 'Other people’s accounts.', routes: adminRoutes(ctx, guards) },
    { name: 'Keys', about: 'What access tokens are checked with.', routes: [...keySetRoutes(ctx), ...metadataRoutes(ctx)] },
  ]
}
