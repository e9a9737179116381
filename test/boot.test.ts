import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import express, { type RequestHandler } from 'express'
import jwt from 'jsonwebtoken'
import knex, { type Knex } from 'knex'
import supertest from 'supertest'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type AuthRouter,
  type AuthRouterOptions,
  type AuthStore,
  ConfigurationError,
  createAuthRouter,
  createAuthTables,
  createGuards,
  createHttpClient,
  createKnexStore,
  createTokenVerifier,
  GitHubClient,
  GoogleClient,
  memoryCounters,
  OidcClient,
  type ProviderClient,
  providersFromEnv,
  type RouterSettings,
  settingsFromEnv,
} from '../src'
import { deriveKey } from '../src/core/keys'
import { baseUrl, type Mounted, type MountOptions, mount, setCookieOf, signIn, startLogin, testSecret } from './support/app'
import { logTap } from './support/log-tap'

const clientSecret = 'canary-client-secret-4711'
const endpoints = { authorizeUrl: 'https://id.canary.test/authorize', tokenUrl: 'https://id.canary.test/token' }
const corp = new OidcClient({ clientId: 'canary-client', clientSecret, providerName: 'corp', ...endpoints })
const mailer = { send: async () => undefined }
const templates = {
  activationUrlTemplate: 'https://web.canary.test/activate/{token}',
  passwordResetUrlTemplate: 'https://web.canary.test/reset/{token}',
  emailVerificationUrlTemplate: 'https://web.canary.test/verify/{token}',
  emailChangeUrlTemplate: 'https://web.canary.test/change/{token}',
}
const social = { oauthEnabled: true, oauthRedirectBaseUrl: 'https://app.canary.test' }

let database: Knex
let store: AuthStore
let mounted: Mounted | undefined

beforeAll(() => {
  database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
  store = createKnexStore({ knex: database })
})
afterAll(() => database.destroy())
afterEach(async () => {
  vi.unstubAllEnvs()
  await mounted?.close()
  mounted = undefined
})

interface Given {
  settings?: Partial<RouterSettings>
  [option: string]: unknown
}

function boot({ settings, ...options }: Given = {}): { auth: AuthRouter; logs: ReturnType<typeof logTap> } {
  const logs = logTap()
  const given = {
    settings: { jwtSecret: testSecret, oauthRedirectBaseUrl: social.oauthRedirectBaseUrl, ...settings },
    store,
    logger: logs,
    environment: 'test',
    ...options,
  }
  const auth = createAuthRouter(given as unknown as AuthRouterOptions) // wrong types are part of what is tested
  // The redirect URIs to register are told on purpose.
  const others = logs.entries.filter(({ message }) => !message.includes('register this redirect URI'))
  expect(JSON.stringify(others)).not.toMatch(/canary/)
  return { auth, logs }
}

/** What a refused construction says; it names no value that was given. */
function refusal(construct: () => unknown): string {
  try {
    construct()
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError)
    expect(inspect(error, { depth: 10, showHidden: true }).replaceAll(/^\s+at .*$/gm, '')).not.toMatch(/canary/)
    expect(inspect(error)).not.toContain(testSecret)
    return (error as Error).message // checked above
  }
  throw new Error('nothing was refused')
}

function warnings(given: Given): string[] {
  return boot(given)
    .logs.entries.filter(({ level }) => level === 'warn')
    .map(({ message }) => message)
}

/** The store without one of its tables, or with fewer user columns. */
function storeWithout(what: 'identities' | 'sessions' | 'name' | 'emailVerifiedAt'): AuthStore {
  if (what === 'identities' || what === 'sessions')
    return Object.fromEntries(Object.entries(store).filter(([key]) => key !== what)) as unknown as AuthStore // one optional or required part less
  const fields = new Set([...store.users.fields].filter((field) => field !== what))
  return { ...store, users: { ...store.users, fields } }
}

/** What the bodies of the three routes hold, for an address nobody has, one that waits for its activation and one that is active. */
async function linksInBodies(auth: AuthRouter): Promise<Record<string, unknown>> {
  const name = () => `${randomUUID()}@example.test`
  const [unknown, waiting, active] = [name(), name(), name()]
  const app = express().use('/auth', auth)
  const post = async (path: string, body: object) => {
    const { status, body: answer } = await supertest(app).post(`/auth${path}`).send(body)
    expect([201, 202]).toContain(status)
    return answer as Record<string, unknown>
  }
  const signup = await post('/signup', { email: waiting, password: 'a quiet harbour in winter' })
  const now = new Date()
  const dates = { createdAt: now, updatedAt: now, emailVerifiedAt: now, activatedAt: now, passwordSetAt: now, lastLoginAt: null }
  const factor = { totpSecret: null, totpEnabledAt: null, totpLastStep: null }
  await store.users.insert({ email: active, hashedPassword: 'test$', name: null, isActive: true, isAdmin: false, ...dates, ...factor })
  const links: Record<string, unknown> = { signup: signup['activation_url'] }
  for (const [what, email] of Object.entries({ unknown, waiting, active })) {
    links[`activation ${what}`] = (await post('/activation/request', { email }))['activation_url']
    links[`reset ${what}`] = (await post('/password-reset/request', { email }))['reset_url']
  }
  return links
}

