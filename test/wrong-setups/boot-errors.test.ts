import knex from 'knex'
import { afterAll, describe, expect, test } from 'vitest'
import { type AuthRouterOptions, createAuthRouter, createAuthTables, createGuards, createKnexStore, csrfGuard, OidcClient } from '../../src'
import { OAuthProviderUnavailableError } from '../../src/core/errors'
import { testSecret } from '../support/app'
import { answer, startFakeProvider } from '../support/fake-provider'
import { logTap } from '../support/log-tap'
import { refusal } from './wrong-app'

const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
afterAll(() => database.destroy())

const endpoints = { authorizeUrl: 'https://id.example.test/authorize', tokenUrl: 'https://id.example.test/token' }
const corp = new OidcClient({ clientId: 'client', clientSecret: 'the client secret', providerName: 'corp', ...endpoints })
const publicUrl = 'https://app.example.test'
const mailer = { send: async () => undefined }
/** Nothing listens there. A port that a server of ours gave back would not do: the next free port of another test may be the same. */
const CLOSED_PORT = 2

interface Given {
  settings?: object | null
  [option: string]: unknown
}

function boot({ settings, ...options }: Given = {}, logger = logTap()) {
  const given = {
    settings: settings === null ? {} : { jwtSecret: testSecret, publicUrl, ...settings },
    store: createKnexStore({ knex: database }),
  }
  const auth = createAuthRouter({ environment: 'test', logger, ...given, ...options } as unknown as AuthRouterOptions) // wrong on purpose
  return { auth, logger }
}

const production = { environment: 'production' }

