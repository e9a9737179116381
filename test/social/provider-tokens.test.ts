import OAuth2Strategy from 'passport-oauth2'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type AuthRouterOptions, createKnexStore, OidcClient, passportProvider } from '../../src'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { link, member } from './link-steps'
import { begin, callBack, newPerson, onDatabase } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start, opened } = onDatabase(database, { memory: true })

type Hook = NonNullable<AuthRouterOptions['onProviderTokens']>
const recorded = () => vi.fn<Hook>()

describe('onProviderTokens', () => {
  afterEach(() => vi.useRealTimers())

  test('gets the user, the provider and its tokens after a callback, with the account in the database', async () => {
    const seen: unknown[] = []
    const onProviderTokens: Hook = async (user, provider, tokens) => {
      // Outside of any transaction of ours: the account is there for everybody.
      seen.push([
        provider,
        (await createKnexStore({ knex: opened().knex }).users.find(user.id))?.email,
        Object.keys(user).includes('hashedPassword'),
        tokens,
      ])
    }
    const host = await start({ options: { onProviderTokens } })
    const person = newPerson()
    expect((await signIn(host, host.browser(), { profile: person })).status).toBe(200)
    expect(seen).toEqual([
      [
        'corp',
        person.email,
        false,
        expect.objectContaining({
          accessToken: expect.stringMatching(/^access-/),
          refreshToken: expect.stringMatching(/^refresh-/),
          idToken: expect.stringMatching(/^eyJ/),
          expiresIn: 3600,
          raw: expect.objectContaining({ token_type: 'Bearer' }),
        }),
      ],
    ])
  })

  test('also of a Passport strategy, and where the browser goes back to an app', async () => {
    const onProviderTokens = recorded()
    const other = (fake: FakeProvider) =>
      passportProvider((base) => {
        const { clientId: clientID, clientSecret, authorizeUrl: authorizationURL, tokenUrl: tokenURL } = fake
        const strategy = new OAuth2Strategy({ clientID, clientSecret, authorizationURL, tokenURL, ...base }, base.verify)
        strategy.userProfile = (_token, done) => done(null, { id: 'ana-of-tokens', emails: [{ value: 'ana-of-tokens@example.test' }] })
        return strategy
      })
    const appRedirects = ['com.example.app:/signed-in']
    const host = await start({ options: { onProviderTokens }, providers: { corp: {}, other }, settings: { appRedirects } })
    await signIn(host, host.browser(), { key: 'other' })
    const app = { redirect_to: 'com.example.app:/signed-in', code_challenge: codeChallengeOf('v'.repeat(43)) }
    const { query, cookie } = await begin(host, { profile: newPerson(), query: app })
    expect((await callBack(host, query, { cookie })).status).toBe(302)
    expect(
      onProviderTokens.mock.calls.map(([, provider, { accessToken, raw }]) => [provider, accessToken === raw['access_token']]),
    ).toEqual([
      ['other', true],
      ['corp', true],
    ])
  })

  test('is called at a link that ends at the callback, and not where it ends with a ticket', async () => {
    const onProviderTokens = recorded()
    const providers = { corp: {}, acme: {} }
    const cookies = await start({ options: { onProviderTokens }, providers, settings: { tokenDelivery: 'both' } })
    const ana = await member(cookies)
    onProviderTokens.mockClear()
    expect((await link(cookies, ana)).status).toBe(200)
    expect(onProviderTokens.mock.calls.map(([user, provider]) => [user.id, provider])).toEqual([[ana.userId, 'acme']])
    const bearer = await start({ options: { onProviderTokens }, providers })
    const ben = await member(bearer)
    onProviderTokens.mockClear()
    expect((await link(bearer, ben)).status).toBe(200)
    expect(onProviderTokens).not.toHaveBeenCalled()
  })

  test('is called where the login goes on with a second factor', async () => {
    const onProviderTokens = recorded()
    const host = await start({ options: { onProviderTokens }, settings: mfaSettings })
    const ana = await member(host)
    const { secret } = await host.auth.service.enrollTotp(ana.userId)
    await host.auth.service.confirmTotp({ userId: ana.userId, amr: ['ext'], code: authenticator(secret, host.clock).code() })
    onProviderTokens.mockClear()
    expect((await signIn(host, host.browser(), { profile: ana.profile })).body.mfa_required).toBe(true)
    expect(onProviderTokens).toHaveBeenCalledTimes(1)
  })

  test('is not called for a token in hand, a refusal or a denial', async () => {
    const onProviderTokens = recorded()
    const introspecting = (fake: FakeProvider) => new OidcClient(fake.oidcOptions({ introspectionUrl: fake.introspectionUrl }))
    const host = await start({ options: { onProviderTokens }, providers: { corp: introspecting } })
    const given = { access_token: host.provider.issueAccessToken({ profile: newPerson() }) }
    expect((await host.browser().post('/auth/oauth/corp/token').send(given)).status).toBe(200)
    expect((await signIn(host, host.browser(), { profile: newPerson({ email: null }) })).status).toBe(422)
    const { query, cookie } = await begin(host)
    expect((await callBack(host, { ...query, error: 'access_denied' }, { cookie })).status).toBe(401)
    expect(onProviderTokens).not.toHaveBeenCalled()
  })

  const failures: [string, Hook][] = [
    [
      'throws',
      () => {
        throw new Error('canary-9')
      },
    ],
    ['rejects', () => Promise.reject(new Error('canary-9'))],
    ['rejects with nothing', () => Promise.reject()],
  ]
  test.each(failures)('that %s is logged, and the login stands', async (_name, onProviderTokens) => {
    const host = await start({ options: { onProviderTokens } })
    const response = await signIn(host, host.browser(), { profile: newPerson() })
    expect(response.status).toBe(200)
    const line = host.logs.entries.find(({ message }) => message === 'doorward: onProviderTokens failed. The person stays logged in.')
    expect(line).toMatchObject({ level: 'error', fields: { provider: 'corp' } })
    expect(host.logs.text()).not.toContain('canary-9')
  })

  test('that never settles is given up after 5 seconds, and the login stands', async () => {
    const onProviderTokens = vi.fn(() => new Promise<void>(() => undefined))
    const host = await start({ options: { onProviderTokens } })
    const { query, cookie } = await begin(host, { profile: newPerson() })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const waiting = callBack(host, query, { cookie }).then((response) => response)
    await vi.waitUntil(() => onProviderTokens.mock.calls.length === 1, { interval: 1 })
    await vi.advanceTimersByTimeAsync(5_000)
    vi.useRealTimers()
    expect((await waiting).status).toBe(200)
    expect(host.logs.text()).toContain('onProviderTokens took too long.')
  })

  test('must be a function', async () => {
    await expect(start({ options: { onProviderTokens: true as never } })).rejects.toThrow(/Option onProviderTokens must be a function/)
  })
})
