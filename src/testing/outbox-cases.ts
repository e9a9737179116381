import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { CompleteStore, OutboxRecord, OutboxStore } from '../store/auth-store'
import type { Cases } from './cases'
import { LONG_AGO, later, NOBODY, STRANGE_IDS } from './records'

const now = later(60_000, LONG_AGO)
const until = later(120_000, LONG_AGO)

export const OUTBOX_CASES: Cases = [
  [
    'events are taken once, in the order of their insertion, as they were inserted',
    async (store) => {
      const outbox = await withoutWaiting(store)
      const [first, second] = [newEvent(), newEvent({ userId: null, payload: '{"userId":"ß"}' })]
      await outbox.insert([first, second])
      const taken = await outbox.take({ now, until, most: 10 })
      const rest = { tries: 0, nextAt: LONG_AGO, leasedUntil: until, deliveredAt: null }
      assert.deepEqual(taken.map(withoutSeq), [
        { ...first, ...rest },
        { ...second, ...rest },
      ])
      assert.ok(Number(taken[0]?.seq) < Number(taken[1]?.seq))
      assert.deepEqual(await outbox.take({ now, until, most: 10 }), [])
    },
  ],
  [
    'outbox.take returns at most as many events as it may, and of one user the oldest that is not delivered',
    async (store) => {
      const outbox = await withoutWaiting(store)
      const userId = randomUUID()
      const [first, second, other, last] = [newEvent({ userId }), newEvent({ userId }), newEvent(), newEvent()]
      await outbox.insert([first, second, other, last])
      assert.deepEqual(await takenIds(outbox, 2), [first.id, other.id])
      assert.deepEqual(await takenIds(outbox, 2), [last.id])
      assert.equal(await outbox.markDelivered(first.id, now), true)
      assert.equal(await outbox.markDelivered(first.id, now), false)
      assert.deepEqual(await takenIds(outbox, 2), [second.id])
    },
  ],
  [
    'an event whose lease is over is taken again, and an old lease ends no new one',
    async (store) => {
      const outbox = await withoutWaiting(store)
      const { id } = newEvent()
      await outbox.insert([newEvent({ id })])
      await outbox.take({ now, until, most: 10 })
      const again = later(60_000, until)
      assert.deepEqual(
        (await outbox.take({ now: until, until: again, most: 10 })).map((event) => event.id),
        [id],
      )
      assert.equal(await outbox.markFailed({ id, leasedUntil: until, nextAt: LONG_AGO }), false)
      assert.equal(await outbox.markFailed({ id, leasedUntil: again, nextAt: again }), true)
      assert.deepEqual(await outbox.take({ now: until, until: later(1, again), most: 10 }), [])
      const [failed] = await outbox.take({ now: again, until: later(60_000, again), most: 10 })
      assert.deepEqual([failed?.id, failed?.tries, failed?.nextAt], [id, 1, again])
    },
  ],
  [
    'the status counts the events that wait, and a discarded event is gone',
    async (store) => {
      const outbox = await withoutWaiting(store)
      const before = await outbox.status()
      const { id } = newEvent()
      await outbox.insert([newEvent({ id })])
      await outbox.take({ now, until, most: 10 })
      await outbox.markFailed({ id, leasedUntil: until, nextAt: now })
      const { waiting, failing, oldestAt } = await outbox.status()
      assert.deepEqual([waiting - before.waiting, failing - before.failing], [1, 1])
      assert.deepEqual(oldestAt, before.oldestAt ?? LONG_AGO)
      for (const unknown of [NOBODY, ...STRANGE_IDS]) assert.equal(await outbox.discard(unknown), false)
      assert.equal(await outbox.discard(id), true)
      assert.equal(await outbox.discard(id), false)
      assert.deepEqual(await takenIds(outbox, 10), [])
    },
  ],
  [
    'outbox.deleteDelivered takes what was delivered by then, and no more than it may',
    async (store) => {
      const outbox = await withoutWaiting(store)
      while ((await outbox.deleteDelivered({ before: now, most: 1_000 })) > 0);
      const [first, second, late, waits] = [newEvent(), newEvent(), newEvent(), newEvent()]
      await outbox.insert([first, second, late, waits])
      for (const { id } of [first, second]) await outbox.markDelivered(id, LONG_AGO)
      await outbox.markDelivered(late.id, later(1, LONG_AGO))
      for (const count of [1, 1, 0]) assert.equal(await outbox.deleteDelivered({ before: LONG_AGO, most: 1 }), count)
      assert.equal(await outbox.deleteDelivered({ before: later(1, LONG_AGO), most: 10 }), 1)
      assert.deepEqual(await takenIds(outbox, 10), [waits.id])
    },
  ],
  [
    'isPresent, if the store has it, is true while the table can be used: outbox',
    async ({ outbox }) => assert.equal((await outbox.isPresent?.()) ?? true, true),
  ],
]

type NewEvent = Parameters<OutboxStore['insert']>[0][number]

function newEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  const userId = randomUUID()
  return { id: randomUUID(), name: 'password.changed', userId, payload: JSON.stringify({ userId }), createdAt: LONG_AGO, ...overrides }
}

/** Other cases and an earlier run of the contract may have left events. */
async function withoutWaiting({ outbox }: CompleteStore): Promise<OutboxStore> {
  const late = later(8 * 86_400_000, LONG_AGO)
  for (let found = true; found; ) {
    const events = await outbox.take({ now: late, until: later(1, late), most: 100 })
    for (const { id } of events) await outbox.discard(id)
    found = events.length > 0
  }
  return outbox
}

async function takenIds(outbox: OutboxStore, most: number): Promise<string[]> {
  return (await outbox.take({ now, until, most })).map(({ id }) => id)
}

function withoutSeq({ seq: _, ...event }: OutboxRecord): Omit<OutboxRecord, 'seq'> {
  return event
}
