import { Strategy as TwitterStrategy } from '@superfaceai/passport-twitter-oauth2'
import { Strategy as FacebookStrategy } from 'passport-facebook'
import { Strategy as GitHubStrategy } from 'passport-github2'
// @ts-expect-error It has no types: a host in JavaScript has none either.
import GitLabStrategy from 'passport-gitlab2'
import { Strategy as GoogleStrategy } from 'passport-google-oauth20'
import OAuth2Strategy from 'passport-oauth2'
import { type PassportProvider, passportProvider } from '../../src'
import type { FakeEndpoint, FakeProvider } from '../support/fake-provider'

/** A strategy, and how the provider it was written for describes a person. */
export interface StrategyCase {
  provider(fake: FakeProvider): PassportProvider
  /** Where the strategy reads the profile. */
  endpoint: FakeEndpoint
  /** The provider's answer about a person of the tests. */
  describe(person: Person): unknown
  /** What the strategy brings of an address. */
  address: 'verified' | 'unverified' | 'none'
}

export interface Person {
  sub: string
  email: string
  name?: unknown
}

/** Of the strategies' options, what leads them to the fake provider. */
function addressesOf({ clientId, clientSecret, authorizeUrl, tokenUrl }: FakeProvider) {
  return { clientID: clientId, clientSecret, authorizationURL: authorizeUrl, tokenURL: tokenUrl }
}

/** Overrides the parameters of the token request, as a strategy of a provider with several tenants does. */
class TenantStrategy extends OAuth2Strategy {
  override name = 'tenant'
  readonly #profileUrl: string

  constructor(options: OAuth2Strategy.StrategyOptions & { profileURL: string }, verify: OAuth2Strategy.VerifyFunction) {
    super(options, verify)
    this.#profileUrl = options.profileURL
    this._oauth2.useAuthorizationHeaderforGET(true)
    this.userProfile = (accessToken, done) => {
      this._oauth2.get(this.#profileUrl, accessToken, (error, body) => {
        if (error) return done(error)
        const { sub, email, email_verified: verified, name } = JSON.parse(String(body)) as Record<string, unknown>
        done(null, { id: sub, displayName: name, emails: [{ value: email, verified }] })
      })
    }
  }

  override authorizationParams(): object {
    return { tenant: 'acme' }
  }

  override tokenParams(): object {
    return { tenant: 'acme' }
  }
}

export const strategies: Record<string, StrategyCase> = {
  'passport-github2': {
    provider: (fake) =>
      passportProvider((base) => new GitHubStrategy({ ...addressesOf(fake), userProfileURL: `${fake.apiUrl}/user`, ...base }, base.verify)),
    endpoint: 'user',
    describe: ({ sub, email, name }) => ({ id: sub, login: sub, name, email }),
    address: 'unverified',
  },
  'passport-google-oauth20': {
    provider: (fake) =>
      passportProvider(
        (base) => new GoogleStrategy({ ...addressesOf(fake), userProfileURL: fake.userinfoUrl, scope: ['email'], ...base }, base.verify),
      ),
    endpoint: 'userinfo',
    describe: ({ sub, email, name }) => ({ sub, name, email, email_verified: true }),
    address: 'verified',
  },
  'passport-facebook': {
    provider: (fake) =>
      passportProvider(
        (base) =>
          new FacebookStrategy(
            { ...addressesOf(fake), profileURL: fake.userinfoUrl, profileFields: ['id', 'emails'], enableProof: true, ...base },
            base.verify,
          ),
      ),
    endpoint: 'userinfo',
    describe: ({ sub, email, name }) => ({ id: sub, name, email }),
    address: 'unverified',
  },
  'passport-gitlab2': {
    provider: (fake) =>
      passportProvider((base) => new GitLabStrategy({ ...addressesOf(fake), profileURL: fake.userinfoUrl, ...base }, base.verify)),
    endpoint: 'userinfo',
    describe: ({ sub, email, name }) => ({ id: sub, name, email }),
    address: 'unverified',
  },
  '@superfaceai/passport-twitter-oauth2': {
    provider: (fake) =>
      passportProvider(
        (base) =>
          new TwitterStrategy({ ...addressesOf(fake), clientType: 'public', userProfileURL: fake.userinfoUrl, ...base }, base.verify),
      ),
    endpoint: 'userinfo',
    describe: ({ sub, name }) => ({ data: { id: sub, name, username: sub } }),
    address: 'none',
  },
  'a strategy with token parameters of its own': {
    provider: (fake) =>
      passportProvider((base) => new TenantStrategy({ ...addressesOf(fake), profileURL: fake.userinfoUrl, ...base }, base.verify)),
    endpoint: 'userinfo',
    describe: ({ sub, email, name }) => ({ sub, name, email, email_verified: 'true' }),
    address: 'verified',
  },
}
