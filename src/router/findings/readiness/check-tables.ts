import type { Knex } from 'knex'
import type { Readiness } from '../../../context'
import type { RouterSettings, Settings } from '../../../core/config/every-setting'
import { convertText } from '../../../core/config/settings'
import { ConfigurationError } from '../../../core/errors'
import { describeError, type Logger } from '../../../core/logger'
import type { Mailer } from '../../../core/mailer'
import type { PasswordHasher } from '../../../passwords/password-types'
import type { Provider } from '../../../providers/passport-provider'
import type { AuthStore, TableFinding } from '../../../store/auth-store'
import { checkStoreTables, tablesToCheck } from '../../../store/knex/check/check-store-tables'
import type { TableNeeds } from '../../../store/knex/check/table-needs'
import type { HostTables } from '../../../store/knex/default-tables'
import { checkedTablesOf } from '../../../store/knex/knex-store'
import { createReadiness, UNCHECKED, withoutIgnored } from './readiness'

/**
 * The options of `checkTables`: the table options of `createKnexStore`, some options of the router, and `ignore`. The router's options
 * determine which columns the tables need, and how long the columns must be.
 */
export interface CheckTablesOptions extends HostTables {
  /** The router's settings. Without settings, `checkTables` does not check the tables for passkeys and login by email. */
  settings?: Partial<RouterSettings>
  /** The router's providers. The column `identities.provider` stores the keys of this object. */
  providers?: Record<string, Provider>
  /** The router's hasher. Without a hasher, the hash column must be long enough for an argon2id hash (97 characters). */
  passwordHasher?: PasswordHasher
  /** The keys of findings that the result leaves out. */
  ignore?: readonly string[]
}

/**
 * Compares the tables with the columns that the store writes. Returns the findings, the errors first. `createAuthRouter` runs the same
 * check when it starts. The function never throws because of a finding. An unreachable database is also a finding.
 *
 * @param knex the instance that `createKnexStore` gets
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`, and for unknown or wrong options
 */
export async function checkTables(knex: Knex, options: CheckTablesOptions = {}): Promise<TableFinding[]> {
  const { settings, providers, passwordHasher, ignore = [], ...hostTables } = options
  if (!isListOfKeys(ignore)) throw new ConfigurationError("checkTables(): ignore must be a list of keys such as 'users.email:unique'.")
  const given = settings && convertText(settings)
  const needs = tableNeeds({
    settings: given ?? null,
    providers: providers ?? null,
    passwordHasher: passwordHasher ?? null,
    // A table of the host, which has it for the option.
    outbox: typeof hostTables.outbox === 'object',
    leases: typeof hostTables.leases === 'object',
  })
  return withoutIgnored(await checkStoreTables(tablesToCheck(knex, hostTables), needs), ignore)
}

export function isListOfKeys(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((key) => typeof key === 'string' && key !== '')
}

/** The options of the router that determine the check of the tables. */
interface Checked {
  readonly store: AuthStore
  readonly providers?: Record<string, Provider>
  readonly passwordHasher?: PasswordHasher
  readonly mailer?: Mailer
  readonly outbox?: boolean
  readonly purge?: false | object
  readonly checkTables?: false | { readonly ignore: readonly string[] }
}

/** Starts the check of the store's tables. Returns null if there is nothing to check. */
export function readinessOf(options: Checked, settings: Settings, logger: Logger, now: () => Date): Readiness | null {
  const { checkTables } = options
  if (checkTables === false || UNCHECKED in globalThis) return null
  const check = checkOf(options, settings, logger)
  const ignore = checkTables?.ignore ?? []
  return check && createReadiness({ check: async () => withoutIgnored(await check(), ignore), logger, now })
}

function checkOf({ store, providers, passwordHasher, mailer, outbox, purge }: Checked, settings: Settings, logger: Logger) {
  const checked = checkedTablesOf(store)
  const needs = tableNeeds({
    settings: { ...settings },
    providers: providers ?? {},
    passwordHasher: passwordHasher ?? null,
    hasMailer: mailer !== undefined,
    outbox: outbox === true,
    // Without our own table, the app works, and the purge says that it does not run.
    leases: purge !== false && typeof checked?.hostTables.leases === 'object',
  })
  if (checked) return () => checkStoreTables(checked, needs)
  return typeof store.check === 'function' ? () => askAdapter(store, logger) : null
}

/** Calls an adapter's `check()`. If the check fails, the function logs the error and returns no finding. */
async function askAdapter(store: AuthStore, logger: Logger): Promise<TableFinding[]> {
  try {
    return (await store.check?.()) ?? []
  } catch (error) {
    logger.warn({ error: describeError(error) }, 'doorward: check() of the store failed. doorward accepts requests without the check.')
    return []
  }
}

interface Features {
  /** Null if it is unknown which features are on. */
  readonly settings: { readonly [setting: string]: unknown } | null
  readonly providers: Record<string, Provider> | null
  /** Null for the default hasher. */
  readonly passwordHasher: PasswordHasher | null
  /** True if there is a mailer. Logged-in people can then get a code by mail. */
  readonly hasMailer?: boolean
  /** The option of the router. */
  readonly outbox?: boolean
  /** The host's own table of leases. */
  readonly leases?: boolean
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

/** The maximum length of a sign-up with its pending passkey, in characters. An RSA key of 8,192 bits and a long credential id fit. */
const pendingPasskeyLength = 4_096

/**
 * Returns the length of the data that doorward stores while a person replaces the second factor. The data contains a session id, the
 * secret, the digest of a passkey, and the hash of each recovery code. The hashes are base64url.
 */
function replacementLength(recoveryCodes: unknown): number {
  return 180 + 46 * (typeof recoveryCodes === 'number' ? recoveryCodes : 10)
}

export function tableNeeds({
  settings,
  providers,
  passwordHasher,
  hasMailer = false,
  outbox = false,
  leases = false,
}: Features): TableNeeds {
  const isOn = (setting: string) => settings?.[setting] === true
  const isSealed = settings === null || (settings['mfaSecretKey'] ?? null) !== null
  const secretLength = isSealed ? secretLengths.sealed : secretLengths.plain
  const signupWith = settings?.['signupWith']
  const pendingPasskeys = Array.isArray(signupWith) && signupWith.includes('passkey')
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
    trustedDevices: Number(settings?.['trustedDeviceDays'] ?? 0) > 0,
    invitations: isOn('invitationsEnabled') || settings?.['signupMode'] === 'invite',
    approval: settings?.['signupMode'] === 'approve',
    outbox,
    leases,
    pendingPasskeys,
    payloadLength: Math.max(
      undoLength,
      isOn('mfaEnabled') ? replacementLength(settings?.['mfaRecoveryCodesCount']) : 0,
      pendingPasskeys ? pendingPasskeyLength : 0,
    ),
    linksByVerifiedEmail: isOn('oauthLinkByVerifiedEmail') && !isOn('assumeEmailsProven'),
  }
}