async function running(options: Omit<MountOptions, 'knex'> = {}): Promise<Mounted> {
  mounted = await mount({ knex: database, ...options })
  return mounted
}

describe('with AUTH_OAUTH_ENABLED true, router construction names the missing piece unless', () => {
  test('at least one provider client is registered', () => {
    for (const providers of [undefined, {}]) {
      expect(refusal(() => boot({ settings: social, providers }))).toMatch(/AUTH_OAUTH_ENABLED.*no provider client.*pass `providers`/)
    }
  })

  test('the auth service has an identity table', () => {
    const message = refusal(() => boot({ settings: social, providers: { corp }, store: storeWithout('identities') }))

    expect(message).toMatch(/AUTH_OAUTH_ENABLED.*no identity table.*wire `identities`/)
  })

  test('the user table has a `name` column', () => {
    const message = refusal(() => boot({ settings: social, providers: { corp }, store: storeWithout('name') }))

    expect(message).toMatch(/AUTH_OAUTH_ENABLED.*no `name` column.*add one or map it/)
  })

  test('all three hold: then it is built, and without a database or network being asked', () => {
    expect(boot({ settings: social, providers: { corp } }).auth.guards.requireAuth).toBeTypeOf('function')
  })

  test('and with it off, none of the three is asked for', () => {
    expect(boot({ store: storeWithout('identities') }).auth.service).toBeDefined()
    expect(boot({ store: storeWithout('name') }).auth.service).toBeDefined()
  })
})

