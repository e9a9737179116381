/**
 * What a page of `GET /admin/users` takes among a million accounts, by each filter, with many matches, few and none, on each database
 * that answers. Fails where one takes more than 500 ms. `npm run bench -- user-filters [--users 1000000] [--write]`, at a quiet moment.
 */
import { parseArgs } from 'node:util'
import type { Knex } from 'knex'
import { type AuthService, createAuthRouter, createAuthTables, createKnexStore } from '../../src'
import { type Database, databases } from '../support/databases'
import { report } from './lib/report.mjs'

const { values } = parseArgs({ options: { users: { type: 'string' }, write: { type: 'boolean' } } })
const users = Number(values.users ?? 1_000_000)
const options = { rounds: 3, quick: false, write: values.write ?? false, only: null }
const mostMs = 500

type Matches = 'many' | 'few' | 'none'

/** Filter -> its value for many accounts, few (one to a dozen) and none; what a filter cannot find is left out. */
const filters: Readonly<Record<string, Partial<Record<Matches, string>>>> = {
  id: { none: '00000000-0000-4000-8000-000000000000' },
  id__ne: { many: '00000000-0000-4000-8000-000000000000' },
  email: { few: 'user-777@example.test', none: 'nobody@example.test' },
  email__ne: { many: 'nobody@example.test' },
  email__in: { few: 'user-77@example.test,user-999999@example.test', none: 'nobody@example.test' },
  email__gt: { many: 'a', few: 'user-999990', none: 'z' },
  email__between: { many: 'a,z', few: 'user-5000,user-50001', none: 'y,z' },
  email__contains: { many: 'example', few: '-99999', none: 'qqq' },
  email__icontains: { many: 'EXAMPLE', few: '-99999', none: 'qqq' },
  email__startswith: { many: 'user', few: 'user-99999', none: 'qqq' },
  email__endswith: { many: '.test', few: '-99999@example.test', none: '.qqq' },
  name: { few: 'Person 777 Souza', none: 'Nobody' },
  name__icontains: { many: 'souza', few: 'person 99999', none: 'qqq' },
  name__startswith: { many: 'Person', few: 'Person 99999', none: 'qqq' },
  name__isnull: { many: 'false', none: 'true' },
  is_active: { many: 'true', few: 'false' },
  is_admin: { many: 'false', few: 'true' },
  mfa_enabled: { many: 'false', few: 'true' },
  created_at__lt: { many: '2030-01-01', few: '2026-01-01T00:00:01Z', none: '2020-01-01' },
  updated_at__lt: { many: '2030-01-01', few: '2026-01-01T00:01:01Z', none: '2020-01-01' },
  last_login_at__lt: { many: '2030-01-01', few: '2026-01-01T01:00:01Z', none: '2020-01-01' },
  last_login_at__isnull: { many: 'true' },
  email_verified_at__isnull: { many: 'false', few: 'true' },
  activated_at__isnull: { many: 'false', few: 'true' },
}

const cases = Object.entries(filters).flatMap(([key, found]) => Object.entries(found).map(([matches, value]) => ({ key, matches, value })))

async function main(): Promise<number> {
  const measured = new Map<string, number[]>()
  for (const database of await databases()) measured.set(database.name, await measure(database))
  const all = [...measured.entries()]
  return report({
    name: 'user-filters',
    columns: ['Filter', 'matches', ...all.map(([name]) => `${name} ms`)],
    rows: cases.map(({ key, matches }, index) => [`\`${key}\``, matches, ...all.map(([, times]) => (times[index] ?? 0).toFixed(0))]),
    goals: all.map(([name, times]) => ({
      text: `${name}: slowest filter, ms (\`${cases[times.indexOf(Math.max(...times))]?.key}\`)`,
      presented: Math.max(...times),
      bound: 'at most',
      wanted: mostMs,
    })),
    packages: ['knex', 'better-sqlite3', 'pg', 'mysql2'],
    options,
    command: `npm run bench -- user-filters --users ${users}`,
  })
}

async function measure(database: Database): Promise<number[]> {
  const { knex, close } = await database.open()
  try {
    await createAuthTables(knex)
    await fill(knex, database.name)
    const service = serviceOn(knex)
    await service.listUsers() // opens the connection
    const times: number[] = []
    for (const { key, value } of cases) times.push(await median(service, { [key]: value }))
    return times
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

async function median(service: AuthService, wanted: Readonly<Record<string, string>>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < options.rounds; round++) {
    const begun = performance.now()
    await service.listUsers({ filters: wanted })
    times.push(performance.now() - begun)
  }
  return times.toSorted((one, other) => one - other)[times.length >> 1] ?? 0
}

/** Ten accounts of each second, made by the database itself: one in 100,000 is an administrator, inactive, and so on. */
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
  const at = (seconds: number) =>
    ({
      postgres: `timestamptz '2026-01-01 00:00:00Z' + (n / 10 + ${seconds}) * interval '1 second'`,
      mariadb: `timestamp '2026-01-01 00:00:00' + interval (n div 10 + ${seconds}) second`,
      sqlite: `1767225600000 + (n / 10 + ${seconds}) * 1000`,
    })[name]
  const text = (before: string, after: string) =>
    name === 'mariadb' ? `concat('${before}', n, '${after}')` : `'${before}' || n || '${after}'`
  const flag = (condition: string) => (name === 'postgres' ? `(${condition})` : `case when ${condition} then 1 else 0 end`)
  const hash = `$argon2id$v=19$m=19456,t=2,p=1$${'c'.repeat(22)}$${'h'.repeat(43)}`
  await knex.raw(
    `insert into auth_users (id, is_active, created_at, updated_at, email, hashed_password, is_admin, last_login_at, name,
       totp_enabled_at, email_verified_at, activated_at)
     select ${id}, ${flag('n % 100000 <> 1')}, ${at(0)}, ${at(60)}, ${text('user-', '@example.test')}, '${hash}', ${flag('n % 100000 = 0')},
       case when n % 2 = 0 then ${at(3600)} end, ${text('Person ', ' Souza')}, case when n % 100000 = 2 then ${at(60)} end,
       case when n % 100000 <> 3 then ${at(60)} end, case when n % 100000 <> 4 then ${at(60)} end from (${numbers}) numbers`,
  )
  await knex.raw({ postgres: 'vacuum analyze auth_users', mariadb: 'analyze table auth_users', sqlite: 'analyze' }[name])
}

process.exitCode = await main()
