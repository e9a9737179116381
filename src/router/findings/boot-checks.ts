import { writableFields } from '../../accounts/update-profile'
import { isTest } from '../../core/config/environment'
import { hasPasswords, type Settings } from '../../core/config/every-setting'
import { publicUrlNames } from '../../core/config/settings'
import { isAbsoluteAddress } from '../../core/config/web-address'
import { ConfigurationError } from '../../core/errors'
import type { Logger } from '../../core/logger'
import { themeFault } from '../../core/theme/theme'
import { seeTroubleshooting } from '../../core/troubleshooting'
import { checkCaptcha } from '../../http/captcha'
import { isJoiSchema, keysOf, requiredFieldsOf } from '../../http/host-schema'
import { checkedLanguages } from '../../http/locale'
import { loginTasksOf } from '../../login-tasks/login-task'
import { type AuthRouterOptions, hasMethods, requirePrefix } from '../../options'
import { isPassportProvider, type Provider } from '../../providers/passport-provider'
import type { AuthStore } from '../../store/auth-store'

/** The data that the boot checks and warnings read. */
export interface Boot {
  options: AuthRouterOptions
  settings: Settings
  production: boolean
  prefix: string
  providers: ReadonlyMap<string, Provider>
  store: AuthStore
  logger: Logger
}

/**
 * Runs every boot check. Each requirement has one small function. Each message names the faulty piece and the fix.
 * @throws ConfigurationError
 */
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
  checkPasswordLogin,
  checkEmailLogin,
  checkLoginTaskNeeds,
  checkEmailLoginAddress,
  checkEmailLoginSignup,
  checkMailedCodes,
  checkLinkOrigin,
  checkSecondFactor,
  checkTrustedDevices,
  checkOutbox,
  checkDeletion,
  checkPasskeyTable,
  checkPasskeySignup,
  checkInvitations,
  checkApprovalColumns,
  checkFieldsDescribed,
  checkTheme,
  ({ options, settings: { pagesEnabled }, store }) => checkCaptcha(options, { pagesEnabled, hostFields: store.users.hostFields?.keys() }),
  checkLanguages,
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

/**
 * Rejects a provider client that lacks members. A host's client can be plain JavaScript, which no compiler checks. Without this check, such
 * a client would fail with a TypeError at a login.
 */
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
  if (isPassportProvider(client)) return null // the social routes check the strategy of a Passport provider
  if (!hasMethods('exchangeCode', 'fetchUser')(client)) return 'the client has no exchangeCode() or no fetchUser()'
  const { providerName, clientId, authorizeUrl, tokenUrl, scopes, responseMode } = client
  if (responseMode !== undefined && responseMode !== 'form_post') return "responseMode must be 'form_post', or left out"
  if (![providerName, clientId].every((value) => typeof value === 'string')) return 'providerName and clientId must be strings'
  const isDiscovered = authorizeUrl === '' && typeof client.prepare === 'function' // discovery has not run yet
  if (!isDiscovered && !isEndpoint(authorizeUrl)) return 'authorizeUrl must be an absolute https URL (http on loopback only)'
  if (!isDiscovered && !isEndpoint(tokenUrl)) return 'tokenUrl must be an absolute https URL (http on loopback only)'
  return Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string') ? null : 'scopes must be an array of scope names'
}

/**
 * Returns true for an absolute https URL without a fragment. Codes and secrets must not cross the network in clear text (RFC 9700 section
 * 2.6). RFC 6749 section 3.1 forbids a fragment.
 */
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

/**
 * Requires an explicit value of `oauthEnabled` when providers are given. The default is off, so a host that forgets the setting would get a
 * 404 for every social login.
 */
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

/**
 * Rejects a grace period when the store keeps no sessions. A stateless refresh token works any number of times, so the token needs no grace
 * period.
 */
function checkGraceWindow({ settings, store }: Boot): void {
  if (settings.refreshReuseGraceSeconds > 0 && !store.sessions) {
    throw new ConfigurationError(
      'refreshReuseGraceSeconds (AUTH_REFRESH_REUSE_GRACE_SECONDS) is above 0 but the store keeps no sessions; wire `sessions` in your store, or leave the setting at 0.',
    )
  }
}

/**
 * Requires session claims in access tokens when the store keeps no sessions. In that case only the token says when the person logged in.
 */
