import { afterEach, expect, test, vi } from 'vitest'
import { type AuthStore, createAuthTables, createKnexStore, type ProviderClient } from '../../src'
import { signIn, startLogin } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'

const start = appPerTest()
afterEach(() => void vi.useRealTimers())

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
  })

  expect([answer.status, answer.body.code, answer.body.details]).toEqual([
    502,
    'OAUTH_ERROR',
    { provider: 'silent', status: null, body: null },
  ])
  vi.useRealTimers()
  expect((await startLogin(mounted, mounted.browser())).code).toBeTruthy()
})
