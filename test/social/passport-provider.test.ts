import OAuth2Strategy from 'passport-oauth2'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type PassportBase, type PassportStrategy, passportProvider } from '../../src'
import { ConfigurationError } from '../../src/core/errors'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { baseUrl, signIn } from '../support/app'
import { databases } from '../support/databases'
import { answer, type FakeProvider, hostileAnswers } from '../support/fake-provider'
import { rowCounts } from './accounts-at-hand'
import { link, member } from './link-steps'
import { begin, callBack, cookiePair, newPerson, onDatabase } from './redirect-steps'
import { type StrategyCase, strategies } from './strategies'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

/** The host, with the strategy registered beside a provider of ours, and a way to say who signs in at the strategy's provider. */
async function hostOf(strategy: StrategyCase, settings: object = {}) {
  const host = await start({ providers: { corp: {}, other: strategy.provider }, settings })
  return { host, be: (person: ReturnType<typeof newPerson>) => host.provider.on(strategy.endpoint, answer(200, strategy.describe(person))) }
}

const cases = Object.entries(strategies)

describe.each(cases)('%s', (_name, strategy) => {
  test('begins with our state, our redirect URI and a PKCE challenge that follows from the state cookie', async () => {
    const { host, be } = await hostOf(strategy)
    be(newPerson())
    const { params, state, query, cookie } = await begin(host, { key: 'other' })
    expect([...params.keys()].filter((name) => name === 'state' || name === 'redirect_uri')).toHaveLength(2)
    expect(params.get('redirect_uri')).toBe(`${baseUrl}/auth/oauth/other/callback`)
    expect(state).toMatch(/^[\w-]{43}$/)
    expect(params.get('code_challenge_method')).toBe('S256')
    await callBack(host, query, { key: 'other', cookie })
    const verifier = String(host.provider.requestsTo('token')[0]?.form.get('code_verifier'))
    expect(codeChallengeOf(verifier)).toBe(params.get('code_challenge'))
  })

  test('signs a person in, and the next time into the same account', async () => {
    const { host, be } = await hostOf(strategy)
    const person = newPerson()
    be(person)
    const first = await signIn(host, host.browser(), { key: 'other' })
    if (strategy.address === 'none') {
      expect([first.status, first.body.code]).toEqual([422, 'OAUTH_EMAIL_MISSING'])
      return
    }
    expect(first.status, first.text).toBe(200)
    const [identity] = await host.auth.service.listIdentities(first.body.user_id)
    expect(identity).toMatchObject({
      provider: 'other',
      subject: person.sub,
      email: person.email,
      emailVerified: strategy.address === 'verified' ? true : null,
      name: person['name'],
    })
    expect((await signIn(host, host.browser(), { key: 'other' })).body.user_id).toBe(first.body.user_id)
  })

  test('links to a signed-in account, and signs into it from then on', async () => {
    const { host, be } = await hostOf(strategy)
    const ana = await member(host)
    be(newPerson())
    expect((await link(host, ana, { key: 'other' })).status).toBe(200)
    const again = await signIn(host, host.browser(), { key: 'other' })
    expect([again.status, again.body.user_id]).toEqual([200, ana.userId])
  })

  test('ends in a challenge where the account has a second factor', async () => {
    const { host, be } = await hostOf(strategy, mfaSettings)
    const ana = await member(host)
    be(newPerson())
    await link(host, ana, { key: 'other' })
    const { secret } = await host.auth.service.enrollTotp(ana.userId)
    const app = authenticator(secret, host.clock)
    await host.auth.service.confirmTotp({ userId: ana.userId, amr: ['ext'], code: app.code() })
    const challenge = await signIn(host, host.browser(), { key: 'other' })
    expect(challenge.body).toMatchObject({ mfa_required: true, access_token: null, mfa_token: expect.any(String) })
    const verified = await host.browser().post('/auth/mfa/verify').send({ mfa_token: challenge.body.mfa_token, code: app.nextCode() })
    expect([verified.status, verified.body.user_id]).toEqual([200, ana.userId])
  })

  test('a state of another browser, a used one and a denial are refused before any request', async () => {
    const { host, be } = await hostOf(strategy)
    be(newPerson())
    const attempt = await begin(host, { key: 'other' })
    expect((await callBack(host, attempt.query, { key: 'other' })).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect((await callBack(host, { ...attempt.query, error: 'access_denied' }, { key: 'other', cookie: attempt.cookie })).body.code).toBe(
      'OAUTH_PROVIDER_DENIED',
    )
    expect(host.provider.requests).toEqual([])
    await callBack(host, attempt.query, { key: 'other', cookie: attempt.cookie })
    const calls = host.provider.requests.length
    expect((await callBack(host, attempt.query, { key: 'other', cookie: attempt.cookie })).body.code).toBe('OAUTH_STATE_MISMATCH')
    expect(host.provider.requests).toHaveLength(calls)
  })

  test('takes no token in hand (501), confirms nobody, and nobody is asked', async () => {
    const { host, be } = await hostOf(strategy)
    const given = { access_token: host.provider.issueAccessToken() }
    const inHand = await host.browser().post('/auth/oauth/other/token').send(given)
    expect([inHand.status, inHand.body.code]).toEqual([501, 'OAUTH_AUDIENCE_UNVERIFIABLE'])
    expect(host.provider.requests).toEqual([])
    const ana = await member(host)
    be(newPerson())
    await link(host, ana, { key: 'other' })
    host.provider.on(strategy.endpoint, null)
    host.clock.advance(86_400)
    const { body } = await signIn(host, host.browser(), { profile: ana.profile })
    const confirming = await host
      .browser()
      .post('/auth/oauth/other/reauthenticate')
      .set('Authorization', `Bearer ${body.access_token}`)
      .send({})
    expect([confirming.status, confirming.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
    expect(confirming.body.details.methods).not.toContain('provider:other')
  })

  // Only what `oauth` gives to its callback as an error. For other answers, `null` and HTML among them, `oauth` or a strategy may throw in a
  // callback of the network, which nothing of ours can catch.
  const refusals = ['a server error', 'a reset connection']
  const unusable = {
    token: ['an array', 'a string', 'a number', 'HTML with 200', 'an empty 204', '200 with an error', ...refusals],
    profile: refusals,
  }
  test.each(['token', 'profile'] as const)('a %s endpoint that misbehaves is 502 OAUTH_ERROR, without a row', async (which) => {
    const { host, be } = await hostOf(strategy)
    const before = await rowCounts(host.knex)
    be(newPerson())
    const answers = unusable[which].map((name) => [name, hostileAnswers[name] ?? answer(599, '')] as const)
    for (const [name, handler] of [...answers, ['status 400', answer(400, { error: 'invalid_grant' })] as const]) {
      const endpoint = which === 'token' ? 'token' : strategy.endpoint
      host.provider.on(endpoint, handler)
      const response = await signIn(host, host.browser(), { key: 'other' })
      expect({ name, status: response.status, code: response.body.code }).toEqual({ name, status: 502, code: 'OAUTH_ERROR' })
      expect(response.body.details).toEqual({ provider: 'other', status: response.body.details.status, body: null })
    }
    expect(await rowCounts(host.knex)).toEqual(before)
  })
})

/** A strategy with a fault, on the fake provider. */
function faulty(spoil: (strategy: OAuth2Strategy, base: PassportBase) => void, { pkce = true } = {}) {
  return (fake: FakeProvider) =>
    passportProvider(
      (base) => {
        const { clientId: clientID, clientSecret, authorizeUrl: authorizationURL, tokenUrl: tokenURL } = fake
        const strategy = new OAuth2Strategy({ clientID, clientSecret, authorizationURL, tokenURL, ...base }, base.verify)
        strategy.userProfile = (_token, done) => done(null, { id: 'somebody', emails: [{ value: 'somebody@example.test' }] })
        spoil(strategy, base)
        return strategy
      },
      { pkce },
    )
}

describe('a strategy that misbehaves', () => {
  afterEach(() => vi.useRealTimers())

  const profiles: [string, OAuth2Strategy['userProfile']][] = [
    ['ends with an error', (_token, done) => done(new Error('canary-5'))],
    ['ends with a string', (_token, done) => done('canary-5')],
    ['has no profile', (_token, done) => done(null, undefined)],
    ['has a profile that is no object', (_token, done) => done(null, 'canary-5')],
    ['has no id', (_token, done) => done(null, { displayName: 'x' })],
    ['writes out a missing id', (_token, done) => done(null, { id: String(undefined) })],
    ['writes out an id of null', (_token, done) => done(null, { id: String(null) })],
    ['has an id that is an object', (_token, done) => done(null, { id: {} })],
    ['has an id that a number cannot hold', (_token, done) => done(null, { id: 2 ** 53 })],
  ]
  test.each(profiles)('and %s is 502 OAUTH_ERROR, and its words are in no answer and no log', async (_name, userProfile) => {
    const host = await start({
      providers: {
        other: faulty((strategy) => {
          strategy.userProfile = userProfile
        }),
      },
    })
    const response = await signIn(host, host.browser(), { key: 'other' })
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(response.text + host.logs.text()).not.toContain('canary-5')
  })

  const verdicts: [string, (done: OAuth2Strategy.VerifyCallback) => void][] = [
    ['says that the person signed in, but gives no tokens of ours,', (done) => done(null, { id: 1 })],
    ['refuses the person', (done) => done(null, false)],
    [
      'throws in its verify',
      () => {
        throw new Error('canary-5')
      },
    ],
  ]
  test.each(verdicts)('and %s is 502', async (_name, verdict) => {
    const other = ({ clientId: clientID, clientSecret, authorizeUrl: authorizationURL, tokenUrl: tokenURL }: FakeProvider) =>
      passportProvider(
        (base) =>
          new OAuth2Strategy(
            { clientID, clientSecret, authorizationURL, tokenURL, ...base },
            (_access: string, _refresh: string, _profile: unknown, done: OAuth2Strategy.VerifyCallback) => verdict(done),
          ),
      )
    const host = await start({ providers: { other } })
    const response = await signIn(host, host.browser(), { key: 'other' })
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(response.text + host.logs.text()).not.toContain('canary-5')
  })

  test('and throws while it makes the token request is 502', async () => {
    const spoil = (strategy: OAuth2Strategy) => {
      strategy.tokenParams = () => {
        throw new Error('canary-5')
      }
    }
    const host = await start({ providers: { other: faulty(spoil) } })
    const response = await signIn(host, host.browser(), { key: 'other' })
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(response.text + host.logs.text()).not.toContain('canary-5')
  })

  test('and ends twice has ended once', async () => {
    const host = await start({
      providers: {
        other: faulty((strategy) => {
          strategy.userProfile = (_token, done) => {
            done(null, { id: 'first', emails: [{ value: 'first@example.test' }] })
            done(new Error('second'))
          }
        }),
      },
    })
    expect((await signIn(host, host.browser(), { key: 'other' })).status).toBe(200)
  })

  test('and never ends is given up after 25 seconds with 502, and holds back no other provider', async () => {
    const host = await start({
      providers: {
        corp: {},
        other: faulty((strategy) => {
          strategy.userProfile = () => undefined
        }),
      },
    })
    const { query, cookie } = await begin(host, { key: 'other' })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const waiting = callBack(host, query, { key: 'other', cookie }).then((response) => response)
    await vi.waitUntil(() => host.provider.requestsTo('token').length === 1 && vi.getTimerCount() > 0, { interval: 1 })
    await vi.advanceTimersByTimeAsync(25_000)
    vi.useRealTimers()
    const response = await waiting
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect((await signIn(host, host.browser(), { profile: newPerson() })).status).toBe(200)
  })

  test('and redirects no more is 502 at the login', async () => {
    let isBroken = false
    const spoil = (strategy: OAuth2Strategy) => {
      const { authorizationParams } = strategy
      strategy.authorizationParams = (options) => {
        if (isBroken) throw new Error('canary-5')
        return authorizationParams.call(strategy, options)
      }
    }
    const host = await start({ providers: { other: faulty(spoil) } })
    isBroken = true
    const response = await host.browser().get('/auth/oauth/other/login')
    expect([response.status, response.body.code]).toEqual([502, 'OAUTH_ERROR'])
    expect(response.text + host.logs.text()).not.toContain('canary-5')
  })

  test('the log names what the provider said, and a refusal of our client for the operator', async () => {
    const host = await start({ providers: { other: faulty(() => undefined) } })
    host.provider.on('token', answer(401, { error: 'invalid_client', error_description: 'canary-5' }))
    const response = await signIn(host, host.browser(), { key: 'other' })
    expect(response.body.details).toEqual({ provider: 'other', status: null, body: null })
    expect(host.logs.text()).toContain('invalid_client')
    expect(response.text + host.logs.text()).not.toContain('canary-5')
  })
})

describe('at boot', () => {
  const boot = (make: (base: PassportBase) => PassportStrategy) => start({ providers: { other: () => passportProvider(make) } as never })
  const options = {
    clientID: 'c',
    clientSecret: 's',
    authorizationURL: 'https://id.example.test/authorize',
    tokenURL: 'https://id.example.test/token',
  }
  const refused: [string, (base: PassportBase) => unknown, RegExp][] = [
    [
      'throws',
      () => {
        throw new Error('no')
      },
      /Provider other: the function given to passportProvider threw/,
    ],
    ['returns nothing', () => undefined, /must return the strategy/],
    [
      'drops the store',
      ({ store: _store, ...base }) => new OAuth2Strategy({ ...options, ...base, pkce: false, state: false }, base.verify),
      /strategy "oauth2" does not send the state/,
    ],
    [
      'keeps the state in a session',
      ({ store: _store, ...base }) => new OAuth2Strategy({ ...options, ...base }, base.verify),
      /strategy "oauth2" does not redirect/,
    ],
    [
      'has a redirect URI of its own',
      (base) => new OAuth2Strategy({ ...options, ...base, callbackURL: 'https://app.example.test/other' }, base.verify),
      /does not send https:\/\/app\.example\.test\/auth\/oauth\/other\/callback as redirect_uri/,
    ],
    ['has none', ({ callbackURL: _url, ...base }) => new OAuth2Strategy({ ...options, ...base }, base.verify), /as redirect_uri/],
    [
      'sends the browser over plain http',
      (base) => new OAuth2Strategy({ ...options, authorizationURL: 'http://id.example.test/', ...base }, base.verify),
      /https/,
    ],
    ['redirects later', () => ({ name: 'late', authenticate() {} }), /strategy "late" does not redirect/],
    [
      'throws when it is asked',
      () => ({
        name: 'thrower',
        authenticate() {
          throw new Error('no')
        },
      }),
      /strategy "thrower" does not redirect/,
    ],
  ]
  test.each(refused)('a strategy that %s is refused, by its name', async (_name, make, sentence) => {
    const booting = boot(make as never)
    await expect(booting).rejects.toThrow(ConfigurationError)
    await expect(booting).rejects.toThrow(sentence)
  })

  test('the strategy is made once', async () => {
    const make = vi.fn((base: PassportBase) => new OAuth2Strategy({ ...options, ...base }, base.verify))
    const host = await boot(make)
    for (let login = 1; login <= 3; login += 1) await host.browser().get('/auth/oauth/other/login')
    expect(make).toHaveBeenCalledTimes(1)
  })

  test.each([
    [undefined, {}],
    [() => undefined, { profile: 'x' }],
    [() => undefined, { pkce: 'S256' }],
    [() => undefined, { profiles: () => null }],
  ])('passportProvider(%j, %j) is refused', (make, given) => {
    expect(() => passportProvider(make as never, given as never)).toThrow(ConfigurationError)
  })
})

describe('options', () => {
  test('profile maps what the strategy brought, and sees the tokens', async () => {
    const mapped = {
      subject: 'tenant:7',
      email: 'ana@example.test',
      emailVerified: true,
      name: 'Ana',
      picture: 'https://cdn.example.test/a.png',
    }
    const seen: unknown[] = []
    const provider = (fake: FakeProvider) => {
      const { clientId: clientID, clientSecret, authorizeUrl: authorizationURL, tokenUrl: tokenURL } = fake
      return passportProvider<{ uid: number }>(
        (base) =>
          Object.assign(new OAuth2Strategy({ clientID, clientSecret, authorizationURL, tokenURL, ...base }, base.verify), {
            userProfile: (_token: string, done: (error: null, profile: unknown) => void) => done(null, { uid: 7 }),
          }),
        {
          profile: async ({ uid }, tokens) => {
            seen.push(uid, tokens.accessToken)
            return mapped
          },
        },
      )
    }
    const host = await start({ providers: { other: provider } })
    const { body } = await signIn(host, host.browser(), { key: 'other' })
    expect(seen).toEqual([7, expect.stringMatching(/^access-/)])
    expect((await host.auth.service.listIdentities(body.user_id))[0]).toMatchObject({ provider: 'other', ...mapped })
  })

  test('pkce: false sends no challenge and no verifier', async () => {
    const host = await start({ providers: { other: faulty(() => undefined, { pkce: false }) } })
    const { params, query, cookie } = await begin(host, { key: 'other' })
    expect(params.has('code_challenge')).toBe(false)
    expect((await callBack(host, query, { key: 'other', cookie })).status).toBe(200)
    expect(host.provider.requestsTo('token')[0]?.form.has('code_verifier')).toBe(false)
  })

  test('of `_json` nothing is read: an address is verified where the profile says so alone', async () => {
    const host = await start({
      providers: {
        other: faulty((strategy) => {
          strategy.userProfile = (_token, done) =>
            done(null, { id: 'a', emails: [{ value: 'a@example.test' }], _json: { email_verified: true } })
        }),
      },
    })
    const { body } = await signIn(host, host.browser(), { key: 'other' })
    expect((await host.auth.service.listIdentities(body.user_id))[0]).toMatchObject({ emailVerified: null })
  })

  test('tabs side by side each end as they began', async () => {
    const host = await start({ providers: { other: faulty(() => undefined) } })
    const one = await begin(host, { key: 'other' })
    const two = await begin(host, { key: 'other', cookie: one.cookie })
    const three = await begin(host, { key: 'other', cookie: two.cookie })
    const second = await callBack(host, two.query, { key: 'other', cookie: three.cookie })
    const first = await callBack(host, one.query, { key: 'other', cookie: cookiePair(second) })
    expect([second.status, first.status]).toEqual([200, 200])
  })
})
