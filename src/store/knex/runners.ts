import { ConfigurationError } from '../../core/errors'
import type { Row } from './queryable'

/** Sends doorward's statements inside a transaction of another library. `kyselyRunner`, `drizzleRunner` and `prismaRunner` make one. */
export interface SqlRunner {
  readonly dialect: 'postgresql' | 'mysql' | 'sqlite'
  /**
   * Sends one statement on the connection of the transaction.
   *
   * @param sql the statement in the text of the database: PostgreSQL has `$1`, `$2`, the others have `?`
   * @param values one value for each placeholder. Only a value of your own column may be another type, for example a Date.
   * @param answer `rows` for a statement that returns rows; `count` for another one
   * @returns the rows; how many rows the statement changed, which UPDATE and DELETE must answer; on MySQL and MariaDB, the key that AUTO_INCREMENT made
   */
  run(sql: string, values: readonly SqlValue[], answer: 'rows' | 'count'): Promise<SqlAnswer>
}

/** A value that doorward binds. Instants are text in UTC, or milliseconds since 1970 on SQLite. */
export type SqlValue = string | number | boolean | null

/** What the database answered to one statement. */
export interface SqlAnswer {
  /** Each row by the names of its columns, unchanged. Empty for a statement that returns none. */
  readonly rows: readonly Row[]
  /** The number of changed rows. Null: the library does not say. It must for an UPDATE and a DELETE that return no rows. */
  readonly affected: number | null
  /** The key that AUTO_INCREMENT made, on MySQL and MariaDB. */
  readonly insertId?: number | bigint | string | undefined
}

export interface RunnerOptions {
  /** The database of the transaction. MariaDB is `mysql`. */
  readonly dialect: SqlRunner['dialect']
}

/** The parts of Kysely's `Transaction` that doorward uses. */
export interface KyselyTransaction<Query> {
  readonly isTransaction: boolean
  withoutPlugins(): { executeQuery(query: Query): Promise<KyselyResult> }
}

interface KyselyResult {
  readonly rows: readonly unknown[]
  readonly numAffectedRows?: bigint | undefined
  readonly insertId?: bigint | undefined
}

/** The part of `CompiledQuery` of Kysely that doorward uses. */
export interface KyselyCompiledQuery<Query> {
  raw(sql: string, values?: unknown[]): Query
}

export interface KyselyRunnerOptions<Query> extends RunnerOptions {
  /** `CompiledQuery` of `kysely`. */
  readonly CompiledQuery: KyselyCompiledQuery<Query>
}

/**
 * Runs doorward in a transaction of Kysely: `store.join(kyselyRunner(trx, { dialect: 'postgresql', CompiledQuery }))`.
 * @throws ConfigurationError outside a transaction
 */
export function kyselyRunner<Query>(trx: KyselyTransaction<Query>, { dialect, CompiledQuery }: KyselyRunnerOptions<Query>): SqlRunner {
  checkDialect('kyselyRunner', dialect)
  if (trx?.isTransaction !== true) throw outside('kyselyRunner', 'the `trx` that db.transaction().execute() passes')
  if (typeof CompiledQuery?.raw !== 'function')
    throw new ConfigurationError("kyselyRunner() needs `CompiledQuery`: import { CompiledQuery } from 'kysely'.")
  const plain = trx.withoutPlugins() // a plugin of the app may rename the columns
  return known('kyselyRunner', dialect, trx, async (sql, values) => {
    const { rows, numAffectedRows, insertId } = await plain.executeQuery(CompiledQuery.raw(sql, [...values]))
    return { rows: rows as Row[], affected: numAffectedRows === undefined ? null : Number(numAffectedRows), insertId }
  })
}

/** The parts of a transaction of Drizzle that doorward uses. */
export interface DrizzleTransaction<Query> {
  execute(query: Query): PromiseLike<unknown>
}

/** The parts of `sql` of Drizzle that doorward uses. */
export interface DrizzleSql<Query> {
  (text: TemplateStringsArray, ...values: unknown[]): Query
  param(value: unknown): unknown
}

export interface DrizzleRunnerOptions<Query> extends RunnerOptions {
  /** `sql` of `drizzle-orm`. */
  readonly sql: DrizzleSql<Query>
}

/**
 * Runs doorward in a transaction of Drizzle: `store.join(drizzleRunner(tx, { dialect: 'postgresql', sql }))`.
 * @throws ConfigurationError outside a transaction, and on SQLite, where a transaction of Drizzle cannot wait for a promise
 */
export function drizzleRunner<Query>(tx: DrizzleTransaction<Query>, { dialect, sql }: DrizzleRunnerOptions<Query>): SqlRunner {
  checkDialect('drizzleRunner', dialect)
  if (dialect === 'sqlite')
    throw new ConfigurationError(
      'drizzleRunner() does not support SQLite, because a transaction of Drizzle is synchronous there. Use knexOn(), and write the rows of your app in onSignup.',
    )
  if (typeof (tx as { rollback?: unknown } | undefined)?.rollback !== 'function')
    throw outside('drizzleRunner', 'the `tx` that db.transaction() passes')
  if (typeof sql?.param !== 'function') throw new ConfigurationError("drizzleRunner() needs `sql`: import { sql } from 'drizzle-orm'.")
  return known('drizzleRunner', dialect, tx, async (text, values) => {
    const { parts, places } = split(text, PLACEHOLDERS[dialect])
    const given = places.map((place) => sql.param(values[place])) // by itself, Drizzle spreads an array, and reads an object as its own
    return drizzleAnswer(await tx.execute(sql(Object.assign(parts, { raw: parts }), ...given)))
  })
}