function checkSessionClaims({ settings, store }: Boot): void {
  if (!settings.accessTokenSessionClaims && !store.sessions) {
    throw new ConfigurationError(
      'accessTokenSessionClaims (AUTH_ACCESS_TOKEN_SESSION_CLAIMS) is false but the store keeps no sessions, so it is unknown when a person signed in; wire `sessions` in your store, or leave the setting at true.',
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

/**
 * Requires secure cookies for form_post. When a page of another site posts a form, browsers send only `SameSite=None` cookies. Such cookies
 * must be secure.
 */
function checkFormPost({ settings, providers }: Boot): void {
  const [key] = [...providers].find(([, client]) => !isPassportProvider(client) && client.responseMode !== undefined) ?? []
  if (key === undefined || settings.cookieSecure) return
  throw new ConfigurationError(
    `Provider ${key} answers by form_post (responseMode), which needs secure cookies; set cookieSecure (AUTH_COOKIE_SECURE) to true, and serve the app over https.`,
  )
}

/**
 * Requires `publicUrl`, or a `redirectUri` of the provider. The Host header must never decide the origin of a redirect URI (RFC 6749
 * section 3.1.2; RFC 9700 section 4.1).
 */
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
    'oauthLinkByVerifiedEmail (AUTH_OAUTH_LINK_BY_VERIFIED_EMAIL) is true but the users table has no `email_verified_at` column, so verified addresses are unknown; add the column, or set assumeEmailsProven (AUTH_ASSUME_EMAILS_PROVEN) if your service verifies every address before it stores it.',
  )
}

/** Rejects links in response bodies in production. Otherwise any client could get the reset link of any account. */
function checkLinksStayOutOfBodies({ options, settings, production }: Boot): void {
  if (!production || settings.linksInProduction) return
  if (!settings.localAccountsEnabled && !options.mailer) return // no route makes a link
  if (!options.mailer) {
    throw new ConfigurationError(
      `No mailer: activation and reset links would be in response bodies, so any client could take over any account. Pass \`mailer\`${andLinks(settings)}; or, if this is not production, set NODE_ENV or option environment to 'development' or 'test'; or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION). ${seeTroubleshooting('no-mailer')}`,
    )
  }
  if (settings.returnTokenInResponse) {
    throw new ConfigurationError(
      'returnTokenInResponse (AUTH_RETURN_TOKEN_IN_RESPONSE) puts activation and reset links in response bodies, so any client could take over any account; switch it off in production, or accept it with linksInProduction (AUTH_LINKS_IN_PRODUCTION).',
    )
  }
}

/**
 * Returns the part of the error message that names the settings that a mailer also needs. One error names everything that is missing, so
 * that the host can fix everything before the next start.
 */
function andLinks(settings: Settings): string {
  if (settings.backendLinks || unsetOf(settings).length === 0) return ''
  const origin = settings.publicUrl === '' ? ` and ${publicUrlNames}` : ''
  return `, and configure where its links lead: backendLinks: true (AUTH_BACKEND_LINKS)${origin} for the built-in pages, or ${unsetOf(settings).join(', ')} for pages of yours`
}

/** Returns the names of the URL templates that are not set. */
function unsetOf(settings: Settings): string[] {
  const reset = hasPasswords(settings) ? (['passwordResetUrlTemplate'] as const) : []
  const all = ['activationUrlTemplate', ...reset, 'emailVerificationUrlTemplate', 'emailChangeUrlTemplate'] as const
  const mailed = settings.localAccountsEnabled ? all : (['emailVerificationUrlTemplate'] as const)
  return mailed.filter((name) => settings[name] === null)
}

function checkLinkTemplates({ options, settings }: Boot): void {
  if (!options.mailer || settings.backendLinks || !settings.localAccountsEnabled) return
  const unset = unsetOf(settings)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `A mailer is given but ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset: mails would have no link; set backendLinks: true (AUTH_BACKEND_LINKS) for the built-in pages, or set each to a page of yours, with {token} in it. ${seeTroubleshooting('no-link-templates')}`,
  )
}

