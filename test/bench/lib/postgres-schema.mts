import { randomBytes } from 'node:crypto'
import knex, { type Knex } from 'knex'

const url = process.env.DOORWARD_TEST_PG ?? 'postgres://postgres@127.0.0.1:5432/test'

/** A schema of its own for one server. */
export interface Schema {
  /** What tells a server about it. */
  readonly environment: Readonly<Record<string, string>>
  /** For what the bench itself has to do in it. */
  connect(): Knex
  drop(): Promise<void>
}

export async function createSchema(): Promise<Schema> {
  const name = `doorward_bench_${randomBytes(6).toString('hex')}`
  await administer((admin) => admin.raw('create schema ??', name))
  return {
    environment: { BENCH_POSTGRES: url, BENCH_SCHEMA: name },
    connect: () => knex({ client: 'pg', connection: url, searchPath: [name], pool: { min: 0, max: 1 } }),
    drop: () => administer((admin) => admin.raw('drop schema ?? cascade', name)),
  }
}

/** Says so where there is none. */
export async function hasPostgres(): Promise<boolean> {
  try {
    await administer((admin) => admin.raw('select 1'))
    return true
  } catch (error) {
    console.warn(`\nWithout PostgreSQL (DOORWARD_TEST_PG, ${url}): ${error instanceof Error ? error.message : error}\n`)
    return false
  }
}

async function administer(work: (admin: Knex) => PromiseLike<unknown>): Promise<void> {
  const admin = knex({ client: 'pg', connection: url, pool: { min: 0, max: 1 }, acquireConnectionTimeout: 3000, log: { warn() {} } })
  try {
    await work(admin)
  } finally {
    await admin.destroy()
  }
}
