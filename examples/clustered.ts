/**
 * Several workers on one port. The accounts are in PostgreSQL. The rate limits and the used logins are in Redis, so that all workers share
 * them. Otherwise each worker would have its own rate limits, and an attacker could use up the limits of every worker.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) DATABASE_URL=postgres://… REDIS_URL=redis://… WORKERS=4 npx tsx clustered.ts
 */
import cluster from 'node:cluster'
import { auditLog, createAuthRouter, createAuthTables, createKnexStore, getAuth, redisCounters } from 'doorward'
import express from 'express'
import { Redis } from 'ioredis'
import knex, { type Knex } from 'knex'

const { AUTH_JWT_SECRET = '', DATABASE_URL = '', DATABASE_SCHEMA = 'public', REDIS_URL = '', WORKERS = '2', PORT = '3000' } = process.env

function connect(): Knex {
  return knex({ client: 'pg', connection: DATABASE_URL, searchPath: [DATABASE_SCHEMA], pool: { min: 0, max: 5 } })
}

async function primary() {
  const database = connect()
  await createAuthTables(database) // once, before a worker uses the tables
  await database.destroy()
  for (let worker = 0; worker < Number(WORKERS); worker++) cluster.fork()
  const served = new Set<number>()
  let stopping = false
  cluster.on('listening', ({ id }) => served.add(id))
  cluster.on('exit', ({ id }) => {
    if (!stopping && served.has(id)) cluster.fork() // a worker that never listened would fail again
  })
  process.once('SIGTERM', () => {
    stopping = true
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGTERM')
  })
}

async function worker() {
  const database = connect()
  const redis = new Redis(REDIS_URL)
  redis.on('error', (error) => console.error('redis', error.message))
  const auth = createAuthRouter({
    store: createKnexStore({ knex: database }),
    throttle: { counters: redisCounters(redis) },
    settings: { jwtSecret: AUTH_JWT_SECRET, publicUrl: 'http://localhost:3000' }, // the same settings for every worker
  })
  const log = auditLog(database)
  log.watch(auth.events)
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  app.get('/api/hello', auth.guards.requireAuth(), (request, response) => {
    response.json({ message: `Hello, ${getAuth(request).email}`, worker: process.pid })
  })
  const server = app.listen(Number(PORT), '127.0.0.1')

  process.once('SIGTERM', () => {
    server.close(async () => {
      await log.flush().catch(() => undefined)
      await database.destroy()
      redis.disconnect()
      cluster.worker?.disconnect()
    })
    server.closeIdleConnections()
  })
}

if (cluster.isPrimary) primary()
else worker()
