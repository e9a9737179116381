/**
 * Whether people who log in notice a purge of a million rows: logins over HTTP, one at a time, first alone and then beside
 * `purgeExpired` in the same process, on each database that answers. Prints percentiles; fails when the 99th while purging is
 * more than 1.5 times the one without. `npm run bench -- purge [rows]`, at a quiet moment.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import type { Knex } from 'knex'
import { type AuthStore, createAuthRouter, createAuthTables, createKnexStore, purgeExpired } from '../../src'
import { type Database, databases } from '../support/databases'

const rows = Number(process.argv[2] ?? 1_000_000)
const mostSlower = 1.5
const fewestLogins = 1_000
const account = { email: 'ana@example.test', password: 'a quiet harbour in winter' }

async function main(): Promise<number> {
  let isQuiet = true
  for (const database of await databases()) isQuiet = (await measure(database)) && isQuiet
  return isQuiet ? 0 : 1
}

async function measure(database: Database): Promise<boolean> {
  const { knex, close } = await database.open({ pool: { min: 1, max: database.name === 'sqlite' ? 1 : 5 } })
  await createAuthTables(knex)
  const store = createKnexStore({ knex })
  const { logIn, end } = await serve(store)
  try {
    await fill(knex, database.name)
    await logInUntil(logIn, async () => undefined, 50) // warm
    const alone = await logInUntil(logIn, async () => undefined, fewestLogins)
    const begun = performance.now()
    let deleted = 0
    const beside = await logInUntil(logIn, async () => {
      deleted = (await purgeExpired(store))['sessions'] ?? 0
    })
    return report(database.name, { alone, beside, deleted, seconds: (performance.now() - begun) / 1000 })
  } finally {
    end()
    await close()
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
  const server = createServer(express().use('/auth', auth)).listen(0, '127.0.0.1')
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

/** A million sessions that ended a year ago, of the one user, made by the database itself. */
async function fill(knex: Knex, name: Database['name']): Promise<void> {
  const numbers = {
    postgres: `select generate_series(1, ${rows}) as n`,
    mariadb: `select seq as n from seq_1_to_${rows}`,
    sqlite: `with recursive s(n) as (select 1 union all select n + 1 from s where n < ${rows}) select n from s`,
  }[name]
  const text = {
    postgres: { id: 'gen_random_uuid()', hash: "md5(n::text) || md5('b' || n)", end: "timestamptz '2025-01-01'" },
    mariadb: { id: 'uuid()', hash: "concat(md5(n), md5(concat('b', n)))", end: "timestamp'2025-01-01 00:00:00'" },
    sqlite: { id: 'lower(hex(randomblob(18)))', hash: 'lower(hex(randomblob(32)))', end: '1735689600000' },
  }[name]
  await knex.raw(
    `insert into auth_sessions (id, user_id, kind, token_hash, generation, amr, is_persistent, created_at, last_seen_at, expires_at, ends_at)
     select ${text.id}, u.id, 'tokens', ${text.hash}, 0, 'pwd', true, ${text.end}, ${text.end}, ${text.end}, ${text.end}
     from (${numbers}) as numbers, auth_users as u`,
  )
}

/** Logs in one after the other while `work` runs, at least `fewest` times; milliseconds each. */
async function logInUntil(logIn: () => Promise<number>, work: () => Promise<void>, fewest = 0): Promise<number[]> {
  const times: number[] = []
  let isDone = false
  const running = work().finally(() => {
    isDone = true
  })
  while (!isDone || times.length < fewest) times.push(await logIn())
  await running
  return times
}

function report(
  name: string,
  { alone, beside, deleted, seconds }: { alone: number[]; beside: number[]; deleted: number; seconds: number },
): boolean {
  const line = (times: number[]) => [0.5, 0.9, 0.99].map((share) => quantile(times, share).toFixed(1)).join(' / ')
  const ratio = quantile(beside, 0.99) / quantile(alone, 0.99)
  const isQuiet = deleted === rows && ratio <= mostSlower
  console.log(
    `${name}: ${deleted} rows in ${seconds.toFixed(0)} s; logins in ms, p50 / p90 / p99: alone ${line(alone)} (${alone.length}), ` +
      `beside ${line(beside)} (${beside.length}); p99 ratio ${ratio.toFixed(2)}: ${isQuiet ? 'within' : 'NOT within'} ${mostSlower}`,
  )
  return isQuiet
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}

process.exit(await main())
