import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, GitHubClient, getAuth, getUser, OidcClient } from 'doorward'
import express, { type Express, type RequestHandler } from 'express'
import knex from 'knex'
import { homePage, notesPage } from './home-page'
import { languageOf, rememberChoice, speakAsChosen } from './language'
import { createOutbox } from './outbox/create-outbox'

/** The path at which the app mounts the library. Any path works. */
export const authPrefix = '/accounts/auth'

export interface HostAppOptions {
  /** The public origin of the app. */
  url: string
  /** Acme ID's issuer identifier. The app reads all other data about Acme ID from its discovery document. */
  issuer: string
  client: Registration
  /** Octo ID's address, and the app's registration at Octo ID. */
  octo: { url: string; client: Registration }
  /** An SQLite file, or `:memory:`. */
  databaseFile: string
  /** The clock. A test sets it, so that the test does not wait for the next code. */
  now?: (() => Date) | undefined
}

interface Registration {
  clientId: string
  clientSecret: string
}

/** Returns an ordinary Express app with its own pages, one API route, and doorward's pages for the account. */
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
    // At level info, the library logs which redirect URIs to register. The demo has registered them, so it does not log them.
    logger: { ...console, info: () => {} },
    // A visitor who tries everything in a short time must see every mail. For a real app, use the default of five mails an hour to one
    // address.
    throttle: { mail: { attempts: 50, windowSeconds: 3_600 } },
    ...(now && { now }),
    settings: {
      // The secret is new at every start, so all sessions end with the demo. A real app reads the secret from its environment.
      jwtSecret: randomBytes(48).toString('base64url'),
      publicUrl: url,
      tokenDelivery: 'session',
      // The demo uses plain http on localhost, where some browsers do not store a Secure cookie. Everywhere else, keep the default `true`.
      cookieSecure: false,
      pagesEnabled: true,
      oauthEnabled: true,
      // If a person unlinks Acme ID, logs out and logs in with Acme ID again, the verified address leads to the same account.
      oauthLinkByVerifiedEmail: true,
      // The time is short, so that a visitor sees the page "Confirm that it is you". For a real app, use the default of 15 minutes.
      freshSessionSeconds: 120,
      emailLogin: 'code',
      passkeysEnabled: true,
      mfaEnabled: true,
      mfaIssuer: 'Doorward demo',
      // The key is new at every start, like the database in memory. A real app must keep its key, because no other key can decrypt the
      // secrets.
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

  /** Closes the database. The library sends mails after its responses, so the function first waits until the last mails are sent. */
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
