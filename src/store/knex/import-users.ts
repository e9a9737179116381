import type { Knex } from 'knex'
import { ValidationError } from '../../errors'
import { type AuthStore, DuplicateRecordError, type NewUser } from '../auth-store'
import { poolConnection } from './connection'
import { databaseName } from './database-name'
import type { Dialect } from './dialect'
import { checkedTablesOf } from './knex-store'
import type { Queryable, Row } from './queryable'
import type { Values } from './table'
import type { UsersTable } from './users-table'

/** An account that comes from elsewhere. `id`: the key it had there; absent: it gets a new one. */
export interface ImportedUser {
  readonly id?: string
  readonly user: NewUser
}

/** Many accounts at once. `Ready`: an account as it is inserted. */
export interface UserImport<Ready extends { readonly email: string }> {
  /** @throws ValidationError for a value that no column can hold */
  ready(imported: ImportedUser): Ready
  /** Which of these addresses an account has, compared as at a login. */
  taken(emails: readonly string[]): Promise<ReadonlySet<string>>
  /**
   * Inserts all or none: those whose address nobody has, by one statement. Returns their addresses.
   * @throws DuplicateRecordError where another unique rule refuses one
   */
  insertMissing(users: readonly Ready[]): Promise<ReadonlySet<string>>
}

interface ReadyRow {
  readonly email: string
  readonly row: Values
}

/** Null: the store is an adapter of the host's. */
export function userImportOf(store: AuthStore): UserImport<ReadyRow> | null {
  const checked = checkedTablesOf(store)
  if (!checked) return null
  const { users } = checked.tables
  const connection = poolConnection(checked.knex, checked.dialect)
  const { insertFree } = checked.dialect
  return {
    ready: (imported) => ({ email: imported.user.email, row: newRow(users, imported) }),
    taken: (emails) => connection.statement('users.import', (db) => taken(db, users, emails)),
    insertMissing: (ready) =>
      connection.together('users.import', async (db) => {
        if (insertFree && ready.every(isPlain)) return insertAtOnce(db, { users, insertFree }, ready)
        const known = await taken(db, users, ready.map(emailOf))
        const missing = ready.filter(({ email }) => !known.has(email))
        for (const same of withOneSetOfColumns(missing)) await db(users.name).insert(same)
        return new Set(missing.map(emailOf))
      }),
  }
}

function emailOf({ email }: ReadyRow): string {
  return email
}

/** JSON can say it; an expression of Knex's is none. */
function isPlain({ row }: ReadyRow): boolean {
  return Object.values(row).every((value) => value === null || ['string', 'number', 'boolean'].includes(typeof value))
}

interface FreeInsert {
  readonly users: UsersTable
  readonly insertFree: NonNullable<Dialect['insertFree']>
}

/** What was left out has an address that is taken, or breaks another unique rule: that is an error here, as in a plain INSERT. */
async function insertAtOnce(db: Queryable, { users, insertFree }: FreeInsert, ready: readonly ReadyRow[]): Promise<ReadonlySet<string>> {
  const inserted = new Set<string>()
  const column = users.bareColumn('email')
  for (const same of withOneSetOfColumns(ready)) {
    const names = Object.keys(same[0] ?? {}).map((name) => [name, databaseName(db, name)] as const)
    const isMapped = names.some(([name, inDatabase]) => name !== inDatabase)
    const named = isMapped ? same.map((row) => Object.fromEntries(names.map(([name, inDatabase]) => [inDatabase, row[name]]))) : same
    for (const email of await insertFree(db, users.name, named, column)) inserted.add(email)
  }
  const left = ready.map(emailOf).filter((email) => !inserted.has(email))
  if (left.length === 0) return inserted
  const known = await taken(db, users, left)
  if (left.some((email) => !known.has(email))) throw new DuplicateRecordError('users.import: a record with these unique values exists')
  return inserted
}

async function taken(db: Queryable, users: UsersTable, emails: readonly string[]): Promise<ReadonlySet<string>> {
  const values = emails.map((email) => users.value('email', email) as Knex.Value) // an address is never null
  const rows: Row[] = await db(users.name)
    .whereIn(users.column('email'), values)
    .select([...users.select(['email'])])
  // A host's collation may call more texts equal than a login does; only the very text counts, and `has` asks for that.
  return new Set(rows.map((row) => users.read(row, 'email')))
}

function newRow(users: UsersTable, { id, user }: ImportedUser): Values {
  const row = users.newUserRow(user, { by: 'command' })
  if (id === undefined) return row
  if (!users.match({ id })) throw new ValidationError({ details: { errors: [{ path: 'id', rule: 'unstorable' }] } })
  return Object.assign(row, { [users.bareColumn('id')]: users.value('id', id) })
}

/** `insertDefaults` of a host may give a column to some rows alone, and the database its default to the others. */
function withOneSetOfColumns(ready: readonly ReadyRow[]): Values[][] {
  const sets: { readonly names: readonly string[]; readonly rows: Values[] }[] = []
  for (const { row } of ready) {
    const names = Object.keys(row) // they are made in one order
    const same = sets.find((set) => set.names.length === names.length && set.names.every((name, place) => name === names[place]))
    if (same) same.rows.push(row)
    else sets.push({ names, rows: [row] })
  }
  return sets.map(({ rows }) => rows)
}
