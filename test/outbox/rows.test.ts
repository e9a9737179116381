import { beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { outboxEvents } from '../../src/outbox/outbox-events'
import type { Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { type CanaryRun, runCanaries } from '../support/canary-run'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'

const password = 'a quiet harbour in winter'

interface OutboxRow {
  seq: number
  id: string
  name: string
  user_id: string | null
  payload: string
}

async function rowsOf({ knex }: Mounted): Promise<OutboxRow[]> {
  return knex('auth_outbox').orderBy('seq')
}

function byUser(payloads: { userId: string }[]): Record<string, object[]> {
  const lists: Record<string, object[]> = {}
  for (const payload of payloads) lists[payload.userId] = [...(lists[payload.userId] ?? []), payload]
  return lists
}

function signUp(mounted: Mounted, email = 'ana@example.com') {
  return mounted.browser().post('/auth/signup').send({ email, password })
}

describe('a run through every kind of event', () => {
  let run: CanaryRun

  beforeAll(async () => {
    run = await runCanaries(logTap())
  }, 120_000)

  test.each(outboxEvents)('each %s that was told is a row with its payload, in the order of its person', (name) => {
    const told = (run.outbox.events as { name: string; payload: { userId: string } }[]).filter((event) => event.name === name)
    const rows = (run.outbox.rows as OutboxRow[]).filter((row) => row.name === name)
    expect(told.length).toBeGreaterThan(0)
    expect(byUser(rows.map(({ payload }) => JSON.parse(payload)))).toEqual(byUser(told.map(({ payload }) => payload)))
    for (const { user_id, payload } of rows) expect(user_id).toBe(JSON.parse(payload).userId)
  })

  test('no other event is a row, and no row holds an address or a secret', () => {
    const rows = run.outbox.rows as OutboxRow[]
    expect(rows.filter(({ name }) => !(outboxEvents as readonly string[]).includes(name))).toEqual([])
    const text = JSON.stringify(rows)
    for (const secret of [...run.personal, ...Object.values(run.secrets).flat()].filter((secret) => secret.length > 8))
      expect(text).not.toContain(secret)
  })
})

for (const database of await databases()) {
  describe(`on ${database.name}`, () => {
    const start = appPerTest(database)

    test('a sign-up that rolls back leaves no row', async () => {
      const refusing = await start({
        options: {
          outbox: true,
          signup: {
            async onSignup() {
              throw new Error('no')
            },
          },
        },
      })
      expect((await signUp(refusing)).status).toBe(500)
      expect(await rowsOf(refusing)).toEqual([])
    })

    test('a change whose row cannot be written does not happen', async () => {
      const mounted = await start()
      const faulty = faultyStore(createKnexStore({ knex: mounted.knex }))
      const broken = await start({ options: { store: faulty.store, outbox: true } })
      faulty.break('outbox.insert', () => Promise.reject(new Error('the disk is full')))
      expect((await signUp(broken)).status).toBe(500)
      expect(await mounted.knex('auth_users')).toEqual([])
    })

    test('within a transaction of the host, the row commits and rolls back with it', async () => {
      const mounted = await start({ options: { outbox: true } })
      const { auth, knex } = mounted
      const store = createKnexStore({ knex })
      const [{ id: userId }] = await auth.service.signUp({ email: 'ana@example.com', password })
      const act = (end: 'commit' | 'rollback') =>
        knex.transaction(async (trx) => {
          await auth.service.using(store.using(trx)).activateUser(userId)
          if (end === 'rollback') throw new Error(end)
        })
      await expect(act('rollback')).rejects.toThrow('rollback')
      expect((await rowsOf(mounted)).map(({ name }) => name)).toEqual(['signup'])
      await act('commit')
      expect((await rowsOf(mounted)).map(({ name }) => name)).toEqual(['signup', 'activation'])
    })
  })
}

describe('without the option', () => {
  const start = appPerTest()

  test('no row is written, and a sign-up sends no statement to the table', async () => {
    const mounted = await start()
    const recording = recordQueries(mounted.knex)
    expect((await signUp(mounted)).status).toBe(201)
    expect(recording.stop().filter((sql) => sql.includes('auth_outbox'))).toEqual([])
  })

  test('with it, a change costs one statement more, and a login none', async () => {
    const count = async (outbox: boolean) => {
      const mounted = await start({ options: { outbox }, settings: { autoActivate: true } })
      const signup = recordQueries(mounted.knex)
      expect((await signUp(mounted)).status).toBe(201)
      const changed = signup.stop().length
      const login = recordQueries(mounted.knex)
      expect((await mounted.browser().post('/auth/login').send({ email: 'ana@example.com', password })).status).toBe(200)
      return { changed, loggedIn: login.stop().length }
    }
    const [off, on] = [await count(false), await count(true)]
    expect(on).toEqual({ changed: off.changed + 1, loggedIn: off.loggedIn })
  })

  test('an account makes at most ten changes a day, also without a mailer', async () => {
    const mounted = await start({ options: { outbox: true }, settings: { autoActivate: true } })
    const { body } = await signUp(mounted)
    let current = password
    const change = async (number: number) => {
      const next = `${password} ${number}`
      const answer = await mounted
        .browser()
        .post('/auth/password-change')
        .set('Authorization', `Bearer ${body.access_token}`)
        .send({ current_password: current, new_password: next })
      if (answer.status === 200 || answer.status === 204) current = next
      return answer.status
    }
    for (let number = 1; number <= 10; number++) expect(await change(number)).toBeLessThan(300)
    expect(await change(11)).toBe(429)
  })

  test('the router does not start beside a store without the table', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex, outbox: false })
    await expect(start({ options: { outbox: true, store } })).rejects.toThrow('wire `outbox` in your store')
  })
})
