export interface TableAndColumn {
  readonly problem: 'missing table' | 'missing column' | 'null' | 'too long' | null
  /** Names in the database. Null: the driver does not say. */
  readonly table: string | null
  readonly column: string | null
}

/** Knex puts the statement and its values before the message. So each pattern matches the end, and accepts only characters of names. */
export function tableAndColumnOf(code: string, error: unknown): TableAndColumn {
  if (!(error instanceof Error)) return nowhere
  for (const [codes, pattern, problem] of patterns) {
    if (!codes.test(code)) continue
    const { table, column, path } = pattern.exec(error.message)?.groups ?? {}
    if (table !== undefined || column !== undefined || path !== undefined) return { problem, ...named({ table, column, path }) }
  }
  const problem = problems.get(code) ?? null
  return problem === null ? nowhere : { problem, table: word(error, 'table'), column: word(error, 'column') }
}

/** The table of a foreign key that refers to the row. SQLite does not say, so `delete-user` adds the name. Null: unknown. */
export function referringTableOf(code: string, error: unknown): string | null {
  if (!(error instanceof Error)) return null
  return code.startsWith('ER_') ? (referring.exec(error.message)?.groups?.['table'] ?? null) : word(error, 'table')
}

const nowhere: TableAndColumn = { problem: null, table: null, column: null }

const NAME = String.raw`[\w$][\w$ .-]{0,127}`
const part = (group: string) => `(?<${group}>${NAME})`

const referring = new RegExp(
  ` - Cannot delete or update a parent row: a foreign key constraint fails \\(\`[^\`]+\`\\.\`${part('table')}\`, CONSTRAINT [^']*$`,
)

const patterns: readonly (readonly [RegExp, RegExp, NonNullable<TableAndColumn['problem']>])[] = [
  [/^42P01$/, new RegExp(` - relation "${part('table')}" does not exist$`), 'missing table'],
  [/^42703$/, new RegExp(` - column "${part('column')}" of relation "${part('table')}" does not exist$`), 'missing column'],
  [/^42703$/, new RegExp(` - column "?${part('path')}"? does not exist$`), 'missing column'],
  [/^ER_NO_SUCH_TABLE$/, new RegExp(` - Table '${part('table')}' doesn't exist$`), 'missing table'],
  [/^ER_BAD_FIELD_ERROR$/, new RegExp(` - Unknown column '${part('path')}' in '[\\w ]+'$`), 'missing column'],
  [/^ER_(NO_DEFAULT_FOR_FIELD)$/, new RegExp(` - Field '${part('column')}' doesn't have a default value$`), 'null'],
  [/^ER_BAD_NULL_ERROR$/, new RegExp(` - Column '${part('column')}' cannot be null$`), 'null'],
  [/^ER_DATA_TOO_LONG$/, new RegExp(` - Data too long for column '${part('column')}' at row \\d+$`), 'too long'],
  [/^SQLITE_ERROR$/, new RegExp(` - no such table: ${part('table')}$`), 'missing table'],
  [/^SQLITE_ERROR$/, new RegExp(` - no such column: ${part('path')}$`), 'missing column'],
  [/^SQLITE_ERROR$/, new RegExp(` - table ${part('table')} has no column named ${part('column')}$`), 'missing column'],
  [/^SQLITE_CONSTRAINT_NOTNULL$/, new RegExp(` - NOT NULL constraint failed: ${part('path')}$`), 'null'],
]

/** The driver of PostgreSQL adds table and column as properties of the error. */
const problems: ReadonlyMap<string, NonNullable<TableAndColumn['problem']>> = new Map([
  ['42P01', 'missing table'],
  ['42703', 'missing column'],
  ['ER_NO_SUCH_TABLE', 'missing table'],
  ['ER_BAD_FIELD_ERROR', 'missing column'],
  ['23502', 'null'],
  ['22001', 'too long'],
  ['ER_DATA_TOO_LONG', 'too long'],
])

function named({ table, column, path }: { table?: string | undefined; column?: string | undefined; path?: string | undefined }) {
  const parts = path?.split('.') ?? []
  const name = column ?? parts.at(-1) ?? null
  return {
    table: table ?? (parts.length > 1 ? parts.slice(0, -1).join('.') : null),
    column: table !== undefined && column === undefined ? null : name,
  }
}

function word(error: Error, key: 'table' | 'column'): string | null {
  const value = (error as { table?: unknown; column?: unknown })[key] // as pg adds them
  return typeof value === 'string' && new RegExp(`^${NAME}$`).test(value) ? value : null
}
