import { ConfigurationError } from '../core/errors'
import { normalizeProfile } from './normalize-profile'
import type { OAuthTokens, OAuthUser, ProviderClient } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject } from './provider-request'

/** A value of `providers`: a client, or the result of `passportProvider()`. */
export type Provider = ProviderClient | PassportProvider

/** Options for the constructor of a strategy that extends passport-oauth2. All of them are public options of passport-oauth2. */
export interface PassportBase {
  /** The redirect URI to register at the provider. */
  readonly callbackURL: string
  /** Stores our `state` and our PKCE verifier. */
  readonly store: PassportStateStore
  /** Always true. Some strategies declare `state` as a string, and some declare `state` as a boolean. This type fits both declarations. */
  readonly state: never
  readonly pkce: boolean
  readonly passReqToCallback: false
  /** The verify callback. Pass it as the second parameter of the strategy's constructor. */
  readonly verify: PassportVerify
}

/** The state store that passport-oauth2 calls. The arguments differ between versions of passport-oauth2. */
export interface PassportStateStore {
  store(...given: never[]): void
  verify(...given: never[]): void
}

/** The verify callback of passport-oauth2, which also gets the token endpoint's response. This type fits those of all strategies. */
export type PassportVerify = (...given: unknown[]) => void

/** An instance of a strategy, as Passport knows it. */
export interface PassportStrategy {
  readonly name?: string
  authenticate(...given: never[]): unknown
}

/** A profile in the form of passportjs.org/docs/profile. */
export interface PassportProfile {
  readonly id: string
  readonly displayName?: string
  readonly emails?: readonly { readonly value: string; readonly verified?: unknown }[]
  readonly photos?: readonly { readonly value: string }[]
  readonly [member: string]: unknown
}

export interface PassportProviderOptions<Profile = PassportProfile> {
  /**
   * Turns the strategy's profile into doorward's profile. Default: the `id`, `displayName`, first photo and first address of the strategy's
   * profile. The address counts as verified only if the strategy's profile says so (`emails[0].verified`). `subject` must never change, and
   * must never belong to another person later.
   */
  profile?: (profile: Profile, tokens: OAuthTokens) => MappedProfile | Promise<MappedProfile>
  /** PKCE S256; false for a provider that refuses it. Default true. */
  pkce?: boolean
}

/** A profile. An absent field counts as unknown. */
export type MappedProfile = Pick<OAuthUser, 'subject'> & Partial<Omit<OAuthUser, 'provider' | 'subject'>>

/** A provider that uses a Passport strategy. Make it with `passportProvider()`, and use it only in `providers`. */
export interface PassportProvider {
  readonly pkce: boolean
  /** Makes the strategy. Called once, at boot. */
  strategy(given: Pick<PassportBase, 'callbackURL' | 'store'>): PassportStrategy
  /** Reads the profile. @throws OAuthError when these tokens came with no usable profile */
  fetchUser(tokens: OAuthTokens): Promise<OAuthUser>
}

/**
 * Makes a provider from a Passport strategy that extends passport-oauth2. The strategy makes the requests to the provider. doorward manages
 * state, cookies, accounts, linking and the second factor. `base` contains the options that the strategy must get.
 * @param make `(base) => new Strategy({ ...base, clientID, clientSecret }, base.verify)`
 * @throws ConfigurationError naming the option
 */
export function passportProvider<Profile = PassportProfile>(
  make: (base: PassportBase) => PassportStrategy,
  options: PassportProviderOptions<Profile> = {},
): PassportProvider {
  checkOptions(make, options)
  const { profile: map, pkce = true } = options
  const profiles = new WeakMap<OAuthTokens, unknown>()
  return Object.freeze<PassportProvider>({
    pkce,
    strategy: (given) => make({ ...given, state: true as never, pkce, passReqToCallback: false, verify: keepProfiles(profiles) }),
    async fetchUser(tokens) {
      const profile = profiles.get(tokens)
      // The host's function declares the type of the strategy's profile.
      const mapped = map && isPlainObject(profile) ? await map(profile as Profile, tokens) : defaultProfile(profile)
      return normalizeProfile('passport', mapped)
    },
  })
}

/** Checks for the method `strategy`, because the object can come from another copy of the package. */
export function isPassportProvider(provider: Provider): provider is PassportProvider {
  return typeof Object(provider).strategy === 'function'
}

function checkOptions(make: unknown, options: object): void {
  if (typeof make !== 'function')
    throw new ConfigurationError(
      'passportProvider: pass a function that returns the strategy: (base) => new Strategy({ ...base, … }, base.verify).',
    )
  const { profile, pkce, ...others } = Object(options)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new ConfigurationError(`passportProvider: unknown option ${unknown}.`)
  if (profile !== undefined && typeof profile !== 'function') throw new ConfigurationError('passportProvider: profile must be a function.')
  if (pkce !== undefined && typeof pkce !== 'boolean') throw new ConfigurationError('passportProvider: pkce must be true or false.')
}

/** Passes the tokens on as the strategy's user, and stores the profile in `profiles`. */
function keepProfiles(profiles: WeakMap<OAuthTokens, unknown>): PassportVerify {
  // passport-oauth2 passes the response of the token endpoint only to a function with five parameters.
  return (accessToken: unknown, refreshToken: unknown, answer: unknown, profile: unknown, done: unknown) => {
    const end = done as (error: unknown, user?: OAuthTokens) => void // the type that passport-oauth2 passes
    if (typeof accessToken !== 'string' || accessToken === '') return end(unusableIdentity('passport', 'the strategy gave no access token'))
    const tokens = tokensOf(accessToken, refreshToken, isPlainObject(answer) ? answer : {})
    profiles.set(tokens, profile)
    end(null, tokens)
  }
}

function tokensOf(accessToken: string, refreshToken: unknown, raw: Record<string, unknown>): OAuthTokens {
  const text = (value: unknown) => (typeof value === 'string' && value !== '' ? value : null)
  const seconds = Number(raw['expires_in'] ?? Number.NaN) // some providers send the number as a string
  return {
    accessToken,
    tokenType: text(raw['token_type']) ?? 'bearer',
    refreshToken: text(refreshToken),
    idToken: text(raw['id_token']),
    expiresIn: Number.isSafeInteger(seconds) && seconds >= 0 ? seconds : null,
    scope: text(raw['scope']),
    raw,
  }
}

/** Does not read `_json`, because its fields differ between providers. */
function defaultProfile(profile: unknown): Record<string, unknown> {
  const { id, displayName, emails, photos } = Object(profile)
  const address = Object(first(emails))
  return {
    subject: isUnset(id) ? null : id,
    email: address.value,
    emailVerified: address.verified,
    name: displayName,
    picture: Object(first(photos)).value,
    raw: profile,
  }
}

function first(list: unknown): unknown {
  return Array.isArray(list) ? list[0] : undefined
}

/** `String(json.id)` makes the text `undefined` from a missing id. Everybody without an id would get the same account. */
function isUnset(id: unknown): boolean {
  return typeof id === 'string' && ['undefined', 'null', 'NaN', '[object Object]'].includes(id.trim())
}
