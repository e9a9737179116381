import path from 'node:path'
import express, { type Express } from 'express'
import { createProvider, type RegisteredClient } from './create-provider'
import { createInteractions } from './interactions'

/** Returns a whole identity provider: its pages, and the protocol on all other paths. */
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

/** The policy must allow the application's origin, because `form-action` also applies to the redirects after a form. */
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
