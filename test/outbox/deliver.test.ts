import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { createKnexStore, type OutboxEvent } from '../../src'
import type { Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { databases } from '../support/databases'

const start = appPerTest()
const withOutbox = () => start({ options: { outbox: true } })

/** Events of the persons, in this order, as the changes of their accounts write them. */
async function write({ knex, clock }: Mounted, ...userIds: string[]): Promise<string[]> {
  const events = userIds.map((userId) => {
    return { id: randomUUID(), name: 'password.changed', userId, payload: JSON.stringify({ userId, by: 'change' }), createdAt: clock.now() }
  })
  await createKnexStore({ knex }).outbox.insert(events)
  return events.map(({ id }) => id)
}

/** Delivers until `isDone`, which is asked after each event. */
async function deliverUntil(
  { auth }: Mounted,
  handler: (event: OutboxEvent) => unknown,
  isDone: () => boolean,
  options: { batchSize?: number } = {},
): Promise<void> {
  const stopping = new AbortController()
  const delivering = auth.outbox.deliver(handler, { ...options, signal: stopping.signal })
  try {
    await until(isDone)
  } finally {
    stopping.abort()
    await delivering
  }
}

function gate(): { promise: Promise<void>; resolve(): void } {
  let open: () => void = () => undefined
  const promise = new Promise<void>((resolve) => {
    open = resolve
  })
  return { promise, resolve: () => open() }
}

async function until(isDone: () => boolean): Promise<void> {
  for (let waited = 0; !isDone(); waited += 10) {
    if (waited > 20_000) throw new Error('it did not happen within 20 seconds')
    await sleep(10)
  }
}

describe('a delivery', () => {
  test('hands over each event once, with its name, payload and time', async () => {
    const mounted = await withOutbox()
    const { body } = await mounted.browser().post('/auth/signup').send({ email: 'ana@example.com', password: 'a quiet harbour in winter' })
    const at = mounted.clock.now()
    const seen: OutboxEvent[] = []
    await deliverUntil(
      mounted,
      (event) => seen.push(event),
      () => seen.length > 0,
    )
    const [user] = await mounted.knex('auth_users').pluck('id')
    expect(body.user_id).toBe(user)
    expect(seen).toEqual([{ id: expect.any(String), name: 'signup', payload: { userId: user, by: 'pwd' }, createdAt: at }])
    expect(await mounted.auth.outbox.status()).toEqual({ waiting: 0, failing: 0, oldestSeconds: 0 })
  })

  test('keeps the order of each person, and needs one delivery at a time for it', async () => {
    const mounted = await withOutbox()
    const people = ['ana', 'bo', 'cy']
    const ids = await write(mounted, ...people.flatMap((who) => [who, who, who, who]))
    const [seen, running]: [string[], Set<string>] = [[], new Set()]
    const handler = async ({ id, payload }: OutboxEvent) => {
      const { userId } = payload
      expect(running.has(userId)).toBe(false)
      running.add(userId)
      await sleep(2)
      running.delete(userId)
      seen.push(id)
    }
    await deliverUntil(mounted, handler, () => seen.length === ids.length)
    for (const index of people.keys()) {
      const own = ids.slice(index * 4, index * 4 + 4)
      expect(seen.filter((id) => own.includes(id))).toEqual(own)
    }
  })

  test('that fails is repeated after 1, 2, 4 … 3,600 seconds, and its person waits, but nobody else', async () => {
    const mounted = await withOutbox()
    const [bad, after] = await write(mounted, 'ana', 'ana')
    const seen: string[] = []
    let isUp = false
    const handler = ({ id }: OutboxEvent) => {
      seen.push(id)
      if (id === bad && !isUp) throw new Error('the receiver is down')
    }
    const stopping = new AbortController()
    const delivering = mounted.auth.outbox.deliver(handler, { signal: stopping.signal })
    const tries = () => seen.filter((id) => id === bad).length
    const nextAt = async () => {
      const [row] = await mounted.knex('auth_outbox').where({ id: bad }).select('next_at', 'tries')
      return { seconds: (Number(row.next_at) - mounted.clock.now().getTime()) / 1000, tries: row.tries }
    }
    for (const [failed, seconds] of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600].entries()) {
      await until(() => tries() === failed + 1)
      const [other = ''] = await write(mounted, 'bo')
      await until(() => seen.includes(other))
      expect(await nextAt()).toEqual({ seconds, tries: failed + 1 })
      mounted.clock.advance(seconds)
    }
    expect(seen).not.toContain(after)
    expect(await mounted.auth.outbox.status()).toEqual({ waiting: 2, failing: 1, oldestSeconds: 11_295 })
    isUp = true
    await until(() => seen.includes(String(after)))
    stopping.abort()
    await delivering
    expect(mounted.logs.entries.filter(({ message }) => message.includes('could not be delivered')).length).toBeGreaterThan(0)
    expect(mounted.logs.text()).not.toContain('the receiver is down')
  }, 60_000)

  test('that hangs holds up nobody else, and takes one of the places', async () => {
    const mounted = await withOutbox()
    const [hanging] = await write(mounted, 'ana')
    const others = await write(mounted, ...Array.from({ length: 20 }, (_, index) => `person ${index}`), 'bo', 'bo', 'bo')
    const seen: string[] = []
    const release = gate()
    const handler = async ({ id }: OutboxEvent) => {
      if (id === hanging) await release.promise
      seen.push(id)
    }
    const done = deliverUntil(mounted, handler, () => seen.length === others.length + 1, { batchSize: 2 })
    await until(() => seen.length === others.length)
    release.resolve()
    await done
  })

  test('takes an event again when the lease of a process that died is over, and not before', async () => {
    const mounted = await withOutbox()
    const [id] = await write(mounted, 'ana')
    const now = mounted.clock.now()
    const { outbox } = createKnexStore({ knex: mounted.knex })
    await outbox.take({ now, until: new Date(now.getTime() + 60_000), most: 1 }) // the process dies now
    const seen: string[] = []
    const stopping = new AbortController()
    const delivering = mounted.auth.outbox.deliver((event) => seen.push(event.id), { signal: stopping.signal })
    mounted.clock.advance(59)
    await sleep(1_500)
    expect(seen).toEqual([])
    mounted.clock.advance(1)
    await until(() => seen.length === 1)
    stopping.abort()
    await delivering
    expect(seen).toEqual([id])
  })

  test('does not begin a handler for which its lease is too short, as in a process that stood still', async () => {
    const mounted = await withOutbox()
    const [id] = await write(mounted, 'ana')
    let stands = true
    const still = ({ sql }: { sql: string }) => {
      if (stands && sql.startsWith('update `auth_outbox`')) mounted.clock.advance(31)
    }
    mounted.knex.on('query', still)
    const seen: string[] = []
    const stopping = new AbortController()
    const delivering = mounted.auth.outbox.deliver((event) => seen.push(event.id), { signal: stopping.signal })
    const begun = mounted.clock.now().getTime()
    await until(() => mounted.clock.now().getTime() > begun)
    await sleep(100)
    expect(seen).toEqual([])
    stands = false
    mounted.clock.advance(60)
    await until(() => seen.length === 1)
    stopping.abort()
    await delivering
    expect([seen, await mounted.auth.outbox.status()]).toEqual([[id], { waiting: 0, failing: 0, oldestSeconds: 0 }])
  })

  test('ends when it is aborted or drained, after the handlers that run', async () => {
    for (const end of ['abort', 'drain'] as const) {
      const mounted = await withOutbox()
      await write(mounted, 'ana', 'ana')
      let ended = 0
      const begun = gate()
      const handler = async () => {
        begun.resolve()
        await sleep(50)
        ended++
      }
      const stopping = new AbortController()
      const delivering = mounted.auth.outbox.deliver(handler, { signal: stopping.signal })
      await begun.promise
      if (end === 'abort') stopping.abort()
      else await mounted.auth.drain()
      await delivering
      expect(ended).toBe(1)
      expect((await mounted.auth.outbox.status()).waiting).toBe(1)
    }
  })

  test('is one in a process; a second call and a wrong option are refused', async () => {
    const mounted = await withOutbox()
    const stopping = new AbortController()
    const delivering = mounted.auth.outbox.deliver(() => undefined, { signal: stopping.signal })
    await expect(mounted.auth.outbox.deliver(() => undefined)).rejects.toThrow('runs already in this process')
    stopping.abort()
    await delivering
    for (const batchSize of [0, 1.5, 1_001, Number.NaN])
      await expect(mounted.auth.outbox.deliver(() => undefined, { batchSize })).rejects.toThrow('batchSize must be')
    await expect(mounted.auth.outbox.deliver(undefined as never)).rejects.toThrow('needs a function')
    const ended = new AbortController()
    ended.abort()
    await mounted.auth.outbox.deliver(() => undefined, { signal: ended.signal })
  })

  test('goes on after the database failed, and says so once', async () => {
    const mounted = await withOutbox()
    const seen: string[] = []
    const stopping = new AbortController()
    await mounted.knex.schema.renameTable('auth_outbox', 'moved')
    const delivering = mounted.auth.outbox.deliver(({ id }) => seen.push(id), { signal: stopping.signal })
    await until(() => mounted.logs.entries.some(({ message }) => message.includes('the database did not answer the outbox')))
    await mounted.knex.schema.renameTable('moved', 'auth_outbox')
    await write(mounted, 'ana')
    await until(() => seen.length === 1)
    stopping.abort()
    await delivering
  })
})

