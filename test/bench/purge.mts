/**
 * Whether the purge is linear and never stops the app, on each database that answers. Three runs each:
 *
 * - 20,000 abandoned accounts beside 300,000 pending ones: at most a minute, and no batch holds the event loop of SQLite over 20 ms;
 * - the same with an open snapshot, as a running dump has one;
 * - a million expired sessions of one account, beside logins of this account over HTTP: the logins take at most 1.25 times as long.
 *
 * `npm run bench -- purge [rows] [database]`, at a quiet moment.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import express from 'express'
import type { Knex } from 'knex'
import { type AuthStore, createAuthRouter, createAuthTables, createKnexStore, purgeExpired } from '../../src'
import { type Database, databases, type OpenDatabase } from '../support/databases'

const rows = Number(process.argv[2] ?? 1_000_000)
const only = process.argv[3]
const [mostSlower, mostSeconds, mostBlockedMs] = [1.25, 60, 20]
const [abandoned, pending] = [20_000, 300_000]
const fewestLogins = 500
/** So many logins beside a purge say enough, and the purge then ends sooner. */
const mostLogins = 800
const account = { email: 'ana@example.test', password: 'a quiet harbour in winter' }

async function main(): Promise<number> {
  let isQuiet = true
  for (const database of await databases())
    if (only === undefined || database.name === only) {
      isQuiet = (await withDatabase(database, measureAccounts)) && isQuiet
      isQuiet = (await withDatabase(database, measureSessions)) && isQuiet
    }
  return isQuiet ? 0 : 1
}

async function withDatabase(database: Database, measure: (database: Database, opened: OpenDatabase) => Promise<boolean>): Promise<boolean> {
  const opened = await database.open({ pool: { min: 1, max: database.name === 'sqlite' ? 1 : 5 } })
  if (database.name === 'sqlite') await opened.knex.raw('pragma journal_mode = wal') // with a rollback journal, a reader stops every writer
  await createAuthTables(opened.knex)
  try {
    return await measure(database, opened)
  } finally {
    await opened.close()
  }
}

async function measureAccounts({ name }: Database, { knex, connect }: OpenDatabase): Promise<boolean> {
  const store = createKnexStore({ knex })
  await fillAccounts(knex, name, 0, pending, new Date(Date.now() + 86_400_000))
  let isQuiet = true
  for (const title of ['no snapshot', 'an open snapshot']) {
    await fillAccounts(knex, name, pending + (title === 'no snapshot' ? 0 : abandoned), abandoned, new Date('2025-01-01'))
    if (name === 'postgres') await knex.raw('analyze')
    const reader = title === 'no snapshot' ? null : await openSnapshot(connect({ min: 1, max: 1 }), name)
    const delays = monitorEventLoopDelay({ resolution: 1 })
    delays.enable()
    const begun = performance.now()
    const { users } = await purgeExpired(store)
    const seconds = (performance.now() - begun) / 1_000
    delays.disable()
    await reader?.rollback()
    const blockedMs = delays.max / 1e6 - 1
    const isGood = users === abandoned && seconds <= mostSeconds && (name !== 'sqlite' || blockedMs <= mostBlockedMs)
    console.log(
      `${name}, ${title}: ${users} abandoned beside ${pending} pending accounts in ${seconds.toFixed(1)} s; event loop held ` +
        `${(delays.percentile(99) / 1e6 - 1).toFixed(1)} ms (p99), ${blockedMs.toFixed(1)} ms (most): ${isGood ? 'within' : 'NOT within'} ${mostSeconds} s and ${mostBlockedMs} ms`,
    )
    isQuiet = isGood && isQuiet
  }
  return isQuiet
}

async function openSnapshot(knex: Knex, name: Database['name']): Promise<Knex.Transaction> {
  const trx = await knex.transaction(undefined, name === 'sqlite' ? {} : { isolationLevel: 'repeatable read' })
  await trx('auth_users').select('id').limit(1)
  await trx('auth_user_tokens').select('id').limit(1)
  return trx
}

async function measureSessions({ name }: Database, { knex }: OpenDatabase): Promise<boolean> {
  const store = createKnexStore({ knex })
  const { logIn, end } = await serve(store)
  try {
    await logInUntil(logIn, async () => undefined, 50) // warm
    const alone = await logInUntil(logIn, async () => undefined, fewestLogins)
    await knex('auth_sessions').delete()
    await fill(knex, name)
    if (name === 'postgres') await knex.raw('analyze')
    const begun = performance.now()
    let deleted = 0
    const purge = purgeExpired(store).then(({ sessions = 0 }) => {
      deleted = sessions
    })
    const beside = await logInUntil(logIn, () => purge, 0, mostLogins)
    await purge
    return report(name, { alone, beside, deleted, seconds: (performance.now() - begun) / 1000 })
  } finally {
    end()
  }
}

