import type { Router } from 'express'
import express from 'express'
import { accountRoutes } from './account/routes'
import { serverSessionRoutes } from './account/session-routes'
import { adminRoutes } from './admin/routes'
import { isProduction } from './config/environment'
import type { AuthContext } from './context'
import { createContext } from './create-context'
import type { AuthEvents } from './events'
import { type Guards, guardsFor } from './guards/guards'
import { ownKeys } from './guards/token-keys'
import { checkMount } from './http/check-mount'
import { answerErrors } from './http/error-handler'
import { mountRoutes } from './http/routes'
import { localRoutes } from './local/routes'
import { mfaRoutes } from './mfa/routes'
import { withOpenApi } from './openapi/chapters'
import type { Chapter } from './openapi/document'
import type { AuthRouterOptions } from './options'
import { type AuthService, createService } from './service'
import { keySetRoutes } from './session/key-set-route'
import { type OnLogout, sessionRoutes } from './session/routes'
import { endOwnAttempts } from './social/attempts'
import { socialRoutes } from './social/routes'

/** `app.use('/auth', auth)` */
export interface AuthRouter extends Router {
  readonly guards: Guards
  /** The same operations without HTTP. */
  readonly service: AuthService
  readonly events: AuthEvents
}

/**
 * Checks everything once, and returns the router to mount at `prefix`.
 * @throws ConfigurationError naming the missing piece and the fix
 */
export function createAuthRouter(options: AuthRouterOptions): AuthRouter {
  const ctx = createContext(options)
  const guards = guardsFor({ ...ctx, tokenKeys: ownKeys(ctx.accessKeys), sessionTokenKeys: ctx.keys['session-token'] })
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use(checkMount(ctx.prefix, ctx.logger))
  const chapters = withOpenApi(ctx, chaptersOf(ctx, guards))
  mountRoutes(
    router,
    chapters.flatMap(({ routes }) => routes),
  )
  router.use(answerErrors(ctx.logger, ctx.settings.defaultLocale))
  const auth: AuthRouter = Object.assign(router, { guards, service: createService(ctx), events: ctx.events })
  if (!isProduction(options.environment)) testedContexts.set(auth, ctx)
  return auth
}

const testedContexts = new WeakMap<AuthRouter, AuthContext>()

/** For `doorward/testing` alone, which no route leads to. Null: a router of production, or of another copy of the package. */
export function testedContext(auth: AuthRouter): AuthContext | null {
  return testedContexts.get(auth) ?? null
}

function chaptersOf(ctx: AuthContext, guards: Guards): Chapter[] {
  const onLogout: OnLogout = (req, res) => endOwnAttempts(ctx, req, res)
  return [
    {
      name: 'Social login',
      about: 'OAuth 2.0 and OpenID Connect, and the identities linked to an account.',
      routes: ctx.settings.oauthEnabled ? socialRoutes(ctx, guards) : [],
    },
    { name: 'Tokens', about: 'A session of tokens goes on, and ends.', routes: sessionRoutes(ctx, onLogout) },
    { name: 'Local accounts', about: 'Email and password: signup, activation, login, reset.', routes: localRoutes(ctx) },
    { name: 'The signed-in person', about: 'Their own account: password and address.', routes: accountRoutes(ctx, guards) },
    { name: 'Second factor', about: 'One-time codes (RFC 6238) and recovery codes.', routes: mfaRoutes(ctx, guards) },
    { name: 'Server-side sessions', about: 'Sessions kept in rows, by one cookie.', routes: serverSessionRoutes(ctx, guards, onLogout) },
    { name: 'Administration', about: 'Other people’s accounts.', routes: adminRoutes(ctx, guards) },
    { name: 'Keys', about: 'What access tokens are checked with.', routes: keySetRoutes(ctx) },
  ]
}
