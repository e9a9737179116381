import { ConfigurationError, ValidationError } from '../../core/errors'
import type { HostFieldRules, HostFields } from '../auth-store'
import { canHold, fromColumn } from './column-values'
import type { Row } from './queryable'
import { unreadableColumn, type Values } from './table'
import { isName } from './table-options'

/** One column of your own in the users table. */
export interface HostFieldOptions {
  /** The name of the column. */
  column: string
  /** True: only your code writes the field. Sign-up and `PATCH /me` never write it. Default false. */
  readOnly?: boolean
  /** True: user records on the server contain the field, but responses omit it. Default false. */
  private?: boolean
  /** Reads 0 and 1 as false and true, because SQLite and MariaDB have no boolean type. Default: the driver's value. */
  type?: 'boolean'
}

/** Your own fields of a user: each name in `user.fields` -> its column. */
export type HostFieldMap = Readonly<Record<string, string | HostFieldOptions>>

export interface BoundHostFields {
  readonly rules: ReadonlyMap<string, HostFieldRules>
  readonly selection: readonly string[]
  read(row: Row): HostFields
  /** @throws ValidationError for a value that no column can hold, and for a field that does not exist */
  toRow(fields: HostFields): Values
  asRow(fields: HostFields): Row
}

interface BoundField {
  readonly name: string
  readonly column: string
  readonly alias: string
  readonly isBoolean: boolean
}

/** @param mapped columns of doorward's own fields @param adminColumn the column of `isAdmin`, which may also be a field */
export function bindHostFields(
  map: HostFieldMap,
  table: string,
  mapped: ReadonlyMap<string, string>,
  adminColumn: string | null,
): BoundHostFields {
  const fields = Object.entries(map).map(([name, option], index) => boundField(name, completed(option), index))
  refuseSharedColumns(fields, mapped, ({ name, column }) => column === adminColumn && completed(map[name] ?? '').readOnly === true)
  const byName = new Map(fields.map((field) => [field.name, field]))
  return {
    rules: new Map(Object.entries(map).map(([name, option]) => [name, rulesOf(completed(option))])),
    selection: fields.map(({ column, alias }) => `${table}.${column} as ${alias}`),
    read: (row) => Object.freeze(Object.fromEntries(fields.map((field) => [field.name, readValue(field, row[field.alias])]))),
    toRow(values) {
      const given = Object.entries(values).filter(([, value]) => value !== undefined)
      const bad = given.flatMap(([name, value]) => (byName.has(name) && isSingleValue(value) ? [] : [name]))
      if (bad.length > 0)
        throw new ValidationError({ details: { errors: bad.map((name) => ({ path: `fields.${name}`, rule: 'unstorable' })) } })
      return Object.fromEntries(given.map(([name, value]) => [byName.get(name)?.column ?? name, value])) as Values // scalars, as checked
    },
    asRow: (values) => Object.fromEntries(fields.flatMap(({ name, alias }) => (name in values ? [[alias, values[name]]] : []))),
  }
}

function completed(option: string | HostFieldOptions): HostFieldOptions {
  return typeof option === 'string' ? { column: option } : option
}

function rulesOf({ readOnly = false, private: isPrivate = false, type }: HostFieldOptions): HostFieldRules {
  return Object.freeze({ readOnly, private: isPrivate, ...(type && { type }) })
}

function boundField(name: string, { column, type }: HostFieldOptions, index: number): BoundField {
  return { name, column, alias: `usersown${letters(index)}`, isBoolean: type === 'boolean' }
}

/** Has only lower-case letters: a host's name mapper (snake_case <-> camelCase) would change other names. */
function letters(index: number): string {
  const rest = Math.floor(index / 26)
  return (rest > 0 ? letters(rest - 1) : '') + String.fromCharCode(97 + (index % 26))
}

