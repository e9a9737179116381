import { afterEach, expect, test, vi } from 'vitest'
import { createKnexStore } from '../../src'
import { bearerOf, signedIn } from '../local/people'
import { mount } from '../support/app'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'

afterEach(() => void vi.useRealTimers())

test('F22: a store that never settles is 503 in time, the guard stays closed, and others are served', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { knex, close } = await sqlite.open({ memory: true })
  const faulty = faultyStore(createKnexStore({ knex }))
  const host = await mount({ knex, options: { store: faulty.store } })
  let reached = 0
  host.app.get('/private', host.auth.guards.requireUser(), (_req, res) => {
    reached++
    res.json({})
  })
  const person = await signedIn(host)
  const asks = () => [
    host.browser().get('/private').set(bearerOf(person)),
    host.browser().post('/auth/logout').send({ refresh_token: person.refreshToken }),
  ]
  faulty.break('users.find', () => new Promise(() => undefined))
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const guarded = asks()[0]?.then((response) => response)
  let answer: Awaited<typeof guarded> | null = null
  let seconds = 0
  void guarded?.then((response) => {
    answer = response
  })
  for (; answer === null && seconds < 60; seconds++) {
    await vi.advanceTimersByTimeAsync(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }

  expect(await guarded).toMatchObject({ status: 503, body: { code: 'SERVICE_UNAVAILABLE', details: {} } })
  expect(seconds).toBeLessThanOrEqual(41)
  expect(reached).toBe(0)
  vi.useRealTimers()
  expect((await asks()[1])?.status).toBe(204)
  await host.close()
  await close()
})
