import type { Router } from 'express'
import express from 'express'
import { accountRoutes } from './account/routes'
import { adminRoutes } from './admin/routes'
import { isProduction } from './config/environment'
import type { AuthContext } from './context'
import { createContext } from './create-context'
import type { AuthEvents } from './events'
import { type Guards, guardsFor } from './guards/guards'
import { ownKeys } from './guards/token-keys'
import { checkMount } from './http/check-mount'
import { answerErrors } from './http/error-handler'
import { mountRoutes, type Route } from './http/routes'
import { localRoutes } from './local/routes'
import { mfaRoutes } from './mfa/routes'
import type { AuthRouterOptions } from './options'
import { serverSessionRoutes } from './server-session/routes'
import { type AuthService, createService } from './service'
import { keySetRoutes } from './session/key-set-route'
import { sessionRoutes } from './session/routes'
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
  const guards = guardsFor({ ...ctx, tokenKeys: ownKeys(ctx.accessKeys) })
  const router = express.Router({ caseSensitive: true, strict: true })
  router.use(checkMount(ctx.prefix, ctx.logger))
  mountRoutes(router, routesOf(ctx, guards))
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

function routesOf(ctx: AuthContext, guards: Guards): Route[] {
  const social = ctx.settings.oauthEnabled ? socialRoutes(ctx, guards) : []
  return [
    ...social,
    ...sessionRoutes(ctx, (req, res) => endOwnAttempts(ctx, req, res)),
    ...localRoutes(ctx),
    ...accountRoutes(ctx, guards),
    ...mfaRoutes(ctx, guards),
    ...serverSessionRoutes(ctx, guards, (req, res) => endOwnAttempts(ctx, req, res)),
    ...adminRoutes(ctx, guards),
    ...keySetRoutes(ctx),
  ]
}