/** Outside of quoted names and texts, a placeholder is `$` and its number on PostgreSQL, where `?` is an operator, and `?` on MySQL. */
const PLACEHOLDERS = {
  postgresql: /'(?:[^']|'')*'|"(?:[^"]|"")*"|(\$(?:[a-z_]\w*)?\$)[\s\S]*?\1|\$(?<number>\d+)/gi,
  mysql: /'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*"|`(?:[^`]|``)*`|(?<next>\?)/g,
} as const

function split(text: string, pattern: RegExp): { parts: string[]; places: number[] } {
  const [parts, places]: [string[], number[]] = [[], []]
  let end = 0
  for (const { 0: found, index, groups: { number, next } = {} } of text.matchAll(pattern)) {
    if (number === undefined && next === undefined) continue
    parts.push(text.slice(end, index))
    places.push(number === undefined ? places.length : Number(number) - 1)
    end = index + found.length
  }
  return { parts: [...parts, text.slice(end)], places }
}

interface DriverResult {
  readonly rows?: readonly Row[]
  readonly rowCount?: number | null
  readonly count?: number | null
  readonly affectedRows?: number | null
  readonly insertId?: number | string
}

/** `pg` and its relatives answer an object with `rows`, `postgres` the rows themselves, and `mysql2` a pair of rows or header and columns. */
function drizzleAnswer(result: unknown): SqlAnswer {
  const isPair = Array.isArray(result) && result.length === 2 && (Array.isArray(result[1]) || result[1] === undefined)
  const answer: DriverResult | Row[] = isPair ? result[0] : result
  const { rows, rowCount, count, affectedRows, insertId }: DriverResult = answer as DriverResult // an array has none of them but `count`
  return { rows: Array.isArray(answer) ? answer : (rows ?? []), affected: rowCount ?? count ?? affectedRows ?? null, insertId }
}

/** The parts of a transaction of Prisma that doorward uses. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: unknown[]): PromiseLike<unknown>
  $executeRawUnsafe(sql: string, ...values: unknown[]): PromiseLike<number>
}

/**
 * Runs doorward in an interactive transaction of Prisma: `store.join(prismaRunner(tx, { dialect: 'postgresql' }))`.
 * @throws ConfigurationError outside a transaction, and for another database than PostgreSQL
 */
export function prismaRunner(tx: PrismaTransaction, { dialect }: RunnerOptions): SqlRunner {
  checkDialect('prismaRunner', dialect)
  if (dialect !== 'postgresql')
    throw new ConfigurationError(
      `prismaRunner() supports PostgreSQL only, not ${dialect}, because Prisma reads some columns of the others differently. Use knexOn(), and write the rows of your app in onSignup.`,
    )
  if (typeof tx?.$queryRawUnsafe !== 'function' || typeof (tx as { $connect?: unknown }).$connect === 'function')
    throw outside('prismaRunner', 'the `tx` that prisma.$transaction(async (tx) => …) passes')
  return known('prismaRunner', dialect, tx, async (sql, values, answer) => {
    if (answer === 'count') return { rows: [], affected: await tx.$executeRawUnsafe(sql, ...values) }
    return { rows: (await tx.$queryRawUnsafe(sql, ...values)) as Row[], affected: null }
  })
}

const DIALECTS = ['postgresql', 'mysql', 'sqlite']

/** @throws ConfigurationError */
export function checkDialect(name: string, dialect: unknown): void {
  if (!DIALECTS.includes(String(dialect)))
    throw new ConfigurationError(`${name}(): \`dialect\` must be one of ${DIALECTS.join(', ')}. MariaDB is mysql.`)
}

function outside(name: string, wanted: string): ConfigurationError {
  return new ConfigurationError(`${name}() needs a transaction: ${wanted}. Outside of a transaction, use the store itself.`)
}

interface Known {
  readonly kind: string
  readonly transaction: object
}

const ours = new WeakMap<SqlRunner, Known>()

function known(name: string, dialect: SqlRunner['dialect'], transaction: object, run: SqlRunner['run']): SqlRunner {
  const runner = { dialect, run }
  ours.set(runner, { kind: `${name}/${dialect}`, transaction })
  return runner
}

/** Null: the app wrote the runner. */
export function kindOf(runner: SqlRunner): string | null {
  return ours.get(runner)?.kind ?? null
}

/** The object of the library. A runner of the app stands for its transaction itself. */
export function libraryTransactionOf(runner: SqlRunner): object {
  return ours.get(runner)?.transaction ?? runner
}
