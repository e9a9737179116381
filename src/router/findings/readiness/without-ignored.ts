import type { TableFinding } from '../../../store/auth-store'

/**
 * Returns the findings that the host does not ignore, the errors first. A key in `ignore` may also begin with the table's real name, such
 * as `people.email:unique`.
 */
export function withoutIgnored(findings: readonly TableFinding[], ignore: readonly string[]): TableFinding[] {
  const ignored = new Set(ignore)
  const kept = findings.filter((finding) => !ignored.has(finding.key) && !ignored.has(keyByTable(finding)))
  return [...kept.filter(({ level }) => level === 'error'), ...kept.filter(({ level }) => level !== 'error')]
}

function keyByTable({ key, table }: TableFinding): string {
  return key.replace(/^\w+/, table)
}
