import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import { createHttpClient } from '../../src/core/http-client'
import { normalizeEmail } from '../../src/http/email-address'
import { GitHubClient, type GitHubClientOptions } from '../../src/providers/github'
import { addUser } from '../social/accounts-at-hand'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { answer, type FakeProvider, hostileAnswers, startFakeProvider } from '../support/fake-provider'

const redirectUri = 'https://app.example.com/auth/oauth/github/callback'
let provider: FakeProvider

beforeEach(async () => {
  provider = await startFakeProvider()
})
afterEach(() => provider.close())

const primary = { email: 'private@example.com', primary: true, verified: true, visibility: 'private' }
const other = { email: 'other@example.com', primary: false, verified: true, visibility: null }

/** GET /api/user/emails, to whoever shows the bearer token of this login. */
function emails(list: unknown, status = 200): void {
  provider.on('elsewhere', (request, response) => {
    const isRight =
      request.method === 'GET' && request.url.startsWith('/api/user/emails') && /^Bearer access-/.test(request.headers.authorization ?? '')
    return answer(isRight ? status : 404, isRight ? list : { message: 'Not Found' })(request, response)
  })
}

async function logIn(options: Partial<GitHubClientOptions> = {}) {
  const client = new GitHubClient(provider.githubOptions({ verifiedEmails: true, ...options }))
  return client.fetchUser(await client.exchangeCode({ code: provider.issueCode(), redirectUri }))
}

describe('GitHubClient with verifiedEmails', () => {
  test("takes the primary address with GitHub's word on it, also where the profile keeps it private", async () => {
    provider.githubProfile['email'] = null
    emails([other, primary])
    await expect(logIn()).resolves.toMatchObject({ subject: '583231', email: primary.email, emailVerified: true })
    expect(provider.requestsTo('elsewhere').map(({ url }) => url)).toEqual(['/api/user/emails?per_page=100'])
    expect(provider.requestsTo('elsewhere')[0]?.headers['user-agent']).toBeTruthy()
  })

  test.each([
    ['not verified', { verified: false }],
    ['"true", which GitHub never says', { verified: 'true' }],
    ['1', { verified: 1 }],
    ['silence', { verified: undefined }],
  ])('a primary address whose `verified` is %s is not verified', async (_what, change) => {
    emails([{ ...primary, ...change }, other])
    await expect(logIn()).resolves.toMatchObject({ email: primary.email, emailVerified: false })
  })

  test.each<[string, unknown]>([
    ['none', []],
    ['none that is primary', [other, { ...other, primary: 'true' }]],
  ])('of %s no address is taken, not even the public one of the profile', async (_what, list) => {
    emails(list)
    await expect(logIn()).resolves.toMatchObject({ email: null, emailVerified: null })
  })

  test.each([[null], [7], [{ a: 1 }], [['a@example.com']]])('an address %j is none', async (email) => {
    emails([{ ...primary, email }])
    const user = await logIn()
    expect(normalizeEmail(user.email)).toBeNull()
  })

  test('with trustEmail false the address counts, and the word on it does not', async () => {
    emails([primary])
    await expect(logIn({ trustEmail: false })).resolves.toMatchObject({ email: primary.email, emailVerified: null })
  })

  test.each<[string, unknown, number]>([
    ['a token without the scope', { message: 'Not Found' }, 404],
    ['a refusal', { message: 'Bad credentials' }, 401],
    ['a server error', [primary], 503],
    ['an object', { 0: primary, length: 1 }, 200],
    ['a list of something else', [primary, 'other@example.com'], 200],
    ['a list that holds null', [null, primary], 200],
  ])('%s is 502 OAUTH_ERROR, and no identity', async (_what, list, status) => {
    emails(list, status)
    await expect(logIn()).rejects.toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'github', status } })
  })

  // An empty list is an honest answer here.
  test.each(Object.keys(hostileAnswers).filter((name) => name !== 'an array'))('hostile: %s is 502 OAUTH_ERROR', async (name) => {
    provider.on('elsewhere', hostileAnswers[name] ?? null)
    const httpClient = createHttpClient({ timeoutMs: 300 })
    await expect(logIn({ httpClient })).rejects.toMatchObject({ code: 'OAUTH_ERROR', details: { provider: 'github' } })
  })

  test('the access token stands in no refusal', async () => {
    provider.on('elsewhere', (request, response) => answer(403, { seen: request.headers.authorization })(request, response))
    const refusal = await logIn().catch((error: unknown) => error)
    expect(JSON.stringify(refusal)).not.toMatch(/access-[0-9a-f]/)
    expect(refusal).toMatchObject({ details: { status: 403 } })
  })

  test.each<[string, object]>([
    ['a scope that cannot read addresses', { verifiedEmails: true, scopes: ['read:user'] }],
    ['a word for true', { verifiedEmails: 'true' }],
    ['null', { verifiedEmails: null }],
  ])('%s is refused at construction', (_what, options) => {
    expect(() => new GitHubClient({ clientId: 'a', clientSecret: 'b', ...options })).toThrow(ConfigurationError)
  })

  test.each([[['user:email']], [['user']]])('the scopes %j can read addresses', (scopes) => {
    expect(() => new GitHubClient({ clientId: 'a', clientSecret: 'b', verifiedEmails: true, scopes })).not.toThrow()
  })

  test.each([[undefined], [false]])(
    'without it (%s) addresses are not asked for, and nothing is said to be verified',
    async (verifiedEmails) => {
      emails([primary])
      const options = verifiedEmails === undefined ? {} : { verifiedEmails }
      const client = new GitHubClient(provider.githubOptions(options))
      const user = await client.fetchUser(await client.exchangeCode({ code: provider.issueCode(), redirectUri }))
      expect(user).toMatchObject({ email: 'ana@example.com', emailVerified: null })
      expect(provider.requestsTo('elsewhere')).toEqual([])
    },
  )
})

