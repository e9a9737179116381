import { randomBytes } from 'node:crypto'
import knex, { type Knex } from 'knex'
import type { Schema } from './postgres-schema.mjs'

const url = process.env.DOORWARD_TEST_MYSQL ?? 'mysql://root@127.0.0.1:3306/'

/** A database of its own for one server. */
export async function createDatabase(): Promise<Schema> {
  const name = `doorward_bench_${randomBytes(6).toString('hex')}`
  await administer((admin) => admin.raw('create database ??', name))
  return {
    environment: { BENCH_MARIADB: url, BENCH_SCHEMA: name },
    connect: () => knex({ client: 'mysql2', connection: `${url}${name}`, pool: { min: 0, max: 1 } }),
    drop: () => administer((admin) => admin.raw('drop database ??', name)),
  }
}

/** Says so where there is none. */
export async function hasMariadb(): Promise<boolean> {
  try {
    await administer((admin) => admin.raw('select 1'))
    return true
  } catch (error) {
    console.warn(`\nWithout MariaDB (DOORWARD_TEST_MYSQL, ${url}): ${error instanceof Error ? error.message : error}\n`)
    return false
  }
}

async function administer(work: (admin: Knex) => PromiseLike<unknown>): Promise<void> {
  const admin = knex({ client: 'mysql2', connection: url, pool: { min: 0, max: 1 }, acquireConnectionTimeout: 3000, log: { warn() {} } })
  try {
    await work(admin)
  } finally {
    await admin.destroy()
  }
}
