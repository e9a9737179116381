import { ConfigurationError } from '../errors'
import { normalizeProfile } from './normalize-profile'
import type { OAuthTokens, OAuthUser, ProviderClient } from './provider-client'
import { unusableIdentity } from './provider-refusal'
import { isPlainObject } from './provider-request'

/** What `providers` takes: a client, or what `passportProvider()` returns. */
export type Provider = ProviderClient | PassportProvider

/** Options for the constructor of a strategy that extends passport-oauth2, all of them public ones. */
export interface PassportBase {
  /** The redirect URI to register at the provider. */
  readonly callbackURL: string
  /** Brings our `state` and our PKCE verifier in. */
  readonly store: PassportStateStore
  /** True. Types of strategies say string, or boolean: this type fits them all. */
  readonly state: never
  readonly pkce: boolean
  readonly passReqToCallback: false
  /** The second parameter of the constructor. */
  readonly verify: PassportVerify
}

/** As passport-oauth2 calls it; what it calls it with differs between versions. */
export interface PassportStateStore {
  store(...given: never[]): void
  verify(...given: never[]): void
}

/** Takes what passport-oauth2 gives, the answer of the token endpoint among it. Types of strategies differ: this type fits them all. */
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
   * The strategy's profile as ours. Default: its `id`, `displayName`, first photo and first address, which is verified only where that
   * address says so (`emails[0].verified`). `subject` must never change and never be given to another person.
   */
  profile?: (profile: Profile, tokens: OAuthTokens) => MappedProfile | Promise<MappedProfile>
  /** PKCE S256; false for a provider that refuses it. Default true. */
  pkce?: boolean
}

/** What may be left out counts as unknown. */
export type MappedProfile = Pick<OAuthUser, 'subject'> & Partial<Omit<OAuthUser, 'provider' | 'subject'>>

/** A provider of a Passport strategy; made by `passportProvider()`, and for `providers` alone. */
export interface PassportProvider {
  readonly pkce: boolean
  /** Makes the strategy; called once, at boot. */
  strategy(given: Pick<PassportBase, 'callbackURL' | 'store'>): PassportStrategy
  /** @throws OAuthError when these tokens came with no usable profile */
  fetchUser(tokens: OAuthTokens): Promise<OAuthUser>
}

/**
 * Makes a provider of a Passport strategy that extends passport-oauth2. State, cookies, accounts, linking and the second factor are ours; the
 * requests to the provider are the strategy's. `base` holds what the strategy must be given.
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
      // What a strategy made of an answer: the host's function says how it reads it.
      const mapped = map && isPlainObject(profile) ? await map(profile as Profile, tokens) : defaultProfile(profile)
      return normalizeProfile('passport', mapped)
    },
  })
}

/** Told apart by its method: it may come from another copy of the package. */
export function isPassportProvider(provider: Provider): provider is PassportProvider {
  return typeof Object(provider).strategy === 'function'
}

function checkOptions(make: unknown, options: object): void {
  if (typeof make !== 'function')
    throw new ConfigurationError(
      'passportProvider: pass a function that makes the strategy: (base) => new Strategy({ ...base, … }, base.verify).',
    )
  const { profile, pkce, ...others } = Object(options)
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new ConfigurationError(`passportProvider: unknown option ${unknown}.`)
  if (profile !== undefined && typeof profile !== 'function') throw new ConfigurationError('passportProvider: profile must be a function.')
  if (pkce !== undefined && typeof pkce !== 'boolean') throw new ConfigurationError('passportProvider: pkce must be true or false.')
}

/** The user that a strategy succeeds with is the tokens; the profile is kept beside them. */
function keepProfiles(profiles: WeakMap<OAuthTokens, unknown>): PassportVerify {
  // Five parameters: passport-oauth2 counts them, and gives the answer of the token endpoint only to so many.
  return (accessToken: unknown, refreshToken: unknown, answer: unknown, profile: unknown, done: unknown) => {
    const end = done as (error: unknown, user?: OAuthTokens) => void // as passport-oauth2 gives it
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

/** `_json` is not read: what an address there says of itself is the provider's own word for something, and differs. */
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

/** Strategies that write `String(json.id)` make one person of everybody whose answer has no id. */
function isUnset(id: unknown): boolean {
  return typeof id === 'string' && ['undefined', 'null', 'NaN', '[object Object]'].includes(id.trim())
}
