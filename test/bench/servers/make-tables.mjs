/** The tables of the hosts of `lib/hosts.mjs`, before any of them is measured: as in a deployment that is not its first. */
import { getMigrations } from 'better-auth/db/migration'
import Database from 'better-sqlite3'
import knex from 'knex'

const { createAuthTables } = await import('../../../dist/index.mjs')

const filename = process.env.BENCH_DATABASE
const db = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
await createAuthTables(db)
await db.destroy()
const options = { database: new Database(filename), secret: 'an-only-secret-for-measuring-7f3b9a61', emailAndPassword: { enabled: true } }
await (await getMigrations(options)).runMigrations()
