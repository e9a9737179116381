import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import knex, { type Knex } from 'knex'

export type DatabaseName = 'sqlite' | 'postgres'

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
}

export interface Database {
  readonly name: DatabaseName
  open(options?: OpenOptions): Promise<OpenDatabase>
}

const POSTGRES_URL = process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test'
const IN_CI = process.env.CI === 'true' || process.env.CI === '1'

let reachable: Promise<readonly Database[]> | undefined

/**
 * The databases that answer. A missing PostgreSQL is announced and its tests are left out; with CI=true it is an error,
 * so that no pipeline passes without it.
 */
export function databases(): Promise<readonly Database[]> {
  reachable ??= findReachable()
  return reachable
}

async function findReachable(): Promise<readonly Database[]> {
  const problem = await postgresProblem()
  if (problem === null) return [sqlite, postgres]
  const message = `PostgreSQL is not reachable (DOORWARD_TEST_PG, default 127.0.0.1:5432/test): ${problem}`
  if (IN_CI) throw new Error(message)
  console.warn(`\n*** SKIPPED: every test on PostgreSQL. ${message} ***\n`)
  return [sqlite]
}

async function postgresProblem(): Promise<string | null> {
  const probe = knex({ client: 'pg', connection: { connectionString: POSTGRES_URL, connectionTimeoutMillis: 3000 }, log: { warn() {} } })
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

const postgres: Database = {
  name: 'postgres',
  async open({ pool = { min: 0, max: 5 } } = {}) {
    const schema = `doorward_${randomBytes(6).toString('hex')}`
    await asAdministrator((admin) => admin.raw('create schema ??', [schema]))
    const config: Knex.Config = { client: 'pg', connection: POSTGRES_URL, searchPath: [schema] }
    return opened({ config, pool, shareable: true }, () => asAdministrator((admin) => admin.raw('drop schema ?? cascade', [schema])))
  },
}

/** No waiting for the disk: only a power cut could tell the difference. */
export function withoutFsync(pool: Knex.PoolConfig): Knex.PoolConfig {
  const afterCreate = (connection: { pragma(text: string): unknown }, done: (error: null, connection: unknown) => void) => {
    connection.pragma('synchronous = off')
    done(null, connection)
  }
  return { afterCreate, ...pool }
}

async function asAdministrator(work: (admin: Knex) => Promise<unknown>): Promise<void> {
  const admin = knex({ client: 'pg', connection: POSTGRES_URL, pool: { min: 0, max: 1 } })
  try {
    await work(admin)
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
  const connect = (size: Knex.PoolConfig = pool): Knex => {
    const instance = knex({ ...config, pool: config.client === 'pg' ? size : withoutFsync(size), acquireConnectionTimeout: 5000 })
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
