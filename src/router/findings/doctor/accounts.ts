import { type Check, error, type Patient, type Result, warning } from './check'

export const accountChecks: readonly Check[] = [
  { name: 'no-login', examine: noLogin },
  { name: 'linking-unproven', examine: unprovenLinking },
  { name: 'password-length', examine: shortPasswords },
  { name: 'access-token-lifetime', examine: longAccessTokens },
  { name: 'session-lifetime', examine: endlessSessions },
  { name: 'fresh-session-lifetime', examine: longFreshness },
  { name: 'reset-link-lifetime', examine: longResetLinks },
  { name: 'options-without-effect', examine: optionsWithoutEffect },
]

/**
 * Finds an app without any login. Three settings are enough for this check, because the library rejects the other cases at boot: email
 * login without local accounts, and local accounts without a way to log in.
 */
function noLogin({ ctx: { settings } }: Patient): Result {
  if (settings.localAccountsEnabled || settings.oauthEnabled || settings.passkeysEnabled) return null
  return error(
    'localAccountsEnabled, oauthEnabled and passkeysEnabled are all false.',
    'Nobody can sign in.',
    'Switch one of them on (AUTH_LOCAL_ACCOUNTS_ENABLED, AUTH_OAUTH_ENABLED, AUTH_PASSKEYS_ENABLED).',
  )
}

function unprovenLinking({ ctx: { settings } }: Patient): Result {
  if (!settings.autoActivate || !settings.oauthLinkByVerifiedEmail) return null
  return warning(
    'autoActivate and oauthLinkByVerifiedEmail are both true.',
    'An attacker can register an address of somebody else. When its owner signs in by a provider, the password is replaced and the sessions are revoked.',
    'Remove autoActivate, so that an account begins with a verified address.',
  )
}

function shortPasswords({ ctx: { passwordPolicy } }: Patient): Result {
  if ((passwordPolicy.minLength ?? 12) >= 12) return null
  return warning(
    `Passwords may have ${passwordPolicy.minLength} characters.`,
    'Short passwords are guessed quickly from a copy of the table.',
    'Remove passwordMinLength: the default is 12.',
  )
}

function longAccessTokens({ ctx: { settings } }: Patient): Result {
  if (settings.tokenDelivery === 'session' || settings.accessTokenTtlSeconds <= 3_600) return null
  return warning(
    `Access tokens live ${settings.accessTokenTtlSeconds} seconds.`,
    'A token of a revoked session or of a deactivated account works until it expires.',
    'Set accessTokenTtlSeconds (AUTH_ACCESS_TOKEN_TTL_SECONDS) to at most 3600; the default is 900.',
  )
}

function endlessSessions({ ctx: { settings } }: Patient): Result {
  if (settings.refreshFamilyTtlSeconds <= 366 * 86_400) return null
  return warning(
    `A login lasts up to ${Math.round(settings.refreshFamilyTtlSeconds / 86_400)} days.`,
    'A lost or sold device stays signed in.',
    'Set refreshFamilyTtlSeconds (AUTH_REFRESH_FAMILY_TTL_SECONDS) to at most a year; the default is 30 days.',
  )
}

function longFreshness({ ctx: { settings } }: Patient): Result {
  if (settings.freshSessionSeconds === 0)
    return warning(
      'Every session is fresh (freshSessionSeconds is 0).',
      'An attacker with a stolen access token can change password, address and second factor.',
      'Remove freshSessionSeconds (AUTH_FRESH_SESSION_SECONDS): the default is 900.',
    )
  if (settings.freshSessionSeconds <= 3_600) return null
  return warning(
    `A session stays fresh for ${settings.freshSessionSeconds} seconds.`,
    'In that time, an attacker at an open browser can change password, address and second factor.',
    'Set freshSessionSeconds (AUTH_FRESH_SESSION_SECONDS) to at most 3600; the default is 900.',
  )
}

function longResetLinks({ ctx: { settings } }: Patient): Result {
  if (settings.passwordResetTtlSeconds <= 4 * 3_600) return null
  return warning(
    `A link to set a new password works for ${Math.round(settings.passwordResetTtlSeconds / 3_600)} hours.`,
    'An attacker who reads an old mail can sign in to the account.',
    'Set passwordResetTtlSeconds (AUTH_PASSWORD_RESET_TTL_SECONDS) to an hour, the default.',
  )
}

function optionsWithoutEffect({ options }: Patient): Result {
  const given = (['loginWithProvider', 'issueMfaToken'] as const).filter((name) => options[name] !== undefined)
  if (given.length === 0) return null
  return warning(`These do nothing any more: ${given.join(', ')}.`, 'They look as if they protected something.', 'Remove them.')
}
