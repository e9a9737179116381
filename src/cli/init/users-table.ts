import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Knex } from 'knex'
import { sentenceOf } from '../../core/error-sentence'
import { withOwnMessage } from '../../core/logger'
import { withTimeout } from '../../core/with-timeout'
import type { TableFinding } from '../../store/auth-store'
import type { ColumnFacts, TableFacts } from '../../store/knex/check/table-facts'
import { dialectOf } from '../../store/knex/dialect-of'
import { databaseName } from '../../store/knex/queryable'
import type { OwnUserFields } from '../../store/knex/users-table'
import { loadPackage } from '../load-module'
import { UsageError } from '../terminal'
import type { App, Knexfile } from './read-knexfile'

type Field = keyof OwnUserFields

/** The app's own users table, described with the names of doorward. */
export interface FoundUsersTable {
  readonly table: string
  readonly ids: 'uuid' | 'integer' | 'text'
  /** Only columns that differ from doorward's own table. */
  readonly columns: Readonly<Partial<Record<Field, string | false>>>
  /** The app's own text columns that every new row must fill. */
  readonly filled: readonly FilledColumn[]
  /** The columns of the table, if none of them is known to hold the password hash. `init` must not guess one, and must not add one. */
  readonly unknownHash: readonly string[] | null
  /** What must change in the table before people can sign up. */
  readonly findings: readonly TableFinding[]
}

export interface FilledColumn {
  readonly name: string
  /** True if no two rows may have the same value. */
  readonly isUnique: boolean
}

/** Why the command did not read the database. */
export interface NotLooked {
  readonly why: string
}

/** The time limit for reading the database, in milliseconds. The database can be remote, or not respond. */
const longestLookMs = 4_000

const tables = ['users', 'user', 'accounts', 'members', 'people', 'customers', 'auth_user', 'wp_users']

/** Other names of our columns. The more likely name is first. The search ignores letter case and underscores. */
const synonyms: Readonly<Record<Field, readonly string[]>> = {
  id: ['user_id', 'uuid'],
  email: ['email_address', 'user_email', 'mail'],
  hashedPassword: [
    ...['password_hash', 'password_digest', 'encrypted_password', 'crypted_password', 'hashed_passwd', 'pass_hash', 'passwd_hash'],
    ...['user_password', 'user_pass', 'password', 'passwd', 'pass', 'pwd'],
  ],
  isActive: ['active', 'enabled'],
  createdAt: ['created', 'created_on', 'date_joined', 'registered_at', 'user_registered'],
  updatedAt: ['updated', 'updated_on', 'modified_at'],
  isAdmin: ['admin', 'is_superuser', 'is_super_admin'],
  name: ['full_name', 'display_name'],
  lastLoginAt: ['last_login', 'last_sign_in_at', 'current_sign_in_at'],
  emailVerifiedAt: ['email_confirmed_at', 'verified_at', 'confirmed_at', 'email_verified'],
  activatedAt: [],
  passwordSetAt: [],
  totpSecret: [],
  totpEnabledAt: [],
  totpLastStep: [],
}

/**
 * The fields for which `init` requires a column. With providers, `init` also requires `name`. doorward also works without
 * `emailVerifiedAt`. In that case, however, a password reset by the owner does not remove the factors, passkeys and identities that an
 * attacker added before.
 */
const required: readonly Field[] = ['id', 'email', 'hashedPassword', 'isActive', 'createdAt', 'updatedAt', 'emailVerifiedAt']

/** What `init` knows before it reads the table. */
export interface Wanted {
  readonly hasProviders: boolean
  /** The column that holds the password hash, as a person named it. `new`: none does, and the app adds one. Null: nobody was asked. */
  readonly hashColumn: string | null
}

/**
 * Reads the database of the knexfile and changes nothing. Returns null if the database has no users table.
 * @throws UsageError if the table has no column `wanted.hashColumn`
 */
export async function findUsersTable(app: App, knexfile: Knexfile, wanted: Wanted): Promise<FoundUsersTable | NotLooked | null> {
  const makeKnex = (await loadPackage('knex', app.folder))?.['default'] as typeof import('knex').knex | undefined // an export of knex
  if (!makeKnex) return { why: 'knex is not installed' }
  if (isMissingFile(app.folder, knexfile)) return null
  let knex: Knex | null = null
  try {
    knex = makeKnex({ ...knexfile.config, pool: { min: 0, max: 1 } })
    const late = () => withOwnMessage(new Error(`it did not answer within ${longestLookMs / 1_000} seconds`))
    return await withTimeout(look(knex, wanted), longestLookMs, late)
  } catch (error) {
    if (error instanceof UsageError) throw error
    return { why: sentenceOf(error) }
  } finally {
    void knex?.destroy().catch(() => {}) // the command does not wait for this
  }
}

