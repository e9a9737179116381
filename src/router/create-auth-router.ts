import type { Request, RequestHandler, Response, Router } from 'express'
import express from 'express'
import { accountRoutes, localRoutes } from '../accounts/account-routes'
import { deletionAdminRoutes, deletionRoutes } from '../accounts/deletion/routes'
import { emailLoginRoutes } from '../accounts/email-login/routes'
import { undoRoutes } from '../accounts/undo/routes'
import { type LoadOperations, OPERATIONS } from '../admin/operations/operations-key'
import { type AutomaticPurge, startPurge } from '../admin/purge/automatic-purge'
import { adminRoutes } from '../admin/routes'
import { captchaRoutes } from '../captcha/proof-of-work'
import type { AuthContext } from '../context'
import type { Background } from '../core/background'
import { isProduction, isTest } from '../core/config/environment'
import { hasPasswords } from '../core/config/every-setting'
import type { AuthEvents } from '../core/events'
import { siteTokens } from '../guards/csrf/csrf-guard'
import { givingToken } from '../guards/csrf/csrf-token'
import { type Guards, guardsFor } from '../guards/guards'
import type { GuardContext } from '../guards/refusing'
import { withSessionGuards } from '../guards/session-guards'
import { ownKeys } from '../guards/token-keys'
import { whoamiRoutes } from '../guards/whoami'
import { answerErrors } from '../http/error-envelope'
import { refuseRequest } from '../http/forgotten-call'
import { mountRoutes, watchSetup } from '../http/routes'
import { forgetInvitation, readInvitation } from '../invitations/carried'
import { invitationAdminRoutes, invitationRoutes } from '../invitations/routes'
import { taskRoutes } from '../login-tasks/routes'
import type { MailQueue } from '../mail/mail-queue'
import type { AuthRouterOptions } from '../options'
import { createOutbox, type Outbox } from '../outbox/outbox'
import { pageRoutes } from '../pages/routes'
import { wellKnownRoutes } from '../pages/well-known'
import { passkeyRoutes } from '../passkeys/manage'
import { isWithinRouteRateLimit } from '../rate-limits/rate-limiter'
import { mfaRoutes } from '../second-factor/enrolment-routes'
import { continueRoutes } from '../sessions/continue'
import { keepDeviceAfterLogout } from '../sessions/delivery'
import { sessionListRoutes } from '../sessions/list-routes'
import { type LogoutRules, logoutLimit } from '../sessions/log-out-request'
import { keySetRoutes, metadataRoutes, rootMetadataRoutes } from '../sessions/metadata-route'
import { reauthenticationRoutes } from '../sessions/reauthentication/routes'
import { sessionRoutes } from '../sessions/routes'
import { serverSessionRoutes } from '../sessions/server-session-routes'
import { endOwnAttempts } from '../social/attempts'
import { socialRoutes } from '../social/routes'
import type { HostTypes } from '../store/host-types'
import { trustedDeviceRoutes } from '../trusted-devices/routes'
import { clientConfigRoutes } from './client-config'
import { createContext } from './create-context'
import type { DoctorOptions, DoctorReport } from './findings/doctor/check'
import { type Chapter, withOpenApi } from './openapi/document'
import { logoutOfHost } from './request-service/call-route'
import { type BoundService, serviceBinder } from './request-service/request-service'
import { type AuthService, createService } from './service'
import { refuseSharedRealm } from './shared-realm'

