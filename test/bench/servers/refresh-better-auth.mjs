/** better-auth with sessions that are renewed whenever they are read: what it has that comes nearest. The token stays the same. */
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import express from 'express'
import pg from 'pg'
import { openSqlite } from '../lib/open-database.mjs'
import { serve } from '../lib/serve.mjs'

const { BENCH_POSTGRES: connectionString, BENCH_SCHEMA } = process.env

await serve(async (origin) => {
  const options = {
    baseURL: origin,
    secret: 'an-only-secret-for-measuring-7f3b9a61',
    database: connectionString ? new pg.Pool({ connectionString, options: `-c search_path=${BENCH_SCHEMA}`, max: 10 }) : openSqlite(),
    trustedOrigins: [origin],
    telemetry: { enabled: false },
    logger: { level: 'error' },
    rateLimit: { enabled: false },
    emailAndPassword: { enabled: true },
    session: { updateAge: 0 },
  }
  await (await getMigrations(options)).runMigrations()
  return express().all('/api/auth/*splat', toNodeHandler(betterAuth(options)))
})
