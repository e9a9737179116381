import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ErrorRequestHandler, RequestHandler } from 'express'
import { type AuthMail, type AuthRouterOptions, GitHubClient, type Guards, OidcClient, type SettingsInput } from '../../../src'
import type { Route } from '../../../src/http/routes'
import { bearerOf, credentialsOf, signedIn } from '../../local/people'
import { authenticator } from '../../mfa/authenticator'
import { challengeOf, type EnrolledMember, enrolled, mfaSettings } from '../../mfa/people'
import { addIdentity, addUser } from '../../social/accounts-at-hand'
import { type Mounted, mount, testSecret } from '../../support/app'
import type { Database } from '../../support/databases'
import type { FakeProvider } from '../../support/fake-provider'
import { linkTemplates, type Mailbox, mailbox } from '../../support/mailbox'
import { navigate } from '../../support/navigate'
import type { LiveKind } from './wish'
import type { FuzzedRoute } from './wishes'

/** What somebody holds at this moment; the newest last. */
export type Persona = Partial<Record<LiveKind, string[]>> & {
  links: Record<string, string>
  /** Shows the code of this moment. */
  app?: { code(): string }
}

/** In the paths of a mail's link: what it is for. */
export const segments: Readonly<Record<AuthMail['kind'], string>> = {
  activation: 'activate',
  password_reset: 'password-reset',
  email_verification: 'email-verify',
  email_change: 'email-change',
  invitation: 'invitations',
  account_deletion: 'account/restore',
  email_login: 'email-login',
  device_code: 'forgot-password',
  notice: 'undo',
}

export interface FuzzHost {
  name: string
  /** How its browsers are signed in. */
  byCookie: boolean
  mounted: Mounted & { mails: Mailbox }
  /** As mounted; the host's own guarded routes, below `/host`, too. */
  routes: readonly FuzzedRoute[]
  origin: string
  port: number
  personas: Persona[]
  /** New people in empty tables, once what goes on after answers has ended. */
  restock(): Promise<void>
  close(): Promise<void>
}

interface Plan {
  name: string
  settings: Partial<SettingsInput>
  options?: Partial<AuthRouterOptions>
}

const unlimited = { routes: false, login: false, signup: false, links: false, mail: false, mfa: false } as const

/** Every delivery, and once more with the budgets of a host that says nothing about them. */
export const plans: readonly Plan[] = [
  { name: 'bearer', settings: { tokenDelivery: 'bearer' }, options: { throttle: unlimited } },
  {
    name: 'cookie',
    settings: {
      tokenDelivery: 'cookie',
      oauthSuccessRedirect: '/welcome',
      oauthErrorRedirect: '/trouble?a=b#c',
      oauthLinkByVerifiedEmail: true,
    },
    options: { throttle: unlimited },
  },
  { name: 'both', settings: { tokenDelivery: 'both', refreshReuseGraceSeconds: 10 }, options: { throttle: unlimited } },
  { name: 'budgets', settings: { tokenDelivery: 'both', autoActivate: true } },
]

const device = { ip: '192.0.2.1', userAgent: 'fuzz' }
const password = 'a quiet harbour in winter' // of `signedIn`

/** A host with local accounts, providers, the second factor and administration. `mounted`: the tables the router was made of, as observed. */
export async function openFuzzHost(database: Database, { name, settings, options = {} }: Plan, tables: Route[][]): Promise<FuzzHost> {
  const opened = await database.open({ memory: true })
  const mails = mailbox()
  tables.length = 0
  const mounted = await mount({
    knex: opened.knex,
    settings: { jwtSecret: testSecret, ...linkTemplates, ...mfaSettings, backendLinks: true, rememberedTokens: 200, ...settings },
    options: { mailer: mails, ...options },
    providers: {
      corp: {},
      introspecting: (provider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl })),
      asking: (provider) => new OidcClient(provider.oidcOptions({ tokeninfoUrl: provider.tokeninfoUrl })),
      hub: (provider) => new GitHubClient(provider.githubOptions()),
    },
    host: (app, { guards }) => {
      app.set('trust proxy', 'loopback')
      for (const [name, guard] of Object.entries(guardsOf(guards))) app.get(`/auth/host/${name}`, guard, (_req, res) => void res.json({}))
      app.use(((_error, _req, res, _next) => void res.status(599).json({})) satisfies ErrorRequestHandler) // never ours to reach
      app.use((_req, res) => void res.status(404).set(leftToHost, '1').json({}))
    },
  })
  const host = Object.assign(mounted, { mails })
  const server = createServer(mounted.app)
  server.keepAliveTimeout = 0 // a connection that ends of itself under a request would be no answer
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  const fuzzHost: FuzzHost = {
    name,
    byCookie: settings.tokenDelivery === 'cookie',
    mounted: host,
    routes: [...tables.flat(), ...Object.keys(guardsOf(mounted.auth.guards)).map((name) => ({ method: 'GET', path: `/host/${name}` }))],
    origin: `http://127.0.0.1:${port}`,
    port,
    personas: [],
    async restock() {
      await atRest(host)
      await empty(host)
      fuzzHost.personas = await people(host, fuzzHost.origin)
      await atRest(host)
      mails.mails.length = 0 // or everybody who has a factor would lose it at once, by the link of that notice
    },
    async close() {
      await atRest(host)
      await closeServer(server)
      await mounted.close()
      await opened.close()
    },
  }
  return fuzzHost
}

