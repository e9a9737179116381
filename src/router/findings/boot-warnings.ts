import { leadsSomewhere } from '../../accounts/email-links/email-link'
import { missingTexts } from '../../core/texts/phrase-book'
import { seeTroubleshooting } from '../../core/troubleshooting'
import { relatedOrigins } from '../../passkeys/webauthn/ceremonies'
import { isPassportProvider } from '../../providers/passport-provider'
import { redirectUriOf } from '../../social/client-share'
import type { Boot } from './boot-checks'

/** Logs setups that are allowed but risky. Each warning has one small function. */
export function warnAtBoot(boot: Boot): void {
  for (const warn of warnings) warn(boot)
}

const warnings: readonly ((boot: Boot) => void)[] = [
  warnOfStatelessRefresh,
  warnOfLegacyOverrides,
  warnOfRenamedProviders,
  warnOfMissingProfile,
  warnOfLinksInBodies,
  warnOfUnprovenLinking,
  warnOfUnknownVerification,
  warnOfPlainSecrets,
  warnOfUnnamedSessions,
  warnOfNoLogin,
  warnOfNoUndo,
  warnOfNoFreshness,
  warnOfMissingTexts,
  tellRelatedOrigins,
  tellRedirectUris,
]

function warnOfStatelessRefresh({ store, logger }: Boot): void {
  if (store.sessions) return
  logger.warn(
    {},
    'doorward: the store keeps no sessions: a refresh token works until it expires, any number of times, and no logout revokes it. Server-side sessions do not exist. Wire `sessions` in your store.',
  )
}

function warnOfLegacyOverrides({ options, logger }: Boot): void {
  for (const name of ['loginWithProvider', 'issueMfaToken'] as const) {
    if (options[name] === undefined) continue
    logger.warn({ option: name }, `doorward: the override ${name} is no longer called by any route; remove it.`)
  }
}

function warnOfRenamedProviders({ providers, logger }: Boot): void {
  for (const [key, client] of providers) {
    if (isPassportProvider(client) || client.providerName === key) continue
    logger.warn(
      { provider: key },
      `doorward: the client registered as ${key} has another providerName. Routes and stored identities use ${key}. Keep this key once people have signed in, because their identities are stored under it.`,
    )
  }
}

/**
 * Warns about a client that cannot load profiles. Only our own clients have `hasProfileSource`, so a host's own client causes no warning.
 */
function warnOfMissingProfile({ providers, logger }: Boot): void {
  for (const [key, client] of providers) {
    if (!('hasProfileSource' in client) || client.hasProfileSource !== false) continue
    logger.warn(
      { provider: key },
      `doorward: provider ${key} has neither userinfoUrl nor an id_token, so its logins get 502. Set userinfoUrl, or add the scope openid.`,
    )
  }
}

function warnOfLinksInBodies({ options, settings, logger }: Boot): void {
  if (!settings.localAccountsEnabled && !options.mailer) return // no route makes a link
  if (options.mailer && !settings.returnTokenInResponse) return
  logger.warn(
    {},
    'doorward: activation and reset links are put in response bodies (no mailer, or returnTokenInResponse), so any client can take over any account. Never expose this to the internet. Pass a mailer, and leave returnTokenInResponse off.',
  )
}

function warnOfUnprovenLinking({ settings, logger }: Boot): void {
  if (!settings.autoActivate || !settings.oauthLinkByVerifiedEmail) return
  logger.warn(
    {},
    'doorward: autoActivate lets anyone register an address; linking by verified email then replaces the password of such an account and revokes its sessions. Switch off autoActivate or oauthLinkByVerifiedEmail if you do not want that.',
  )
}

/**
 * Warns if the users table does not store when an address was verified. An attacker can register the address of another person. Therefore
 * the first verification of an address removes what the attacker may have prepared in the account (take-over). Without the column, only an
 * activation counts as the first verification.
 */
function warnOfUnknownVerification({ settings, store, logger }: Boot): void {
  if (!settings.localAccountsEnabled || store.users.fields.has('emailVerifiedAt')) return
  logger.warn(
    {},
    'doorward: the users table has no `email_verified_at` column, so only an activation counts as the first verification of an address. A reset by the owner does not remove what an attacker prepared in the account. Add the column, or map it.',
  )
}

function warnOfPlainSecrets({ settings, logger }: Boot): void {
  if (!settings.mfaEnabled || settings.mfaSecretKey !== null) return
  logger.warn({}, 'doorward: TOTP secrets are stored unencrypted; set mfaSecretKey (AUTH_MFA_SECRET_KEY) to encrypt them.')
}

