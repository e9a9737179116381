import type { Boot } from './boot-checks'
import { leadsSomewhere } from './mailbox/email-link'
import { isPassportProvider } from './providers/passport-provider'
import { redirectUriOf } from './social/redirect-flow'
import { seeTroubleshooting } from './troubleshooting'

/** Allowed, and worth a line in the log of the host: one small function per warning. */
export function warnAtBoot(boot: Boot): void {
  for (const warn of warnings) warn(boot)
}

const warnings: readonly ((boot: Boot) => void)[] = [
  warnOfStatelessRefresh,
  warnOfReauthenticate,
  warnOfLegacyOverrides,
  warnOfRenamedProviders,
  warnOfMissingProfile,
  warnOfLinksInBodies,
  warnOfUnprovenLinking,
  warnOfUnknownProofs,
  warnOfPlainSecrets,
  warnOfNoLogin,
  warnOfNoUndo,
  tellRedirectUris,
]

function warnOfStatelessRefresh({ store, logger }: Boot): void {
  if (store.sessions) return
  logger.warn(
    {},
    'doorward: the store keeps no sessions: a refresh token works until it expires, however often it is used, and no logout ends it. There are no server-side sessions either. (`sessions: false` meant only the latter before 0.2.0.) Wire `sessions` in your store.',
  )
}

/** `true` is refused where the settings are read. */
function warnOfReauthenticate({ options, logger }: Boot): void {
  const { reauthenticate } = options.settings
  if (reauthenticate === undefined || reauthenticate === null) return
  logger.warn(
    {},
    'doorward: the setting reauthenticate (AUTH_REAUTHENTICATE) does nothing any more: every route that changes how an account is entered needs a fresh session. Remove it.',
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
      `doorward: the client registered as ${key} calls itself otherwise; ${key} is what is stored with every identity and used in routes.`,
    )
  }
}

/** OidcClient says where its profile would come from; a custom client has its own ways. */
function warnOfMissingProfile({ providers, logger }: Boot): void {
  for (const [key, client] of providers) {
    if (!('hasProfileSource' in client) || client.hasProfileSource !== false) continue
    logger.warn(
      { provider: key },
      `doorward: provider ${key} has neither userinfoUrl nor an id_token (scope openid): its logins will be refused with 502.`,
    )
  }
}

function warnOfLinksInBodies({ options, settings, logger }: Boot): void {
  if (!settings.localAccountsEnabled && !options.mailer) return // no route makes a link
  if (options.mailer && !settings.returnTokenInResponse) return
  logger.warn(
    {},
    'doorward: activation and reset links are put in response bodies (no mailer, or returnTokenInResponse): never expose this to strangers.',
  )
}

function warnOfUnprovenLinking({ settings, logger }: Boot): void {
  if (!settings.autoActivate || !settings.oauthLinkByVerifiedEmail) return
  logger.warn(
    {},
    'doorward: autoActivate lets anyone register an address; linking by verified email then replaces such an account’s password and ends its sessions.',
  )
}

/** A proof of an address that may be the first takes the account over from whoever registered it. */
function warnOfUnknownProofs({ settings, store, logger }: Boot): void {
  if (!settings.localAccountsEnabled || store.users.fields.has('emailVerifiedAt')) return
  logger.warn(
    {},
    'doorward: the users table has no `email_verified_at` column, so only an activation is known to be the first proof of an address: what a stranger prepared in an account survives a reset by the owner of the address. Add the column, or map it.',
  )
}

function warnOfPlainSecrets({ settings, logger }: Boot): void {
  if (!settings.mfaEnabled || settings.mfaSecretKey !== null) return
  logger.warn({}, 'doorward: TOTP secrets are stored as they are; set mfaSecretKey (AUTH_MFA_SECRET_KEY) to encrypt them.')
}

function warnOfNoLogin({ settings, logger }: Boot): void {
  if (settings.localAccountsEnabled || settings.oauthEnabled) return
  logger.warn(
    {},
    `doorward: nobody can sign in: localAccountsEnabled (AUTH_LOCAL_ACCOUNTS_ENABLED) is false, and so is oauthEnabled (AUTH_OAUTH_ENABLED). Switch one of them on. ${seeTroubleshooting('nobody-can-sign-in')}`,
  )
}

function warnOfNoUndo({ options, settings, logger }: Boot): void {
  if (!options.mailer || settings.undoSeconds === 0 || leadsSomewhere(settings, 'UNDO')) return
  logger.warn(
    {},
    'doorward: notices carry no link that undoes a change, because the link has no address. Set publicUrl (AUTH_PUBLIC_URL) or undoUrlTemplate (AUTH_UNDO_URL_TEMPLATE), or undoSeconds: 0 for no such links. See docs/undo.md.',
  )
}

/** A redirect URI that is not registered is refused on the provider's own page, where no log of ours says why. */
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