describe('R-001 the secret', () => {
  test.each([
    ['missing', undefined],
    ['empty', ''],
    ['one character', 'a'],
    ['one byte short', 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aU'],
    ['a repeated word', 'changeme'.repeat(8)],
    ['a sample text', 'your-secret-key-please-change-it-in-production'],
    ['a number', 1234567890123456],
  ])('R-001 refuses construction when it is %s, naming the setting and how to make one, never the value', (_case, jwtSecret) => {
    const settings = { jwtSecret } as unknown as RouterSettings // a number is wrong on purpose
    const ofGuards = refusal(() => createGuards({ settings }))
    const messages = [refusal(() => boot({ settings })), ...(jwtSecret ? [ofGuards] : [])]

    // Guards have other key sources: without any, the sentence names them all.
    if (!jwtSecret) expect(ofGuards).toMatch(/^createGuards: settings need exactly one key source.*jwtSecret.*jwtKeys.*jwksUri/)
    for (const message of messages) {
      expect(message).toMatch(/^Setting jwtSecret \(AUTH_JWT_SECRET\) must be at least 32 random bytes.*openssl rand/)
      if (jwtSecret && jwtSecret !== 'a') expect(message).not.toContain(String(jwtSecret).slice(0, 8))
    }
  })
})

describe('R-002 one key per purpose', () => {
  test('R-002 no issued token passes in another’s place', async () => {
    const app = await running()
    const { body } = await signIn(app)
    const tokens = { access: body.access_token, refresh: body.refresh_token } as Record<string, string>
    const { state } = await startLogin(app, app.browser())
    const me = (token: string) => app.browser().get('/auth/me').set('Authorization', `Bearer ${token}`)
    const refresh = (token: string) => app.browser().post('/auth/refresh').send({ refresh_token: token })
    const callback = (token: string) => app.browser().get('/auth/oauth/corp/callback').query({ code: 'any', state: token })

    expect((await me(tokens['access'] ?? '')).status).toBe(200)
    for (const token of [tokens['refresh'], state]) expect((await me(String(token))).body.code).toBe('INVALID_TOKEN')
    for (const token of [tokens['access'], state]) expect((await refresh(String(token))).body.code).toBe('INVALID_TOKEN')
    for (const token of [tokens['access'], tokens['refresh']])
      expect((await callback(String(token))).body.code).toBe('OAUTH_STATE_MISMATCH')
  })

  test('R-002 an access token’s payload under any other key is refused', async () => {
    const app = await running()
    const { body } = await signIn(app)
    const payload = jwt.decode(body.access_token) as object // signed just now
    const me = (key: jwt.Secret) =>
      app
        .browser()
        .get('/auth/me')
        .set('Authorization', `Bearer ${jwt.sign(payload, key)}`)

    expect((await me(deriveKey(testSecret, 'access'))).status).toBe(200)
    for (const purpose of ['mfa', 'refresh', 'refresh-successor', 'state', 'pkce', 'nonce'] as const) {
      expect((await me(deriveKey(testSecret, purpose))).body.code, purpose).toBe('INVALID_TOKEN')
    }
    expect((await me(testSecret)).body.code).toBe('INVALID_TOKEN')
  })
})

describe('R-003 links in bodies are impossible under production semantics', () => {
  const both = [true, false]
  const nodeEnvironments = [undefined, '', 'production', 'staging', 'Test', 'development', 'test']
  const matrix = nodeEnvironments.flatMap((nodeEnv) =>
    both.flatMap((hasMailer) =>
      both.flatMap((returnTokenInResponse) =>
        both.map((linksInProduction) => ({ nodeEnv, hasMailer, returnTokenInResponse, linksInProduction })),
      ),
    ),
  )

  test.each(matrix)(
    'R-003 NODE_ENV $nodeEnv, mailer $hasMailer, returnTokenInResponse $returnTokenInResponse, linksInProduction $linksInProduction',
    async ({ nodeEnv, hasMailer, returnTokenInResponse, linksInProduction }) => {
      await createAuthTables(database)
      vi.stubEnv('NODE_ENV', nodeEnv)
      const settings = { ...templates, returnTokenInResponse, linksInProduction, timingGridMilliseconds: 0 }
      const given = { settings, environment: undefined, ...(hasMailer && { mailer }) }
      const isProduction = nodeEnv !== 'development' && nodeEnv !== 'test'
      const putsLinksInBodies = !hasMailer || returnTokenInResponse

      if (isProduction && putsLinksInBodies && !linksInProduction) {
        const message = refusal(() => boot(given))
        expect(message).toMatch(hasMailer ? /AUTH_RETURN_TOKEN_IN_RESPONSE.*switch it off/ : /^No mailer.*Pass `mailer`.*NODE_ENV/)
        expect(message).toContain('AUTH_LINKS_IN_PRODUCTION')
        return
      }
      const { auth, logs } = boot(given)
      expect(logs.entries.some(({ message }) => message.includes('links are put in response bodies'))).toBe(putsLinksInBodies)
      const links = await linksInBodies(auth)
      expect(Object.values(links).filter((link) => link !== null)).toEqual(
        putsLinksInBodies
          ? [expect.stringContaining('/activate/'), expect.stringContaining('/activate/'), expect.stringContaining('/reset/')]
          : [],
      )
    },
  )

  test.each(['production', 'development', 'test'] as const)('R-003 option environment %s overrides NODE_ENV', (environment) => {
    vi.stubEnv('NODE_ENV', environment === 'production' ? 'test' : 'production')

    if (environment === 'production') expect(refusal(() => boot({ environment }))).toContain('No mailer')
    else expect(warnings({ environment }).join()).toContain('links are put in response bodies')
  })

  test('R-003 an environment of another name is refused', () => {
    expect(refusal(() => boot({ environment: 'canary-staging' }))).toBe("Option environment must be 'production', 'development' or 'test'.")
  })

  test('a mailer without link templates is refused, naming each that is unset', () => {
    const { activationUrlTemplate, ...others } = templates

    expect(refusal(() => boot({ mailer }))).toMatch(/activationUrlTemplate, passwordResetUrlTemplate,.*are unset.*\{token\}/)
    expect(refusal(() => boot({ mailer, settings: others }))).toMatch(/but activationUrlTemplate is unset/)
    expect(boot({ mailer, settings: templates }).auth).toBeDefined()
  })
})

describe('R-004 the public origin', () => {
  test.each([
    'http://app.canary.test',
    'https://app.canary.test/',
    'https://app.canary.test/path',
    'https://app.canary.test?canary',
    'https://app.canary.test#canary',
    'https://canary@app.canary.test',
    'app.canary.test',
    '//app.canary.test',
    'canary',
  ])('R-004 OAUTH_REDIRECT_BASE_URL %s is refused', (oauthRedirectBaseUrl) => {
    expect(refusal(() => boot({ settings: { ...social, oauthRedirectBaseUrl }, providers: { corp } }))).toMatch(
      /OAUTH_REDIRECT_BASE_URL\) must be an origin.*no path.*https, or http on the loopback/,
    )
  })

  test('R-004 empty, it is refused when a provider has no redirectUri of its own, and not needed otherwise', () => {
    const settings = { oauthEnabled: true, oauthRedirectBaseUrl: '', ...templates }
    const redirectUri = 'https://app.canary.test/auth/oauth/own/callback'
    const own = new OidcClient({ clientId: 'c', clientSecret, providerName: 'own', redirectUri, ...endpoints })

    expect(refusal(() => boot({ settings, providers: { own, corp } }))).toMatch(
      /OAUTH_REDIRECT_BASE_URL\) is empty but provider corp.*set it/,
    )
    expect(boot({ settings, providers: { own } }).auth).toBeDefined()
  })

  test('R-004 the Host and X-Forwarded-* headers never reach the redirect URI', async () => {
    const app = await running({ before: [trustLoopbackProxies] })
    const response = await app
      .browser()
      .get('/auth/oauth/corp/login')
      .set({ Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'http', 'X-Forwarded-Prefix': '/evil' })

    const location = new URL(String(response.headers['location']))
    expect(location.searchParams.get('redirect_uri')).toBe(`${baseUrl}/auth/oauth/corp/callback`)
    expect(String(location)).not.toContain('evil')
  })
})

