/**
 * Employees sign in at the identity provider of their company, by SAML. doorward opens the session, and asks for the second factor of an
 * account that has one. The company makes the accounts: whoever has none does not get in.
 *
 *   npm install passport @node-saml/passport-saml
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) AUTH_MFA_SECRET_KEY=$(openssl rand -base64 32) \
 *     SAML_ENTRY_POINT=https://idp.example.com/sso SAML_CERTIFICATE="$(cat idp.pem)" npx tsx app.ts
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { MultiSamlStrategy, type Profile, SAML, ValidateInResponseTo } from '@node-saml/passport-saml'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler } from 'doorward'
import express, { type Request, type RequestHandler, type Response } from 'express'
import knex from 'knex'
import passport from 'passport'

/** Express 4 does not hear of a promise that rejects. */
const caught =
  (handle: (req: Request, res: Response) => Promise<unknown>): RequestHandler =>
  (req, res, next) =>
    void handle(req, res).catch(next)

export interface IdentityProvider {
  entryPoint: string
  /** Its certificate or public key, as PEM. */
  certificate: string
}

const codeForm = (mfaToken: string) =>
  `<!doctype html><html lang="en"><title>Code</title><form method="post" action="/saml/code"><input type="hidden" name="mfaToken" value="${mfaToken}">
<label>Code of your authenticator app <input name="code" inputmode="numeric" autocomplete="one-time-code" required></label><button>Sign in</button></form></html>`

export async function start(port = 3000, filename = 'app.sqlite', provider: IdentityProvider = fromEnvironment()) {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createAuthTables(database)
  const store = createKnexStore({ knex: database })
  const publicUrl = `http://localhost:${port}`
  const auth = createAuthRouter({
    store,
    settings: {
      jwtSecret: process.env.AUTH_JWT_SECRET ?? '',
      publicUrl,
      cookieSecure: false, // set true when you serve the app over https
      tokenDelivery: 'session',
      passwordLogin: false,
      emailLogin: 'code',
      mfaEnabled: true,
      mfaIssuer: 'Example',
      mfaSecretKey: process.env.AUTH_MFA_SECRET_KEY ?? '',
      backendLinks: true,
    },
  })
  await auth.ready() // rejects if a table is wrong

  const strategy = strategyOf({
    entryPoint: provider.entryPoint,
    idpCert: provider.certificate,
    issuer: publicUrl,
    audience: publicUrl,
    callbackUrl: `${publicUrl}/saml/acs`,
    wantAuthnResponseSigned: false, // this provider signs the assertion
    validateInResponseTo: ValidateInResponseTo.always,
    requestIdExpirationPeriodMs: stateMs,
    acceptedClockSkewMs: 5_000,
    disableRequestedAuthnContext: true, // the provider decides how its people sign in
  })

  const app = express()
  app.get(
    '/',
    caught(async (req, res) => {
      const person = await auth.with(req, res).currentUser()
      res.send(person ? 'Signed in.' : '<a href="/saml/login">Sign in</a>')
    }),
  )
  // The provider sends the state back, and signs it as the id of the request. The cookie shows that this browser began the login, which
  // `openSession` does not check.
  app.get('/saml/login', (req, res, next) => {
    const state = randomBytes(16).toString('base64url')
    states.set(req, state)
    res.cookie('saml_state', state, { ...stateCookie, maxAge: stateMs })
    passport.authenticate(strategy, { session: false })(req, res, next)
  })
  app.post(
    '/saml/acs',
    express.urlencoded(),
    caught(async (req, res) => {
      const state = stateOf(req)
      states.set(req, state)
      res.clearCookie('saml_state', stateCookie)
      if (!isSame(String(req.body?.RelayState), state)) return void res.status(403).send('<a href="/saml/login">Sign in</a> again.')
      const email = await emailOf(strategy, req, res)
      const account = email && (await store.users.findByEmail(email))
      if (!account) return void res.status(403).send('You have no account here.')
      const login = await auth.with(req, res).openSession(account.id, { provider: 'company' })
      if (login.kind === 'challenge') res.send(codeForm(login.mfaToken))
      else res.redirect(303, '/')
    }),
  )
  app.post(
    '/saml/code',
    express.urlencoded(),
    caught(async (req, res) => {
      await auth.with(req, res).verifyMfa({ mfaToken: String(req.body?.mfaToken), code: String(req.body?.code) })
      res.redirect(303, '/')
    }),
  )
  app.use('/auth', auth)
  app.use(errorHandler())
  const server = app.listen(port, '127.0.0.1').on('close', () => database.destroy())
  return Object.assign(server, { auth, store })
}

const stateMs = 600_000
const stateCookie = { httpOnly: true, secure: true, sameSite: 'none', path: '/saml' } as const

/** By request. The strategy's types know the requests of Express 4 alone. */
const states = new WeakMap<object, string>()
const requestIdOf = (req: object) => `_${states.get(req)}`

function strategyOf(options: ConstructorParameters<typeof SAML>[0]): passport.Strategy {
  const { cacheProvider } = new SAML(options).options // all requests share it, so that each is answered once
  const verify = (req: object, profile: Profile | null, done: (error: null, user?: { email: string }) => void) =>
    profile && isAnswer(profile.getAssertion?.() as SignedAssertion | undefined, requestIdOf(req))
      ? done(null, { email: profile.nameID.toLowerCase() })
      : done(null)
  const strategy = new MultiSamlStrategy(
    {
      ...options,
      cacheProvider,
      passReqToCallback: true,
      getSamlOptions: (req, done) =>
        done(null, { generateUniqueId: () => requestIdOf(req), additionalParams: { RelayState: states.get(req) ?? '' } }),
    },
    verify,
    (_req, _profile, done) => done(null), // the provider ends no session here
  )
  return strategy as unknown as passport.Strategy
}

/** Null: the answer is not the provider's, or not the answer to this request. */
function emailOf(strategy: passport.Strategy, req: Request, res: Response): Promise<string | null> {
  if (typeof req.body?.SAMLResponse !== 'string') return Promise.resolve(null)
  return new Promise((resolve) => {
    const answered = (_error: unknown, user?: { email: string } | false) => resolve(user ? user.email : null)
    passport.authenticate(strategy, { session: false }, answered)(req, res, () => resolve(null))
  })
}

interface SignedAssertion {
  Assertion: { Subject?: { SubjectConfirmation?: { SubjectConfirmationData?: { $?: { InResponseTo?: string } }[] }[] }[] }
}

/** The library takes an assertion that answers no request, because the response around it, which nobody signed, can name one. */
function isAnswer(signed: SignedAssertion | undefined, requestId: string): boolean {
  const confirmations = signed?.Assertion.Subject?.[0]?.SubjectConfirmation ?? []
  return confirmations.length > 0 && confirmations.every((one) => one.SubjectConfirmationData?.[0]?.$?.InResponseTo === requestId)
}

function stateOf({ headers }: Request): string {
  return /(?:^|; )saml_state=([\w-]{22})(?:;|$)/.exec(headers.cookie ?? '')?.[1] ?? ''
}

function isSame(one: string, other: string): boolean {
  const [bytes, others] = [Buffer.from(one), Buffer.from(other)]
  return other !== '' && bytes.length === others.length && timingSafeEqual(bytes, others)
}

function fromEnvironment(): IdentityProvider {
  return { entryPoint: process.env.SAML_ENTRY_POINT ?? '', certificate: process.env.SAML_CERTIFICATE ?? '' }
}

if (process.argv[1] === __filename) start()
