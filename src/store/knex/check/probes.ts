import type { Knex } from 'knex'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import { withTimeout } from '../../../core/with-timeout'
import type { TableFinding } from '../../auth-store'
import type { Row } from '../queryable'
import { pendingVersions, type SchemaPlace, type Version } from '../schema-versions'
import { rowsOf } from '../statements'
import { name, quotedTable } from './mend'
import { columnOf, finding, type Subject } from './subject'
import type { TableNeeds } from './table-needs'

const probeMs = 2_000
export const mostProbed = 1_000
/** SQLite has no timeout for a statement, and blocks the process while a statement runs. */
const sqliteRows = 100_000

/** If a query fails or takes too long, its fault is not reported. */
export async function probeUsers(knex: Knex, users: Subject, needs: TableNeeds): Promise<TableFinding[]> {
  const found = [await quietly(() => upperCaseAddresses(knex, users))]
  if (needs.linksByVerifiedEmail) found.push(await quietly(() => unverifiedAddresses(knex, users)))
  return found.flatMap((one) => one ?? [])
}

async function quietly(probe: () => Promise<TableFinding | null>): Promise<TableFinding | null> {
  try {
    return await withTimeout(probe(), probeMs + 500, () => new Error('The probe is late'))
  } catch {
    return null // silent by design, because the tables work without this extra check of the rows
  }
}

/** The store finds addresses in lower case, so the owners of addresses with upper-case letters cannot sign in. */
async function upperCaseAddresses(knex: Knex, users: Subject): Promise<TableFinding | null> {
  const email = columnOf(users, 'email')
  if (!email?.facts) return null
  const column = name(users, email.name)
  const condition = differs(users, column)
  const count = await countRows(knex, users, [column], condition)
  if (count === 0) return null
  const many = count === mostProbed ? '1,000 or more addresses have' : count === 1 ? '1 address has' : `${count} addresses have`
  const message = `${many} upper-case letters in ${users.table}.${email.name}. doorward searches addresses in lower case, so the owners cannot sign in, and other people can register the same address. Change the addresses to lower case. If two rows then have one address, decide by hand. ${seeTroubleshooting('addresses-with-upper-case-letters')}`
  const sql = `update ${quotedTable(users)} set ${column} = ${columnInLower(users, column)} where ${condition}`
  return finding(users, email.name, {
    what: 'lower-case',
    level: 'warning',
    message,
    fails: 'The owners of these addresses cannot sign in.',
    sql,
  })
}

function differs({ dialect }: Subject, column: string): string {
  if (dialect.name === 'postgresql') return `cast(${column} as text) collate "C" ~ '[A-Z]'`
  if (dialect.name === 'sqlite') return `${column} collate binary <> lower(${column})`
  return `cast(${column} as binary) <> cast(lower(${column}) as binary)`
}

/** Lowers only A to Z, as our code does. lower() of PostgreSQL could turn one address into another address. */
function columnInLower({ dialect }: Subject, column: string): string {
  if (dialect.name !== 'postgresql') return `lower(${column})`
  return `translate(cast(${column} as text), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz')`
}

/** A sign-in with a provider removes the password if the address is unverified, after an import perhaps for every account. */
async function unverifiedAddresses(knex: Knex, users: Subject): Promise<TableFinding | null> {
  const verified = columnOf(users, 'emailVerifiedAt')
  if (!verified?.facts) return null
  const column = name(users, verified.name)
  const any = `select 1 from ${rowsIn(users, [column])}`
  const count = await ask(
    knex,
    users,
    `select case when exists (${any}) and not exists (${any} where ${column} is not null) then 1 else 0 end as found`,
  )
  if (count === 0) return null
  const message = `No address in ${users.table} is verified (${verified.name} is null in every row), and oauthLinkByVerifiedEmail removes the password of such an account when a provider verifies its address. If your service verified these addresses, set ${verified.name} in the rows concerned. ${seeTroubleshooting('linking-over-unverified-addresses')}`
  return finding(users, verified.name, {
    what: 'unverified',
    level: 'warning',
    message,
    fails: 'A login by a provider removes the password of the account.',
  })
}