describe('R-005 provider endpoints', () => {
  const plainHttp = ['http://id.canary.test/x', 'http://127.0.0.1.canary.test/x', 'http://localhost.canary.test/x']
  const malformed = [
    '',
    'canary',
    '//id.canary.test',
    'ftp://id.canary.test',
    'https://canary:canary@id.canary.test',
    'https://id.canary.test/#canary',
  ]
  const oidc = { clientId: 'c', clientSecret, ...endpoints }

  test.each([...plainHttp, ...malformed])('R-005 %s is refused at every endpoint of every client', (url) => {
    for (const name of [
      'authorizeUrl',
      'tokenUrl',
      'userinfoUrl',
      'introspectionUrl',
      'tokeninfoUrl',
      'jwksUri',
      'issuer',
      'redirectUri',
    ]) {
      expect(refusal(() => new OidcClient({ ...oidc, [name]: url }))).toMatch(new RegExp(`OidcClient: ${name} must be .*https`))
    }
    for (const name of ['authorizeUrl', 'tokenUrl', 'userinfoUrl', 'tokeninfoUrl', 'jwksUri', 'issuer']) {
      expect(refusal(() => new GoogleClient({ ...credentials, endpoints: { [name]: url } }))).toContain(`endpoints.${name}`)
    }
    for (const name of ['authorizeUrl', 'tokenUrl', 'apiUrl']) {
      expect(refusal(() => new GitHubClient({ ...credentials, endpoints: { [name]: url } }))).toContain(`endpoints.${name}`)
    }
    expect(refusal(() => createTokenVerifier({ issuer: 'https://id.test', jwksUri: url, algorithms: ['RS256'] }))).toContain('jwksUri')
    for (const name of ['authorizeUrl', 'tokenUrl']) {
      const custom = { ...plainClient, [name]: url }
      expect(refusal(() => boot({ settings: social, providers: { custom } }))).toMatch(
        new RegExp(`Provider custom: ${name} must be .*https`),
      )
    }
    const custom = { ...plainClient, redirectUri: url }
    expect(refusal(() => boot({ settings: social, providers: { custom } }))).toMatch(/Provider custom: redirectUri must be .*https/)
  })

  test('R-005 plain http is for the loopback only', () => {
    for (const origin of ['http://localhost:4000', 'http://127.0.0.1:4000', 'http://[::1]:4000', 'http://id.localhost']) {
      const client = new OidcClient({ ...oidc, authorizeUrl: `${origin}/authorize`, tokenUrl: `${origin}/token` })
      expect(boot({ settings: social, providers: { oidc: client } }).auth).toBeDefined()
    }
  })

  test('R-005 passing both introspectionUrl and tokeninfoUrl is refused', () => {
    const both = { introspectionUrl: 'https://id.canary.test/i', tokeninfoUrl: 'https://id.canary.test/t' }

    expect(refusal(() => new OidcClient({ ...oidc, ...both }))).toBe('OidcClient: pass introspectionUrl or tokeninfoUrl, not both.')
    expect(new OidcClient({ ...oidc, introspectionUrl: both.introspectionUrl })).toBeInstanceOf(OidcClient)
  })

  test('R-005 authorizeUrl and tokenUrl are required', () => {
    for (const name of ['authorizeUrl', 'tokenUrl']) {
      expect(refusal(() => new OidcClient({ ...oidc, [name]: undefined }))).toContain(name)
    }
  })
})

describe('R-006 the verifier’s options', () => {
  const complete = { issuer: 'https://id.canary.test', jwksUri: 'https://id.canary.test/jwks', algorithms: ['RS256'] }

  test.each<[string, unknown]>([
    ...['issuer', 'jwksUri', 'algorithms'].flatMap((name) => [undefined, null, '', []].map((value): [string, unknown] => [name, value])),
    ['algorithms', 'RS256'],
    ['algorithms', ['none']],
    ['algorithms', ['HS256', 'none']],
    ['algorithms', ['RS256', 'canary']],
    ['requiredClaims', 'canary'],
  ])('R-006 %s %j is refused by name', (name, value) => {
    expect(refusal(() => createTokenVerifier({ ...complete, [name]: value }))).toMatch(new RegExp(`createTokenVerifier: ${name} must be `))
  })

  test('R-006 complete, it is built, and `none` beside a real algorithm is dropped', () => {
    expect(createTokenVerifier({ ...complete, algorithms: ['RS256', 'none'] }).verify).toBeTypeOf('function')
  })
})

const credentials = { clientId: 'canary-client', clientSecret }

describe('R-007 extra audiences', () => {
  test.each(['abc', '', ['canary', ''], [1], {}, [null], 7].map((value) => [value]))('R-007 %j is refused by every client', (value) => {
    const extraAudiences = value as string[] // wrong on purpose
    const fix = /extraAudiences must be an array of non-empty client ids/

    expect(refusal(() => new OidcClient({ ...credentials, ...endpoints, extraAudiences }))).toMatch(fix)
    expect(refusal(() => new GoogleClient({ ...credentials, extraAudiences }))).toMatch(fix)
    expect(refusal(() => new GitHubClient({ ...credentials, extraAudiences }))).toMatch(fix)
  })

  test.each(['canary', '"canary"', '{"canary":1}', '[""]', '[1]'])('R-007 OAUTH_GOOGLE_EXTRA_AUDIENCES %s is refused', (value) => {
    const env = { OAUTH_GOOGLE_CLIENT_ID: 'canary-client', OAUTH_GOOGLE_EXTRA_AUDIENCES: value }

    expect(refusal(() => providersFromEnv(env))).toMatch(/^OAUTH_GOOGLE_EXTRA_AUDIENCES must be a JSON list of non-empty strings/)
  })

  test('R-007 an audience is compared whole: part of our client id, or more than it, is another application', async () => {
    const app = await running()
    const { clientId } = app.provider
    for (const aud of [clientId.slice(1), clientId.slice(0, -1), `${clientId}x`, `x${clientId}`, [clientId.slice(1)]]) {
      app.provider.idToken = (claims) => ({ ...claims, aud })
      expect((await signIn(app)).body.code).toBe('OAUTH_ERROR')
    }
    app.provider.idToken = null
    expect((await signIn(app)).status).toBe(200)
  })
})

