import type { Knex } from 'knex'
import type { Connection } from './connection'
import { databaseName } from './database-name'
import type { HostTables, Tables } from './default-tables'

/** Fields by which rows are looked up, whose column should compare byte for byte. */
const IDENTIFIERS: { readonly [T in keyof HostTables]-?: readonly string[] } = {
  users: ['id', 'email'],
  identities: ['userId', 'provider', 'subject'],
  userTokens: ['userId', 'tokenHash'],
  recoveryCodes: ['userId', 'codeHash'],
  sessions: ['id', 'userId', 'tokenHash'],
}

/**
 * Once, after the first verb that succeeded, the tables that the host named are looked at: what the store reads is compared again in
 * code, but a host should know where its database takes different texts for one. Says it through the host's own knex
 * logger; a database that will not tell is asked again later.
 */
export function announceLooseColumns(connection: Connection, knex: Knex, tables: Tables, hostTables: HostTables): Connection {
  const mapped = Object.entries(hostTables).filter(([, options]) => options)
  if (mapped.length === 0) return connection
  let asked = false

  const announce = async (): Promise<void> => {
    for (const [name] of mapped) {
      const loose = await looseColumns(connection, knex, tables, name as keyof HostTables) // bindTables refused other names
      if (loose.length === 0) continue
      knex.client.logger.warn(
        `doorward: the collation of ${loose.join(', ')} may take different texts for equal (letter case, accents or trailing blanks). Rows are compared again byte for byte, but give these columns a binary collation; see docs/store.md.`,
      )
    }
  }
  const afterwards = async <T>(verb: Promise<T>): Promise<T> => {
    const result = await verb
    if (!asked) {
      asked = true
      announce().catch(() => {
        asked = false
      })
    }
    return result
  }
  return {
    dialect: connection.dialect,
    statement: (verb, run) => afterwards(connection.statement(verb, run)),
    guarded: (verb, run) => afterwards(connection.guarded(verb, run)),
    together: (verb, run) => afterwards(connection.together(verb, run)),
    unit: (work, options) => afterwards(connection.unit(work, options)),
    whole: (verb, work) => connection.whole(verb, work),
  }
}

async function looseColumns(connection: Connection, knex: Knex, tables: Tables, name: keyof HostTables): Promise<string[]> {
  // The tables have different records; of each only names are asked here.
  const table = tables[name] as unknown as { name: string; bareColumn(field: string): string }
  const columns = IDENTIFIERS[name].map((field) => databaseName(knex, table.bareColumn(field)))
  const found = await connection.statement('looseColumns', (db) =>
    connection.dialect.looseColumns(db, databaseName(knex, table.name), columns),
  )
  return found.map((column) => `${table.name}.${column}`)
}
