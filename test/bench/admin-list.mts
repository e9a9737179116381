/**
 * Whether a list of users costs the same at page 500 as at page 1, with 100,000 accounts and by any filter that an index
 * serves: `service.listUsers` on each database that answers, medians of both pages, asked by turns again and again. Fails when the
 * later page takes more than 1.5 times as long. `npm run bench -- admin-list [users]`, at a quiet moment.
 */
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createAuthTables, createKnexStore, type UserListQuery } from '../../src'
import { type Database, databases } from '../support/databases'

const users = Number(process.argv[2] ?? 100_000)
const mostSlower = 1.5
const rounds = 300

/** Each leaves at least 500 pages of 50. */
const lists: Readonly<Record<string, UserListQuery['filters']>> = {
  'no filter': {},
  'created_at from': { created_at__gte: '2026-01-01' },
  'email between': { email__between: 'user-0,user-9' },
  'id not in': { id__not_in: '00000000-0000-4000-8000-000000000000' },
  is_active: { is_active: 'true' },
}

async function main(): Promise<number> {
  let isFlat = true
  for (const database of await databases()) isFlat = (await measure(database)) && isFlat
  return isFlat ? 0 : 1
}

async function measure(database: Database): Promise<boolean> {
  const { knex, close } = await database.open()
  try {
    await createAuthTables(knex)
    await fill(knex, database.name)
    const service = serviceOn(knex)
    let isFlat = true
    for (const [name, filters] of Object.entries(lists)) {
      const [first, late] = await medians(service, { filters }, { filters, cursor: await cursorOf(service, filters, 500) })
      const ratio = late / first
      isFlat &&= ratio <= mostSlower
      console.log(`${database.name}, ${name}: page 1 ${first.toFixed(2)} ms, page 500 ${late.toFixed(2)} ms, ratio ${ratio.toFixed(2)}`)
    }
    return isFlat
  } finally {
    await close()
  }
}

function serviceOn(knex: Knex): AuthService {
  return createAuthRouter({
    settings: { jwtSecret: 'a secret for measuring, long enough', oauthRedirectBaseUrl: 'https://app.example.test' },
    store: createKnexStore({ knex }),
    environment: 'test',
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  }).service
}

/** Of the page with that number; the walk also warms whatever there is to warm. */
async function cursorOf(service: AuthService, filters: UserListQuery['filters'], page: number): Promise<string> {
  let cursor: string | null = null
  for (let number = 1; number < page; number++) {
    cursor = (await service.listUsers({ filters, ...(cursor !== null && { cursor }) })).nextCursor
    if (cursor === null) throw new Error(`there is no page ${number + 1}`)
  }
  if (cursor === null) throw new Error('page 1 has no cursor')
  return cursor
}

async function medians(service: AuthService, ...queries: readonly [UserListQuery, UserListQuery]): Promise<[number, number]> {
  const taken: [number[], number[]] = [[], []]
  for (let round = 0; round < rounds; round++) {
    for (const which of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) taken[which].push(await timed(service, queries[which]))
  }
  return [middle(taken[0]), middle(taken[1])]
}

async function timed(service: AuthService, query: UserListQuery): Promise<number> {
  const begun = performance.now()
  const { items } = await service.listUsers(query)
  if (items.length !== 50) throw new Error(`a page of ${items.length}`)
  return performance.now() - begun
}

function middle(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[numbers.length >> 1] ?? 0
}

/** A thousand accounts of each second, made by the database itself: many share their instant. */
async function fill(knex: Knex, name: Database['name']): Promise<void> {
  const numbers = {
    postgres: `select generate_series(1, ${users}) as n`,
    mariadb: `select seq as n from seq_1_to_${users}`,
    sqlite: `with recursive s(n) as (select 1 union all select n + 1 from s where n < ${users}) select n from s`,
  }[name]
  const id = {
    postgres: 'gen_random_uuid()',
    mariadb: 'uuid()',
    sqlite: "printf('%08x-0000-4000-8000-%012x', abs(random()) % 4294967296, n)",
  }[name]
  const instant = {
    postgres: "timestamptz '2026-01-01 00:00:00Z' + (n / 1000) * interval '1 second'",
    mariadb: "timestamp '2026-01-01 00:00:00' + interval (n div 1000) second",
    sqlite: '1767225600000 + (n / 1000) * 1000',
  }[name]
  const email = name === 'mariadb' ? "concat('user-', n, '@example.test')" : "'user-' || n || '@example.test'"
  await knex.raw(
    `insert into auth_users (id, is_active, created_at, updated_at, email, hashed_password, is_admin)
     select ${id}, ${name === 'postgres' ? 'n > 0' : '1'}, ${instant}, ${instant}, ${email}, 'x', ${name === 'postgres' ? 'n < 0' : '0'} from (${numbers}) numbers`,
  )
  await knex.raw({ postgres: 'analyze auth_users', mariadb: 'analyze table auth_users', sqlite: 'analyze' }[name])
}

process.exitCode = await main()
