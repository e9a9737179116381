import type { Knex } from 'knex'
import { poolConnection } from './connection'
import { type Dialect, dialectOf } from './dialect'
import { type TableSchema, VERSIONS, type Version } from './schema-versions'

/**
 * Makes the default tables where they are missing. Idempotent, and safe when several processes start at once.
 *
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export async function createAuthTables(knex: Knex): Promise<void> {
  const dialect = dialectOf(knex)
  const connection = poolConnection(knex, dialect)
  for (const version of VERSIONS) {
    if (dialect.withSchemaLock) await connection.together('createAuthTables', (trx) => apply(trx, dialect, version))
    else await connection.statement('createAuthTables', (db) => apply(db, dialect, version))
  }
}

/**
 * The same tables as versioned knex migrations. Give them a bookkeeping table of their own, since knex expects to find
 * every migration it once ran: `knex.migrate.latest({ migrationSource, tableName: 'auth_migrations' })`.
 */
export const migrationSource: Knex.MigrationSource<unknown> = {
  getMigrations: async () => [...VERSIONS],
  getMigrationName: (version) => (version as Version).name, // knex hands back what getMigrations returned
  getMigration: async (version) => ({
    up: (knex: Knex) => apply(knex, dialectOf(knex), version as Version), // as above
    async down(knex: Knex) {
      for (const { name } of (version as Version).tables.toReversed()) await knex.schema.dropTableIfExists(name) // as above
    },
  }),
}

async function apply(db: Knex, dialect: Dialect, version: Version): Promise<void> {
  const create = async () => {
    const options = await dialect.tableOptions(db)
    for (const table of version.tables) for (const statement of statements(table, dialect, options)) await db.raw(statement)
  }
  return dialect.withSchemaLock ? dialect.withSchemaLock(db, create) : create()
}

function statements({ name, columns, constraints, indexes }: TableSchema, dialect: Dialect, options: string): readonly string[] {
  const inside = dialect.indexesInTable ? indexes.map((index) => `index ${index.name} (${index.columns})`) : []
  const lines = [...columns(dialect.types), ...constraints, ...inside]
  const after = dialect.indexesInTable ? [] : indexes
  return [
    `create table if not exists ${name} (\n  ${lines.join(',\n  ')}\n) ${options}`.trimEnd(),
    ...after.map((index) => `create index if not exists ${index.name} on ${name} (${index.columns})`),
  ]
}
