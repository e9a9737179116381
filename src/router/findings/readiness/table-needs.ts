import type { PasswordHasher } from '../../../passwords/password-types'
import type { Provider } from '../../../providers/passport-provider'
import type { TableNeeds } from '../../../store/knex/check/table-needs'

interface Features {
  /** Null if it is unknown which features are on. */
  readonly settings: { readonly [setting: string]: unknown } | null
  readonly providers: Record<string, Provider> | null
  /** Null for the default hasher. */
  readonly passwordHasher: PasswordHasher | null
  /** True if there is a mailer. Logged-in people can then get a code by mail. */
  readonly hasMailer?: boolean
}

/** The length of an argon2id hash at the default cost, in characters. */
const argon2idLength = 97

/**
 * The length of a stored TOTP secret, as plain text and encrypted with `mfaSecretKey` (`v1.nonce.sealed.tag`). A secret is 20 bytes in
 * base32.
 */
const secretLengths = { plain: 32, sealed: 86 }

/** The maximum length of an undo point, in characters. An undo point stores the state of an account before a change. */
const undoLength = 1_000

/**
 * Returns the length of the data that doorward stores while a person replaces the second factor. The data contains a session id, the
 * secret, the digest of a passkey, and the hash of each recovery code. The hashes are base64url.
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
    // With a mailer, the library mails confirmation codes to logged-in people. This table stores the codes.
    emailLogins: hasMailer || (settings?.['emailLogin'] ?? 'off') !== 'off',
    // A social login that is linked by its verified email can remove the account's recovery codes, so it needs their table.
    recoveryCodes: settings === null || isOn('mfaEnabled') || isOn('oauthLinkByVerifiedEmail'),
    // Without settings, it is unknown whether the host uses passkeys. The check then does not require the table for passkeys.
    passkeys: isOn('passkeysEnabled'),
    payloadLength: Math.max(undoLength, isOn('mfaEnabled') ? replacementLength(settings?.['mfaRecoveryCodesCount']) : 0),
    linksByVerifiedEmail: isOn('oauthLinkByVerifiedEmail') && !isOn('assumeEmailsProven'),
  }
}
