import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { otherPassword, password } from '../local/people'

/** What decides is shown as it is; of the rest, whether it is there. */
const presented: Record<string, readonly string[]> = {
  auth_users: ['email', 'is_active', 'is_admin', 'name', 'hashed_password'],
  auth_identities: ['provider', 'subject', 'email'],
  auth_user_tokens: ['purpose', 'payload'],
  auth_recovery_codes: [],
  auth_sessions: ['kind', 'amr', 'generation', 'provider'],
}

/** Everything the tables hold, without what differs by chance: two runs of one story have one picture. */
export async function pictureOf(knex: Knex): Promise<string> {
  const lines: string[] = []
  for (const [table, columns] of Object.entries(presented)) {
    const rows: Record<string, unknown>[] = await knex(table)
    lines.push(...rows.map((row) => `${table} ${describeRow(row, columns)}`))
  }
  return withoutNumbers(lines).sort().join('\n')
}

export async function emptyTables(knex: Knex): Promise<void> {
  await knex('auth_users').delete() // the others refer to it
}

const hashes = new Map([password, otherPassword].map((word) => [`test$${createHash('sha256').update(word).digest('hex')}`, word]))

function describeRow(row: Record<string, unknown>, columns: readonly string[]): string {
  const words = Object.entries(row).map(([column, value]) => {
    if (value === null) return `${column}: none`
    if (column === 'hashed_password') return `${column}: ${hashes.get(String(value)) ?? 'generated'}`
    if (column.startsWith('is_')) return `${column}: ${Boolean(value)}`
    return columns.includes(column) ? `${column}: ${withoutChance(String(value))}` : `${column}: some`
  })
  return words.sort().join(', ')
}

/** Ids, random values and sealed secrets that a value holds. */
function withoutChance(value: string): string {
  return value
    .replace(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'an id')
    .replace(/"[\w-]{43}"/g, '"random"')
    .replace(/"v1\.[\w.-]+"/g, '"sealed"')
}

/** People are numbered through the whole run; here, from one. */
function withoutNumbers(lines: string[]): string[] {
  const pattern = /\b(local|person)-(\d+)-\d+/g
  const numbers = [...lines.join('\n').matchAll(pattern)].map(([, , number]) => Number(number))
  const ranks = [...new Set(numbers)].sort((one, other) => one - other)
  const named = lines.map((line) => line.replace(/\bPerson \d+/g, 'Person'))
  return named.map((line) => line.replace(pattern, (_whole, kind, number) => `${kind}-${ranks.indexOf(Number(number)) + 1}`))
}
