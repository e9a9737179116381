import { join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import Database from 'better-sqlite3'
import { sql } from 'drizzle-orm'
import { drizzle as drizzleOnMysql } from 'drizzle-orm/mysql2'
import { drizzle as drizzleOnPg } from 'drizzle-orm/node-postgres'
import type { Knex } from 'knex'
import { CompiledQuery, Kysely, MysqlDialect, PostgresDialect, SqliteDialect } from 'kysely'
import { createPool } from 'mysql2'
import pg from 'pg'
import { drizzleRunner, knexOn, kyselyRunner, type PrismaTransaction, prismaRunner, type SqlRunner } from '../../src'
import type { DatabaseName } from '../support/databases'
import { generatePrismaClient } from '../support/prisma-client'

export type LibraryName = 'kysely' | 'drizzle' | 'prisma'

/** A transaction of the library, as the app works in it. */
export interface AppTransaction {
  readonly runner: SqlRunner
  /** Writes a row of the app's own table `profiles` by the library itself. */
  addProfile(userId: string, company: string): Promise<unknown>
}

/** An app with one pool, its library and doorward's Knex on that pool. */
export interface Library {
  readonly knex: Knex
  /** @param timeLimitMs for Prisma, which ends a transaction after it */
  transact<T>(work: (inside: AppTransaction) => Promise<T>, timeLimitMs?: number): Promise<T>
  /** A runner that is in no transaction. @throws ConfigurationError */
  outside(): SqlRunner
  close(): Promise<unknown>
}

export const librariesOf: Readonly<Record<DatabaseName, readonly LibraryName[]>> = {
  sqlite: ['kysely'],
  postgres: ['kysely', 'drizzle', 'prisma'],
  mariadb: ['kysely', 'drizzle'],
}

interface AppTables {
  profiles: { user_id: string; company: string }
}

/** What a library needs of the pool of the app. */
interface AppPool {
  readonly knex: Knex
  readonly kysely: () => Kysely<AppTables>
  close(): Promise<unknown>
}

export async function openLibrary(name: LibraryName, database: DatabaseName, config: Knex.Config): Promise<Library> {
  if (database === 'sqlite') return kysely('sqlite', onSqlite(config))
  if (database === 'mariadb') {
    const { pool, ...app } = onMysql(config)
    return name === 'kysely' ? kysely('mysql', app) : drizzle('mysql', drizzleOnMysql(pool), app)
  }
  const { pool, ...app } = onPg(config)
  if (name === 'kysely') return kysely('postgresql', app)
  return name === 'drizzle' ? drizzle('postgresql', drizzleOnPg(pool), app) : prisma(pool, schemaOf(config), app)
}

function onSqlite({ connection }: Knex.Config): AppPool {
  const handle = new Database((connection as { filename: string }).filename)
  handle.pragma('foreign_keys = on')
  return {
    knex: knexOn(handle),
    kysely: () => new Kysely({ dialect: new SqliteDialect({ database: handle }) }),
    close: async () => handle.close(),
  }
}

function schemaOf({ searchPath }: Knex.Config): string {
  return [searchPath].flat().join(',')
}

function onPg(config: Knex.Config): AppPool & { pool: pg.Pool } {
  const pool = new pg.Pool({ connectionString: String(config.connection), max: 5, options: `-c search_path=${schemaOf(config)}` })
  pool.on('error', () => undefined) // an idle client that the server ends, as every app listens for
  return { pool, knex: knexOn(pool), kysely: () => new Kysely({ dialect: new PostgresDialect({ pool }) }), close: () => pool.end() }
}

function onMysql({ connection }: Knex.Config): AppPool & { pool: ReturnType<typeof createPool> } {
  const pool = createPool({ ...(connection as object), connectionLimit: 5 })
  return {
    pool,
    knex: knexOn(pool),
    kysely: () => new Kysely({ dialect: new MysqlDialect({ pool }) }),
    close: () => pool.promise().end(),
  }
}

function kysely(dialect: SqlRunner['dialect'], { knex, close, ...app }: AppPool): Library {
  const db = app.kysely()
  return {
    knex,
    transact: (work) =>
      db.transaction().execute((trx) =>
        work({
          runner: kyselyRunner(trx, { dialect, CompiledQuery }),
          addProfile: (user_id, company) => trx.insertInto('profiles').values({ user_id, company }).execute(),
        }),
      ),
    outside: () => kyselyRunner(db, { dialect, CompiledQuery }),
    close,
  }
}

type Drizzle = ReturnType<typeof drizzleOnPg> | ReturnType<typeof drizzleOnMysql>

function drizzle(dialect: SqlRunner['dialect'], db: Drizzle, { knex, close }: AppPool): Library {
  type Tx = { execute(query: ReturnType<typeof sql>): PromiseLike<unknown> }
  const transaction = db.transaction.bind(db) as <T>(work: (tx: Tx) => Promise<T>) => Promise<T> // the two kinds share no signature
  return {
    knex,
    transact: (work) =>
      transaction((tx) =>
        work({
          runner: drizzleRunner(tx, { dialect, sql }),
          addProfile: async (userId, company) => tx.execute(sql`insert into profiles (user_id, company) values (${userId}, ${company})`),
        }),
      ),
    outside: () => drizzleRunner(db as Tx, { dialect, sql }),
    close,
  }
}

/** The parts of the generated client that the tests use. The type checker of this repository does not see that client. */
interface Generated {
  readonly PrismaClient: new (options: {
    adapter: PrismaPg
  }) => PrismaTransaction & {
    $transaction<T>(work: (tx: TransactionClient) => Promise<T>, options: { timeout: number }): Promise<T>
    $disconnect(): Promise<void>
  }
}

interface TransactionClient extends PrismaTransaction {
  readonly profile: { create(row: { data: { userId: string; company: string } }): Promise<unknown> }
}

async function prisma(pool: pg.Pool, schema: string, { knex, close }: AppPool): Promise<Library> {
  const folder = join(import.meta.dirname, 'prisma')
  await generatePrismaClient(folder)
  const { PrismaClient }: Generated = await import(join(folder, 'generated/client.ts'))
  const client = new PrismaClient({ adapter: new PrismaPg(pool, { schema }) })
  return {
    knex,
    transact: (work, timeLimitMs = 20_000) =>
      client.$transaction(
        (tx) =>
          work({
            runner: prismaRunner(tx, { dialect: 'postgresql' }),
            addProfile: (userId, company) => tx.profile.create({ data: { userId, company } }),
          }),
        { timeout: timeLimitMs },
      ),
    outside: () => prismaRunner(client, { dialect: 'postgresql' }),
    async close() {
      await client.$disconnect()
      await close()
    },
  }
}