describe('through the callback', () => {
  const start = appPerTest()

  test.each([
    [true, 200, undefined],
    [false, 409, 'OAUTH_EMAIL_UNVERIFIED'],
  ])('a primary address that is verified: %s, links by verified email: %s', async (verified, status, code) => {
    const host = await start({
      settings: { oauthLinkByVerifiedEmail: true },
      providers: { github: new GitHubClient({ ...provider.githubOptions(), verifiedEmails: true }) },
    })
    emails([{ ...primary, verified }])
    const user = await addUser(host.knex, { email: primary.email })
    const response = await signIn({ ...host, provider }, host.browser(), { key: 'github' })
    expect([response.status, response.body.code]).toEqual([status, code])
    if (verified) expect(response.body.user_id).toBe(user.id)
  })
})

describe('GitHubClient without verifiedEmails', () => {
  const logInPlainly = (options: Partial<GitHubClientOptions> = {}) => logIn({ verifiedEmails: false, ...options })

  test('takes the primary address, if GitHub verified it, where the profile shows none; its word does not count', async () => {
    provider.githubProfile['email'] = null
    emails([other, primary])
    await expect(logInPlainly()).resolves.toMatchObject({ email: primary.email, emailVerified: null })
    emails([other, { ...primary, verified: false }])
    await expect(logInPlainly()).resolves.toMatchObject({ email: null, emailVerified: null })
  })

  test('asks for nothing where the profile shows an address, or the scopes do not allow it', async () => {
    emails([primary])
    await expect(logInPlainly()).resolves.toMatchObject({ email: 'ana@example.com' })
    provider.githubProfile['email'] = null
    await expect(logInPlainly({ scopes: ['read:user'] })).resolves.toMatchObject({ email: null })
    expect(provider.requestsTo('elsewhere')).toEqual([])
  })

  test('a list that GitHub does not show us is no address; one that cannot be had is a failed login', async () => {
    provider.githubProfile['email'] = null
    emails({ message: 'Resource not accessible by integration' }, 403)
    await expect(logInPlainly()).resolves.toMatchObject({ subject: '583231', email: null })
    emails({ message: 'busy' }, 503)
    await expect(logInPlainly()).rejects.toMatchObject({ code: 'OAUTH_ERROR' })
  })
})