describe('R-008 numbers', () => {
  test('R-008 accessTokenTtlSeconds "3600" makes exp - iat 3600', async () => {
    const app = await running({ settings: settingsFromEnv({ AUTH_ACCESS_TOKEN_TTL_SECONDS: '3600' }) })
    const { body } = await signIn(app)
    const { exp, iat } = jwt.decode(body.access_token) as { exp: number; iat: number } // signed just now

    expect(exp - iat).toBe(3600)
  })

  test.each([Number.NaN, 0, -1, 1e99, 1.5, '1e3', ' 60', Number.POSITIVE_INFINITY, null])(
    'R-008 %s is refused wherever a number is an option',
    (value) => {
      const wrong = value as number // text and null are wrong on purpose

      expect(refusal(() => boot({ settings: { accessTokenTtlSeconds: wrong } }))).toContain('AUTH_ACCESS_TOKEN_TTL_SECONDS')
      expect(refusal(() => boot({ settings: { oauthStateTtlSeconds: wrong } }))).toContain('AUTH_OAUTH_STATE_TTL_SECONDS')
      expect(refusal(() => boot({ throttle: { routes: { attempts: wrong, windowSeconds: 60 } } }))).toContain('throttle.routes')
      expect(refusal(() => boot({ throttle: { routes: { attempts: 60, windowSeconds: wrong } } }))).toContain('throttle.routes')
      expect(refusal(() => boot({ passwordPolicy: { minLength: wrong } }))).toContain('passwordPolicy.minLength')
      expect(refusal(() => boot({ passwordPolicy: { maxBytes: wrong } }))).toContain('passwordPolicy.maxBytes')
      expect(refusal(() => createHttpClient({ timeoutMs: wrong }))).toContain('timeoutMs')
      expect(refusal(() => createHttpClient({ circuitBreaker: { failures: wrong, resetAfterMs: 1 } }))).toContain('circuitBreaker')
      expect(refusal(() => memoryCounters({ maxKeys: wrong }))).toContain('maxKeys')
      const verifier = { issuer: 'https://id.test', jwksUri: 'https://id.test/jwks', algorithms: ['RS256'] }
      expect(refusal(() => createTokenVerifier({ ...verifier, lifespanSeconds: wrong }))).toContain('lifespanSeconds')
    },
  )
})