function readValue({ isBoolean, column }: BoundField, value: unknown): unknown {
  if (!isBoolean) return value ?? null
  try {
    return fromColumn('boolean', value)
  } catch (error) {
    throw unreadableColumn(column, error)
  }
}

/** A MySQL driver turns an object into SQL (`a = 1`). Databases store text with NUL or lone surrogates differently. */
export function isSingleValue(value: unknown): boolean {
  if (value === null || typeof value === 'bigint') return true
  if (typeof value === 'number') return Number.isFinite(value)
  return typeof value === 'boolean' || canHold('text', value) || canHold('native', value)
}

/** A field on the column of `isAdmin` must be `readOnly`, or a person could make himself administrator. @throws ConfigurationError */
function refuseSharedColumns(
  fields: readonly BoundField[],
  mapped: ReadonlyMap<string, string>,
  mayBeAdminColumn: (field: BoundField) => boolean,
): void {
  const owners = new Map(mapped)
  for (const field of fields) {
    const { name, column } = field
    const owner = owners.get(column.toLowerCase())
    if (owner === 'isAdmin' && !mayBeAdminColumn(field))
      throw refusal(
        `.${name}: the column ${column} decides who is an administrator, so the field must have the same spelling and readOnly: true.`,
      )
    if (owner && owner !== 'isAdmin')
      throw refusal(`.${name}: the column ${column} is already the column of ${owner}; a column can have only one field.`)
    owners.set(column.toLowerCase(), `fields.${name}`)
  }
}

const KEYS = ['column', 'readOnly', 'private', 'type']

/** The body of a sign-up, a user record or every JavaScript object uses these names already. */
const TAKEN: ReadonlySet<string> = new Set(['password', 'fields', 'token', ...Object.getOwnPropertyNames(Object.prototype)])

/** @param ours the names of doorward's own fields @throws ConfigurationError with a message that names the option */
export function checkHostFields(map: unknown, ours: readonly string[]): void {
  if (map === undefined) return
  if (typeof map !== 'object' || map === null || Array.isArray(map))
    throw refusal(" must be an object: the name of your field -> your column, for example { firstName: 'first_name' }.")
  const taken = new Set([...TAKEN, ...ours].map(spelling))
  for (const [name, option] of Object.entries(map)) {
    if (!/^[A-Za-z][A-Za-z0-9_]{0,63}$/.test(name))
      throw refusal(`: ${JSON.stringify(name.slice(0, 64))} must be 1 to 64 letters, digits or _, beginning with a letter.`)
    if (taken.has(spelling(name))) throw refusal(`.${name}: this name is taken; choose another name for your field.`)
    checkOption(name, option)
  }
}

function spelling(name: string): string {
  return name.replaceAll('_', '').toLowerCase()
}

function checkOption(name: string, option: unknown): void {
  if (isColumn(option)) return
  if (typeof option !== 'object' || option === null || Array.isArray(option))
    throw refusal(`.${name} must be the name of a column, or { column, readOnly, private }.`)
  for (const key of Object.keys(option))
    if (!KEYS.includes(key)) throw refusal(`.${name}.${key} is not an option; known are ${KEYS.join(', ')}.`)
  const { column, readOnly, private: isPrivate, type } = option as Record<string, unknown> // an object, as checked
  if (!isColumn(column)) throw refusal(`.${name}.column must be the name of a column.`)
  if (!isFlag(readOnly)) throw refusal(`.${name}.readOnly must be true or false.`)
  if (!isFlag(isPrivate)) throw refusal(`.${name}.private must be true or false.`)
  if (type !== undefined && type !== 'boolean') throw refusal(`.${name}.type must be 'boolean', or left out.`)
}

function isColumn(value: unknown): boolean {
  return isName(value) && !value.includes('.')
}

function isFlag(value: unknown): boolean {
  return value === undefined || typeof value === 'boolean'
}

function refusal(problem: string): ConfigurationError {
  return new ConfigurationError(`createKnexStore(): users.fields${problem}`)
}
