import type { PasswordHasher } from '../passwords/password-hasher'
import type { Provider } from '../providers/passport-provider'
import type { TableNeeds } from '../store/knex/check/table-needs'

interface Features {
  /** Null: it is unknown which features are on. */
  readonly settings: { readonly [setting: string]: unknown } | null
  readonly providers: Record<string, Provider> | null
  /** Null: the default hasher. */
  readonly passwordHasher: PasswordHasher | null
  /** True: there is a mailer, so signed-in people can get a code by mail. */
  readonly hasMailer?: boolean
}

/** The length of an argon2id hash at the default cost. */
const argon2idLength = 97

/** The length of 20 bytes in base32, plain and encrypted with `mfaSecretKey` (`v1.nonce.sealed.tag`). */
const secretLengths = { plain: 32, sealed: 86 }

/** The longest stored state of an account before a change that can be undone. */
const undoLength = 1_000

/**
 * Returns the length of a second factor's stored replacement: a session's id, the secret, a passkey's digest, and each recovery code's hash
 * in base64url.
 */
function replacementLength(recoveryCodes: unknown): number {
  return 180 + 46 * (typeof recoveryCodes === 'number' ? recoveryCodes : 10)
}

export function tableNeeds({ settings, providers, passwordHasher, hasMailer = false }: Features): TableNeeds {
  const isOn = (setting: string) => settings?.[setting] === true
  const isSealed = settings === null || (settings['mfaSecretKey'] ?? null) !== null
  const secretLength = isSealed ? secretLengths.sealed : secretLengths.plain
  const hasProviders = isOn('oauthEnabled') || Object.keys(providers ?? {}).length > 0
  return {
    hashLength: passwordHasher ? (passwordHasher.hashLength ?? null) : argon2idLength,
    secretLength: settings === null || isOn('mfaEnabled') ? secretLength : null,
    providers: providers && Object.keys(providers),
    makesAccountsOtherwise: (hasProviders && settings?.['oauthAllowAccountCreation'] !== false) || isOn('emailLoginSignup'),
    // A link by verified email also removes recovery codes.
    emailLogins: hasMailer || (settings?.['emailLogin'] ?? 'off') !== 'off',
    recoveryCodes: settings === null || isOn('mfaEnabled') || isOn('oauthLinkByVerifiedEmail'),
    // Not without settings, because a host without passkeys needs no table for them.
    passkeys: isOn('passkeysEnabled'),
    payloadLength: Math.max(undoLength, isOn('mfaEnabled') ? replacementLength(settings?.['mfaRecoveryCodesCount']) : 0),
    linksByVerifiedEmail: isOn('oauthLinkByVerifiedEmail') && !isOn('assumeEmailsProven'),
  }
}