/** The router to mount: `app.use('/auth', auth)`. */
export interface AuthRouter<Host extends HostTypes = HostTypes> extends Router {
  readonly guards: Guards<Host>
  /** The operations of the routes, without HTTP. */
  readonly service: AuthService<Host>
  /**
   * Returns the service for one request, for forms that you render: `await auth.with(req, res).logIn({ email, password })`. The methods
   * count against the rate limits of the client, reject requests of other sites and set the cookies. The methods send no response. If the
   * route would send an error, the method throws that error.
   */
  readonly with: (req: Request, res: Response) => BoundService<Host>
  /**
   * Returns the middleware that makes the tokens of `guards.csrf()` for pages: `res.locals.csrfToken`. It uses the names of the cookies and
   * `cookieSecure` of the settings.
   */
  readonly csrfToken: () => RequestHandler
  readonly events: AuthEvents
  /** Delivers the events that survive a crash, with the option `outbox: true`. */
  readonly outbox: Outbox
  /**
   * The routes at the root of the site: `app.use(auth.wellKnown)`. The router responds only to paths below `/.well-known/`. With
   * `accessTokenIssuer` and `jwtKeys`, the router serves the metadata for verifiers of access tokens. With `pagesEnabled`, the router tells
   * password managers two addresses: the page for a new password and the page for adding passkeys.
   */
  readonly wellKnown: Router
  /**
   * Waits until the tables have been compared with the columns that the store writes. Call the method before `listen`. If the tables are
   * not checked (`checkTables: false`, or an adapter without `check`), the promise resolves at once.
   *
   * @throws ConfigurationError that lists every finding of the level `error`; while there is such a finding, each call checks the tables
   *   again
   */
  ready(): Promise<void>
  /**
   * Finishes the work after responses, for a process that stops or is frozen. Each mail that failed is tried once more, at once, and a
   * purge ends after its current batch, and `outbox.deliver` after the handlers that run. The promise resolves when everything that began
   * before the call is done, or after 10 seconds.
   * Afterwards doorward does not keep the process alive. Call the method after `server.close()` and before you close the database. On a
   * serverless platform, call the method after every request.
   */
  drain(): Promise<void>
  /**
   * Checks settings, database, mail server, providers and limits. The report says what is wrong, why it matters and how to fix it. The
   * check takes at most 5 seconds. The report contains no secret, but do not show the report at a public address.
   */
  doctor(about?: DoctorOptions): Promise<DoctorReport>
}

/**
 * Checks the options and returns the router to mount at `prefix`. `createAuthRouter<{ fields: { firstName: string } }>(…)` declares the
 * types of your own fields.
 * @throws ConfigurationError with the missing piece and the fix
 */
export function createAuthRouter<Host extends HostTypes = HostTypes>(options: AuthRouterOptions<Host>): AuthRouter<Host> {
  return routerOf(options as AuthRouterOptions) as AuthRouter<Host> // the host declares the types of its fields
}

function routerOf(options: AuthRouterOptions): AuthRouter {
  const ctx = createContext(options)
  refuseSharedRealm(ctx, options)
  const guardContext: GuardContext = { ...ctx, tokenKeys: ownKeys(ctx.accessKeys), sessionTokenKeys: ctx.keys['session-token'] }
  const guards = withSessionGuards(guardContext, guardsFor(guardContext))
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use(watchSetup(ctx))
  const routes = withOpenApi(ctx, chaptersOf(ctx, guards)).flatMap((chapter) => chapter.routes)
  const bind = serviceBinder(ctx, routes, guards, logoutOfHost(ctx, logoutRules(ctx)))
  mountRoutes(router, [...pageRoutes({ ctx, guards, bind }), ...routes])
  router.use(answerErrors(ctx))
  const wellKnown = express.Router({ caseSensitive: true, strict: true })
  mountRoutes(wellKnown, [...rootMetadataRoutes(ctx), ...wellKnownRoutes(ctx)])
  wellKnown.use(answerErrors(ctx))
  options.auditLog?.watch(ctx.events)
  const outbox = createOutbox(ctx, options.outbox === true)
  const auth: AuthRouter = Object.assign(router, {
    guards,
    service: createService(ctx, options.store),
    with: bind,
    csrfToken(...given: []) {
      refuseRequest('auth.csrfToken', given)
      return givingToken(siteTokens(guardContext))
    },
    events: ctx.events,
    wellKnown,
    ready: async () => ctx.readiness?.ready(),
    outbox,
    drain: drainer({ ...ctx, purge: purgeOf(ctx, options), outbox }),
    doctor: async (about = {}) => (await import('./findings/doctor/examine.js')).examine({ ctx, options, about }), // loaded at the first call
  })
  // The module of the operations is loaded only when the command `doorward` asks for it.
  const operations: LoadOperations = async () => (await import('../admin/operations/operations.js')).createOperations(ctx, options.store)
  Object.defineProperty(auth, OPERATIONS, { value: operations })
  if (!isProduction(options.environment)) testedContexts.set(auth, ctx)
  return auth
}

function purgeOf(ctx: AuthContext, { purge, environment, store }: AuthRouterOptions): AutomaticPurge | null {
  if (purge === false || (purge === undefined && isTest(environment))) return null
  return startPurge(ctx, store, purge?.everyMinutes ?? 60)
}

const testedContexts = new WeakMap<AuthRouter, AuthContext>()

/**
 * Returns the context of a router, for `doorward/testing` only. No request can reach the context. Returns null for a router in production,
 * and for a router of another copy of the package.
 */
