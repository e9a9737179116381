import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import type { HostColumns } from './host-columns'
import { dropNotNull } from './mend'
import { type CheckedColumn, finding, type Subject, spelling } from './subject'
import type { ColumnFacts } from './table-facts'
import type { TableNeeds } from './table-needs'

/** Finds NOT NULL columns that our INSERT leaves empty. */
export function unfilledColumns(subject: Subject, host: HostColumns, needs: TableNeeds): TableFinding[] {
  return [...columnsOfTheHost(subject, host, needs), ...nulledColumns(subject, host), ...keyWithoutValue(subject, host)]
}

function columnsOfTheHost(subject: Subject, { defaults, fields }: HostColumns, needs: TableNeeds): TableFinding[] {
  if (defaults === null) return [unknownDefaults(subject)]
  const { dialect, columns, facts } = subject
  const among = (names: readonly string[], wanted: string) => names.some((name) => spelling(dialect, name) === spelling(dialect, wanted))
  const ours = columns.map(({ name }) => name)
  return facts.columns
    .filter(({ name, isNotNull, isFilled, isGenerated }) => isNotNull && !isFilled && !isGenerated && !among([...ours, ...defaults], name))
    .flatMap(({ name }) => {
      const field = fields.find(({ column, isWritable }) => isWritable && among([column], name))
      if (!field) return [unfilled(subject, name)]
      return needs.makesAccountsOtherwise ? [filledBySignupOnly(subject, name, field.field)] : []
    })
}

function filledBySignupOnly(subject: Subject, column: string, field: string): TableFinding {
  const message = `${subject.table}.${column} is NOT NULL, and only a sign-up fills it (\`users.fields.${field}\`), so a login by a provider cannot create an account. Return a value for it from \`users.insertDefaults\` of createKnexStore() as well, or give the column a default. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, column, { level: 'error', message })
}

function unfilled(subject: Subject, column: string): TableFinding {
  const { record, table } = subject
  const message = `${table}.${column} is NOT NULL, and nothing fills it, so every INSERT fails. Return a value for it from \`${record}.insertDefaults\` of createKnexStore(), or give the column a default; if a trigger fills it, ignore this finding. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, column, { level: 'error', message })
}

function unknownDefaults(subject: Subject): TableFinding {
  const message = `\`${subject.record}.insertDefaults\` threw an error during the check, so doorward could not check ${subject.table} for NOT NULL columns that stay empty. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, null, {
    what: 'insertDefaults',
    level: 'warning',
    message,
    fails: 'An INSERT fails if a NOT NULL column stays empty.',
  })
}

/** The fields that are null in some rows, but not in all rows. The value says which operation leaves the field empty. */
const SOMETIMES_NULL: Readonly<Record<string, string>> = {
  name: 'A row without a name cannot be stored.',
  'users.name': 'Sign-up without a name fails.',
  'identities.name': 'A login by a provider that sends no name fails.',
  passwordSetAt: 'Sign-up without a password fails.',
  authenticatedAt: 'A session without a known login cannot be stored.',
  ip: 'A login from an unknown IP address fails.',
  userAgent: 'A login without a User-Agent header fails.',
  provider: 'A login without a provider fails.',
  email: 'A login by a provider that sends no email address fails.',
  emailVerified: 'A login by a provider that does not say whether the email address is verified fails.',
  picture: 'A login by a provider that sends no picture fails.',
}

/** What still fails if `insertDefaults` gives a new account a name. */
const NAME_LEFT = 'To remove a name fails.'

/** Finds columns of ours that are NOT NULL, although the store may write null into the column. */
function nulledColumns(subject: Subject, { texts }: HostColumns): TableFinding[] {
  return subject.columns.flatMap((column) => {
    const { facts, isNotNull } = column
    const isFilled = texts.some((name) => spelling(subject.dialect, name) === spelling(subject.dialect, column.name))
    return facts?.isNotNull && !facts.isGenerated && !isNotNull ? [nulled(subject, column, facts, isFilled)] : []
  })
}

function nulled(subject: Subject, { field, name }: CheckedColumn, facts: ColumnFacts, isFilled: boolean): TableFinding {
  const path = `${subject.record}.${field}`
  // The store takes no other column of ours from `insertDefaults`.
  const fails = isFilled && path === 'users.name' ? NAME_LEFT : (SOMETIMES_NULL[path] ?? SOMETIMES_NULL[field])
  const isAlways = fails === undefined
  const message = `${subject.table}.${name} is NOT NULL, and doorward writes null into it ${isAlways ? 'in every new row, so every INSERT fails' : 'if the value is unknown, so such an INSERT fails'}. Allow null in the column. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return finding(subject, name, {
    what: 'not-null',
    level: isAlways ? 'error' : 'warning',
    message,
    fails,
    sql: dropNotNull(subject, facts),
  })
}

/** Finds an integer key that the database does not make. */
function keyWithoutValue(subject: Subject, { defaults }: HostColumns): TableFinding[] {
  const id = subject.columns.find(({ field }) => field === 'id')
  if (id?.kind !== 'integer key' || !id.facts?.isNotNull || id.facts.isFilled || defaults === null) return []
  if (defaults.some((name) => spelling(subject.dialect, name) === spelling(subject.dialect, id.name))) return []
  const { record, table } = subject
  const message = `${table}.${id.name} is an integer key that the database does not make by itself, so every INSERT fails. Make it auto-increment (on SQLite: INTEGER PRIMARY KEY AUTOINCREMENT), or return it from \`${record}.insertDefaults\`. ${seeTroubleshooting('a-not-null-column-that-nobody-fills')}`
  return [finding(subject, id.name, { level: 'error', message })]
}
