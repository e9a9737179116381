import path from 'node:path'
import express, { type Express } from 'express'
import { createProvider, type RegisteredClient } from './create-provider'
import { createInteractions } from './interactions'

/** A whole identity provider: its pages first, the protocol on every other path. */
export function createAcmeId(issuer: string, client: RegisteredClient): Express {
  const provider = createProvider(issuer, client)
  const app = express()
  app.disable('x-powered-by')
  app.use('/assets', express.static(path.join(import.meta.dirname, 'assets')))
  app.use('/interaction', contentSecurityPolicy(new URL(client.redirectUri).origin))
  app.use(createInteractions(provider))
  app.use(provider.callback())
  return app
}

/** `form-action` also covers the redirects that follow a form, and those end at the application. */
function contentSecurityPolicy(applicationOrigin: string): express.RequestHandler {
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "img-src 'self'",
    `form-action 'self' ${applicationOrigin}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  return (_request, response, next) => {
    response.set('Content-Security-Policy', policy)
    next()
  }
}
