import { createHash, randomBytes } from 'node:crypto'
import path from 'node:path'
import express, { type Express, type Request } from 'express'
import { accounts, type OctoAccount } from './accounts'
import { authorizePage, refusalPage } from './pages'

export interface OctoClient {
  clientId: string
  clientSecret: string
  redirectUri: string
}

interface Grant {
  account: OctoAccount
  codeChallenge: string
}

/**
 * Returns an OAuth 2.0 provider like GitHub: without OpenID Connect and id_token, with an API for the profile. A restart deletes all its
 * data.
 */
export function createOctoId(client: OctoClient): Express {
  const codes = new Map<string, Grant>()
  const tokens = new Map<string, OctoAccount>()
  const app = express()
  const form = express.urlencoded({ extended: false })
  app.disable('x-powered-by')
  // Octo ID has its own logo and colours. The rest of the style is from Acme ID.
  app.use(
    '/assets',
    express.static(path.join(import.meta.dirname, 'assets')),
    express.static(path.join(import.meta.dirname, '../acme-id/assets')),
  )

  app.get('/login/oauth/authorize', (request, response) => {
    response.set({ 'Content-Security-Policy': contentSecurityPolicy(client), 'Cache-Control': 'no-store' })
    const asked = askedFor(request.query)
    if (!asked) return void response.status(400).send(refusalPage)
    response.send(authorizePage(asked, accounts))
  })

  app.post('/login/oauth/authorize', form, (request, response) => {
    const asked = askedFor(request.body)
    if (!asked) return void response.status(400).send(refusalPage)
    const account = accounts.find(({ login }) => login === request.body.account)
    const back = new URL(client.redirectUri)
    back.searchParams.set('state', asked.state)
    if (account) back.searchParams.set('code', keep(codes, { account, codeChallenge: asked.code_challenge }))
    else back.searchParams.set('error', 'access_denied')
    response.redirect(303, back.href)
  })

  app.post('/login/oauth/access_token', form, (request, response) => {
    const { client_id: id, client_secret: secret, code, code_verifier: verifier } = request.body ?? {}
    const grant = codes.get(String(code))
    codes.delete(String(code))
    const isRight = id === client.clientId && secret === client.clientSecret && grant?.codeChallenge === challengeOf(String(verifier))
    // GitHub, too, reports this error with status 200.
    if (!grant || !isRight) return void response.json({ error: 'bad_verification_code' })
    response.json({ access_token: keep(tokens, grant.account), token_type: 'bearer', scope: 'read:user,user:email' })
  })

  app.get('/api/user', (request, response) => {
    const account = tokens.get(bearerOf(request))
    if (!account) return void response.status(401).json({ message: 'Bad credentials' })
    response.json({ ...account, avatar_url: null })
  })

  /** Returns the parameters of the request. Returns null if the request is not from the registered application with its redirect URI. */
  function askedFor(given: Record<string, unknown>) {
    const { client_id, redirect_uri, state, code_challenge, code_challenge_method } = given
    if (client_id !== client.clientId || redirect_uri !== client.redirectUri || code_challenge_method !== 'S256') return null
    if (typeof state !== 'string' || typeof code_challenge !== 'string') return null
    return { client_id: client.clientId, redirect_uri: client.redirectUri, state, code_challenge, code_challenge_method }
  }

  return app
}

function keep<Value>(map: Map<string, Value>, value: Value): string {
  const key = randomBytes(24).toString('base64url')
  map.set(key, value)
  return key
}

/** Returns the PKCE challenge of a verifier (RFC 7636 section 4.6). */
function challengeOf(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}

function bearerOf(request: Request): string {
  return /^Bearer (\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
}

/** The policy must allow the application's origin, because `form-action` also applies to the redirects after a form. */
function contentSecurityPolicy({ redirectUri }: OctoClient): string {
  const application = new URL(redirectUri).origin
  return `default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' ${application}; base-uri 'none'; frame-ancestors 'none'`
}
