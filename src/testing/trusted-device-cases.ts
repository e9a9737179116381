import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { DuplicateRecordError } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  deleteLongAgo,
  freshHash,
  LONG_AGO,
  later,
  NOBODY,
  newTrustedDevice,
  STRANGE_IDS,
  withTrustedDevice,
  withUser,
} from './records'

const EMPTY_DEVICE = { name: null, lastUsedAt: null }

export const TRUSTED_DEVICE_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: trustedDevices',
    async ({ trustedDevices }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.deepEqual(await trustedDevices.listForUser(id, AT), [])
        assert.equal(await trustedDevices.recordUse(id, id, { sessionId: randomUUID(), lastUsedAt: AT }), false)
        assert.equal(await trustedDevices.deleteForUser(id), 0)
        assert.equal(await trustedDevices.deleteForUser(NOBODY, { id }), 0)
      }
      assert.equal(await trustedDevices.find(freshHash()), null)
    },
  ],
  [
    'a trusted device is read as it was inserted, and those of a user that have not ended newest first',
    async (store) => {
      const [user, other] = [await withUser(store), await withUser(store)]
      const first = await withTrustedDevice(store, user.id, EMPTY_DEVICE)
      const second = await withTrustedDevice(store, user.id, { createdAt: later(1) })
      const ended = await withTrustedDevice(store, user.id, { endsAt: AT })
      await withTrustedDevice(store, other.id)
      for (const device of [first, second, ended]) assert.deepEqual(await store.trustedDevices.find(device.tokenHash), device)
      assert.deepEqual(await store.trustedDevices.listForUser(user.id, AT), [second, first])
    },
  ],
  [
    'isPresent, if the store has it, is true while the table can be used: trustedDevices',
    async ({ trustedDevices }) => assert.equal((await trustedDevices.isPresent?.()) ?? true, true),
  ],
  [
    'the hash of a trusted device is unique, byte for byte, whosever it is',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const { tokenHash } = await withTrustedDevice(store, mine.id)
      await assert.rejects(() => store.trustedDevices.insert(newTrustedDevice(other.id, { tokenHash })), DuplicateRecordError)
      assert.equal(await store.trustedDevices.find(tokenHash.toUpperCase()), null)
    },
  ],
  [
    'the use of a trusted device changes its session and time, and only if the account has it',
    async (store) => {
      const [user, other] = [await withUser(store), await withUser(store)]
      const [device, untouched] = [await withTrustedDevice(store, user.id, EMPTY_DEVICE), await withTrustedDevice(store, user.id)]
      const use = { sessionId: randomUUID(), lastUsedAt: later(5) }
      assert.equal(await store.trustedDevices.recordUse(device.id, other.id, use), false)
      assert.deepEqual(await store.trustedDevices.find(device.tokenHash), device)
      for (const _ of ['used', 'used again at the same instant'])
        assert.equal(await store.trustedDevices.recordUse(device.id, user.id, use), true)
      assert.deepEqual(await store.trustedDevices.find(device.tokenHash), { ...device, ...use })
      assert.deepEqual(await store.trustedDevices.find(untouched.tokenHash), untouched)
    },
  ],
  [
    'the trusted devices of a user are deleted by id, by session, by hash, all but one, and all',
    async (store) => {
      const [user, other] = [await withUser(store), await withUser(store)]
      const kept = await withTrustedDevice(store, other.id)
      const { deleteForUser, listForUser } = store.trustedDevices
      const [byId, bySession, byHash, stays, last] = [
        await withTrustedDevice(store, user.id),
        await withTrustedDevice(store, user.id, { createdAt: later(1) }),
        await withTrustedDevice(store, user.id, { createdAt: later(2) }),
        await withTrustedDevice(store, user.id, { createdAt: later(3) }),
        await withTrustedDevice(store, user.id, { createdAt: later(4) }),
      ]
      for (const choice of [{ id: kept.id }, { sessionId: kept.sessionId }, { tokenHash: kept.tokenHash }])
        assert.equal(await deleteForUser(user.id, choice), 0)
      assert.equal(await deleteForUser(user.id, { id: byId.id }), 1)
      assert.equal(await deleteForUser(user.id, { sessionId: bySession.sessionId }), 1)
      assert.equal(await deleteForUser(user.id, { tokenHash: byHash.tokenHash }), 1)
      assert.deepEqual(await listForUser(user.id, AT), [last, stays])
      assert.equal(await deleteForUser(user.id, { exceptTokenHash: stays.tokenHash }), 1)
      assert.deepEqual(await listForUser(user.id, AT), [stays])
      assert.equal(await deleteForUser(user.id), 1)
      assert.deepEqual([await listForUser(user.id, AT), await listForUser(other.id, AT)], [[], [kept]])
    },
  ],
  [
    'trustedDevices.deleteExpired takes what had ended, and no more than it may',
    async (store) => {
      await deleteLongAgo(store)
      const { id } = await withUser(store)
      for (const age of [1, 2, 3]) await withTrustedDevice(store, id, { endsAt: later(-age, LONG_AGO) })
      const alive = await withTrustedDevice(store, id, { endsAt: later(1, LONG_AGO) })
      for (const count of [2, 1, 0]) assert.equal(await store.trustedDevices.deleteExpired({ before: LONG_AGO, most: 2 }), count)
      assert.deepEqual(await store.trustedDevices.find(alive.tokenHash), alive)
    },
  ],
]
