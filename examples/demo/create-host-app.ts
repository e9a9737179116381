import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, GitHubClient, getAuth, getUser, OidcClient } from 'doorward'
import express, { type Express, type RequestHandler } from 'express'
import knex from 'knex'
import { homePage, notesPage } from './home-page'
import { languageOf, rememberChoice, speakAsChosen } from './language'
import { createOutbox } from './outbox/create-outbox'

/** Where the library is mounted; any path will do. */
export const authPrefix = '/accounts/auth'

export interface HostAppOptions {
  /** The app's own public origin. */
  url: string
  /** Acme ID's issuer identifier; everything else about it is discovered from there. */
  issuer: string
  client: Registration
  /** Octo ID: where it is, and what it knows us by. */
  octo: { url: string; client: Registration }
  /** An SQLite file, or `:memory:`. */
  databaseFile: string
  /** For tests, which do not wait for the next code. */
  now?: (() => Date) | undefined
}

interface Registration {
  clientId: string
  clientSecret: string
}

/** An ordinary Express app: its pages, one API route of its own, and doorward with a whole account area beside them. */
export async function createHostApp({
  url,
  issuer,
  client,
  octo,
  databaseFile,
  now,
}: HostAppOptions): Promise<{ app: Express; close(): Promise<void> }> {
  const database = knex({ client: 'better-sqlite3', connection: { filename: databaseFile }, useNullAsDefault: true })
  await createAuthTables(database)

  const acme = await OidcClient.discover(issuer, {
    clientId: client.clientId,
    clientSecret: client.clientSecret,
    providerName: 'acme',
  })

  const { clientId, clientSecret } = octo.client
  const octoId = new GitHubClient({
    clientId,
    clientSecret,
    providerName: 'octo',
    endpoints: {
      authorizeUrl: `${octo.url}/login/oauth/authorize`,
      tokenUrl: `${octo.url}/login/oauth/access_token`,
      apiUrl: `${octo.url}/api`,
    },
  })

  const outbox = createOutbox()
  const auth = createAuthRouter({
    environment: 'development',
    prefix: authPrefix,
    store: createKnexStore({ knex: database }),
    providers: { acme, octo: octoId },
    mailer: outbox.mailer,
    theme: { name: 'Doorward demo', logoUrl: '/mark.svg', homeUrl: '/', accent: '#1b6350' },
    // At info it says which redirect URIs to register: here they are.
    logger: { ...console, info: () => {} },
    // Whoever tries everything out in one go is to see every mail; the default, five an hour to one address, is for real ones.
    throttle: { mail: { attempts: 50, windowSeconds: 3_600 } },
    ...(now && { now }),
    settings: {
      // New at every start: sessions end with the demo. A real app reads it from its environment.
      jwtSecret: randomBytes(48).toString('base64url'),
      publicUrl: url,
      tokenDelivery: 'session',
      // Plain http on localhost, and not every browser keeps a Secure cookie there. Leave it at true anywhere else.
      cookieSecure: false,
      pagesEnabled: true,
      oauthEnabled: true,
      // Unlink Acme ID, sign out, come back: the verified address leads to the same account.
      oauthLinkByVerifiedEmail: true,
      // Short, to meet "Confirm that it is you" within a visit; 15 minutes, the default, is for real apps.
      freshSessionSeconds: 120,
      emailLogin: 'code',
      passkeysEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Doorward demo',
      // Lives as long as the database in memory. A real app keeps it: what it has sealed, nothing else opens.
      mfaSecretKey: randomBytes(32).toString('base64'),
    },
  })
  await auth.ready()

  const app = express()
  app.disable('x-powered-by')
  app.use(speakAsChosen)
  app.use(authPrefix, auth)
  app.use(auth.wellKnown)
  app.get('/api/hello', auth.guards.requireAuth(), (request, response) => {
    const { email, sub, amr } = getAuth(request)
    response.json({ message: `Hello, ${email}`, email, user_id: sub, amr })
  })
  app.use(pageHeaders, rememberChoice)
  app.use('/outbox', outbox.router)
  app.get('/', async (request, response) => {
    const user = await auth.with(request, response).currentUser()
    response.set('Cache-Control', 'no-store').send(homePage(languageOf(request), authPrefix, user))
  })
  app.get('/notes', auth.guards.requireLogin(), auth.guards.requireUser(), (request, response) => {
    response.set('Cache-Control', 'no-store').send(notesPage(languageOf(request), getUser(request)))
  })
  app.use(express.static(path.join(import.meta.dirname, 'page'), { index: false }))
  app.use(errorHandler())
  return { app, close }

  /** Mails leave after the answers: what is still to be sent goes out before the database closes. */
  async function close(): Promise<void> {
    await auth.drain()
    await database.destroy()
  }
}

const pageHeaders: RequestHandler = (_request, response, next) => {
  response.set({
    'Content-Security-Policy':
      "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    'Referrer-Policy': 'strict-origin',
    'X-Content-Type-Options': 'nosniff',
  })
  next()
}
