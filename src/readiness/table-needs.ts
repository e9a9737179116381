import type { PasswordHasher } from '../passwords/password-hasher'
import type { Provider } from '../providers/passport-provider'
import type { TableNeeds } from '../store/knex/check/table-needs'

interface Features {
  /** Null: nobody says which features are on. */
  readonly settings: { readonly [setting: string]: unknown } | null
  readonly providers: Record<string, Provider> | null
  /** Null: the default hasher. */
  readonly passwordHasher: PasswordHasher | null
  /** There is a mailer, so signed-in people can be mailed a code. */
  readonly hasMailer?: boolean
}

/** Of argon2id at its default cost. */
const argon2idLength = 97

/** Base32 of 20 bytes, and the same under `mfaSecretKey` (`v1.nonce.sealed.tag`). */
const secretLengths = { plain: 32, sealed: 86 }

/** What an account was before a change that can be undone. */
const undoLength = 1_000

/** A second factor that is to replace another one: a session's id, the secret, a passkey's digest, and each recovery code's hash in base64url. */
function replacementLength(recoveryCodes: unknown): number {
  return 180 + 46 * (typeof recoveryCodes === 'number' ? recoveryCodes : 10)
}

/** What the features that are on write into the tables. */
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
    // A link by verified email takes recovery codes off too.
    emailLogins: hasMailer || (settings?.['emailLogin'] ?? 'off') !== 'off',
    recoveryCodes: settings === null || isOn('mfaEnabled') || isOn('oauthLinkByVerifiedEmail'),
    // Not without settings: who never turns passkeys on needs no table of them.
    passkeys: isOn('passkeysEnabled'),
    payloadLength: Math.max(undoLength, isOn('mfaEnabled') ? replacementLength(settings?.['mfaRecoveryCodesCount']) : 0),
    linksByVerifiedEmail: isOn('oauthLinkByVerifiedEmail') && !isOn('assumeEmailsProven'),
  }
}
