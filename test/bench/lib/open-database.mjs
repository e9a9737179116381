/** The databases of the servers: the same driver with the same settings for everyone who is measured. */
import { join } from 'node:path'
import Database from 'better-sqlite3'
import knex from 'knex'
import pg from 'pg'

function settle(connection) {
  connection.pragma('journal_mode = WAL')
  connection.pragma('synchronous = NORMAL')
}

const filename = () => join(process.env.BENCH_FOLDER, 'app.sqlite')

/** The driver itself. */
export function openSqlite() {
  const connection = new Database(filename())
  settle(connection)
  return connection
}

/** SQLite through Knex; PostgreSQL or MariaDB where the environment names one (BENCH_POSTGRES or BENCH_MARIADB, and BENCH_SCHEMA in it). */
export function openKnex() {
  const { BENCH_POSTGRES: connection, BENCH_MARIADB, BENCH_SCHEMA } = process.env
  if (BENCH_MARIADB) return knex({ client: 'mysql2', connection: `${BENCH_MARIADB}${BENCH_SCHEMA}`, pool: { min: 0, max: 10 } })
  if (connection) return knex({ client: 'pg', connection, searchPath: [BENCH_SCHEMA], pool: { min: 0, max: 10 } })
  const afterCreate = (opened, done) => {
    settle(opened)
    done(null, opened)
  }
  return knex({
    client: 'better-sqlite3',
    connection: { filename: filename() },
    useNullAsDefault: true,
    pool: { min: 1, max: 1, afterCreate },
  })
}

/** The pool of an app, for `knexOn`. */
export function openAppPool() {
  const { BENCH_POSTGRES: connectionString, BENCH_SCHEMA } = process.env
  if (!connectionString) return openSqlite()
  return new pg.Pool({ connectionString, options: `-c search_path=${BENCH_SCHEMA}`, max: 10 })
}
