import OAuth2Strategy, { InternalOAuthError, type VerifyCallback } from 'passport-oauth2'
import { describe, expect, test } from 'vitest'

/** What src/social/client-flow.ts stands on and no documentation promises: a new version that changes it fails here. */
describe('passport-oauth2 as we use it', () => {
  const strategy = () =>
    new OAuth2Strategy(
      Object.assign(
        {
          authorizationURL: 'https://id.example.test/authorize',
          tokenURL: 'https://id.example.test/token',
          clientID: 'c',
          clientSecret: 's',
        },
        { skipUserProfile: true },
      ),
      (_accessToken: string, _refreshToken: string, params: Express.User, _profile: unknown, done: VerifyCallback) => done(null, params),
    )

  function authenticate(instance: OAuth2Strategy, query: object, exchange: (...args: never[]) => void) {
    return new Promise<{ how: string; what: unknown }>((resolve) => {
      const own = Object.assign(Object.create(instance), {
        success: (user: unknown) => resolve({ how: 'success', what: user }),
        error: (error: unknown) => resolve({ how: 'error', what: error }),
        redirect: (url: string) => resolve({ how: 'redirect', what: url }),
        fail: (challenge: unknown) => resolve({ how: 'fail', what: challenge }),
      })
      Object.assign(instance['_oauth2' as never] as object, { getOAuthAccessToken: exchange })
      own.authenticate({ query, headers: {}, url: '/' }, { state: 'the-state' })
    })
  }

  test('a code is exchanged through _oauth2.getOAuthAccessToken, whose fourth result reaches a verify of five parameters', async () => {
    const tokens = { all: 'of it' }
    const exchange = (_code: string, _params: object, done: (...results: unknown[]) => void) => done(null, 'access', 'refresh', tokens)
    expect(await authenticate(strategy(), { code: 'abc' }, exchange as never)).toEqual({ how: 'success', what: tokens })
  })

  test('what the exchange throws arrives wrapped, with the original in oauthError', async () => {
    const original = new Error('refused')
    const exchange = (_code: string, _params: object, done: (...results: unknown[]) => void) => done(original)
    const { how, what } = await authenticate(strategy(), { code: 'abc' }, exchange as never)
    expect(how).toBe('error')
    expect(what).toBeInstanceOf(InternalOAuthError)
    expect((what as InternalOAuthError).oauthError).toBe(original)
  })

  test('without a code it redirects, and a state given as a string is sent as it is', async () => {
    const { how, what } = await authenticate(strategy(), {}, (() => undefined) as never)
    expect(how).toBe('redirect')
    expect(new URL(String(what)).searchParams.get('state')).toBe('the-state')
  })
})
