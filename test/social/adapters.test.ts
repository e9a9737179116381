import { afterEach, expect, test, vi } from 'vitest'
import { type AuthStore, createAuthTables, createKnexStore, type ProviderClient } from '../../src'
import { signIn, startLogin } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'

const start = appPerTest()
afterEach(() => void vi.useRealTimers())

/** The clock is ours; sockets and the database take their own time. */
const waitingForSockets = { timeout: 15_000, interval: 5 }

test('R-069: an adapter that calls two subjects equal because their letters differ in case only is not believed', async () => {
  const [sqlite] = await databases()
  const { knex, close } = (await sqlite?.open()) ?? expect.fail('SQLite is always there')
  await createAuthTables(knex)
  const exact = createKnexStore({ knex })
  const blurred = (store: AuthStore): AuthStore => ({
    ...store,
    identities: {
      ...(store.identities ?? expect.fail('the store has identities')),
      findWithUser: async (provider, subject) =>
        (await exact.identities.findWithUser(provider, subject)) ?? exact.identities.findWithUser(provider, subject.toLowerCase()),
    },
    transaction: (work) => store.transaction((inside) => work(blurred(inside))),
  })
  const mounted = await start({ options: { store: blurred(exact) } })
  const one = await signIn(mounted, mounted.browser(), { profile: { sub: 'abc', email: 'one@example.test' } })

  const other = await signIn(mounted, mounted.browser(), { profile: { sub: 'ABC', email: 'other@example.test' } })

  expect([one.status, other.status]).toEqual([200, 200])
  expect(other.body.user_id).not.toBe(one.body.user_id)
  await close()
})

test('F13: a client of the host’s own that never settles is 502 OAUTH_ERROR', async () => {
  const silent: ProviderClient = {
    providerName: 'silent',
    clientId: 'c',
    authorizeUrl: 'https://id.example.test/authorize',
    tokenUrl: 'https://id.example.test/token',
    scopes: ['openid'],
    exchangeCode: () => new Promise(() => undefined),
    fetchUser: () => new Promise(() => undefined),
  }
  const mounted = await start({ providers: { corp: {}, silent } })
  const browser = mounted.browser()
  const begun = await browser.get('/auth/oauth/silent/login')
  const state = new URL(String(begun.headers['location'])).searchParams.get('state')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })

  const pending = browser
    .get('/auth/oauth/silent/callback')
    .query({ code: 'a', state })
    .then((response) => response)
  const answer = await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(10_000)
    const settled = await Promise.race([pending, new Promise<null>((resolve) => setImmediate(() => resolve(null)))])
    return settled ?? expect.fail('still pending')
  }, waitingForSockets)

  expect([answer.status, answer.body.code, answer.body.details]).toEqual([
    502,
    'OAUTH_ERROR',
    { provider: 'silent', status: null, body: null },
  ])
  vi.useRealTimers()
  expect((await startLogin(mounted, mounted.browser())).code).toBeTruthy()
})

test('a client of the host’s own, in plain JavaScript, may answer at once instead of with a promise', async () => {
  const tokens = { accessToken: 'a', tokenType: 'bearer', refreshToken: null, idToken: null, expiresIn: null, scope: null, raw: {} }
  const person = { provider: 'prompt', subject: '1', email: 'ana@example.test', emailVerified: true, name: null, picture: null, raw: {} }
  const prompt = {
    providerName: 'prompt',
    clientId: 'c',
    authorizeUrl: 'https://id.example.test/authorize',
    tokenUrl: 'https://id.example.test/token',
    scopes: ['openid'],
    exchangeCode: () => tokens,
    fetchUser: () => person,
  }
  const mounted = await start({ providers: { prompt: prompt as unknown as ProviderClient } })
  const browser = mounted.browser()
  const begun = await browser.get('/auth/oauth/prompt/login')
  const state = new URL(String(begun.headers['location'])).searchParams.get('state')
  const answer = await browser.get('/auth/oauth/prompt/callback').query({ code: 'a', state })
  expect([answer.status, answer.body.code]).toEqual([200, undefined])
  expect(answer.body.access_token).toBeTruthy()
})

test('the last door is kept where an adapter takes another spelling of its key for the same', async () => {
  const [sqlite] = await databases()
  const { knex, close } = (await sqlite?.open()) ?? expect.fail('SQLite is always there')
  await createAuthTables(knex)
  const blurred = (store: AuthStore): AuthStore => {
    const identities = store.identities ?? expect.fail('the store has identities')
    return {
      ...store,
      identities: { ...identities, deleteForUser: (userId, provider) => identities.deleteForUser(userId, provider?.toLowerCase()) },
      transaction: (work) => store.transaction((inside) => work(blurred(inside))),
    }
  }
  const mounted = await start({ options: { store: blurred(createKnexStore({ knex })) }, settings: { oauthKeepLastLoginMethod: true } })
  const { body } = await signIn(mounted)
  const unlink = (provider: string) =>
    mounted.browser().post('/auth/oauth/accounts/unlink').set('Authorization', `Bearer ${body.access_token}`).send({ provider })

  expect((await unlink('corp')).body.code).toBe('LAST_LOGIN_METHOD')
  expect((await unlink('CORP')).body.code).toBe('OAUTH_ACCOUNT_NOT_LINKED')
  expect(await knex('auth_identities')).toHaveLength(1)
  await close()
})

test('insertDefaults of the host never decide about a column of ours, however they spell it', async () => {
  for (const database of await databases()) {
    const { knex, close } = await database.open()
    await createAuthTables(knex)
    const insertDefaults = () => ({ IS_ACTIVE: database.name === 'postgres' ? false : 0, EMAIL: 'host@default.test' })
    const mounted = await start({ options: { store: createKnexStore({ knex, users: { insertDefaults } }) } })

    expect((await signIn(mounted, mounted.browser(), { profile: { sub: 's', email: 'ana@example.test' } })).status).toBe(200)

    const [row] = await knex('auth_users').select('email', 'is_active')
    expect([row.email, Boolean(row.is_active)], database.name).toEqual(['ana@example.test', true])
    await close()
  }
})