/** Of an answer that is the host's own: our router let the request pass. */
export const leftToHost = 'x-left-to-host'

function guardsOf(guards: Guards): Record<string, RequestHandler> {
  return {
    auth: guards.requireAuth(),
    optional: guards.optionalAuth(),
    user: guards.requireUser(),
    mfa: guards.requireMfa(),
    session: guards.requireSession(),
  }
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

/** Nobody holds or waits for the one connection any more. */
async function atRest({ knex }: Mounted): Promise<void> {
  const { pool } = knex.client as { pool: { numUsed(): number; numPendingAcquires(): number } }
  for (let quiet = 0; quiet < 4; ) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    quiet = pool.numUsed() + pool.numPendingAcquires() === 0 ? quiet + 1 : 0
  }
}

const tablesToEmpty = ['auth_sessions', 'auth_recovery_codes', 'auth_user_tokens', 'auth_identities', 'auth_users']

async function empty({ knex, provider, mails, clock }: FuzzHost['mounted']): Promise<void> {
  for (const table of tablesToEmpty) await knex(table).delete()
  mails.mails.length = 0
  provider.requests.length = 0
  provider.authorizations.length = 0
  clock.advance(61)
}

async function people(host: FuzzHost['mounted'], origin: string): Promise<Persona[]> {
  const administrator = await enrolled(host, { isAdmin: true })
  const others = [await enrolled(host), await enrolled(host)]
  const plain = [await signedIn(host), await signedIn(host)]
  const linking = [administrator, ...plain].map(async (member) => personaOf(host, member, await beginLink(host, origin, member)))
  const loggingIn = others.map(async (member) => personaOf(host, member, await beginLogin(host, origin, member.email)))
  const withPassword = await Promise.all([...linking, ...loggingIn])
  const personas = [...withPassword, await enrollingPersona(host), await providerPersona(host)]
  return [...personas, ...personas, await pendingPersona(host), await deactivatedPersona(host)]
}

type Member = Awaited<ReturnType<typeof signedIn>> & Partial<EnrolledMember>

async function personaOf(host: FuzzHost['mounted'], member: Member, social: Partial<Persona> = {}): Promise<Persona> {
  const { service } = host.auth
  const { email, userId } = member
  const links = {
    'password-reset': await service.requestPasswordReset(email),
    'email-verify': await service.requestEmailVerification(userId),
    'email-change': await service.requestEmailChange({ userId, amr: ['pwd', 'otp'], newEmail: `new-${email}`, currentPassword: password }),
  }
  const challenge = member.app ? await challengeOf(host, member) : null
  const session = member.app
    ? await service.verifyMfaToSession({ mfaToken: await challengeOf(host, member), code: member.recoveryCodes?.[0] ?? '', ...device })
    : await service.logInToSession({ email, password, ...device })
  const sessionToken = session.kind === 'session' ? session.sessionToken : ''
  return {
    email: [email],
    userId: [userId],
    password: [password],
    access: [member.token],
    refresh: [member.refreshToken],
    session: [sessionToken],
    sessionId: [(await service.findSession(sessionToken))?.session.id ?? ''],
    challenge: challenge === null ? [] : [challenge],
    recovery: member.recoveryCodes?.slice(1) ?? [],
    providerToken: [tokenInHand(host.provider)],
    ...social,
    ...(member.app && { app: member.app }),
    links: Object.fromEntries(Object.entries(links).map(([name, link]) => [name, link?.token ?? ''])),
  }
}

const tokensInHand = new WeakMap<FakeProvider, string>()