/** Returns true if the SQLite file does not exist. A connection would create the file. */
function isMissingFile(folder: string, { client, sqliteFile }: Knexfile): boolean {
  return client === 'better-sqlite3' && !(sqliteFile !== null && existsSync(resolve(folder, sqliteFile)))
}

async function look(knex: Knex, wanted: Wanted): Promise<FoundUsersTable | null> {
  const dialect = dialectOf(knex)
  for (const table of tables) {
    const facts = await dialect.readTable(knex, databaseName(knex, table))
    if (facts.kind === 'table' && columnOf(facts, 'id') && columnOf(facts, 'email')) return mapped(knex, table, facts, wanted)
  }
  return null
}

async function mapped(knex: Knex, table: string, facts: TableFacts, { hasProviders, hashColumn }: Wanted): Promise<FoundUsersTable> {
  // A table with parts of the name, such as first_name, has a name. doorward then leaves it to the app.
  const hasNameParts = facts.columns.some(({ name }) => /name$/i.test(name))
  const needed = hasProviders && !hasNameParts ? [...required, 'name'] : required
  const found = new Map((Object.keys(synonyms) as Field[]).map((field) => [field, columnOf(facts, field)])) // the record has these keys
  if (hashColumn !== null && hashColumn !== 'new') {
    const named = facts.columns.find(({ name }) => name === hashColumn)
    if (!named) throw new UsageError(`--hash-column takes a column of ${table}, or new: ${namesOf(facts)}.`)
    found.set('hashedPassword', named)
  }
  const ours = new Set([...found.values()].map((column) => column?.name))
  const filled = facts.columns
    .filter((column) => !ours.has(column.name) && isOwnToFill(column))
    .map(({ name }) => ({ name, isUnique: isUniqueIn(facts, name) }))
  const unknownHash = found.get('hashedPassword') || hashColumn === 'new' ? null : facts.columns.map(({ name }) => name)
  const own = { table, ids: idsOf(found.get('id')), filled, unknownHash }
  const unfit = await errorsOf(knex, { ...own, columns: columnsOf(found, needed, []) })
  const columns = columnsOf(found, needed, unfit)
  return { ...own, columns, findings: await errorsOf(knex, { ...own, columns }) }
}

/** Maps the fields to columns. If an optional column has our name but another type, the column counts as missing. */
function columnsOf(
  found: ReadonlyMap<Field, ColumnFacts | undefined>,
  needed: readonly string[],
  unfit: readonly TableFinding[],
): FoundUsersTable['columns'] {
  const entries = [...found].flatMap(([field, column]): [Field, string | false][] => {
    const isNeeded = needed.includes(field)
    if (!column || (!isNeeded && unfit.some((finding) => finding.column === column.name))) return isNeeded ? [] : [[field, false]]
    return column.name === ownName(field) ? [] : [[field, column.name]]
  })
  return Object.fromEntries(entries)
}

function columnOf({ columns }: TableFacts, field: Field): ColumnFacts | undefined {
  for (const name of [ownName(field), ...synonyms[field]]) {
    const column = columns.find((candidate) => bare(candidate.name) === bare(name))
    if (column && !column.isGenerated) return column
  }
  return undefined
}

function namesOf({ columns }: TableFacts): string {
  return columns.map(({ name }) => name).join(', ')
}

function isUniqueIn({ indexes }: TableFacts, column: string): boolean {
  return indexes.some(({ isUnique, keys }) => isUnique && keys.length === 1 && keys[0]?.column === column)
}

/** `isActive` -> `is_active` */
function ownName(field: Field): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function bare(name: string): string {
  return name.toLowerCase().replaceAll('_', '')
}

function idsOf(id: ColumnFacts | undefined): FoundUsersTable['ids'] {
  if (id?.family === 'integer' || id?.family === 'number') return 'integer'
  return id?.family === 'text' && id.length !== 36 ? 'text' : 'uuid'
}

/** Returns true for a required text column without a default. The auth module fills it with an empty text, which the app can recognize. */
function isOwnToFill({ isNotNull, isFilled, family }: ColumnFacts): boolean {
  return isNotNull && !isFilled && family === 'text'
}

async function errorsOf(
  knex: Knex,
  { table, ids, columns, filled }: Omit<FoundUsersTable, 'findings' | 'unknownHash'>,
): Promise<TableFinding[]> {
  const { checkTables } = await import('../../router/findings/readiness/check-tables.js') // loaded only if there is a table to check
  const insertDefaults = () => Object.fromEntries(filled.map(({ name }) => [name, '']))
  const findings = await checkTables(knex, { users: { table, ids, columns, insertDefaults } })
  return findings.filter(({ key, level }) => key.startsWith('users.') && level === 'error')
}
