import { asciiLowerCase } from '../core/ascii-lower-case'
import { InvalidFilterValueError, UnknownFilterKeyError } from '../core/errors'
import type { FilterableUserField, UserFilter, UserFilterValue } from '../store/auth-store'

/**
 * Reads list filters of the form `field__op=value`, or `field=value` for equality. Only the keys in the table below exist. Therefore no
 * filter can search other columns, for example a hash or a secret.
 *
 * @throws UnknownFilterKeyError for an unknown field, a field without a column, or an operator that the field does not support;
 *   InvalidFilterValueError for a malformed value, and for a repeated key. `details.filter` is the key
 */
export function parseFilters(entries: readonly (readonly [key: string, value: unknown])[], columns: ReadonlySet<string>): UserFilter[] {
  const parsed = new Map<string, UserFilter>()
  for (const [key, value] of entries) {
    const meaning = GRAMMAR.get(key)
    if (!meaning || !columns.has(meaning.field)) throw new UnknownFilterKeyError({ details: { filter: key } })
    const filter = parsed.has(key) || typeof value !== 'string' || value.length > MAX_LENGTH ? null : meaning.read(value)
    if (!filter) throw new InvalidFilterValueError({ details: { filter: key } })
    parsed.set(key, filter)
  }
  return [...parsed.values()]
}

/** Returns every filter key for a table with these columns. */
export function filterKeys(columns: ReadonlySet<string>): string[] {
  return [...GRAMMAR].flatMap(([key, { field }]) => (columns.has(field) ? [key] : []))
}

const MAX_LENGTH = 4096
const MAX_LISTED = 100

/** Reads a value. Returns null if the value is malformed. */
type ReadValue = (value: string) => UserFilterValue | null

interface Meaning {
  readonly field: FilterableUserField
  readonly read: (value: string) => UserFilter | null
}

const IDENTITY = ['eq', 'ne', 'in', 'not_in', 'isnull'] as const
const ORDER = ['gt', 'gte', 'lt', 'lte', 'between'] as const
const SEARCH = ['contains', 'icontains', 'startswith', 'endswith'] as const
type Operator = UserFilter['operator']

const KINDS: Readonly<Record<'id' | 'address' | 'text' | 'boolean' | 'instant', { operators: readonly Operator[]; read: ReadValue }>> = {
  id: { operators: IDENTITY, read: readId },
  address: { operators: [...IDENTITY, ...ORDER, ...SEARCH], read: readAddress },
  text: { operators: [...IDENTITY, ...ORDER, ...SEARCH], read: readText },
  boolean: { operators: IDENTITY, read: readBoolean },
  instant: { operators: [...IDENTITY, ...ORDER], read: readInstant },
}

const FIELDS: readonly (readonly [name: string, field: FilterableUserField, kind: keyof typeof KINDS])[] = [
  ['id', 'id', 'id'],
  ['email', 'email', 'address'],
  ['name', 'name', 'text'],
  ['is_active', 'isActive', 'boolean'],
  ['is_admin', 'isAdmin', 'boolean'],
  ['created_at', 'createdAt', 'instant'],
  ['updated_at', 'updatedAt', 'instant'],
  ['last_login_at', 'lastLoginAt', 'instant'],
  ['email_verified_at', 'emailVerifiedAt', 'instant'],
  ['activated_at', 'activatedAt', 'instant'],
]

/** The meaning of each key. A Map has only these keys. A plain object would also have keys such as `__proto__` and `constructor`. */
const GRAMMAR: ReadonlyMap<string, Meaning> = new Map([
  ...FIELDS.flatMap(([name, field, kind]) =>
    KINDS[kind].operators.map((operator): [string, Meaning] => [
      operator === 'eq' ? name : `${name}__${operator}`,
      { field, read: (value) => readFilter(field, operator, KINDS[kind].read, value) },
    ]),
  ),
  ...factorKeys(),
])

/** Returns the keys that filter by whether an account has a second factor. No filter can read the factor itself. */
function factorKeys(): [string, Meaning][] {
  const reading = (isWanted: (value: boolean) => boolean): Meaning => ({
    field: 'totpEnabledAt',
    read(text) {
      const value = readBoolean(text)
      return value === null ? null : { field: 'totpEnabledAt', operator: 'isnull', value: !isWanted(value) }
    },
  })
  return [
    ['mfa_enabled', reading((value) => value)],
    ['mfa_enabled__ne', reading((value) => !value)],
  ]
}

function readFilter(field: FilterableUserField, operator: Operator, read: ReadValue, text: string): UserFilter | null {
  switch (operator) {
    case 'isnull': {
      const value = readBoolean(text)
      return value === null ? null : { field, operator, value }
    }
    case 'in':
    case 'not_in': {
      const value = readList(read, text)
      return value && { field, operator, value }
    }
    case 'between': {
      const [from, to, ...others] = readList(read, text) ?? []
      return from === undefined || to === undefined || others.length > 0 ? null : { field, operator, value: [from, to] }
    }
    case 'contains':
    case 'icontains':
    case 'startswith':
    case 'endswith': {
      const value = field === 'email' ? readAddress(text) : readText(text)
      return value === null ? null : { field, operator, value }
    }
    default: {
      const value = read(text)
      return value === null ? null : { field, operator, value }
    }
  }
}

/** Reads a comma-separated list. A single value becomes a list with one item. */
function readList(read: ReadValue, text: string): UserFilterValue[] | null {
  const values = text.split(',').map(read)
  const good = values.filter((value) => value !== null)
  return good.length === values.length && good.length <= MAX_LISTED ? good : null
}

function readId(value: string): string | null {
  return value !== '' && value.length <= 64 ? readText(value) : null
}

/** Returns null for a text that is longer than any address, and for a text that a database cannot store. */
function readText(value: string): string | null {
  return value.length <= 320 && !value.includes('\0') && value.isWellFormed() ? value : null
}

/** Returns the text as addresses are stored: without outer blanks, in lower case. */
function readAddress(value: string): string | null {
  const text = readText(value)
  return text === null ? null : asciiLowerCase(text.trim())
}

function readBoolean(value: string): boolean | null {
  if (value === 'true') return true
  return value === 'false' ? false : null
}

const INSTANT = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/**
 * Reads an ISO 8601 day, which means midnight UTC, or a time with its zone. Accepts the years 1000 to 9999, which every database supports.
 */
function readInstant(value: string): Date | null {
  const [, day = ''] = INSTANT.exec(value) ?? []
  const instant = new Date(value)
  if (!isDay(day) || Number.isNaN(instant.getTime())) return null
  const year = instant.getUTCFullYear()
  return year >= 1000 && year <= 9999 ? instant : null
}

/** Returns true for a day that exists. JavaScript reads the 30th of February as a day in March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}