/** Requires another way to log in when passwords are off. */
function checkPasswordLogin({ settings }: Boot): void {
  const { passwordLogin, localAccountsEnabled, emailLogin, oauthEnabled, passkeysEnabled } = settings
  if (passwordLogin || !localAccountsEnabled || emailLogin !== 'off' || oauthEnabled || passkeysEnabled) return
  throw new ConfigurationError(
    `passwordLogin (AUTH_PASSWORD_LOGIN) is false and nothing else signs people in; set emailLogin (AUTH_EMAIL_LOGIN) to 'link', 'code' or 'both', or switch on oauthEnabled (AUTH_OAUTH_ENABLED) with providers, or passkeysEnabled (AUTH_PASSKEYS_ENABLED). ${seeTroubleshooting('nobody-can-sign-in')}`,
  )
}

/** Requires what a configured task writes, and a mailbox: a person who owes a task may have to show that the mailbox is theirs. */
function checkLoginTaskNeeds({ options, settings, store }: Boot): void {
  const tasks = loginTasksOf(options.loginTasks, settings.unknownDevice === 'code')
  if (!tasks?.device) return
  const what = tasks.secondFactor
    ? 'Option loginTasks has secondFactorTask()'
    : tasks.newPassword
      ? 'Option loginTasks has newPasswordTask()'
      : "unknownDevice (AUTH_UNKNOWN_DEVICE) is 'code'"
  const lacks = (isThere: unknown, fix: string) => {
    if (!isThere) throw new ConfigurationError(`${what}, ${fix}.`)
  }
  if (tasks.secondFactor) lacks(settings.mfaEnabled, 'but mfaEnabled (AUTH_MFA_ENABLED) is false; switch it on')
  if (tasks.newPassword) {
    if (!settings.passwordLogin)
      throw new ConfigurationError(
        'Option loginTasks has newPasswordTask(), but passwordLogin (AUTH_PASSWORD_LOGIN) is false; leave the task out.',
      )
    if (!store.users.fields.has('passwordExpiredAt'))
      throw new ConfigurationError(
        'Option loginTasks has newPasswordTask(), but the users table has no column `password_expired_at`; add it, and name it: `users: { columns: { passwordExpiredAt: … } }`.',
      )
  }
  lacks(options.mailer, 'which mails codes; pass `mailer`')
  lacks(
    store.emailLogins?.fields?.has('purpose'),
    'which needs the table `auth_email_logins` with the column `purpose`; wire `emailLogins` in your store, and name the column in a table of your own',
  )
  lacks(store.users.fields.has('emailVerifiedAt'), 'but the users table has no `email_verified_at` column; add one or map it')
}

function checkEmailLogin({ settings, store }: Boot): void {
  if (settings.emailLogin === 'off') return
  if (!settings.localAccountsEnabled) {
    throw new ConfigurationError(
      'emailLogin (AUTH_EMAIL_LOGIN) is on but localAccountsEnabled (AUTH_LOCAL_ACCOUNTS_ENABLED) is false; set localAccountsEnabled to true, and passwordLogin (AUTH_PASSWORD_LOGIN) to false for accounts without passwords.',
    )
  }
  if (!store.emailLogins) {
    throw new ConfigurationError(
      'emailLogin (AUTH_EMAIL_LOGIN) is on but the store has no table for it; wire `emailLogins` in your store, or leave emailLogin off.',
    )
  }
}

/** Requires a page for the links of login by email. The built-in page needs cookies and `publicUrl`. */
function checkEmailLoginAddress({ settings }: Boot): void {
  const { emailLogin, emailLoginUrlTemplate, backendLinks, tokenDelivery, publicUrl } = settings
  if (emailLogin === 'off' || emailLogin === 'code' || emailLoginUrlTemplate !== null) return
  if (!backendLinks || tokenDelivery === 'bearer') {
    throw new ConfigurationError(
      `emailLogin (AUTH_EMAIL_LOGIN) mails links but emailLoginUrlTemplate (AUTH_EMAIL_LOGIN_URL_TEMPLATE) is unset, so they would lead nowhere; set it to a page of yours, with {token} in it, or set backendLinks: true (AUTH_BACKEND_LINKS) with a tokenDelivery other than 'bearer' for the built-in page. ${seeTroubleshooting('no-link-templates')}`,
    )
  }
  if (publicUrl === '') {
    throw new ConfigurationError(
      `${publicUrlNames} is empty, and links of login by email need it; set it to the public origin of this service, for example https://app.example.com, or set emailLoginUrlTemplate. ${seeTroubleshooting('no-public-url')}`,
    )
  }
}

