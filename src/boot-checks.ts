import { isTest } from './config/environment'
import type { Settings } from './config/every-setting'
import { publicUrlNames } from './config/settings'
import { isAbsoluteAddress } from './config/web-address'
import { ConfigurationError } from './errors'
import { isJoiSchema, keysOf } from './http/host-schema'
import type { Logger } from './logger'
import { type AuthRouterOptions, hasMethods, requirePrefix } from './options'
import { writableFields } from './profile/writable-fields'
import { isPassportProvider, type Provider } from './providers/passport-provider'
import type { AuthStore } from './store/auth-store'
import { seeTroubleshooting } from './troubleshooting'

/** What is known when the door is about to open. */
export interface Boot {
  options: AuthRouterOptions
  settings: Settings
  production: boolean
  prefix: string
  providers: ReadonlyMap<string, Provider>
  store: AuthStore
  logger: Logger
}

/** Must be true before we open: one small function per requirement, each sentence naming the piece and the fix. */
export function runBootChecks(boot: Boot): void {
  for (const check of requirements) check(boot)
}

const requirements: readonly ((boot: Boot) => void)[] = [
  checkPrefix,
  checkProviderKeys,
  checkProviderClients,
  checkProviderRegistered,
  checkSocialLoginIsChosen,
  checkIdentityTable,
  checkNameColumn,
  checkGraceWindow,
  checkSessionClaims,
  checkSessionDelivery,
  checkRedirectUris,
  checkFormPost,
  checkProvenEmails,
  checkLinksStayOutOfBodies,
  checkTimingDefence,
  checkLinkTemplates,
  checkLinkOrigin,
  checkSecondFactor,
  checkFieldsDescribed,
]

function checkPrefix({ prefix }: Boot): void {
  requirePrefix(prefix)
}

function checkProviderKeys({ providers }: Boot): void {
  for (const key of providers.keys()) {
    if (/^[a-z0-9][a-z0-9:_-]{0,49}$/.test(key)) continue
    throw new ConfigurationError(
      `Provider key ${JSON.stringify(key.slice(0, 64))} must match ^[a-z0-9][a-z0-9:_-]{0,49}$; it is part of URLs and stored with every identity.`,
    )
  }
}

/** A client of the host's own may be plain JavaScript: what it lacks is said here, not by a TypeError in the flow. */
function checkProviderClients({ providers }: Boot): void {
  for (const [key, client] of providers) {
    const lack = lackOf(client)
    if (lack === null) continue
    throw new ConfigurationError(
      `Provider ${key}: ${lack}; register an OidcClient, GoogleClient, GitHubClient or AppleClient, a Passport strategy by passportProvider(), or an object that implements ProviderClient.`,
    )
  }
}

function lackOf(client: Provider): string | null {
  if (isPassportProvider(client)) return null // its strategy is tried where the routes are made
  if (!hasMethods('exchangeCode', 'fetchUser')(client)) return 'the client has no exchangeCode() or no fetchUser()'
  const { providerName, clientId, authorizeUrl, tokenUrl, scopes, responseMode } = client
  if (responseMode !== undefined && responseMode !== 'form_post') return "responseMode must be 'form_post', or left out"
  if (![providerName, clientId].every((value) => typeof value === 'string')) return 'providerName and clientId must be strings'
  const isDiscovered = authorizeUrl === '' && typeof client.prepare === 'function' // so far it has none
  if (!isDiscovered && !isEndpoint(authorizeUrl)) return 'authorizeUrl must be an absolute https URL (http on loopback only)'
  if (!isDiscovered && !isEndpoint(tokenUrl)) return 'tokenUrl must be an absolute https URL (http on loopback only)'
  return Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string') ? null : 'scopes must be an array of scope names'
}

/** RFC 9700 section 2.6: codes and secrets never cross the network in clear. RFC 6749 section 3.1: no fragment. */
function isEndpoint(url: unknown): boolean {
  return typeof url === 'string' && isAbsoluteAddress(url) && !url.includes('#')
}

function checkProviderRegistered({ settings, providers }: Boot): void {
  if (settings.oauthEnabled && providers.size === 0) {
    throw new ConfigurationError(
      'oauthEnabled (AUTH_OAUTH_ENABLED) is true but no provider client is registered; pass `providers` to createAuthRouter().',
    )
  }
}

