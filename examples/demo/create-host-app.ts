import { randomBytes } from 'node:crypto'
import path from 'node:path'
import {
  type AuthRouter,
  type AuthRouterOptions,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  errorHandler,
  GitHubClient,
  getAuth,
  getUser,
  OidcClient,
} from 'doorward'
import express, { type Express, type RequestHandler } from 'express'
import knex from 'knex'
import { byDelivery, type Delivery, deliveries, rememberDelivery } from './delivery'
import { rememberChoice, speakAsChosen } from './language'
import { createOutbox } from './outbox/create-outbox'
import { view } from './views/view'

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

/** An ordinary Express app: its pages, one API route of its own, and doorward beside them. */
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

  const store = createKnexStore({ knex: database })
  const outbox = createOutbox()
  const shared: AuthRouterOptions = {
    environment: 'development',
    prefix: authPrefix,
    store,
    providers: { acme, octo: octoId },
    mailer: outbox.mailer,
    // At info it says which redirect URIs to register: here they are.
    logger: { ...console, info: () => {} },
    // Whoever tries everything out in one go is to see every mail; the default, five an hour to one address, is for real ones.
    throttle: { mail: { attempts: 50, windowSeconds: 3_600 } },
    ...(now && { now }),
    settings: {
      // New at every start: sessions end with the demo. A real app reads it from its environment.
      jwtSecret: randomBytes(48).toString('base64url'),
      // Short, to watch another browser being signed out; 15 minutes, the default, is for real apps.
      accessTokenTtlSeconds: 60,
      // Plain http on localhost, and not every browser keeps a Secure cookie there. Leave it at true anywhere else.
      cookieSecure: false,
      oauthEnabled: true,
      publicUrl: url,
      // Pages of this app for two kinds of links; each POSTs the token when the person says so, and is signed in by that.
      activationUrlTemplate: `${url}/activate/{token}`,
      passwordResetUrlTemplate: `${url}/reset/{token}`,
      // The library's own pages for the other two, where there is nobody to sign in. The last one leads back here.
      backendLinks: true,
      loginUrl: '/',
      // Unlink Acme ID, sign out, come back: the verified address leads to the same account.
      oauthLinkByVerifiedEmail: true,
      // Short, to meet "Confirm it is you" within a visit; 15 minutes, the default, is for real apps.
      freshSessionSeconds: 120,
      mfaEnabled: true,
      mfaIssuer: 'Doorward demo',
      // Lives as long as the database in memory. A real app keeps it: what it has sealed, nothing else opens.
      mfaSecretKey: randomBytes(32).toString('base64'),
    },
  }
  // The same app in each delivery, over the same accounts. A real app has one router, and `auth` in place of these two functions.
  const routers = new Map(deliveries.map((delivery) => [delivery, createAuthRouter(inDelivery(shared, delivery, url))]))
  const guarded = (guard: (guards: AuthRouter['guards'], delivery: Delivery) => RequestHandler) =>
    byDelivery((delivery) => guard(routerOf(delivery).guards, delivery))

  const app = express()
  app.disable('x-powered-by')
  app.use(speakAsChosen)
  app.use(rememberDelivery)
  app.use(authPrefix, byDelivery(routerOf))
  app.get(
    '/api/hello',
    guarded((guards) => guards.requireAuth()),
    (request, response) => {
      const { email, sub, amr } = getAuth(request)
      response.json({ message: `Hello, ${email}`, email, user_id: sub, amr })
    },
  )
  app.get(
    '/api/account',
    guarded((guards) => guards.requireUser()),
    async (request, response) => {
      const { id, email } = getUser(request)
      const user = await store.users.find(id)
      response.json({ email, confirmed_at: user?.emailVerifiedAt ?? null, has_password: Boolean(user?.passwordSetAt) })
    },
  )
  app.use(pageHeaders, rememberChoice)
  app.use('/outbox', outbox.router)
  app.get('/', view('index.html'))
  app.get('/signup', view('signup.html'))
  app.get('/forgot', view('forgot.html'))
  // A page for people who are signed in: others are sent to sign in, and back here. Where scripts keep the tokens, the page's own script does it.
  app.get(
    '/devices',
    guarded((guards, delivery) => (delivery === 'bearer' ? pass : guards.requireLogin())),
    view('devices.html'),
  )
  // Nothing is looked up and nothing is changed: whoever merely opens a link has not redeemed it.
  app.get('/activate/:token', view('activate.html'))
  app.get('/reset/:token', view('reset.html'))
  app.use(express.static(path.join(import.meta.dirname, 'page'), { index: false }))
  app.use(errorHandler())
  return { app, close }

  /** Mails leave after the answers: what is still to be sent goes out before the database closes. */
  async function close(): Promise<void> {
    for (const router of routers.values()) await router.drain()
    await database.destroy()
  }

  function routerOf(delivery: Delivery): AuthRouter {
    const router = routers.get(delivery)
    if (!router) throw new Error(`There is no router in delivery ${delivery}.`)
    return router
  }
}

/** A provider sends people back to the first page; where a script keeps the tokens, with a code for them. */
function inDelivery(shared: AuthRouterOptions, tokenDelivery: Delivery, url: string): AuthRouterOptions {
  const wayBack = tokenDelivery === 'bearer' ? { appRedirects: [`${url}/`] } : { oauthSuccessRedirect: '/', oauthErrorRedirect: '/' }
  return { ...shared, settings: { ...shared.settings, ...wayBack, tokenDelivery } }
}

const pass: RequestHandler = (_request, _response, next) => next()

const pageHeaders: RequestHandler = (_request, response, next) => {
  response.set({
    'Content-Security-Policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    // A page's path may hold a token: no request says which page it came from.
    'Referrer-Policy': 'strict-origin',
    'X-Content-Type-Options': 'nosniff',
  })
  next()
}
