import type { Boot } from './boot-checks'

/** Allowed, and worth a line in the log of the host: one small function per warning. */
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
  warnOfPlainSecrets,
]

/** Contract section 10.9. */
function warnOfStatelessRefresh({ store, logger }: Boot): void {
  if (store.sessions) return
  logger.warn(
    {},
    'doorward: the store keeps no sessions: a refresh token works until it expires, however often it is used, and no logout ends it. There are no server-side sessions either. (`sessions: false` meant only the latter before 0.2.0.) Wire `sessions` in your store.',
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
    if (client.providerName === key) continue
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

function warnOfPlainSecrets({ settings, logger }: Boot): void {
  if (!settings.mfaEnabled || settings.mfaSecretKey !== null) return
  logger.warn({}, 'doorward: TOTP secrets are stored as they are; set mfaSecretKey (AUTH_MFA_SECRET_KEY) to encrypt them.')
}
