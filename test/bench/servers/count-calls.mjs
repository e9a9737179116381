/** Preloaded (`--import`): writes a byte to BENCH_CALLS for every call that reaches a database driver, whoever makes it. */
import { appendFileSync } from 'node:fs'
import Database from 'better-sqlite3'
import mysql2 from 'mysql2'
import pg from 'pg'

function count(prototype, methods) {
  for (const method of methods) {
    const call = prototype[method]
    prototype[method] = function (...given) {
      appendFileSync(process.env.BENCH_CALLS, '.')
      return call.apply(this, given)
    }
  }
}

count(Object.getPrototypeOf(new Database(':memory:').prepare('select 1')), ['run', 'get', 'all', 'iterate'])
count(pg.Client.prototype, ['query'])
count(mysql2.Connection.prototype, ['query', 'execute'])
