import type { Knex } from 'knex'
import { ValidationError } from '../../core/errors'
import { type AuthStore, DuplicateRecordError, type NewUser } from '../auth-store'
import { poolConnection } from './connection'
import type { Dialect } from './dialect'
import { checkedTablesOf } from './knex-store'
import { databaseName, type Queryable, type Row } from './queryable'
import type { Values } from './table'
import type { UsersTable } from './users-table'

/** `id` is the key in the other service. Absent: the account gets a new key. */
export interface ImportedUser {
  readonly id?: string
  readonly user: NewUser
}

export interface UserImport<Ready extends { readonly email: string }> {
  /** @throws ValidationError for a value that no column can hold */
  ready(imported: ImportedUser): Ready
  /** Compares the addresses as a login does. */
  taken(emails: readonly string[]): Promise<ReadonlySet<string>>
  /** One transaction. Returns the inserted addresses. @throws DuplicateRecordError if another unique rule refuses; then none is inserted */
  insertMissing(users: readonly Ready[]): Promise<ReadonlySet<string>>
}

interface ReadyRow {
  readonly email: string
  readonly row: Values
}

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

/** JSON cannot represent an expression of Knex. */
function isPlain({ row }: ReadyRow): boolean {
  return Object.values(row).every((value) => value === null || ['string', 'number', 'boolean'].includes(typeof value))
}

interface FreeInsert {
  readonly users: UsersTable
  readonly insertFree: NonNullable<Dialect['insertFree']>
}

/** The database skips a row for a taken address or another unique rule. For another rule this throws, as a plain INSERT would. */
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
  // With a host's collation, other addresses may return too. This is harmless: the caller looks up its own text in the set.
  return new Set(rows.map((row) => users.read(row, 'email')))
}

function newRow(users: UsersTable, { id, user }: ImportedUser): Values {
  const row = users.newUserRow(user, { by: 'command' })
  if (id === undefined) return row
  if (!users.match({ id })) throw new ValidationError({ details: { errors: [{ path: 'id', rule: 'unstorable' }] } })
  return Object.assign(row, { [users.bareColumn('id')]: users.value('id', id) })
}

/** `insertDefaults` may fill a column only in some rows. In the other rows, the column gets its default. */
function withOneSetOfColumns(ready: readonly ReadyRow[]): Values[][] {
  const sets: { readonly names: readonly string[]; readonly rows: Values[] }[] = []
  for (const { row } of ready) {
    const names = Object.keys(row) // `completeRow` always adds the columns in the same order
    const same = sets.find((set) => set.names.length === names.length && set.names.every((name, place) => name === names[place]))
    if (same) same.rows.push(row)
    else sets.push({ names, rows: [row] })
  }
  return sets.map(({ rows }) => rows)
}