/** One for all: the fake provider forgets none, and what it keeps would look like a leak of ours. */
function tokenInHand(provider: FakeProvider): string {
  const token =
    tokensInHand.get(provider) ?? provider.issueAccessToken({ profile: { sub: 'in-hand', email: 'in-hand@example.test', id: 7 } })
  tokensInHand.set(provider, token)
  return token
}

/** A redirect that waits for its callback. */
async function beginLogin(host: FuzzHost['mounted'], origin: string, email: string): Promise<Partial<Persona>> {
  const response = await navigate(`${origin}/auth/oauth/corp/login`)
  return { ...consent(host.provider, response.headers.get('location') ?? '', email), stateCookie: [stateCookieOf(response)] }
}

/** Somebody says yes at the provider. */
export function consent(provider: FakeProvider, authorizeUrl: string, email: string): Pick<Persona, 'state' | 'providerCode'> {
  const profile = { sub: `subject-${email}`, email: `social-${email}`, email_verified: true }
  const { code, state } = provider.authorize(authorizeUrl, { profile })
  return { state: [state], providerCode: [code] }
}

function stateCookieOf(response: Response): string {
  return decodeURIComponent(/oauth_state=([^;]+)/.exec(response.headers.getSetCookie().join('\n'))?.[1] ?? '')
}

/** A link whose callback came without the session that began it: there is a ticket. */
async function beginLink({ provider }: FuzzHost['mounted'], origin: string, member: Member): Promise<Partial<Persona>> {
  const headers = { ...bearerOf(member), 'Content-Type': 'application/json' }
  const begun = await fetch(`${origin}/auth/oauth/corp/link`, { method: 'POST', headers, body: '{}' })
  const { authorize_url: authorizeUrl } = (await begun.json()) as { authorize_url: string }
  const { state = [], providerCode = [] } = consent(provider, authorizeUrl, member.email)
  const query = new URLSearchParams({ state: state.join(), code: providerCode.join() })
  const ended = await navigate(`${origin}/auth/oauth/corp/callback?${query}`, { Cookie: `oauth_state=${stateCookieOf(begun)}` })
  return { ticket: [ticketIn(`${ended.headers.get('location')} ${await ended.text()}`) ?? ''] }
}

/** In a body, or in the fragment of a redirect. */
export function ticketIn(text: string): string | undefined {
  return /(?:link|reauthentication)_ticket(?:":"|=)([\w.-]+)/.exec(text)?.[1]
}

/** A secret that waits for its first code, and an identity linked. */
async function enrollingPersona(host: FuzzHost['mounted']): Promise<Persona> {
  const member = await signedIn(host)
  const persona = await personaOf(host, member)
  await addIdentity(host.knex, member.userId, { provider: 'corp' })
  const { secret } = await host.auth.service.enrollTotp(member.userId)
  return { ...persona, app: authenticator(secret, host.clock) }
}

/** An account without a password, in the session of its first login. */
async function providerPersona({ auth }: FuzzHost['mounted']): Promise<Persona> {
  const email = 'by-provider@example.test'
  const profile = { provider: 'corp', subject: `subject-${email}`, email, emailVerified: true, name: null, picture: null, raw: {} }
  const login = await auth.service.logInWithIdentity(profile, device)
  if (login.kind !== 'session') throw new Error('a new account has no second factor')
  const { token, refreshToken } = credentialsOf(login)
  return { email: [email], userId: [login.userId], access: [token], refresh: [refreshToken], links: {} }
}

async function pendingPersona(host: FuzzHost['mounted']): Promise<Persona> {
  const email = 'pending@example.test'
  const { id } = await addUser(host.knex, {
    email,
    isActive: false,
    activatedAt: null,
    emailVerifiedAt: null,
    hashedPassword: await host.hasher.hash(password),
  })
  const link = await host.auth.service.requestActivation(email)
  return {
    email: [email],
    userId: [id],
    password: [password],
    links: { activate: link && 'token' in Object(link) ? (link as { token: string }).token : '' },
  }
}

async function deactivatedPersona(host: FuzzHost['mounted']): Promise<Persona> {
  const { email, userId, token, refreshToken } = await signedIn(host)
  const link = await host.auth.service.requestPasswordReset(email)
  await host.auth.service.deactivate(userId)
  return {
    email: [email],
    userId: [userId],
    password: [password],
    access: [token],
    refresh: [refreshToken],
    links: { 'password-reset': link?.token ?? '' },
  }
}