/** Counts up to `mostCounted`. The names must be quoted. */
export function countRows(knex: Knex, users: Subject, columns: readonly string[], condition: string): Promise<number> {
  const found = `select 1 as one from ${rowsIn(users, columns)} where ${condition} limit ${mostProbed}`
  return ask(knex, users, `select count(*) as found from (${found}) as counted`)
}

function rowsIn(users: Subject, columns: readonly string[]): string {
  if (users.dialect.name !== 'sqlite') return quotedTable(users)
  return `(select ${columns.join(', ')} from ${quotedTable(users)} limit ${sqliteRows}) as looked`
}

async function ask(knex: Knex, { dialect }: Subject, statement: string): Promise<number> {
  if (dialect.name === 'sqlite') return numberIn(await knex.raw(statement))
  if (dialect.name === 'mysql') return numberIn((await knex.raw(await limited(knex, statement)))[0])
  return knex.transaction(async (trx) => {
    await trx.raw(`set local statement_timeout = ${probeMs}`)
    return numberIn(rowsOf(await trx.raw(statement)))
  })
}

/** MariaDB and MySQL have different syntax for the timeout. */
async function limited(knex: Knex, statement: string): Promise<string> {
  const [found] = await knex.queryBuilder().select({ version: knex.raw('version()') })
  const isMariadb = /mariadb/i.test(String(found?.version))
  return isMariadb
    ? `set statement max_statement_time = ${probeMs / 1_000} for ${statement}`
    : statement.replace('select', `select /*+ max_execution_time(${probeMs}) */`)
}

function numberIn(rows: readonly Row[]): number {
  return Number(rows[0]?.['found'])
}

/** A statement of a finding would make half of a migration. Reads the catalogue only if a default table has a finding. */
export async function pendingFirst(place: SchemaPlace, findings: readonly TableFinding[]): Promise<TableFinding[]> {
  if (!findings.some((finding) => isOfDefaultTable(place, finding))) return [...findings]
  const pending = await pendingVersions(place)
  const isFixed = (finding: TableFinding) => isOfDefaultTable(place, finding) && pending.some((version) => fixes(version, finding))
  const fixed = findings.filter(isFixed)
  if (fixed.length === 0) return [...findings]
  return [pendingMigrations(pending.length, fixed), ...findings.filter((finding) => !isFixed(finding))]
}

function isOfDefaultTable({ hostTables }: SchemaPlace, { key }: TableFinding): boolean {
  return Object(hostTables)[recordOf(key)] === undefined
}

function fixes({ tables, columns = [], indexes = [] }: Version, { key }: TableFinding): boolean {
  const isOf = ({ record }: { record: string | null }) => record === recordOf(key)
  const isMissing = !/[.:]/.test(key)
  if (columns.some(({ record, name }) => key === `${record}.${name}`)) return true
  return (isMissing && tables.some(isOf)) || (indexes.some(isOf) && key.endsWith(':index'))
}

function recordOf(key: string): string {
  return key.split(/[.:]/, 1)[0] ?? key
}

function pendingMigrations(count: number, fixed: readonly TableFinding[]): TableFinding {
  const pending = count === 1 ? '1 migration is' : `${count} migrations are`
  const isError = fixed.some(({ level }) => level === 'error')
  return {
    key: 'migrations',
    level: isError ? 'error' : 'warning',
    table: '',
    column: null,
    message: `${pending} pending: run \`npx doorward migrate up\`. If your code makes the tables, it must call createAuthTables() or run the migrations. ${seeTroubleshooting('a-table-is-missing')}`,
    ...(!isError && { fails: 'Searches and the purge get slower with every row.' }),
    sql: null,
  }
}
