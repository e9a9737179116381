import { normalizeEmail } from '../../http/email-address'
import type { PasswordHasher } from '../../passwords/password-types'
import { unusablePassword } from '../../passwords/unusable-password'
import type { HostFieldRules } from '../../store/auth-store'
import type { ImportedUser } from '../../store/knex/import-users'
import { newUser } from '../../store/new-user'
import { adviceOnHash } from './hash-names'

/** A row of a file. Each name has a text, a number, a boolean or null. Null and a missing name mean that the row has no value. */
export type ImportRow = Readonly<Record<string, unknown>>

/** Why the import rejects a row. `rule` and `message` contain no value of the row. */
export interface RowRefusal {
  readonly rule: string
  readonly message: string
  /** The store's error. The text of the error may contain values of the row. */
  readonly cause?: unknown
}

export interface ImportRules {
  readonly hasher: PasswordHasher
  readonly hostFields: ReadonlyMap<string, HostFieldRules>
  readonly now: Date
}

/** The field names that a row can contain, without the names of the host's own fields. */
export const importedFields = ['email', 'password_hash', 'name', 'is_active', 'email_verified', 'created_at', 'id', 'is_admin'] as const

/** Returns the account of a row, or why the import rejects the row. */
export function readImportRow(row: ImportRow, rules: ImportRules): ImportedUser | RowRefusal {
  const email = normalizeEmail(row['email'])
  if (email === null) return refusal('email', 'The address is missing, or is not an email address of at most 320 characters.')
  const { name = null, password_hash: hash = null, id = null } = row
  if (name !== null && (typeof name !== 'string' || name.length > 120)) return refusal('name', 'A name has at most 120 characters.')
  if (id !== null && !/^[^\s].{0,254}$/.test(textOf(id))) return refusal('id', 'The id cannot be a key of the users table.')
  const flags = {
    isActive: flagOf(row['is_active'], true),
    isVerified: flagOf(row['email_verified'], false),
    isAdmin: flagOf(row['is_admin'], false),
  }
  const { isActive, isVerified, isAdmin } = flags
  if (isActive === null) return refusal('is_active', noFlag)
  if (isVerified === null) return refusal('email_verified', noFlag)
  if (isAdmin === null) return refusal('is_admin', noFlag)
  const createdAt = instantOf(row['created_at'], rules.now)
  if (createdAt === null)
    return refusal(
      'created_at',
      'Write an instant as ISO 8601, or as seconds or milliseconds since 1970. It must not be more than a day in the future.',
    )
  const refused = hash === null || isMarker(hash) ? null : refusalOf(hash, rules.hasher)
  if (refused) return refused
  const hashedPassword = hash === null || isMarker(hash) ? null : String(hash)
  const fields = fieldsOf(row, rules.hostFields)
  if ('rule' in fields) return fields as RowRefusal
  const user = newUser(rules.now, {
    email,
    name: name === '' ? null : name,
    hashedPassword: hashedPassword ?? unusablePassword(),
    isAdmin,
    isActive,
    createdAt,
    emailVerifiedAt: isVerified ? createdAt : null,
    // An imported account is never pending. Expired pending accounts are deleted, but an inactive account of the file must stay.
    activatedAt: createdAt,
    passwordSetAt: hashedPassword === null ? null : createdAt,
    ...(rules.hostFields.size > 0 && { fields: fields.values }),
  })
  return { ...(id !== null && { id: String(id) }), user }
}

function refusal(rule: string, message: string): RowRefusal {
  return { rule, message }
}

const noFlag = 'Write true or false.'

/** Returns true if the text means that the account has no password. Django and this library write `!…`. Other systems write `*`. */
function isMarker(hash: unknown): boolean {
  return typeof hash === 'string' && /^[!*]/.test(hash)
}

function refusalOf(hash: unknown, hasher: PasswordHasher): RowRefusal | null {
  if (typeof hash !== 'string' || hash.length > 1024) return refusal('password_hash', adviceOnHash(''))
  return hasher.reads && !hasher.reads(hash) ? refusal('password_hash', adviceOnHash(hash)) : null
}

/** Converts a value to text. An object becomes an empty text, because an object from a JSON file may have no valid `toString`. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? '' : String(value)
}

const flagWords: ReadonlyMap<string, boolean> = new Map([
  ...['true', 't', 'yes', '1'].map((word): [string, boolean] => [word, true]),
  ...['false', 'f', 'no', '0'].map((word): [string, boolean] => [word, false]),
])

/** Returns the boolean of a value. Returns `fallback` for a missing value, and null for a value that is not a boolean. */
function flagOf(value: unknown, fallback: boolean): boolean | null {
  if (value === null || value === undefined) return fallback
  return flagWords.get(textOf(value).toLowerCase()) ?? null
}

const WITH_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?/
const ZONE = /(Z|[+-]\d\d(:?\d\d)?)$/

const dayMs = 86_400_000

/**
 * Returns the time of a value. A time without a zone is UTC. If the time is at most one day ahead, the function returns the current time,
 * because clocks and time zones differ. Returns null for a later time, and for a value that is not a time.
 */
function instantOf(value: unknown, now: Date): Date | null {
  if (value === null || value === undefined) return now
  const text = textOf(value).trim()
  const instant = /^\d{9,10}$/.test(text)
    ? new Date(Number(text) * 1000)
    : /^\d{11,14}$/.test(text)
      ? new Date(Number(text))
      : fromIso(text)
  const ahead = instant.getTime() - now.getTime()
  if (Number.isNaN(ahead) || ahead > dayMs) return null
  // With a time in the future, an account would seem newer than it is.
  return ahead > 0 ? now : instant
}

function fromIso(text: string): Date {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return new Date(`${text}T00:00:00Z`)
  if (!WITH_TIME.test(text)) return new Date(Number.NaN)
  const whole = text
    .replace(' ', 'T')
    .replace(/ UTC$/, 'Z')
    .replace(/ (?=[+-])/, '')
  return new Date(ZONE.test(whole.slice(10)) ? whole.replace(/([+-]\d\d)$/, '$1:00') : `${whole}Z`)
}

function fieldsOf(row: ImportRow, hostFields: ImportRules['hostFields']): { values: Record<string, unknown> } | RowRefusal {
  const values: Record<string, unknown> = {}
  for (const [name, { type }] of hostFields) {
    const value = row[name]
    if (value === undefined) continue
    values[name] = type === 'boolean' && value !== null ? flagOf(value, false) : value
    if (type === 'boolean' && value !== null && values[name] === null) return refusal(name, noFlag)
  }
  return { values }
}
