import type { Knex } from 'knex'
import { ConfigurationError, ServiceUnavailableError } from '../../core/errors'
import { fromColumn } from './column-values'
import type { Dialect } from './dialect'
import { translateDriverError } from './driver-errors'
import type { Row, Statement } from './queryable'
import { kindOf, type SqlRunner } from './runners'

const checked = new Set<string>()

/**
 * Checks once per process and kind of runner that values come back as they were sent. A runner of the app is checked each time, and also
 * for its transaction, because doorward knows nothing about it.
 * @throws ConfigurationError
 */
export async function checkRunner(trx: Knex.Transaction, dialect: Dialect, runner: SqlRunner): Promise<void> {
  const kind = kindOf(runner)
  if (kind !== null && checked.has(kind)) return
  if (kind === null && !(await isInTransaction(trx, dialect)))
    throw new ConfigurationError(
      'store.join(): the runner is not inside a transaction; begin one, and send every statement on its connection.',
    )
  const changed = changedValue(await answered(trx, dialect))
  if (changed)
    throw new ConfigurationError(
      `store.join(): ${changed} does not come back from the database as it was sent. Take away the type parser, plugin or option of the library that changes it.`,
    )
  if (kind !== null) checked.add(kind)
}

const instant = new Date('2021-03-14T01:59:59.123-04:00')
const largest = '9007199254740993'
const words = '$1 ?'

async function answered(trx: Knex.Transaction, dialect: Dialect): Promise<Row> {
  try {
    const [row = {}] = await dialect.run(trx, statements[dialect.name])
    return row
  } catch (error) {
    const failure = translateDriverError('store.join', error)
    if (failure instanceof ServiceUnavailableError) throw failure
    throw new ConfigurationError(`store.join(): the runner cannot run a statement of ${dialect.name}. ${failure.message}.`)
  }
}

/** Each in the form in which a column of doorward holds it. */
const statements: Readonly<Record<Dialect['name'], Statement>> = {
  postgresql: {
    sql: "select to_json(cast(? as timestamptz)) #>> '{}' as instant, cast(? as bigint) as largest, cast(? as boolean) as flag, cast(? as text) as words",
    bindings: ['2021-03-14T01:59:59.123-04:00', largest, true, words],
  },
  mysql: {
    sql: "select date_format(cast(? as datetime(3)), '%Y-%m-%dT%H:%i:%s.%fZ') as instant, cast(cast(? as signed) as char) as largest, cast(? as signed) as flag, cast(? as char) as words",
    bindings: ['2021-03-14 05:59:59.123', largest, 1, words],
  },
  sqlite: {
    sql: 'select cast(? as integer) as instant, cast(cast(? as integer) as text) as largest, cast(? as integer) as flag, cast(? as text) as words',
    bindings: [instant.getTime(), largest, 1, words],
  },
}

function changedValue(row: Row): string | null {
  const values = [
    ['an instant', () => (fromColumn('native', row['instant']) as Date).getTime() === instant.getTime()],
    ['a number of 64 bits', () => fromColumn('integer key', row['largest']) === largest],
    ['a boolean', () => fromColumn('boolean', row['flag']) === true],
    ['a text with a placeholder', () => row['words'] === words],
  ] as const
  return values.find(([, isSame]) => !isTrue(isSame))?.[0] ?? null
}

/** A value that cannot be read throws. */
function isTrue(check: () => boolean): boolean {
  try {
    return check()
  } catch {
    return false
  }
}

async function isInTransaction(trx: Knex.Transaction, { name }: Dialect): Promise<boolean> {
  return name === 'sqlite' ? isInSqliteTransaction(trx) : acceptsSavepoint(trx)
}

let savepoints = 0

/** PostgreSQL refuses the first statement outside of a transaction, and MariaDB the second. */
async function acceptsSavepoint(trx: Knex.Transaction): Promise<boolean> {
  savepoints += 1
  try {
    await trx.raw(`savepoint doorward_join_${savepoints}`)
    await trx.raw(`release savepoint doorward_join_${savepoints}`)
    return true
  } catch (error) {
    const { code } = Object(error) as { code?: unknown }
    if (code === '25P01' || code === 'ER_SP_DOES_NOT_EXIST') return false
    throw translateDriverError('store.join', error)
  }
}

/** A savepoint would begin a transaction there. SQLite refuses this pragma inside of one, and outside it changes nothing. */
async function isInSqliteTransaction(trx: Knex.Transaction): Promise<boolean> {
  const [row] = await trx.raw('pragma synchronous')
  const level = Number(row?.synchronous)
  return trx.raw(`pragma synchronous = ${level}`).then(
    () => false,
    () => true,
  )
}
