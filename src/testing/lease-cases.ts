import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Cases } from './cases'
import { LONG_AGO, later } from './records'

const now = later(60_000, LONG_AGO)
const until = later(120_000, LONG_AGO)
const newLease = () => ({ id: randomUUID(), holder: randomUUID(), now, until, ranBefore: LONG_AGO })

export const LEASE_CASES: Cases = [
  [
    'one of several callers takes a lease, and another one after its end',
    async ({ leases }) => {
      const lease = newLease()
      const others = [1, 2, 3].map(() => ({ ...lease, holder: randomUUID() }))
      const taken = await Promise.all([lease, ...others].map((one) => leases.take(one)))
      assert.equal(taken.filter(Boolean).length, 1)
      assert.equal(await leases.take({ ...lease, now: later(-1, until) }), false)
      const next = { ...lease, holder: randomUUID(), now: until, until: later(60_000, until) }
      assert.equal(await leases.take(next), true)
      assert.deepEqual(await leases.find(lease.id), { id: lease.id, holder: next.holder, leasedUntil: next.until, ranAt: null })
    },
  ],
  [
    'only its holder renews and ends a lease',
    async ({ leases }) => {
      const lease = newLease()
      const other = { ...lease, holder: randomUUID() }
      await leases.take(lease)
      assert.equal(await leases.renew({ ...other, until: later(1, until) }), false)
      await leases.release(other)
      assert.deepEqual((await leases.find(lease.id))?.leasedUntil, until)
      assert.equal(await leases.renew({ ...lease, until: later(1, until) }), true)
      assert.deepEqual((await leases.find(lease.id))?.leasedUntil, later(1, until))
      await leases.release(lease)
      assert.equal(await leases.take(other), true)
    },
  ],
  [
    'a lease of a task that was done since `ranBefore` is not taken',
    async ({ leases }) => {
      const lease = newLease()
      assert.equal(await leases.find(lease.id), null)
      await leases.recordRun(lease.id, now)
      await leases.recordRun(lease.id, now)
      assert.deepEqual(await leases.find(lease.id), { id: lease.id, holder: null, leasedUntil: null, ranAt: now })
      assert.equal(await leases.take({ ...lease, ranBefore: later(-1, now) }), false)
      assert.equal(await leases.take({ ...lease, ranBefore: now }), true)
    },
  ],
  [
    'a lease of a task that was done after `now`, by a clock that ran ahead, is taken',
    async ({ leases }) => {
      const lease = newLease()
      await leases.recordRun(lease.id, later(86_400, now))
      assert.equal(await leases.take({ ...lease, ranBefore: later(-1, now) }), true)
    },
  ],
]