describe('R-009 unknown names are refused, with the nearest known one', () => {
  test.each([
    ['an option', { mailr: mailer }, 'createAuthRouter: unknown option "mailr"; the nearest known one is mailer.'],
    ['a setting', { settings: { signUpEnabled: true } }, 'Unknown setting "signUpEnabled"; the nearest known one is signupEnabled.'],
    [
      'a variable’s name as a setting',
      { settings: { AUTH_MFA_ENABLED: true } },
      'Unknown setting "AUTH_MFA_ENABLED"; the nearest known one is mfaEnabled.',
    ],
    ['a throttle key', { throttle: { route: false } }, 'throttle: unknown option "route"; the nearest known one is routes.'],
    [
      'a policy key',
      { passwordPolicy: { minLenght: 20 } },
      'passwordPolicy: unknown option "minLenght"; the nearest known one is minLength.',
    ],
  ])('R-009 %s', (_what, given, message) => {
    expect(refusal(() => boot(given as Given))).toBe(`${message} See docs/troubleshooting.md#unknown-names`)
  })

  test('R-009 of guards, clients, the verifier and the HTTP client too', () => {
    const wrong = { clientID: 'canary' }
    const settings = { jwtSecret: testSecret }

    expect(refusal(() => createGuards({ settings, ...{ stor: store } }))).toBe(
      'createGuards: unknown option "stor"; the nearest known one is store. See docs/troubleshooting.md#unknown-names',
    )
    expect(refusal(() => new OidcClient({ ...credentials, ...endpoints, ...wrong }))).toBe('OidcClient: unknown option clientID.')
    expect(refusal(() => new GoogleClient({ ...credentials, ...wrong }))).toBe('GoogleClient: unknown option clientID.')
    expect(refusal(() => new GitHubClient({ ...credentials, ...wrong }))).toBe('GitHubClient: unknown option clientID.')
    expect(refusal(() => new GitHubClient({ ...credentials, endpoints: { userinfoUrl: endpoints.tokenUrl } }))).toContain(
      'endpoints.userinfoUrl',
    )
    expect(refusal(() => createHttpClient({ ...{ timeout: 1, timeoutMs: 1 } }))).toBe('createHttpClient: unknown option timeout.')
  })

  test('R-009 an option that is not what it has to be is a sentence, not a TypeError at somebody’s login', () => {
    const wrong: [Given, RegExp][] = [
      [{ store: undefined }, /^Option store must be an AuthStore; createKnexStore/],
      [{ store: { users: {}, userTokens: {} } }, /^Option store must be an AuthStore/],
      [{ store: { ...store, sessions: { insert: () => undefined } } }, /^Option store: sessions lacks the method find\(\)/],
      [{ providers: [corp] }, /^Option providers must be an object of provider clients/],
      [{ providers: null }, /^Option providers must be an object/],
      [{ mailer: {} }, /^Option mailer must be an object with the method send/],
      [{ passwordHasher: { hash: () => '' } }, /^Option passwordHasher must be a PasswordHasher/],
      [{ passwordPolicy: null }, /^Option passwordPolicy must be an object/],
      [{ passwordPolicy: [] }, /^Option passwordPolicy must be an object/],
      [{ passwordPolicy: { check: 'canary' } }, /^Option passwordPolicy.check must be a function/],
      [{ passwordPolicy: { requireComplexity: 'no' } }, /^Option passwordPolicy.requireComplexity must be true or false/],
      [{ throttle: null }, /^Option throttle must be an object/],
      [{ throttle: { counters: {} } }, /^Option throttle.counters must be a CounterStore/],
      [{ logger: { warn: () => undefined } }, /^Option logger must be an object with the methods info, warn and error/],
      [{ now: new Date() }, /^Option now must be a function that returns a Date/],
      [{ prefix: 7 }, /^Option prefix must be a path/],
    ]
    for (const [given, sentence] of wrong) expect(refusal(() => boot(given))).toMatch(sentence)
    expect(refusal(() => createAuthRouter({ store } as AuthRouterOptions))).toBe('settings must be an object.')
    for (const nothing of [undefined, null, []]) {
      expect(refusal(() => createAuthRouter(nothing as unknown as AuthRouterOptions))).toContain('createAuthRouter() needs options')
      expect(refusal(() => createGuards(nothing as never))).toContain('createGuards() needs options')
    }
    const guards = { settings: { jwtSecret: testSecret } }
    expect(refusal(() => createGuards({ ...guards, store: {} as AuthStore }))).toContain('store must be an AuthStore')
    expect(refusal(() => createGuards({ ...guards, now: 5 as never }))).toContain('now must be a function')
    expect(refusal(() => createGuards({ ...guards, logger: {} as never }))).toContain('logger must be an object')
    expect(refusal(() => createGuards(guards).requireUser())).toMatch(/pass `store` to createGuards/)
  })

  test.each(['insert', 'find', 'lock', 'rotate', 'update', 'touch', 'listForUser', 'revoke', 'revokeForUser', 'deleteExpired'])(
    'R-009 an adapter whose sessions lack %s() is refused by the verb',
    (verb) => {
      const lacking = { ...store, sessions: { ...store.sessions, [verb]: undefined } }
      expect(refusal(() => boot({ store: lacking }))).toBe(
        `Option store: sessions lacks the method ${verb}(); storeContract() tests what it must do (docs/store.md#an-adapter-of-your-own).`,
      )
    },
  )

  test.each(['find', 'touch'])('R-009 createGuards() refuses an adapter whose sessions lack %s()', (verb) => {
    const lacking = { ...store, sessions: { ...store.sessions, [verb]: undefined } } as unknown as AuthStore
    expect(refusal(() => createGuards({ settings: { jwtSecret: testSecret }, store: lacking }))).toMatch(
      /^createGuards: the sessions of the store need the methods find\(\) and touch\(\)/,
    )
  })

  test('R-009 a client of the host’s own that lacks a part is refused by its key', () => {
    const lacking = (part: object | null) =>
      refusal(() => boot({ settings: social, providers: { custom: part && { ...plainClient, ...part } } }))

    expect(lacking(null)).toMatch(/^Provider custom: the client has no exchangeCode\(\)/)
    expect(lacking({ fetchUser: undefined })).toMatch(/^Provider custom: the client has no exchangeCode\(\) or no fetchUser\(\)/)
    expect(lacking({ providerName: undefined })).toContain('providerName and clientId must be strings')
    expect(lacking({ clientId: 7 })).toContain('providerName and clientId must be strings')
    expect(lacking({ scopes: 'openid email' })).toContain('scopes must be an array')
    expect(boot({ settings: social, providers: { custom: plainClient } }).auth).toBeDefined()
  })
})

describe('R-010 cookies and redirects that cannot work', () => {
  test('R-010 SameSite=None without Secure is refused', () => {
    expect(refusal(() => boot({ settings: { cookieSamesite: 'none', cookieSecure: false } }))).toMatch(
      /cookieSamesite 'none' needs cookieSecure true/,
    )
    expect(boot({ settings: { cookieSamesite: 'none', tokenDelivery: 'cookie' } }).auth).toBeDefined()
  })

  test('R-010 a success or error redirect with bearer delivery is refused, and accepted where delivery includes cookies', () => {
    for (const name of ['oauthSuccessRedirect', 'oauthErrorRedirect']) {
      const settings = (tokenDelivery: 'bearer' | 'cookie' | 'both') => ({ ...social, [name]: '/canary', tokenDelivery })
      expect(refusal(() => boot({ settings: settings('bearer'), providers: { corp } }))).toMatch(new RegExp(`${name} needs tokenDelivery`))
      for (const delivery of ['cookie', 'both'] as const) {
        expect(boot({ settings: settings(delivery), providers: { corp } }).auth).toBeDefined()
      }
    }
  })
})

