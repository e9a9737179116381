/**
 * Tells the databases of CI not to wait for the disk: only a power cut could tell the difference, and creating tables takes
 * half of the time. Nothing else than tests may use these servers.
 */
import knex, { type Knex } from 'knex'

const postgres: Knex.Config = { client: 'pg', connection: process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test' }
const mariadb: Knex.Config = { client: 'mysql2', connection: process.env.DOORWARD_TEST_MYSQL ?? 'mysql://root@127.0.0.1:3306/' }

async function run(config: Knex.Config, statements: readonly string[]): Promise<void> {
  const server = knex({ ...config, pool: { min: 0, max: 1 } })
  try {
    for (const statement of statements) await server.raw(statement)
  } finally {
    await server.destroy()
  }
}

await run(postgres, ['alter system set fsync = off', 'select pg_reload_conf()'])
await run(mariadb, ['set global innodb_flush_log_at_trx_commit = 0', 'set global innodb_file_per_table = off', 'set global sync_frm = off'])
