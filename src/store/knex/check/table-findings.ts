import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import { troubleOf } from '../driver-errors'
import { finding, type Subject } from './subject'

/** Reports a missing table of the host. Missing default tables are pending migrations. */
export function missingTable(subject: Subject): TableFinding {
  const { record, table } = subject
  const message = `There is no table ${table}, or this role may not see it. Name your table in \`${record}.table\` of createKnexStore(), with its schema if it is in one (\`app.people\`). ${seeTroubleshooting('a-table-is-missing')}`
  return finding(subject, null, { level: 'error', message })
}

const unseen = 'A fault of this table shows only when a request fails.'

/** Reports a view. A view has no unique rules, and only the host knows the tables behind the view. */
export function viewInstead(subject: Subject): TableFinding {
  const message = `${subject.table} is not a table, but for example a view, so doorward did not check its columns and rules. ${seeTroubleshooting('a-table-cannot-be-looked-at')}`
  return finding(subject, null, { what: 'view', level: 'warning', message, fails: unseen })
}

export function unreadable(subject: Subject): TableFinding {
  const message = `The catalogue of the database says nothing about ${subject.table}, so doorward did not check its columns and rules. ${seeTroubleshooting('a-table-cannot-be-looked-at')}`
  return finding(subject, null, { what: 'unreadable', level: 'warning', message, fails: unseen })
}

const troubles = {
  'no database': 'The database does not exist. Create it, or correct its name in the connection of your knex instance',
  'refused login': 'The database refuses the user or the password of your knex instance. Correct its connection',
  unreachable: 'The database cannot be reached. Start it, or correct the connection of your knex instance',
}

/** Returns why no table can be used, with the driver's code. Returns null if the error is about something else. */
export function databaseTrouble(error: unknown): string | null {
  const { kind, code } = troubleOf(error)
  return kind in troubles ? `${troubles[kind as keyof typeof troubles]} (${code}).` : null
}

/** Makes a finding about the whole database. Its message contains the driver's code, never an address or a name. */
export function unusableDatabase(error: unknown): TableFinding {
  const message = databaseTrouble(error) ?? `${troubles.unreachable} (${troubleOf(error).code}).`
  return {
    key: 'database',
    level: 'error',
    table: '',
    column: null,
    message: `${message} doorward will try again. ${seeTroubleshooting('the-database-cannot-be-used')}`,
    sql: null,
  }
}