/** Left out it would be off, and every social login a 404; an explicit false turns it off for a while. */
function checkSocialLoginIsChosen({ options, providers }: Boot): void {
  const { oauthEnabled } = options.settings
  if (providers.size === 0 || (oauthEnabled !== undefined && oauthEnabled !== '')) return
  throw new ConfigurationError(
    `Providers are given, but oauthEnabled (AUTH_OAUTH_ENABLED) is left out; set it to true, or to false to keep social login off. ${seeTroubleshooting('providers-without-oauth-enabled')}`,
  )
}

function checkIdentityTable({ settings, store }: Boot): void {
  if (settings.oauthEnabled && !store.identities) {
    throw new ConfigurationError(
      'oauthEnabled (AUTH_OAUTH_ENABLED) is true but the store has no identity table; wire `identities` in your store.',
    )
  }
}

function checkNameColumn({ settings, store }: Boot): void {
  if (settings.oauthEnabled && !store.users.fields.has('name')) {
    throw new ConfigurationError('oauthEnabled (AUTH_OAUTH_ENABLED) is true but the users table has no `name` column; add one or map it.')
  }
}

/** A stateless token is never spent, so there is nothing a window could be about. */
function checkGraceWindow({ settings, store }: Boot): void {
  if (settings.refreshReuseGraceSeconds > 0 && !store.sessions) {
    throw new ConfigurationError(
      'refreshReuseGraceSeconds (AUTH_REFRESH_REUSE_GRACE_SECONDS) is above 0 but the store keeps no sessions; wire `sessions` in your store, or leave the window at 0.',
    )
  }
}

/** A stateless session is known by its token alone, so its freshness has to be in there. */
function checkSessionClaims({ settings, store }: Boot): void {
  if (!settings.accessTokenSessionClaims && !store.sessions) {
    throw new ConfigurationError(
      'accessTokenSessionClaims (AUTH_ACCESS_TOKEN_SESSION_CLAIMS) is false but the store keeps no sessions, so nothing would say when a person signed in; wire `sessions` in your store, or leave the setting at true.',
    )
  }
}

function checkSessionDelivery({ settings, store }: Boot): void {
  if (settings.tokenDelivery === 'session' && !store.sessions) {
    throw new ConfigurationError(
      "tokenDelivery (AUTH_TOKEN_DELIVERY) is 'session' but the store keeps no sessions; wire `sessions` in your store, or choose another delivery.",
    )
  }
}

/** Browsers take a cookie for another site's form (`SameSite=None`) from a secure site only. */
function checkFormPost({ settings, providers }: Boot): void {
  const [key] = [...providers].find(([, client]) => !isPassportProvider(client) && client.responseMode !== undefined) ?? []
  if (key === undefined || settings.cookieSecure) return
  throw new ConfigurationError(
    `Provider ${key} answers by form_post (responseMode), which needs secure cookies; set cookieSecure (AUTH_COOKIE_SECURE) to true, and serve the app over https.`,
  )
}

/** Never taken from the Host header, so it has to be said (RFC 6749 section 3.1.2; RFC 9700 section 4.1). */
function checkRedirectUris({ settings, providers }: Boot): void {
  if (!settings.oauthEnabled) return
  for (const [key, client] of providers) {
    const own = isPassportProvider(client) ? undefined : client.redirectUri
    if (own === undefined && settings.publicUrl === '') {
      throw new ConfigurationError(
        `${publicUrlNames} is empty but provider ${key} has no redirectUri of its own; set it to the public origin of this service, for example https://app.example.com. ${seeTroubleshooting('no-public-url')}`,
      )
    }
    if (own !== undefined && !isEndpoint(own)) {
      throw new ConfigurationError(
        `Provider ${key}: redirectUri must be an absolute https URL (http on loopback only), without credentials and fragment.`,
      )
    }
  }
}

function checkProvenEmails({ settings, store }: Boot): void {
  if (!settings.oauthLinkByVerifiedEmail || store.users.fields.has('emailVerifiedAt') || settings.assumeEmailsProven) return
  throw new ConfigurationError(
    'oauthLinkByVerifiedEmail (AUTH_OAUTH_LINK_BY_VERIFIED_EMAIL) is true but the users table has no `email_verified_at` column, so nobody knows whose addresses are proven; add the column, or set assumeEmailsProven (AUTH_ASSUME_EMAILS_PROVEN) if your service proves every address before it stores it.',
  )
}

