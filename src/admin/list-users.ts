import { createHmac, type KeyObject } from 'node:crypto'
import type { AuthContext } from '../context'
import { asciiLowerCase } from '../core/ascii-lower-case'
import { InvalidFilterValueError, UnknownFilterKeyError, ValidationError } from '../core/errors'
import { isUnderAny, type KeyList } from '../core/keys'
import { constantTimeEqual } from '../core/opaque-token'
import type { FilterableUserField, UserFilter, UserFilterValue } from '../store/auth-store'
import type { HostTypes, WithFields } from '../store/host-types'
import { type AdminUser, toAdminUser } from './change-user'

export interface UserListQuery {
  /** `field__op` -> value, as in a query string: `{ email__icontains: 'example', is_active: 'true' }`. An account must match all. */
  filters?: Readonly<Record<string, string>> | undefined
  /** The `nextCursor` of the previous page. The filters must be the filters of that page. */
  cursor?: string | undefined
  /** The size of a page, 1 to 100. Default 50. */
  limit?: number | undefined
}

export interface UserList<Host extends HostTypes = HostTypes> {
  items: WithFields<AdminUser, Host>[]
  /** Null on the last page. */
  nextCursor: string | null
}

/** Oldest first. @throws UnknownFilterKeyError, InvalidFilterValueError, ValidationError (cursor, limit), before any query */
export async function listUsers(ctx: AuthContext, { filters = {}, cursor, limit = 50 }: UserListQuery = {}): Promise<UserList> {
  return listByEntries(ctx, { entries: Object.entries(filters), cursor, limit })
}

export interface UserListEntries extends Pick<UserListQuery, 'cursor'> {
  /** A repeated key is rejected. */
  entries: readonly (readonly [string, unknown])[]
  limit: number
}

export async function listByEntries(ctx: AuthContext, { entries, cursor, limit }: UserListEntries): Promise<UserList> {
  const { users } = ctx.store
  const filters = parseFilters(entries, filterableFields(ctx))
  if (!Number.isInteger(limit) || limit < 1 || limit > 100)
    throw new ValidationError({ details: { errors: [{ path: 'limit', rule: 'number.between' }] } })
  const after = cursor === undefined ? null : openCursor(ctx.keys.cursor, filters, cursor)
  const page = await users.list({ filters, after, limit })
  return { items: page.users.map(toAdminUser), nextCursor: page.next === null ? null : sealCursor(ctx.keys.cursor[0], filters, page.next) }
}

/**
 * `field__op=value`, or `field=value`. Only the keys in the table below exist, so no filter can search a hash or a secret.
 * @throws UnknownFilterKeyError for an unknown field, a field without a column, or an operator that the field does not support;
 * InvalidFilterValueError for a malformed value, and for a repeated key. `details.filter` is the key
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

/** `is_awaiting_approval` is there only with `signupMode: 'approve'`. */
export function filterableFields({ settings, store }: Pick<AuthContext, 'settings' | 'store'>): ReadonlySet<string> {
  const { fields } = store.users
  return settings.signupMode === 'approve' ? fields : new Set([...fields].filter((field) => field !== 'approvalRequestedAt'))
}

export function filterKeys(columns: ReadonlySet<string>): string[] {
  return [...GRAMMAR].flatMap(([key, { field }]) => (columns.has(field) ? [key] : []))
}

const MAX_LENGTH = 4096
const MAX_LISTED = 100

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

/** A plain object would also have keys such as `__proto__` and `constructor`. */
const GRAMMAR: ReadonlyMap<string, Meaning> = new Map([
  ...FIELDS.flatMap(([name, field, kind]) =>
    KINDS[kind].operators.map((operator): [string, Meaning] => [
      operator === 'eq' ? name : `${name}__${operator}`,
      { field, read: (value) => readFilter(field, operator, KINDS[kind].read, value) },
    ]),
  ),
  // No filter can read the factor itself.
  ...presenceKeys('mfa_enabled', 'totpEnabledAt'),
  ...presenceKeys('is_awaiting_approval', 'approvalRequestedAt'),
])

/** Whether the field has a value. */
function presenceKeys(key: string, field: 'totpEnabledAt' | 'approvalRequestedAt'): [string, Meaning][] {
  const reading = (isWanted: (value: boolean) => boolean): Meaning => ({
    field,
    read(text) {
      const value = readBoolean(text)
      return value === null ? null : { field, operator: 'isnull', value: !isWanted(value) }
    },
  })
  return [
    [key, reading((value) => value)],
    [`${key}__ne`, reading((value) => !value)],
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

function readList(read: ReadValue, text: string): UserFilterValue[] | null {
  const values = text.split(',').map(read)
  const good = values.filter((value) => value !== null)
  return good.length === values.length && good.length <= MAX_LISTED ? good : null
}

function readId(value: string): string | null {
  return value !== '' && value.length <= 64 ? readText(value) : null
}

/** Null: longer than any address, or a database cannot store the text. */
function readText(value: string): string | null {
  return value.length <= 320 && !value.includes('\0') && value.isWellFormed() ? value : null
}

/** As addresses are stored: without outer blanks, in lower case. */
function readAddress(value: string): string | null {
  const text = readText(value)
  return text === null ? null : asciiLowerCase(text.trim())
}

function readBoolean(value: string): boolean | null {
  if (value === 'true') return true
  return value === 'false' ? false : null
}

const INSTANT = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/

/** An ISO 8601 day (midnight UTC), or a time with its zone. Every database supports the years 1000 to 9999. */
function readInstant(value: string): Date | null {
  const [, day = ''] = INSTANT.exec(value) ?? []
  const instant = new Date(value)
  if (!isDay(day) || Number.isNaN(instant.getTime())) return null
  const year = instant.getUTCFullYear()
  return year >= 1000 && year <= 9999 ? instant : null
}

/** JavaScript reads the 30th of February as a day in March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** The store's position, with a signature over the position and the list's filters. */
function sealCursor(key: KeyObject, filters: readonly UserFilter[], position: string): string {
  const signature = createHmac('sha256', key)
    .update(JSON.stringify([canonical(filters), position]))
    .digest('base64url')
  return `${Buffer.from(position).toString('base64url')}.${signature}`
}

/** @throws ValidationError for a cursor that doorward did not issue, and for a cursor that was issued for other filters */
function openCursor(keys: KeyList, filters: readonly UserFilter[], cursor: string): string {
  const position = Buffer.from(cursor.split('.', 1)[0] ?? '', 'base64url').toString()
  // The whole text is compared, so that each cursor has only one valid spelling.
  if (isUnderAny(keys, (key) => constantTimeEqual(sealCursor(key, filters, position), cursor))) return position
  throw new ValidationError({ details: { errors: [{ path: 'cursor', rule: 'any.invalid' }] } })
}

/** The order of the filters does not change the list. */
function canonical(filters: readonly UserFilter[]): string[] {
  return filters.map((filter) => JSON.stringify([filter.field, filter.operator, filter.value])).sort()
}