describe('R-011 a store that keeps no sessions', () => {
  test('R-011 is a warning at boot, in production too: refresh tokens are stateless then (contract section 10.9)', () => {
    const given = { store: storeWithout('sessions'), environment: 'production', settings: templates, mailer } as const

    expect(warnings(given)).toEqual([
      expect.stringMatching(/keeps no sessions.*works until it expires.*Server-side sessions do not exist.*Wire `sessions`/),
    ])
    expect(warnings({ ...given, store })).toEqual([])
  })

  test('R-011 a grace window without them is refused, and with them at home up to a minute', () => {
    const settings = { refreshReuseGraceSeconds: 1 }

    expect(refusal(() => boot({ settings, store: storeWithout('sessions') }))).toMatch(
      /^refreshReuseGraceSeconds \(AUTH_REFRESH_REUSE_GRACE_SECONDS\).*keeps no sessions; wire `sessions`.*or leave the setting at 0/,
    )
    expect(boot({ settings: { refreshReuseGraceSeconds: 60 } }).auth).toBeDefined()
    expect(refusal(() => boot({ settings: { refreshReuseGraceSeconds: 61 } }))).toContain('refreshReuseGraceSeconds')
    expect(refusal(() => boot({ settings: { refreshReuseGraceSeconds: 30, accessTokenTtlSeconds: 30 } }))).toContain(
      'below accessTokenTtlSeconds',
    )
  })
})

describe('R-012 the provider registry', () => {
  test.each(['', 'Corp', 'cörp', '-corp', '_corp', 'co rp', 'corp/x', 'corp.x', 'a'.repeat(51), 'constructor()', '%00'])(
    'R-012 the key %j is refused',
    (key) => {
      const message = refusal(() => boot({ settings: social, providers: { [key]: corp } }))

      expect(message).toMatch(/must match \^\[a-z0-9\]\[a-z0-9:_-\]\{0,49\}\$; it is part of URLs/)
      expect(message).toContain('Provider key')
    },
  )

  test.each(['a', '9', 'oidc:corp', 'a_b-c', 'session', 'a'.repeat(50)])('R-012 the key %j is accepted', (key) => {
    expect(boot({ settings: social, providers: { [key]: corp } }).auth).toBeDefined()
  })

  test.each([
    ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'a%00b', 'CORP', 'corp%20', '%2e%2e'].map((key) => [key, key]),
    ['a key of 10 KB', 'x'.repeat(10_240)],
  ])('R-012 %s, registered nowhere, answers 404 in the envelope', async (_name, key) => {
    const { browser } = await running()
    for (const step of ['login', 'callback']) {
      const response = await browser().get(`/auth/oauth/${key}/${step}`)
      expect(response.status).toBe(404)
      expect(response.body).toMatchObject({ code: 'OAUTH_PROVIDER_NOT_CONFIGURED', details: { provider: expect.any(String) } })
    }
  })
})

describe('the prefix', () => {
  test.each(['', '/', 'auth', '/auth/', '//auth', '/a//b', '/a b', '/a?b', '/a#b', '/:id', '/a*', 'https://app.canary.test/auth', '/äuth'])(
    '%j is refused: it starts with a slash and does not end with one',
    (prefix) => {
      expect(refusal(() => boot({ prefix }))).toMatch(/^Option prefix must be the full public path of the mount.*'\/auth'/)
    },
  )

  test.each(['/auth', '/accounts/auth', '/v1.0/a_b~c-d'])('%j is accepted', (prefix) => {
    expect(boot({ prefix }).auth).toBeDefined()
  })
})

describe('linking by verified email', () => {
  const settings = { oauthLinkByVerifiedEmail: true }

  test('without the column that says which addresses are proven it is refused, unless the host vouches for them', () => {
    const unproven = storeWithout('emailVerifiedAt')

    expect(refusal(() => boot({ settings, store: unproven }))).toMatch(/no `email_verified_at` column.*AUTH_ASSUME_EMAILS_PROVEN/)
    expect(boot({ settings: { ...settings, assumeEmailsProven: true }, store: unproven }).auth).toBeDefined()
    expect(boot({ settings }).auth).toBeDefined()
  })

  test('beside autoActivate it is a warning: anyone may have registered the address', () => {
    expect(warnings({ settings: { ...settings, autoActivate: true } }).join()).toMatch(/autoActivate lets anyone register an address/)
    expect(warnings({ settings }).join()).not.toContain('autoActivate')
  })
})

describe('boot warns', () => {
  test('of a users table without email_verified_at: a first verification of an address cannot be told from a later one', () => {
    const given = { settings: { localAccountsEnabled: true, autoActivate: true } }
    expect(warnings({ ...given, store: storeWithout('emailVerifiedAt') }).filter((text) => /Add the column, or map it/.test(text))).toEqual(
      [expect.stringContaining('no `email_verified_at` column, so only an activation counts as the first verification of an address')],
    )
    expect(warnings(given).join()).not.toContain('email_verified_at')
  })

  test('when an override of the legacy login-with-provider method or of the second-factor token issuer is found', () => {
    const legacy = { loginWithProvider: () => undefined, issueMfaToken: () => undefined }

    expect(warnings({ ...legacy })).toEqual(
      expect.arrayContaining([
        'doorward: the override loginWithProvider is no longer called by any route; remove it.',
        'doorward: the override issueMfaToken is no longer called by any route; remove it.',
      ]),
    )
    expect(warnings({}).join()).not.toContain('override')
  })

  test('when a client’s providerName differs from its registration key', () => {
    expect(warnings({ settings: social, providers: { other: corp } }).join()).toMatch(/registered as other.*stored identities use other/)
    expect(warnings({ settings: social, providers: { corp } }).join()).not.toContain('registered as')
  })

  test('when there is nothing to read a profile from', () => {
    const blind = new OidcClient({ ...credentials, ...endpoints, providerName: 'blind', scopes: ['email'] })

    expect(warnings({ settings: social, providers: { blind } }).join()).toMatch(/provider blind has neither userinfoUrl nor an id_token/)
    expect(warnings({ settings: social, providers: { corp } }).join()).not.toContain('userinfoUrl')
  })

  test('and says nothing at all when there is nothing to say', () => {
    const given = { settings: { ...social, ...templates }, providers: { corp }, mailer, environment: 'production' }

    expect(warnings(given)).toEqual([])
  })
})