/** A column of a host can have whole seconds. SQLite has no such column of ours. */
const wholeSeconds: Readonly<Record<string, string>> = {
  postgres: 'alter table auth_outbox alter column leased_until type timestamptz(0)',
  mariadb: 'alter table auth_outbox modify leased_until datetime(0) null',
}

describe.each(await databases())('a lease in a column of whole seconds on $name', (database) => {
  const startOn = appPerTest(database)

  test.each([0.1, 0.6])('a failure is counted, and the event comes again after a second (at %d s)', async (offset) => {
    const mounted = await startOn({ options: { outbox: true } })
    const statement = wholeSeconds[database.name]
    if (statement !== undefined) await mounted.knex.raw(statement)
    mounted.clock.advance(offset)
    const [id] = await write(mounted, randomUUID())
    const seen: string[] = []
    const stopping = new AbortController()
    const handler = (event: OutboxEvent) => {
      seen.push(event.id)
      if (seen.length === 1) throw new Error('the receiver is down')
    }
    const delivering = mounted.auth.outbox.deliver(handler, { signal: stopping.signal })
    await until(() => seen.length === 1)
    mounted.clock.advance(2)
    await until(() => seen.length === 2)
    stopping.abort()
    await delivering
    expect([seen, (await mounted.auth.outbox.status()).waiting]).toEqual([[id, id], 0])
  })
})

describe('an event that waits', () => {
  test('can be discarded, and is then never delivered', async () => {
    const mounted = await withOutbox()
    const [first = '', second] = await write(mounted, 'ana', 'ana')
    expect(await mounted.auth.outbox.discard(first)).toBe(true)
    expect(await mounted.auth.outbox.discard(first)).toBe(false)
    expect(await mounted.auth.outbox.discard('nonsense')).toBe(false)
    const seen: string[] = []
    await deliverUntil(
      mounted,
      ({ id }) => seen.push(id),
      () => seen.length === 1,
    )
    expect(seen).toEqual([second])
  })

  test('without the option, every method says what is missing', async () => {
    const { auth } = await start()
    const needs = 'auth.outbox needs the option `outbox: true`'
    await expect(auth.outbox.deliver(() => undefined)).rejects.toThrow(needs)
    await expect(auth.outbox.status()).rejects.toThrow(needs)
    await expect(auth.outbox.discard('x')).rejects.toThrow(needs)
  })
})