/** Rejects required sign-up fields together with `emailLoginSignup`, because a login by email has no sign-up form. */
function checkEmailLoginSignup({ options, settings }: Boot): void {
  const { schema } = options.signup ?? {}
  if (!settings.emailLoginSignup || !schema) return
  const required = requiredFieldsOf(schema)
  if (required.length === 0) return
  throw new ConfigurationError(
    `emailLoginSignup (AUTH_EMAIL_LOGIN_SIGNUP) creates accounts from only an email address, but option signup.schema requires ${required.join(', ')}; make ${required.length === 1 ? 'it' : 'them'} optional and ask after the login, or leave emailLoginSignup off.`,
  )
}

/** Requires the mails and the rows of the codes. */
function checkMailedCodes({ options, settings, store }: Boot): void {
  if (settings.mailedCodes === 'off') return
  const isOn = "mailedCodes (AUTH_MAILED_CODES) is 'both'"
  if (!options.mailer)
    throw new ConfigurationError(`${isOn} but there is no mailer; pass \`mailer\` to createAuthRouter(), or leave mailedCodes off.`)
  const { emailLogins } = store
  if (emailLogins?.fields?.has('purpose')) return
  throw new ConfigurationError(
    `${isOn} but the store has no ${emailLogins ? 'column `emailLogins.purpose`' : 'table `emailLogins`'}, which stores the codes; add it and map it, or leave mailedCodes off.`,
  )
}

/** Requires `publicUrl` for links to our own pages. The Host header must never decide the origin of a link. */
function checkLinkOrigin({ options, settings }: Boot): void {
  const { localAccountsEnabled: isLocal } = settings
  if (settings.publicUrl !== '' || (isLocal && options.mailer && !settings.backendLinks) || (!isLocal && !options.mailer)) return
  const unset = unsetOf(settings)
  if (unset.length === 0) return
  throw new ConfigurationError(
    `${publicUrlNames} is empty, and ${neediest(settings)} links need it; set it to the public origin of this service, for example https://app.example.com, or set ${unset.join(', ')}. ${seeTroubleshooting('no-public-url')}`,
  )
}

