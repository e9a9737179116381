import type { Settings } from './config/settings'
import { isAbsoluteAddress } from './config/web-address'
import { ConfigurationError } from './errors'
import type { Logger } from './logger'
import { type AuthRouterOptions, hasMethods } from './options'
import type { ProviderClient } from './providers/provider-client'
import type { AuthStore } from './store/auth-store'

/** What is known when the door is about to open. */
export interface Boot {
  options: AuthRouterOptions
  settings: Settings
  production: boolean
  prefix: string
  providers: ReadonlyMap<string, ProviderClient>
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
  checkIdentityTable,
  checkNameColumn,
  checkGraceWindow,
  checkRedirectUris,
  checkProvenEmails,
  checkLinksStayOutOfBodies,
  checkLinkTemplates,
  checkLinkOrigin,
  checkSecondFactor,
]

function checkPrefix({ prefix }: Boot): void {
  if (!/^(?:\/[A-Za-z0-9._~-]+)+$/.test(prefix)) {
    throw new ConfigurationError(
      "Option prefix must be the full public path of the mount: it starts with '/' and does not end with one, for example '/auth'.",
    )
  }
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
      `Provider ${key}: ${lack}; register an OidcClient, GoogleClient or GitHubClient, or an object that implements ProviderClient.`,
    )
  }
}

function lackOf(client: ProviderClient): string | null {
  if (!hasMethods('exchangeCode', 'fetchUser')(client)) return 'the client has no exchangeCode() or no fetchUser()'
  const { providerName, clientId, authorizeUrl, tokenUrl, scopes } = client
  if (![providerName, clientId].every((value) => typeof value === 'string')) return 'providerName and clientId must be strings'
  if (!isEndpoint(authorizeUrl)) return 'authorizeUrl must be an absolute https URL (http on loopback only)'
  if (!isEndpoint(tokenUrl)) return 'tokenUrl must be an absolute https URL (http on loopback only)'
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

/** Never taken from the Host header, so it has to be said (RFC 6749 section 3.1.2; RFC 9700 section 4.1). */
function checkRedirectUris({ settings, providers }: Boot): void {
  if (!settings.oauthEnabled) return
  for (const [key, client] of providers) {
    if (client.redirectUri === undefined && settings.oauthRedirectBaseUrl === '') {
      throw new ConfigurationError(
        `oauthRedirectBaseUrl (OAUTH_REDIRECT_BASE_URL) is empty but provider ${key} has no redirectUri of its own; set it to the public origin of this service, for example https://app.example.com.`,
      )
    }
    if (client.redirectUri !== undefined && !isEndpoint(client.redirectUri)) {
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

/** A forgotten mailer would hand the reset link of any account to whoever asks (contract section 10.2). */
function checkLinksStayOutOfBodies({ options, settings, production }: Boot): void {
  if (!production || settings.linksInProduction) return
  if (!options.mailer) {
    throw new ConfigurationError(
      "No mailer: activation and reset links would be in response bodies, which takes over any account. Pass `mailer`; or, when this is not production, set NODE_ENV or option environment to 'development' or 'test'; or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION).",
    )
  }
  if (settings.returnTokenInResponse) {
    throw new ConfigurationError(
      'returnTokenInResponse (AUTH_RETURN_TOKEN_IN_RESPONSE) puts activation and reset links in response bodies, which takes over any account; switch it off in production, or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION).',
    )
  }
}

const linkTemplates = [
  'activationUrlTemplate',
  'passwordResetUrlTemplate',
  'emailVerificationUrlTemplate',
  'emailChangeUrlTemplate',
] as const

function checkLinkTemplates({ options, settings }: Boot): void {
  if (!options.mailer || settings.backendLinks) return
  const unset = linkTemplates.filter((name) => settings[name] === null)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `A mailer is given but ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset: mails would have no link; set each to a page of yours, with {token} in it.`,
  )
}

/** Links below the mount begin with the public origin, which is never taken from the Host header. */
function checkLinkOrigin({ options, settings }: Boot): void {
  if (settings.oauthRedirectBaseUrl !== '' || (options.mailer && !settings.backendLinks)) return
  const unset = linkTemplates.filter((name) => settings[name] === null)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `oauthRedirectBaseUrl (OAUTH_REDIRECT_BASE_URL) is empty, and activation and reset links need it; set it to the public origin of this service, for example https://app.example.com, or set ${unset.join(', ')}.`,
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