async function serve(store: AuthStore): Promise<{ logIn(): Promise<number>; end(): void }> {
  const auth = createAuthRouter({
    settings: { jwtSecret: 'a secret for measuring, long enough', oauthRedirectBaseUrl: 'https://app.example.test', autoActivate: true },
    store,
    environment: 'test',
    throttle: { login: false, routes: false },
    logger: { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) },
  })
  await auth.service.signUp(account)
  // Filling the table of SQLite stops this process for longer than an idle connection lives.
  const server = createServer({ keepAliveTimeout: 0 }, express().use('/auth', auth)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth/login` // a TCP server's address is never a string
  const request = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(account) }
  return {
    async logIn() {
      const begun = performance.now()
      const response = await fetch(url, request)
      await response.text()
      if (response.status !== 200) throw new Error(`a login answered ${response.status}`)
      return performance.now() - begun
    },
    end() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The SQL of each database for the numbers from 1. */
const numbers = {
  postgres: (count: number) => `select generate_series(1, ${count}) as n`,
  mariadb: (count: number) => `select seq as n from seq_1_to_${count}`,
  sqlite: (count: number) => `with recursive s(n) as (select 1 union all select n + 1 from s where n < ${count}) select n from s`,
}
const text = {
  postgres: {
    id: 'gen_random_uuid()',
    hash: "md5(n::text) || md5('b' || n)",
    end: "timestamptz '2025-01-01'",
    ended: "timestamptz '2025-01-01' + n * interval '20 seconds'",
  },
  mariadb: {
    id: 'uuid()',
    hash: "concat(md5(n), md5(concat('b', n)))",
    end: "timestamp'2025-01-01 00:00:00'",
    ended: "timestamp'2025-01-01 00:00:00' + interval 20 * n second",
  },
  sqlite: {
    id: 'lower(hex(randomblob(18)))',
    hash: 'lower(hex(randomblob(32)))',
    end: '1735689600000',
    ended: '1735689600000 + n * 20000',
  },
}

/** A million sessions of the one user that ended one after the other, made by the database itself. */
async function fill(knex: Knex, name: Database['name']): Promise<void> {
  const { id, hash, ended } = text[name]
  await knex.raw(
    `insert into auth_sessions (id, user_id, kind, token_hash, generation, amr, is_persistent, created_at, last_seen_at, expires_at, ends_at)
     select ${id}, u.id, 'tokens', ${hash}, 0, 'pwd', true, ${ended}, ${ended}, ${ended}, ${ended}
     from (${numbers[name](rows)}) as numbers, auth_users as u`,
  )
}

/** Accounts that were never activated, each with a link that ends at that time. */
async function fillAccounts(knex: Knex, name: Database['name'], first: number, count: number, end: Date): Promise<void> {
  const { id, end: created } = text[name]
  const prefix = `p${first}-`
  const email = name === 'mariadb' ? `concat('${prefix}', n, '@example.test')` : `'${prefix}' || n || '@example.test'`
  await knex.raw(
    `insert into auth_users (id, is_active, created_at, updated_at, email, hashed_password, is_admin)
     select ${id}, false, ${created}, ${created}, ${email}, 'none', false from (${numbers[name](count)}) as numbers`,
  )
  const ends = name === 'sqlite' ? end.getTime() : name === 'mariadb' ? end.toISOString().slice(0, 19).replace('T', ' ') : end.toISOString()
  const hash =
    name === 'mariadb'
      ? "concat(md5(email), md5(concat('b', email)))"
      : name === 'sqlite'
        ? text.sqlite.hash
        : "md5(email) || md5('b' || email)"
  const cast = name === 'postgres' ? 'cast(? as timestamptz)' : '?'
  await knex.raw(
    `insert into auth_user_tokens (id, user_id, token_hash, purpose, expires_at, created_at)
     select ${id}, id, ${hash}, 'ACTIVATION', ${cast}, ${created} from auth_users where email like '${prefix}%'`,
    [ends],
  )
}

/** Logs in one after the other while `work` runs, at least `fewest` and at most `most` times; milliseconds each. */
async function logInUntil(
  logIn: () => Promise<number>,
  work: () => Promise<void>,
  fewest = 0,
  most = Number.POSITIVE_INFINITY,
): Promise<number[]> {
  const times: number[] = []
  let isDone = false
  const running = work().finally(() => {
    isDone = true
  })
  while ((!isDone || times.length < fewest) && times.length < most) times.push(await logIn())
  if (times.length < most) await running
  return times
}

function report(
  name: string,
  { alone, beside, deleted, seconds }: { alone: number[]; beside: number[]; deleted: number; seconds: number },
): boolean {
  const line = (times: number[]) => [0.5, 0.9, 0.99].map((share) => quantile(times, share).toFixed(1)).join(' / ')
  const ratios = [0.5, 0.99].map((share) => quantile(beside, share) / quantile(alone, share))
  const isQuiet = deleted === rows && ratios.every((ratio) => ratio <= mostSlower)
  console.log(
    `${name}: ${deleted} expired sessions of one account in ${seconds.toFixed(0)} s; logins in ms, p50 / p90 / p99: alone ${line(alone)} (${alone.length}), ` +
      `beside ${line(beside)} (${beside.length}); ratios of p50 and p99 ${ratios.map((ratio) => ratio.toFixed(2)).join(' and ')}: ${isQuiet ? 'within' : 'NOT within'} ${mostSlower}`,
  )
  return isQuiet
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}

process.exit(await main())