describe('the first request warns, once,', () => {
  test('when the router is mounted elsewhere than the prefix says', async () => {
    const { auth, logs } = boot({ prefix: '/auth', mailer, settings: templates })
    const app = express().use('/accounts', auth)
    await supertest(app).get('/accounts/me')
    await supertest(app).get('/accounts/me')

    expect(warned(logs)).toEqual([expect.stringContaining('mounted at another path than option prefix says')])
  })

  test('and not when an outer router or a proxy adds the rest of the path', async () => {
    const { auth, logs } = boot({ prefix: '/api/auth', mailer, settings: templates })
    await supertest(express().use('/auth', auth)).get('/auth/me')
    const inner = boot({ prefix: '/api/auth', mailer, settings: templates })
    await supertest(express().use('/api', express.Router().use('/auth', inner.auth))).get('/api/auth/me')

    expect([...warned(logs), ...warned(inner.logs)]).toEqual([])
  })

  test('when the app trusts every proxy', async () => {
    const { auth, logs } = boot({ mailer, settings: templates })
    const app = express().set('trust proxy', true).use('/auth', auth)
    await supertest(app).get('/auth/me')
    await supertest(app).get('/auth/me')

    expect(warned(logs)).toEqual([expect.stringContaining("'trust proxy' is true")])
  })

  /** Without the line at `info` for each refusal of a guard. */
  const warned = ({ entries }: ReturnType<typeof boot>['logs']) =>
    entries.filter(({ level }) => level !== 'info').map(({ message }) => message)
})

describe('L11 printing what the library hands out shows no secret', () => {
  const presented = (value: unknown) => `${inspect(value, { depth: 20, showHidden: true, getters: true })}${tryJson(value)}`
  const secrets = new RegExp(`${clientSecret}|${testSecret}|${deriveKey(testSecret, 'access').export().toString('hex')}`)

  class OwnClient extends OidcClient {}
  const clients: [string, ProviderClient][] = [
    ['OidcClient', corp],
    ['a subclass of it', new OwnClient({ ...credentials, ...endpoints, clientAuthentication: 'client_secret_basic' })],
    ['GoogleClient', new GoogleClient(credentials)],
    ['GitHubClient', new GitHubClient(credentials)],
  ]

  test.each(clients)('%s', (_name, client) => {
    expect(presented(client)).toContain('canary-client')
    expect(presented(client)).not.toMatch(secrets)
  })

  test('the router, its guards, service and events, before and after a request', async () => {
    const { auth } = boot({ settings: social, providers: { corp } })
    await supertest(express().use('/auth', auth)).get('/auth/oauth/corp/login')

    for (const part of [auth, auth.guards, auth.service, auth.events, auth.stack, auth.guards.requireAuth()]) {
      expect(presented(part)).not.toMatch(secrets)
    }
  })

  test('a secret on the object would be seen, so the tests above can fail', () => {
    expect(presented({ options: { clientSecret } })).toMatch(secrets)
    expect(presented(Object.assign(() => undefined, { deep: [{ jwtSecret: testSecret }] }))).toMatch(secrets)
  })

  function tryJson(value: unknown): string {
    try {
      return JSON.stringify(value) ?? ''
    } catch {
      return '' // a circle: inspect has shown it
    }
  }
})

const trustLoopbackProxies: RequestHandler = (req, _res, next) => {
  req.app.set('trust proxy', 'loopback')
  next()
}

const plainClient: ProviderClient = {
  providerName: 'custom',
  clientId: 'canary-client',
  ...endpoints,
  scopes: ['profile'],
  exchangeCode: () => Promise.reject(new Error('not called')),
  fetchUser: () => Promise.reject(new Error('not called')),
}

test('the state cookie is signed under a key of its own: moved to another cookie’s name it says nothing', async () => {
  const app = await running({ settings: { tokenDelivery: 'cookie' } })
  const login = await app.browser().get('/auth/oauth/corp/login')
  const state = setCookieOf(login, 'oauth_state')?.value ?? ''

  expect(
    (
      await app
        .browser()
        .get('/auth/me')
        .set('Cookie', `access_token=${encodeURIComponent(state)}`)
    ).status,
  ).toBe(401)
  expect(
    (
      await app
        .browser()
        .post('/auth/refresh')
        .set('Cookie', `refresh_token=${encodeURIComponent(state)}`)
    ).status,
  ).toBe(401)
})