export function testedContext(auth: AuthRouter): AuthContext | null {
  return testedContexts.get(auth) ?? null
}

function logoutRules(ctx: AuthContext): LogoutRules {
  return {
    isWithinRateLimit: (req) => isWithinRouteRateLimit(ctx, logoutLimit, req),
    endOthers(req, res, endedIds) {
      keepDeviceAfterLogout(ctx, req, res, endedIds)
      endOwnAttempts(ctx, req, res)
      if (readInvitation(ctx, req) !== null) forgetInvitation(ctx, res)
    },
  }
}

function chaptersOf(ctx: AuthContext, guards: Guards): Chapter[] {
  const takesPasswords = hasPasswords(ctx.settings)
  const logout = logoutRules(ctx)
  return [
    {
      name: 'Social login',
      about: 'Log in with OAuth 2.0 or OpenID Connect, and manage the linked identities of an account.',
      routes: ctx.settings.oauthEnabled ? socialRoutes(ctx, guards) : [],
    },
    { name: 'Tokens', about: 'Refresh tokens and log out.', routes: [...sessionRoutes(ctx, logout), ...continueRoutes(ctx)] },
    {
      name: 'Local accounts',
      about: takesPasswords ? 'Sign-up, activation, login and password reset, by email and password.' : 'Sign-up and activation, by email.',
      routes: localRoutes(ctx),
    },
    { name: 'Login tasks', about: 'What a login owes after it proved its person, before its session begins.', routes: taskRoutes(ctx) },
    { name: 'Login by email', about: 'Log in with a mailed link or code.', routes: emailLoginRoutes(ctx) },
    {
      name: 'The signed-in person',
      about: takesPasswords
        ? 'The own account of a person: password, address and sessions.'
        : 'The own account of a person: address and sessions.',
      routes: [
        ...whoamiRoutes(ctx),
        ...clientConfigRoutes(ctx),
        ...captchaRoutes(ctx),
        ...accountRoutes(ctx, guards),
        ...reauthenticationRoutes(ctx, guards),
        ...sessionListRoutes(ctx, guards),
        ...trustedDeviceRoutes(ctx, guards),
        ...deletionRoutes(ctx, guards),
      ],
    },
    { name: 'Second factor', about: 'One-time codes (RFC 6238) and recovery codes.', routes: mfaRoutes(ctx, guards) },
    {
      name: 'Passkeys',
      about: 'Log in with a passkey, and manage the passkeys of an account (Web Authentication Level 3).',
      routes: passkeyRoutes(ctx, guards),
    },
    { name: 'Server-side sessions', about: 'Sessions in the database, with one cookie.', routes: serverSessionRoutes(ctx, guards, logout) },
    {
      name: 'Invitations',
      about: 'Invite people to sign up. The mode `invite` requires an invitation for every new account.',
      routes: invitationRoutes(ctx, guards),
    },
    { name: 'Undo', about: 'Undo changes to an account with the link from a mail.', routes: undoRoutes(ctx) },
    {
      name: 'Administration',
      about: 'Manage the accounts of other people. Only for administrators.',
      routes: [...adminRoutes(ctx, guards), ...deletionAdminRoutes(ctx, guards), ...invitationAdminRoutes(ctx, guards)],
    },
    { name: 'Keys', about: 'The public keys to verify access tokens.', routes: [...keySetRoutes(ctx), ...metadataRoutes(ctx)] },
  ]
}

/**
 * The longest time that `drain` waits, in milliseconds. The time is short, because orchestrators kill a process 10 to 30 seconds after they
 * asked it to stop.
 */
const longestMs = 10_000

/**
 * Returns the function that finishes the work after responses. Each call starts the waiting work at once, tries each mail that failed once
 * more, and ends a purge after its current batch, and `outbox.deliver` after the handlers that run. The promise resolves when everything that
 * began before the call has ended, or after 10 seconds.
 */
export function drainer({
  background,
  mailQueue,
  purge = null,
  outbox = null,
}: {
  background: Background
  mailQueue: MailQueue | null
  purge?: AutomaticPurge | null
  outbox?: { stop(): Promise<void> } | null
}): () => Promise<void> {
  return async () => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, longestMs) // keeps the process alive, because the caller waits
    })
    // The work posts mails, so the mails come second.
    const finished = background.finish().then(() => mailQueue?.finish())
    await Promise.race([Promise.all([finished, purge?.pause(), outbox?.stop()]), late]).finally(() => clearTimeout(timer))
  }
}
