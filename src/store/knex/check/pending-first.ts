import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import type { Version } from '../version'
import { pendingVersions, type SchemaPlace } from '../version-state'

/**
 * Replaces the findings that pending migrations fix by one finding, because a statement of such a finding would make half of a migration.
 * Reads the catalogue only if a default table has a finding.
 */
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

function fixes({ tables, indexes = [] }: Version, { key }: TableFinding): boolean {
  const isOf = ({ record }: { record: string | null }) => record === recordOf(key)
  const isMissing = !/[.:]/.test(key)
  return (isMissing && tables.some(isOf)) || (indexes.some(isOf) && key.endsWith(':index'))
}

/** Returns the option of the table. The key of a finding begins with it. */
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