/** Warns about what an app loses with access tokens that name no session. */
function warnOfUnnamedSessions({ settings, logger }: Boot): void {
  if (settings.accessTokenSessionClaims) return
  logger.warn(
    {},
    'doorward: accessTokenSessionClaims (AUTH_ACCESS_TOKEN_SESSION_CLAIMS) is false, so access tokens name no session and no time of login. Routes that need the session also need its refresh token: as a cookie, as refresh_token in the body, or in the header X-Refresh-Token. See docs/sessions.md.',
  )
}

function warnOfNoLogin({ settings, logger }: Boot): void {
  if (settings.localAccountsEnabled || settings.oauthEnabled || settings.passkeysEnabled) return
  logger.warn(
    {},
    `doorward: nobody can sign in: localAccountsEnabled (AUTH_LOCAL_ACCOUNTS_ENABLED) and oauthEnabled (AUTH_OAUTH_ENABLED) are false. Switch one of them on. ${seeTroubleshooting('nobody-can-sign-in')}`,
  )
}

function warnOfNoUndo({ options, settings, logger }: Boot): void {
  if (!options.mailer || settings.undoSeconds === 0 || leadsSomewhere(settings, 'UNDO')) return
  logger.warn(
    {},
    'doorward: notices have no undo link, because the public address is unknown. Set publicUrl (AUTH_PUBLIC_URL) or undoUrlTemplate (AUTH_UNDO_URL_TEMPLATE). To have no undo links, set undoSeconds: 0. See docs/undo.md.',
  )
}

/** Warns in production only, because a test of the specification's client sets 0 too. */
function warnOfNoFreshness({ settings, production, logger }: Boot): void {
  if (!production || settings.freshSessionSeconds !== 0) return
  logger.warn(
    {},
    'doorward: freshSessionSeconds is 0, so an attacker with a stolen access token can change how the account signs in. Remove freshSessionSeconds (AUTH_FRESH_SESSION_SECONDS): the default is 900. See docs/specification.md.',
  )
}

function warnOfMissingTexts({ options: { languages = {} }, logger }: Boot): void {
  for (const [language, words] of Object.entries(languages)) {
    const missing = missingTexts(language, words)
    if (missing.length === 0) continue
    logger.warn(
      { language, count: missing.length, first: missing.slice(0, 10) },
      'doorward: option languages lacks some texts of a language, so people see these texts in English. Add the texts.',
    )
  }
}

/** Browsers support at least five registrable names (Web Authentication Level 3, section 5.11.1), so a sixth may not work. */
const mostNames = 5

function tellRelatedOrigins({ settings, logger }: Boot): void {
  const origins = settings.passkeysEnabled ? relatedOrigins(settings) : []
  if (origins.length === 0) return
  logger.info({ origins }, 'doorward: passkeys also work at these related origins. Browsers ask the host of webauthnRpId for the list.')
  const rpId = settings.webauthnRpId
  if (rpId !== null && rpId !== new URL(settings.publicUrl).hostname)
    logger.warn(
      { rpId },
      `doorward: browsers read the related origins only at https://${rpId}/.well-known/webauthn, which is not the host of publicUrl. Serve auth.wellKnown there too. See docs/passkeys.md.`,
    )
  const names = new Set(origins.map((origin) => registrableNameOf(new URL(origin).hostname)))
  if (names.size > mostNames)
    logger.warn(
      { names: [...names] },
      `doorward: webauthnOrigins has related origins of ${names.size} names, and browsers may stop after ${mostNames}. Remove those that you no longer use.`,
    )
}

/** An estimate without the public suffix list: a second label of at most three letters below a country is a suffix, as in `co.uk`. */
function registrableNameOf(hostname: string): string {
  const [last = '', second = '', third = ''] = hostname.split('.').toReversed()
  return second.length <= 3 && third !== '' && last.length === 2 ? third : second
}

/**
 * Logs every redirect URI, so that the host can register it at the provider. If a redirect URI is not registered, only a page of the
 * provider shows the error, and our log does not.
 */
function tellRedirectUris({ settings, prefix, providers, logger }: Boot): void {
  if (!settings.oauthEnabled) return
  for (const [provider, client] of providers) {
    const redirectUri = redirectUriOf({ settings, prefix }, provider, client)
    logger.info(
      { provider, redirectUri },
      `doorward: register this redirect URI at provider ${provider}: ${redirectUri} ${seeTroubleshooting('redirect-uri')}`,
    )
  }
}
