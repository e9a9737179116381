import { type ChildProcess, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import supertest from 'supertest'
import { describe, expect, test, vi } from 'vitest'
import { databases } from '../support/databases'
import { freePort } from '../support/free-port'
import { hasRedis, startRedis } from '../throttle/redis-server'

// Missing servers are announced by both, and are an error under CI.
const postgres = (await databases()).find(({ name }) => name === 'postgres')
const redisIsThere = hasRedis()
const root = join(import.meta.dirname, '../..')

/** The example under tsx, with `doorward` found in our sources. */
function run(env: Record<string, string>): ChildProcess {
  return fork(join(root, 'examples/clustered.ts'), {
    execArgv: ['--import', 'tsx'],
    env: { ...process.env, TSX_TSCONFIG_PATH: join(root, 'test/tsconfig.json'), ...env },
    stdio: 'ignore',
  })
}

describe.skipIf(!postgres || !redisIsThere)('the clustered example', () => {
  test('two workers share accounts and budgets, and leave what happened in the audit log when they stop', async () => {
    const opened = await postgres?.open()
    if (!opened) throw new Error('no PostgreSQL')
    const redis = await startRedis()
    const port = await freePort()
    const [schema] = (opened.config?.searchPath ?? []) as string[] // as `databases` sets it
    const child = run({
      AUTH_JWT_SECRET: randomBytes(48).toString('base64'),
      DATABASE_URL: String(opened.config?.connection),
      DATABASE_SCHEMA: String(schema),
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      PORT: String(port),
    })
    const exit = once(child, 'exit')
    try {
      // A connection each, or one worker would answer them all.
      const api = () => supertest(`http://127.0.0.1:${port}`)
      await vi.waitFor(async () => expect((await api().get('/api/hello')).status).toBe(401), { timeout: 45_000, interval: 100 })
      const signup = await api().post('/auth/signup').send({ email: 'ana@example.com', password: 'three quiet green rivers' })
      const token = new URL(signup.body.activation_url).pathname.split('/').at(-1)
      const { body } = await api().post('/auth/activate').send({ token })
      const workers = new Set<number>()
      const hello = async () => {
        const { status, body: said } = await api().get('/api/hello').set('Authorization', `Bearer ${body.access_token}`)
        expect(status).toBe(200)
        return workers.add(said.worker)
      }
      // The second one may still be starting.
      await vi.waitFor(async () => expect((await hello()).size).toBe(2), { timeout: 20_000, interval: 50 })
      const guesses: number[] = []
      for (let guess = 0; guess < 7; guess++)
        guesses.push((await api().post('/auth/login').send({ email: 'ana@example.com', password: 'wrong' })).status)

      expect(guesses).toEqual([401, 401, 401, 401, 401, 429, 429])
      child.kill('SIGTERM')
      await exit
      const names = (await opened.knex('auth_audit_log')).map(({ name }) => name)
      expect(names).toEqual(expect.arrayContaining(['signup', 'activation', 'login', 'login.failed', 'throttled']))
    } finally {
      child.kill('SIGKILL')
      await exit
      await redis.close()
      await opened.close()
    }
  }, 120_000)
})
