import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'
import { isQuick } from './quick'
import { poolOfOne } from './torture'

export type DatabaseName = 'sqlite' | 'postgres' | 'mariadb'

/** One isolated, empty database. */
export interface OpenDatabase {
  readonly knex: Knex
  /** For `knex(config)` in another process; null for a database that lives in this one only. */
  readonly config: Knex.Config | null
  /** A second pool on the same database; closed with it. */
  connect(pool?: Knex.PoolConfig): Knex
  close(): Promise<void>
}

export interface OpenOptions {
  /** SQLite only: no file. */
  memory?: boolean
  pool?: Knex.PoolConfig
  /** MariaDB only: more options of the driver, as a host may have set them. */
  driver?: Omit<Knex.MySql2ConnectionConfig, 'flags'> & { flags?: readonly string[] }
}

export interface Database {
  readonly name: DatabaseName
  open(options?: OpenOptions): Promise<OpenDatabase>
}

const POSTGRES_URL = process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test'
const MYSQL_URL = process.env.DOORWARD_TEST_MYSQL ?? 'mysql://root@127.0.0.1:3306/'
const IN_CI = process.env.CI === 'true' || process.env.CI === '1'

let reachable: Promise<readonly Database[]> | undefined

/**
 * The databases that answer. A missing server is announced and its tests are left out; with CI=true it is an error, so
 * that no pipeline passes without it. The quick suite has SQLite only.
 */
export function databases(): Promise<readonly Database[]> {
  reachable ??= findReachable()
  return reachable
}

async function findReachable(): Promise<readonly Database[]> {
  const found = [sqlite]
  if (isQuick) return found
  for (const { database, title, variable, config } of SERVERS) {
    const problem = await problemOf(config)
    if (problem === null) found.push(database)
    else announce(title, `${title} is not reachable (${variable}): ${problem}`)
  }
  return found
}

function announce(title: string, message: string): void {
  if (IN_CI) throw new Error(message)
  console.warn(`\n*** SKIPPED: every test on ${title}. ${message} ***\n`)
}

async function problemOf(config: Knex.Config): Promise<string | null> {
  const probe = knex({ ...config, pool: { min: 0, max: 1 }, acquireConnectionTimeout: 30_000, log: { warn() {} } })
  try {
    await probe.raw('select 1')
    return null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await probe.destroy()
  }
}

const sqlite: Database = {
  name: 'sqlite',
  async open({ memory = false, pool = { min: 1, max: 1 } } = {}) {
    const folder = memory ? null : mkdtempSync(join(tmpdir(), 'doorward-'))
    const filename = folder ? join(folder, 'test.sqlite') : ':memory:'
    const config: Knex.Config = { client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true }
    return opened({ config, pool, shareable: folder !== null }, async () => {
      if (folder) rmSync(folder, { recursive: true, force: true })
    })
  },
}

const postgresServer: Knex.Config = { client: 'pg', connection: POSTGRES_URL }

const postgres: Database = {
  name: 'postgres',
  async open({ pool = { min: 0, max: 5 } } = {}) {
    const schema = `doorward_${randomBytes(6).toString('hex')}`
    await asAdministrator(postgresServer, 'create schema ??', schema)
    const config: Knex.Config = { ...postgresServer, searchPath: [schema] }
    return opened({ config, pool, shareable: true }, () => asAdministrator(postgresServer, 'drop schema ?? cascade', schema))
  },
}

// The server's own settings: its default collation ignores case and trailing blanks, its isolation is REPEATABLE READ.
const mysqlServer: Knex.Config = { client: 'mysql2', connection: MYSQL_URL }

const mariadb: Database = {
  name: 'mariadb',
  async open({ pool = { min: 0, max: 5 }, driver = {} } = {}) {
    const name = `doorward_${randomBytes(6).toString('hex')}`
    await asAdministrator(mysqlServer, 'create database ??', name)
    const { hostname, port, username, password } = new URL(MYSQL_URL)
    const address = {
      host: hostname,
      port: Number(port || 3306),
      user: decodeURIComponent(username),
      password: decodeURIComponent(password),
    }
    const config: Knex.Config = { client: 'mysql2', connection: { ...address, database: name, ...driver } }
    return opened({ config, pool, shareable: true }, () => asAdministrator(mysqlServer, 'drop database ??', name))
  },
}

const SERVERS: readonly { database: Database; title: string; variable: string; config: Knex.Config }[] = [
  { database: postgres, title: 'PostgreSQL', variable: 'DOORWARD_TEST_PG, default 127.0.0.1:5432/test', config: postgresServer },
  { database: mariadb, title: 'MariaDB', variable: 'DOORWARD_TEST_MYSQL, default root@127.0.0.1:3306', config: mysqlServer },
]

/** No waiting for the disk: only a power cut could tell the difference. */
export function withoutFsync(pool: Knex.PoolConfig): Knex.PoolConfig {
  const afterCreate = (connection: { pragma(text: string): unknown }, done: (error: null, connection: unknown) => void) => {
    connection.pragma('synchronous = off')
    done(null, connection)
  }
  return { afterCreate, ...pool }
}

async function asAdministrator(server: Knex.Config, statement: string, name: string): Promise<void> {
  const admin = knex({ ...server, pool: { min: 0, max: 1 } })
  try {
    await admin.raw(statement, [name])
  } finally {
    await admin.destroy()
  }
}

interface Opening {
  config: Knex.Config
  pool: Knex.PoolConfig
  shareable: boolean
}

function opened({ config, pool, shareable }: Opening, cleanUp: () => Promise<void>): OpenDatabase {
  const pools: Knex[] = []
  const connect = (asked: Knex.PoolConfig = pool): Knex => {
    const size = poolOfOne ? { ...asked, min: 0, max: 1 } : asked
    const instance = knex({
      ...config,
      pool: config.client === 'better-sqlite3' ? withoutFsync(size) : size,
      acquireConnectionTimeout: 5000,
    })
    pools.push(instance)
    return instance
  }
  return {
    knex: connect(),
    config: shareable ? config : null,
    connect,
    async close() {
      await Promise.all(pools.map((instance) => instance.destroy()))
      await cleanUp()
    },
  }
}
