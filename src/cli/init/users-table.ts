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

export interface FoundUsersTable {
  readonly table: string
  readonly ids: 'uuid' | 'integer' | 'text'
  /** Only columns that differ from doorward's own table. */
  readonly columns: Readonly<Partial<Record<Field, string | false>>>
  readonly filled: readonly FilledColumn[]
  /** All columns, if none is known to hold the password hash. `init` must not guess one, and must not add one. */
  readonly unknownHash: readonly string[] | null
  readonly findings: readonly TableFinding[]
}

export interface FilledColumn {
  readonly name: string
  readonly isUnique: boolean
}

export interface NotLooked {
  readonly why: string
}

/** In milliseconds. The database can be remote, or not respond. */
const longestLookMs = 4_000

const tables = ['users', 'user', 'accounts', 'members', 'people', 'customers', 'auth_user', 'wp_users']

/** The more likely name is first. The search ignores letter case and underscores. */
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
  passwordExpiredAt: [],
  approvalRequestedAt: [],
  deletionRequestedAt: [],
  totpSecret: [],
  totpEnabledAt: [],
  totpLastStep: [],
}

/** Also `name` with providers. Without `emailVerifiedAt`, a password reset keeps the factors and identities that an attacker added. */
const required: readonly Field[] = ['id', 'email', 'hashedPassword', 'isActive', 'createdAt', 'updatedAt', 'emailVerifiedAt']

export interface Wanted {
  readonly hasProviders: boolean
  /** As a person named it. `new`: none does, and the app adds one. Null: nobody was asked. */
  readonly hashColumn: string | null
}

/** Changes nothing. Null: the database has no users table. @throws UsageError if the table has no column `wanted.hashColumn` */
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

/** A connection would create the SQLite file. */
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
  // A table with parts of the name, such as first_name, has a name, which doorward leaves to the app.
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

/** An optional column with our name but another type counts as missing. */
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

/** The auth module fills it with an empty text, which the app can recognize. */
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