/** A forgotten mailer would hand the reset link of any account to anybody who asks. */
function checkLinksStayOutOfBodies({ options, settings, production }: Boot): void {
  if (!production || settings.linksInProduction) return
  if (!settings.localAccountsEnabled && !options.mailer) return // no route makes a link
  if (!options.mailer) {
    throw new ConfigurationError(
      `No mailer: activation and reset links would be in response bodies, which takes over any account. Pass \`mailer\`${andLinks(settings)}; or, when this is not production, set NODE_ENV or option environment to 'development' or 'test'; or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION). ${seeTroubleshooting('no-mailer')}`,
    )
  }
  if (settings.returnTokenInResponse) {
    throw new ConfigurationError(
      'returnTokenInResponse (AUTH_RETURN_TOKEN_IN_RESPONSE) puts activation and reset links in response bodies, which takes over any account; switch it off in production, or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION).',
    )
  }
}

/** What a mailer will need besides, in the same error: found one after the other, each is another failed start. */
function andLinks(settings: Settings): string {
  if (settings.backendLinks || linkTemplates.every((name) => settings[name] !== null)) return ''
  const origin = settings.publicUrl === '' ? ` and ${publicUrlNames}` : ''
  return `, and say where its links lead: backendLinks: true (AUTH_BACKEND_LINKS)${origin} for the built-in pages, or ${unsetTemplates(settings)} for pages of yours`
}

function unsetTemplates(settings: Settings): string {
  return linkTemplates.filter((name) => settings[name] === null).join(', ')
}

const linkTemplates = [
  'activationUrlTemplate',
  'passwordResetUrlTemplate',
  'emailVerificationUrlTemplate',
  'emailChangeUrlTemplate',
] as const

function checkLinkTemplates({ options, settings }: Boot): void {
  if (!options.mailer || settings.backendLinks || !settings.localAccountsEnabled) return
  const unset = linkTemplates.filter((name) => settings[name] === null)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `A mailer is given but ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset: mails would have no link; set backendLinks: true (AUTH_BACKEND_LINKS) for the built-in pages, or set each to a page of yours, with {token} in it. ${seeTroubleshooting('no-link-templates')}`,
  )
}

/** Links below the mount begin with the public origin, which is never taken from the Host header. */
function checkLinkOrigin({ options, settings }: Boot): void {
  const { localAccountsEnabled: isLocal } = settings
  if (settings.publicUrl !== '' || (isLocal && options.mailer && !settings.backendLinks) || (!isLocal && !options.mailer)) return
  const needed = isLocal ? linkTemplates : (['emailVerificationUrlTemplate'] as const)
  const unset = needed.filter((name) => settings[name] === null)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `${publicUrlNames} is empty, and ${isLocal ? 'activation and reset' : 'verification'} links need it; set it to the public origin of this service, for example https://app.example.com, or set ${unset.join(', ')}. ${seeTroubleshooting('no-public-url')}`,
  )
}

function checkSecondFactor({ settings, store }: Boot): void {
  if (!settings.mfaEnabled) return
  const columns = ['totpSecret', 'totpEnabledAt', 'totpLastStep'] as const
  const missing = columns.filter((field) => !store.users.fields.has(field))
  if (missing.length > 0)
    throw new ConfigurationError(
      `mfaEnabled (AUTH_MFA_ENABLED) is true but the users table has no column for ${missing.join(', ')}; add them or map them.`,
    )
  if (!store.recoveryCodes)
    throw new ConfigurationError(
      'mfaEnabled (AUTH_MFA_ENABLED) is true but the store has no recovery codes; wire `recoveryCodes` in your store.',
    )
}

/** What nothing describes, nobody validates. A Standard Schema cannot be asked for its keys; a first request tells (profile/). */
function checkFieldsDescribed({ options, store }: Boot): void {
  const { schema } = options.signup ?? {}
  if (schema && !isJoiSchema(schema)) return
  const described = schema ? keysOf(schema) : new Set()
  const missing = writableFields({ store }).filter((name) => !described.has(name))
  if (missing.length === 0) return
  throw new ConfigurationError(
    `users.fields: a person may write ${missing.join(', ')}, and option signup.schema does not describe ${missing.length === 1 ? 'it' : 'them'}; add ${missing.length === 1 ? 'it' : 'them'} to signup.schema, or map ${missing.length === 1 ? 'it' : 'them'} as { column, readOnly: true }. ${seeTroubleshooting('writable-field-without-schema')}`,
  )
}

/** One switch for tests, which a production system inherits by a copied file. */
function checkTimingDefence({ options: { timingDefence, environment } }: Boot): void {
  if (timingDefence !== false || isTest(environment)) return
  throw new ConfigurationError(
    "Option timingDefence: false is for environment 'test' alone. For answers at once set timingGridMilliseconds: 0 (AUTH_TIMING_GRID_MILLISECONDS); then the time of a login tells which address has an account.",
  )
}