function neediest(settings: Settings): string {
  if (hasPasswords(settings)) return 'activation and reset'
  return settings.localAccountsEnabled ? 'activation' : 'verification'
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

function checkTrustedDevices({ settings, store }: Boot): void {
  const missing = (['sessions', 'trustedDevices'] as const).find((table) => !store[table])
  if (settings.trustedDeviceDays === 0 || missing === undefined) return
  throw new ConfigurationError(
    `trustedDeviceDays (AUTH_TRUSTED_DEVICE_DAYS) is not 0 but the store has no ${missing === 'sessions' ? 'sessions' : 'auth_trusted_devices'}; wire \`${missing}\` in your store.`,
  )
}

/** Without them, an account would be active before anybody has approved it. */
function checkApprovalColumns({ settings, store }: Boot): void {
  if (settings.signupMode !== 'approve') return
  const columns = {
    emailVerifiedAt: 'email_verified_at',
    activatedAt: 'activated_at',
    approvalRequestedAt: 'approval_requested_at',
  } as const
  const missing = (['emailVerifiedAt', 'activatedAt', 'approvalRequestedAt'] as const).filter((field) => !store.users.fields.has(field))
  if (missing.length > 0)
    throw new ConfigurationError(
      `signupMode (AUTH_SIGNUP_MODE) is 'approve' but the users table has no column for ${missing.map((field) => columns[field]).join(', ')}; add them, and name them in users.columns.`,
    )
}

/** Without the columns, `soft` would delete at once. */
function checkDeletion({ options, settings, store: { users } }: Boot): void {
  const { accountDeletion, publicUrl, accountRestoreUrlTemplate } = settings
  if (accountDeletion === 'off') return
  const isOn = `accountDeletion (AUTH_ACCOUNT_DELETION) is '${accountDeletion}'`
  const verbs = accountDeletion === 'soft' ? (['delete', 'listDeletions'] as const) : (['delete'] as const)
  const lacking = verbs.find((verb) => !users[verb])
  if (lacking)
    throw new ConfigurationError(`${isOn} but \`users\` of the store has no ${lacking}(); storeContract() tests what it must do.`)
  if (accountDeletion === 'immediate') return
  const columns = { emailVerifiedAt: 'email_verified_at', deletionRequestedAt: 'deletion_requested_at' } as const
  const missing = (['emailVerifiedAt', 'deletionRequestedAt'] as const).filter((field) => !users.fields.has(field))
  if (missing.length > 0)
    throw new ConfigurationError(
      `${isOn} but the users table has no column for ${missing.map((field) => columns[field]).join(', ')}, so an account would be deleted at once; add them, and name them in users.columns.`,
    )
  if (options.mailer && publicUrl === '' && accountRestoreUrlTemplate === null)
    throw new ConfigurationError(
      `${publicUrlNames} is empty, and the mailed way back of a closed account needs it; set it to the public origin of this service, for example https://app.example.com, or set accountRestoreUrlTemplate. ${seeTroubleshooting('no-public-url')}`,
    )
}

function checkOutbox({ options, store }: Boot): void {
  if (!options.outbox || store.outbox) return
  throw new ConfigurationError('Option outbox is true but the store has no auth_outbox; wire `outbox` in your store.')
}

function checkPasskeyTable({ settings, store }: Boot): void {
  if (!settings.passkeysEnabled || store.passkeys) return
  throw new ConfigurationError(
    'passkeysEnabled (AUTH_PASSKEYS_ENABLED) is true but the store has no passkeys; wire `passkeys` in your store.',
  )
}

/** A pending passkey waits for the mailed link, and goes live only if nobody has activated the account or verified its address before. */
function checkPasskeySignup({ options, settings, store }: Boot): void {
  if (!settings.signupWith.includes('passkey')) return
  const columns = { emailVerifiedAt: 'email_verified_at', activatedAt: 'activated_at' } as const
  const missing = (['emailVerifiedAt', 'activatedAt'] as const).filter((field) => !store.users.fields.has(field))
  if (missing.length > 0)
    throw new ConfigurationError(
      `signupWith (AUTH_SIGNUP_WITH) has 'passkey' but the users table has no column for ${missing.map((field) => columns[field]).join(', ')}; add them or map them.`,
    )
  if (!options.mailer)
    throw new ConfigurationError(
      "signupWith (AUTH_SIGNUP_WITH) has 'passkey' but there is no mailer, and a mailed link must verify the address before the passkey works; pass `mailer`.",
    )
}

/** Requires the tables, and an address for the links of mailed invitations. */
function checkInvitations({ options, settings, store }: Boot): void {
  if (!settings.invitationsEnabled) return
  const isOn = 'invitationsEnabled (AUTH_INVITATIONS_ENABLED) is on'
  const missing = (['invitations', 'invitationUses'] as const).filter((table) => !store[table])
  if (missing.length > 0)
    throw new ConfigurationError(
      `${isOn} but the store has no table for ${missing.join(', ')}; wire ${missing.length === 1 ? 'it' : 'them'} in your store.`,
    )
  if (settings.emailLoginSignup && !store.emailLogins?.fields?.has('invitationId'))
    throw new ConfigurationError(
      `${isOn}, and emailLoginSignup (AUTH_EMAIL_LOGIN_SIGNUP) creates accounts, but the store has no column \`emailLogins.invitationId\`; add it and map it.`,
    )
  if (options.mailer && settings.publicUrl === '' && settings.invitationUrlTemplate === null)
    throw new ConfigurationError(
      `${publicUrlNames} is empty, and links of invitations need it; set it to the public origin of this service, for example https://app.example.com, or set invitationUrlTemplate. ${seeTroubleshooting('no-public-url')}`,
    )
}

/**
 * Requires that `signup.schema` describes every field that a person may write, because a field without a schema is not validated. The keys
 * of a Standard Schema are unknown at boot. For such a schema, doorward warns when a person first sends a field that the schema drops
 * (profile/).
 */
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

/** Rejects `timingDefence: false` outside of tests, because someone could copy a test's options into production. */
function checkTimingDefence({ options: { timingDefence, environment } }: Boot): void {
  if (timingDefence !== false || isTest(environment)) return
  throw new ConfigurationError(
    "Option timingDefence: false is for environment 'test' alone. For immediate responses set timingGridMilliseconds: 0 (AUTH_TIMING_GRID_MILLISECONDS); then the time of a login reveals which address has an account.",
  )
}

function checkTheme({ options: { theme }, settings }: Boot): void {
  const fault = theme === undefined ? null : themeFault(theme, settings)
  if (fault !== null) throw new ConfigurationError(fault)
}

function checkLanguages({ options: { languages }, settings }: Boot): void {
  checkedLanguages(languages, settings.defaultLocale)
}