const rows: [what: string, given: Given, says: RegExp][] = [
  ['a secret that is missing', { settings: null }, /^Setting jwtSecret \(AUTH_JWT_SECRET\) must be.*It is missing.*variable.*#secret$/],
  ['a secret that is empty', { settings: { jwtSecret: '' } }, /AUTH_JWT_SECRET.*It is missing/],
  ['a secret that is too short', { settings: { jwtSecret: 'hunter2' } }, /AUTH_JWT_SECRET.*openssl rand.*It is too short\. .*#secret$/],
  ['a secret that is a placeholder', { settings: { jwtSecret: 'changeme'.repeat(8) } }, /AUTH_JWT_SECRET.*It looks like a placeholder/],
  ['a setting among the options', { jwtSecret: testSecret }, /^createAuthRouter: jwtSecret belongs into settings.*#misplaced-option$/],
  ['an option among the settings', { settings: { store: {} } }, /^createAuthRouter: store belongs beside settings.*#misplaced-option$/],
  [
    'providers without a word on oauthEnabled',
    { providers: { corp } },
    /^Providers are given, but oauthEnabled \(AUTH_OAUTH_ENABLED\) is left out; set it to true, or to false.*#providers-without-oauth-enabled$/,
  ],
  ['the same with an empty variable', { providers: { corp }, settings: { oauthEnabled: '' } }, /AUTH_OAUTH_ENABLED\) is left out/],
  [
    'production without mailer, links and address',
    { ...production, settings: { publicUrl: '' } },
    /^No mailer.*Pass `mailer`.*backendLinks: true \(AUTH_BACKEND_LINKS\) and publicUrl \(AUTH_PUBLIC_URL.*activationUrlTemplate, passwordResetUrlTemplate, emailVerificationUrlTemplate, emailChangeUrlTemplate.*#no-mailer$/,
  ],
  ['production without mailer, with an address', { ...production }, /backendLinks: true \(AUTH_BACKEND_LINKS\) for the built-in pages/],
  ['production without mailer, with links', { ...production, settings: { backendLinks: true } }, /^No mailer.*Pass `mailer`; or/],
  [
    'a mailer without links',
    { mailer },
    /activationUrlTemplate,.*are unset.*set backendLinks: true \(AUTH_BACKEND_LINKS\).*#no-link-templates$/,
  ],
  ['links without an address', { settings: { publicUrl: '' } }, /^publicUrl \(AUTH_PUBLIC_URL.*is empty.*#no-public-url$/],
  ['a wildcard among the trusted origins', { settings: { trustedOrigins: ['https://*.example.test'] } }, /trustedOrigins.*no \*/],
  ['every origin trusted', { settings: { trustedOrigins: ['*'] } }, /trustedOrigins.*no \*/],
  ['a trusted origin with a slash', { settings: { trustedOrigins: ['https://app.example.test/'] } }, /trustedOrigins.*no trailing slash/],
  ['trusted origins as plain text', { settings: { trustedOrigins: 'https://app.example.test' } }, /trustedOrigins.*a list/],
  ['a wildcard in the public address', { settings: { publicUrl: 'https://*.example.test' } }, /publicUrl.*or \*/],
]

describe('a wrong set-up does not start, and the error names the piece and the fix', () => {
  test.each(rows)('%s', async (_what, given, says) => {
    const logger = logTap()
    const told = await refusal(() => boot(given, logger))

    expect(told).toMatch(says)
    expect(logger.entries, 'what the error says, the log does not say again').toEqual([])
    expect(told).not.toMatch(/hunter2|changeme|the client secret/)
    expect(told).not.toContain(testSecret)
  })

  test('guards refuse the same misplacements', async () => {
    const settings = { jwtSecret: testSecret }
    const made = (options: object) => refusal(() => createGuards({ settings, ...options } as Parameters<typeof createGuards>[0]))

    expect(await made({ jwksUri: 'https://id.example.test/jwks' })).toMatch(/^createGuards: jwksUri belongs into settings/)
    expect(await made({ settings: { ...settings, logger: {} } })).toMatch(/^createGuards: logger belongs beside settings/)
  })

  test('csrfGuard() refuses wildcards in a sentence', async () => {
    expect(await refusal(() => csrfGuard({ trustedOrigins: ['https://*.example.test'] }))).toMatch(/without wildcards/)
  })

  test('oauthEnabled: false turns social login off without a word', () => {
    for (const oauthEnabled of [false, 'false', '0']) {
      const { logger } = boot({ providers: { corp }, settings: { oauthEnabled, backendLinks: true }, mailer })
      expect(logger.entries).toEqual([])
    }
  })
})

describe('OidcClient.discover() says first what is wrong', () => {
  const options = { clientId: 'client', clientSecret: 'the client secret', providerName: 'acme' }
  const failure = async (issuer: string): Promise<Error> => {
    const error: unknown = await OidcClient.discover(issuer, options).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OAuthProviderUnavailableError)
    expect((error as Error).stack).toContain((error as Error).message) // what Node prints
    return error as Error // checked above
  }

  test('that the issuer is empty', async () => {
    expect(await refusal(() => OidcClient.discover('', options))).toMatch(
      /the issuer is empty \(providers\.acme\).*environment variable.*#issuer-empty$/,
    )
  })

  test('that the provider cannot be reached, by name, cause and provider', async () => {
    const { message } = await failure(`http://127.0.0.1:${CLOSED_PORT}`)
    expect(message).toMatch(
      /^cannot reach http:\/\/127\.0\.0\.1:\d+: ECONNREFUSED \(providers\.acme\)\. See docs\/troubleshooting\.md#provider-unreachable$/,
    )
  })

  test('that something else answers there', async () => {
    const provider = await startFakeProvider()
    provider.on('discovery', answer(404, 'no such page'))
    const { message } = await failure(provider.issuer)
    await provider.close()
    expect(message).toMatch(/^no OpenID provider answers at http:.*: status 404 and no JSON object.*\(providers\.acme\)/)
  })
})

test('a database that is down is the first line of the error', async () => {
  const down = knex({ client: 'pg', connection: { host: '127.0.0.1', port: CLOSED_PORT, user: 'nobody', database: 'none' } })
  const error: unknown = await createAuthTables(down).catch((thrown: unknown) => thrown)
  await down.destroy()

  expect(String(error)).toMatch(/^ServiceUnavailableError: The database failed at .* \(ECONNREFUSED\)/)
})
