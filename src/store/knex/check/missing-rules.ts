import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../auth-store'
import { addForeignKey, addIndex, addUniqueRule } from './mend'
import { type CheckedColumn, columnsNamed, finding, type Subject, spelling } from './subject'
import type { IndexFacts } from './table-facts'

/** Finds unique rules that the table lacks. If two requests insert one value at once, only a unique rule stops the second request. */
export function missingUniqueRules(subject: Subject): TableFinding[] {
  return subject.expected.unique.flatMap((rule) => {
    const columns = columnsNamed(subject, rule)
    return columns ? missingUniqueRule(subject, rule.join(), columns) : []
  })
}

/** Without these rules, two accounts could have one address, or a token, identity or session could belong to two people. */
const VITAL: ReadonlySet<string> = new Set(['email', 'provider,subject', 'token_hash'])

function missingUniqueRule(subject: Subject, rule: string, columns: readonly CheckedColumn[]): TableFinding[] {
  const serving = subject.facts.indexes.filter((index) => index.isUnique && isRuleOf(subject, index, columns))
  if (serving.some(({ isPartial }) => !isPartial)) return []
  const isVital = VITAL.has(rule)
  const names = columns.map(({ name }) => name)
  const isPartial = serving.length > 0
  const lack = isPartial
    ? `has a unique index that does not contain every row, so two rows can have the same`
    : `has no unique rule, so two requests at once can store the same twice`
  const message = `${subject.table} (${names.join(', ')}) ${lack}. Add a unique index. If two rows have the same value already, decide by hand which row stays. ${seeTroubleshooting('a-unique-rule-is-missing')}`
  const level = isVital && !isPartial ? 'error' : 'warning'
  return [
    finding(subject, names, {
      what: 'unique',
      level,
      message,
      fails: 'Two requests at once can store one value twice.',
      sql: addUniqueRule(subject, names),
    }),
  ]
}

/** Returns true if the index enforces the rule. A unique index over only some of the columns is stricter, so it enforces the rule too. */
function isRuleOf(subject: Subject, { keys }: IndexFacts, columns: readonly CheckedColumn[]): boolean {
  return keys.length > 0 && keys.every((key) => columns.some((column) => isKey(subject, key, column)))
}

function isKey({ dialect, facts }: Subject, key: IndexFacts['keys'][number], column: CheckedColumn): boolean {
  if (key.column === null) return false
  const same = (one: string) => spelling(dialect, one) === spelling(dialect, column.name)
  const generated = facts.columns.find(({ name }) => spelling(dialect, name) === spelling(dialect, key.column ?? ''))?.lowerOf
  const isLowered = key.isLowered || generated != null
  return (!isLowered || column.field === 'email') && same(generated ?? key.column)
}

/** Finds missing indexes. The store needs the indexes to find, list and purge rows. */
export function missingIndexes(subject: Subject): TableFinding[] {
  const { facts, record, columns } = subject
  // The indexes of the users table serve only the list of users, which only administrators see.
  const isListed = record !== 'users' || columns.some(({ field }) => field === 'isAdmin')
  if (!isListed) return []
  return subject.expected.indexes.flatMap((index) => {
    const wanted = columnsNamed(subject, index)
    const [first] = wanted ?? []
    if (!wanted || !first) return []
    if (facts.indexes.some(({ isPartial, keys }) => !isPartial && keys[0] && isKey(subject, keys[0], first))) return []
    const names = wanted.map(({ name }) => name)
    const message = `${subject.table} has no index that begins with ${first.name}${names.length > 1 ? `, for example over ${names.join(', ')}` : ''}, so each search by ${first.name} reads the whole table. ${seeTroubleshooting('an-index-is-missing')}`
    return [
      finding(subject, first.name, {
        what: 'index',
        level: 'warning',
        message,
        fails: `A search by ${first.name} gets slower with every row.`,
        sql: addIndex(subject, names),
      }),
    ]
  })
}

/** Finds a missing foreign key to the users table. Without the foreign key, the rows of a deleted account stay. */
export function missingForeignKeys(subject: Subject, users: Subject): TableFinding[] {
  const userId = subject.columns.find(({ field }) => field === 'userId')
  const key = users.columns.find(({ field }) => field === 'id')
  if (!subject.expected.refersToUsers || !userId?.facts || !key || users.facts.kind !== 'table') return []
  const same = (name: string) => spelling(subject.dialect, name) === spelling(subject.dialect, userId.name)
  if (subject.facts.references.some((columns) => columns.some(same))) return []
  const message = `${subject.table}.${userId.name} has no foreign key to ${users.table}, so rows of a deleted account stay. ${seeTroubleshooting('a-foreign-key-is-missing')}`
  const sql = addForeignKey(subject, userId.name, { table: users.table, key: key.name })
  return [
    finding(subject, userId.name, { what: 'foreign-key', level: 'warning', message, fails: 'The rows of a deleted account stay.', sql }),
  ]
}
