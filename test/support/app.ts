import express, { type Express, type RequestHandler } from 'express'
import type { Knex } from 'knex'
import {
  type AuthRouter,
  type AuthRouterOptions,
  createAuthRouter,
  createAuthTables,
  createKnexStore,
  OidcClient,
  type Provider,
} from '../../src'
import { isPassportProvider } from '../../src/providers/passport-provider'
import { type Browser, browserOf } from './browser'
import { type TestClock, testClock } from './clock'
import { checkCookies } from './cookie-check'
import { type FakeProvider, startFakeProvider } from './fake-provider'
import { fastHasher } from './fast-hasher'
import { logTap } from './log-tap'
import { checkAnswers } from './openapi'

export const testSecret = 'a test secret of forty characters, or so'
export const baseUrl = 'https://app.example.test'

export interface MountOptions {
  knex: Knex
  settings?: Partial<AuthRouterOptions['settings']>
  /** What else createAuthRouter gets. */
  options?: Partial<AuthRouterOptions>
  prefix?: string
  /** Registration key -> overrides of that provider's client, a client, or what makes one for the fake provider; default `{ corp: {} }`. */
  providers?: Record<string, object | Provider | ((provider: FakeProvider) => Provider)>
  /** Middleware the host mounts before us. */
  before?: RequestHandler[]
  /** Called with the app after our router is mounted. */
  host?: (app: Express, auth: AuthRouter) => void
}

export interface Mounted {
  app: Express
  auth: AuthRouter
  knex: Knex
  prefix: string
  clock: TestClock
  logs: ReturnType<typeof logTap>
  hasher: ReturnType<typeof fastHasher>
  /** One fake provider behind every registered client. */
  provider: FakeProvider
  /** A browser at the public origin, as far as cookies go (cookie-jar.ts). */
  browser(): Browser
  close(): Promise<void>
}

export type { Browser }

/** Looking whether they are there takes as long as a test. */
const withTables = new WeakSet<Knex>()

/** A host with doorward mounted: default tables made, one fake OIDC provider behind each registration key. */
export async function mount({
  knex,
  settings,
  options,
  prefix = '/auth',
  providers = { corp: {} },
  before = [],
  host,
}: MountOptions): Promise<Mounted> {
  const clock = testClock()
  const now = options?.now ?? clock.now
  const publicHost = new URL(settings?.publicUrl || settings?.oauthRedirectBaseUrl || baseUrl).hostname
  const logs = logTap()
  const hasher = fastHasher()
  const provider = await startFakeProvider({ now })
  if (!withTables.has(knex)) await createAuthTables(knex)
  withTables.add(knex)
  const auth = createAuthRouter({
    settings: { jwtSecret: testSecret, oauthEnabled: true, oauthRedirectBaseUrl: baseUrl, cookieSecure: false, ...settings },
    store: createKnexStore({ knex }),
    prefix,
    providers: Object.fromEntries(Object.entries(providers).map(([key, given]) => [key, clientOf(provider, key, given)])),
    environment: 'test',
    passwordHasher: hasher,
    logger: logs,
    now: clock.now,
    ...options,
  })
  // As a host does before it listens; tests of broken tables see them in the answers.
  await auth.ready().catch(() => undefined)
  const app = express()
  app.disable('x-powered-by')
  app.use(checkCookies(publicHost))
  for (const middleware of before) app.use(middleware)
  // What else decides which routes there are and what they say, a host makes for itself.
  const kind =
    options?.store || options?.signup || options?.loginTasks ? null : JSON.stringify([settings, prefix, Object.keys(options ?? {})])
  const answers = checkAnswers(auth, kind)
  app.use(prefix, answers.record, auth)
  host?.(app, auth)
  const close = async () => {
    await provider.close()
    answers.finish()
  }
  return { app, auth, knex, prefix, clock, logs, hasher, provider, browser: () => browserOf(app, { host: publicHost, now }), close }
}

function clientOf(provider: FakeProvider, key: string, given: object | Provider): Provider {
  if (typeof given === 'function') return given(provider) as Provider // told apart by being one
  if ('exchangeCode' in given || isPassportProvider(given as Provider)) return given as Provider // told apart by its method
  return new OidcClient({ ...provider.oidcOptions({ providerName: key, ...given }) })
}

export interface SignInOptions {
  key?: string
  profile?: Record<string, unknown>
  query?: Record<string, string>
  headers?: Record<string, string>
}

/** The whole dance: login, the person says yes at the provider, callback. */
export async function signIn(
  mounted: Mounted,
  browser: Browser = mounted.browser(),
  { key = 'corp', profile, query = {}, headers = {} }: SignInOptions = {},
) {
  const { callbackQuery } = await startLogin(mounted, browser, { key, query, ...(profile && { profile }) })
  const fromProvider = { 'Sec-Fetch-Site': 'cross-site', ...headers }
  return browser.get(`${mounted.prefix}/oauth/${key}/callback`).set(fromProvider).query(callbackQuery)
}

export async function startLogin(mounted: Mounted, browser: Browser, { key = 'corp', profile, query = {} }: SignInOptions = {}) {
  const response = await browser.get(`${mounted.prefix}/oauth/${key}/login`).query(query)
  if (response.status !== 302) throw new Error(`login answered ${response.status}: ${response.text}`)
  return mounted.provider.authorize(String(response.headers['location']), profile ? { profile } : {})
}

/** The value of a cookie the response sets; null when it sets none of that name. */
export function setCookieOf(response: { headers: Record<string, unknown> }, name: string): { value: string; attributes: string } | null {
  const lines = (response.headers['set-cookie'] ?? []) as string[] // supertest types every header as any
  const line = lines.find((candidate) => candidate.startsWith(`${name}=`))
  if (line === undefined) return null
  const [pair = '', ...attributes] = line.split('; ')
  return { value: decodeURIComponent(pair.slice(name.length + 1)), attributes: attributes.join('; ') }
}
