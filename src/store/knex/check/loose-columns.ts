import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import type { HostTables } from '../default-tables'
import { changeType } from './mend'
import { textTypeOf } from './narrow-columns'
import { type CheckedColumn, finding, type Subject } from './subject'
import type { ColumnFacts } from './table-facts'
import type { TableNeeds } from './table-needs'

/** The fields by which the store finds rows. Their columns should compare byte for byte. */
const IDENTIFIERS: { readonly [T in keyof HostTables]-?: readonly string[] } = {
  users: ['id', 'email'],
  identities: ['userId', 'provider', 'subject'],
  userTokens: ['userId', 'tokenHash'],
  recoveryCodes: ['userId', 'codeHash'],
  passkeys: ['id', 'userId', 'credentialId'],
  sessions: ['id', 'userId', 'tokenHash'],
  emailLogins: ['id', 'email', 'tokenHash'],
}

/**
 * Finds columns whose collation treats different texts as equal. The store compares the rows again in code, so a loose collation never lets
 * a person sign in as another person.
 */
export function looseColumns(subject: Subject, needs: TableNeeds): TableFinding[] {
  return subject.columns.flatMap((column) => {
    const { field, facts } = column
    if (!facts || facts.looseness === 'none' || !IDENTIFIERS[subject.record].includes(field)) return []
    // Addresses are already in lower case, so a collation that ignores only the case is harmless.
    return field === 'email' && facts.looseness === 'case' ? [] : [loose(subject, column, facts, needs)]
  })
}

function loose(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): TableFinding {
  const { field, name } = column
  const message = `The collation of ${subject.table}.${name} may treat different texts as equal (letter case, accents or trailing blanks). doorward compares the rows again byte for byte, so nobody gets another account. Still, give the column a binary collation. ${seeTroubleshooting('a-collation-is-not-byte-exact')}`
  const isKey = field === 'id' || field === 'userId' // the two columns of a foreign key must change together, by hand
  const fails = `A unique rule on ${name} refuses a value that only resembles another.`
  return finding(subject, name, {
    what: 'collation',
    level: 'warning',
    message,
    fails,
    sql: isKey ? null : exact(subject, column, facts, needs),
  })
}

/**
 * Returns the statement that gives the column a binary collation. The statement repeats the wanted width, because it runs after the
 * statement that changes the width, and would otherwise undo that change.
 */
function exact(subject: Subject, column: CheckedColumn, facts: ColumnFacts, needs: TableNeeds): string | null {
  const wide = textTypeOf(subject, column, facts, needs)
  if (subject.dialect.name === 'mysql') return changeType(subject, facts, `${wide} ${nopad(facts)}`)
  const type = facts.looseness === 'case' ? 'text' : wide
  return changeType(subject, facts, `${type} collate "C"`)
}

/** Returns the binary collation without padding. MariaDB and MySQL have different names for it. */
function nopad({ charset }: ColumnFacts): string {
  return /0900/.test(charset) ? 'character set utf8mb4 collate utf8mb4_0900_bin' : 'character set utf8mb4 collate utf8mb4_nopad_bin'
}
