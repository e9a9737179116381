import type { RequestHandler } from 'express'

/** The guards of our own routes. They send the same refusals as the host's guards, because they are the host's guards. */
export interface RouteGuards {
  requireAuth(): RequestHandler
  requireMfa(): RequestHandler
  requireUser(): RequestHandler
  requireAdmin(): RequestHandler
  requireSession(): RequestHandler
}
