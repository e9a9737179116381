import express from 'express'
import supertest from 'supertest'
import { afterEach, expect, test, vi } from 'vitest'
import { createGuards, createKnexStore, type Guards } from '../../src'
import { onLocal, signedIn } from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onLocal(database)

afterEach(() => void vi.useRealTimers())

test.each(['requireUser', 'requireAdmin', 'requireLiveSession', 'requireFresh'] as const)(
  '%s waits for a silent database for unitTimeoutSeconds, then it is 503',
  async (name) => {
    const host = await start()
    const { token } = await signedIn(host)
    const store = createKnexStore({ knex: host.knex })
    let isAsked = false
    const silent = () => {
      isAsked = true
      return new Promise<never>(() => undefined)
    }
    const users = { ...store.users, find: silent }
    const sessions = store.sessions && { ...store.sessions, find: silent }
    const guards: Guards = createGuards({
      settings: { jwtSecret: testSecret, unitTimeoutSeconds: 2 },
      now: host.clock.now,
      store: { ...store, users, ...(sessions && { sessions }) },
    })
    const app = express().get('/', guards[name](), (_req, res) => void res.end())

    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let status = 0
    const answer = supertest(app)
      .get('/')
      .set('Authorization', `Bearer ${token}`)
      .then((response) => {
        status = response.status
      })
    for (let turn = 0; turn < 5_000 && !isAsked; turn++) await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(1_900)
    expect(status).toBe(0)
    await vi.advanceTimersByTimeAsync(200)
    for (let turn = 0; turn < 200 && status === 0; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(status).toBe(503)
    await answer
  },
)
