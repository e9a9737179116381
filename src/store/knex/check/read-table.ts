import type { Knex } from 'knex'
import type { Dialect } from '../dialect'
import { troubleOf } from '../driver-errors'
import { noFacts, type TableFacts } from './table-facts'

/** Reads the table itself if the catalogue does not know it. @throws the driver's error if the store cannot use the database at all */
export async function readTable(knex: Knex, dialect: Dialect, table: string): Promise<TableFacts> {
  const facts = await orUnreadable(() => dialect.readTable(knex, table))
  return facts.kind === 'missing' ? orUnreadable(() => confirmMissing(knex, dialect, table)) : facts
}

/** A database role may use a table even if the catalogue hides the table from the role. */
async function confirmMissing(knex: Knex, dialect: Dialect, table: string): Promise<TableFacts> {
  await knex.raw(`select 1 from ${quotedPath(table, dialect.name === 'mysql' ? '`' : '"')} where 1 = 0`)
  return noFacts('unreadable')
}

async function orUnreadable(read: () => Promise<TableFacts>): Promise<TableFacts> {
  try {
    return await read()
  } catch (error) {
    const { kind } = troubleOf(error)
    if (kind === 'missing table') return noFacts('missing')
    if (kind === 'other') return noFacts('unreadable')
    throw error
  }
}

export function quotedPath(path: string, quote: '"' | '`'): string {
  return path
    .split('.')
    .map((part) => quotedName(part, quote))
    .join('.')
}

export function quotedName(name: string, quote: '"' | '`'): string {
  return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`
}
