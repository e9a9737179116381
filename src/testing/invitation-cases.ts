import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { DuplicateRecordError, type InvitationRecord } from '../store/auth-store'
import type { Cases } from './cases'
import { AT, deleteLongAgo, freshHash, LONG_AGO, later, NOBODY, newInvitation, STRANGE_IDS, withInvitation, withUser } from './records'

const OPEN_TO_ALL = { email: null, data: null, isMailed: false, createdBy: null }

export const INVITATION_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: invitations',
    async ({ invitations }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await invitations.find({ id }), null)
        assert.equal(await invitations.consume(id, AT), null)
        assert.equal(await invitations.replaceToken(id, freshHash(), AT), false)
        assert.equal(await invitations.revoke(id, AT), false)
      }
      assert.equal(await invitations.find({ tokenHash: freshHash() }), null)
      assert.deepEqual(await invitations.listOpenMailed(`${randomUUID()}@example.test`, AT), [])
    },
  ],
  [
    'isPresent, if the store has it, is true while the tables can be used: invitations',
    async ({ invitations }) => assert.equal((await invitations.isPresent?.()) ?? true, true),
  ],
  [
    'an invitation is read as it was inserted, by id and by hash',
    async (store) => {
      const admin = await withUser(store)
      const full = await withInvitation(store, { usesLeft: 10_000, createdBy: admin.id, revokedAt: later(1), data: '"x"'.repeat(1_365) })
      for (const one of [full, await withInvitation(store, OPEN_TO_ALL)]) {
        assert.deepEqual(await store.invitations.find({ id: one.id }), one)
        assert.deepEqual(await store.invitations.find({ tokenHash: one.tokenHash }), one)
      }
    },
  ],
  [
    'the hash of an invitation is unique, byte for byte',
    async (store) => {
      const { tokenHash } = await withInvitation(store)
      await assert.rejects(() => store.invitations.insert(newInvitation({ tokenHash })), DuplicateRecordError)
      assert.equal(await store.invitations.find({ tokenHash: tokenHash.toUpperCase() }), null)
    },
  ],
  [
    'a use is taken from an open invitation only, and of many callers at once only as many get one as there are uses',
    async (store) => {
      const [two, revoked, ended, used] = [
        await withInvitation(store, { usesLeft: 2 }),
        await withInvitation(store, { revokedAt: AT }),
        await withInvitation(store, { expiresAt: AT }),
        await withInvitation(store, { usesLeft: 0 }),
      ]
      for (const one of [revoked, ended, used]) {
        assert.equal(await store.invitations.consume(one.id, AT), null)
        assert.deepEqual(await store.invitations.find({ id: one.id }), one)
      }
      const taken = await Promise.all(Array.from({ length: 8 }, () => store.invitations.consume(two.id, AT)))
      const rows = taken.filter((row) => row !== null).toSorted((a, b) => b.usesLeft - a.usesLeft)
      assert.deepEqual(rows.length, 2)
      assert.deepEqual(await store.invitations.find({ id: two.id }), { ...two, usesLeft: 0 })
    },
  ],
  [
    'consume returns the whole row, with the uses that are left',
    async (store) => {
      const one = await withInvitation(store, { usesLeft: 3 })
      assert.deepEqual(await store.invitations.consume(one.id, AT), { ...one, usesLeft: 2 })
    },
  ],
  [
    'only an open invitation that was mailed gets another token, and the old hash then finds nothing',
    async (store) => {
      const mailed = await withInvitation(store)
      const closed = [
        await withInvitation(store, { isMailed: false }),
        await withInvitation(store, { usesLeft: 0 }),
        await withInvitation(store, { revokedAt: AT }),
        await withInvitation(store, { expiresAt: AT }),
      ]
      for (const { id } of closed) assert.equal(await store.invitations.replaceToken(id, freshHash(), AT), false)
      const tokenHash = freshHash()
      assert.equal(await store.invitations.replaceToken(mailed.id, tokenHash, AT), true)
      assert.equal(await store.invitations.find({ tokenHash: mailed.tokenHash }), null)
      assert.deepEqual(await store.invitations.find({ tokenHash }), { ...mailed, tokenHash })
    },
  ],
  [
    'an invitation is revoked once, and keeps the first time',
    async (store) => {
      const one = await withInvitation(store)
      assert.equal(await store.invitations.revoke(one.id, later(1)), true)
      assert.equal(await store.invitations.revoke(one.id, later(2)), false)
      assert.deepEqual(await store.invitations.find({ id: one.id }), { ...one, revokedAt: later(1) })
    },
  ],
  [
    'the open invitations that were mailed to an address are listed, oldest first',
    async (store) => {
      const email = `${randomUUID()}@example.test`
      const second = await withInvitation(store, { email, createdAt: later(1) })
      const first = await withInvitation(store, { email })
      for (const closed of [{ isMailed: false }, { usesLeft: 0 }, { revokedAt: AT }, { expiresAt: AT }])
        await withInvitation(store, { email, ...closed })
      await withInvitation(store)
      assert.deepEqual(await store.invitations.listOpenMailed(email, AT), [first, second])
    },
  ],
  [
    'invitations are listed newest first, page by page, also those of one instant',
    async (store) => {
      const made: InvitationRecord[] = []
      for (const at of [later(9e12), later(9e12), later(9e12 + 1)]) made.push(await withInvitation(store, { createdAt: at }))
      const seen: InvitationRecord[] = []
      for (let page = 0; page < 3; page += 1) {
        const [next] = await store.invitations.list({ after: seen.at(-1) ?? null, limit: 1 })
        if (next) seen.push(next)
      }
      const ours = new Set(made.map(({ id }) => id))
      assert.deepEqual(seen[0], made[2])
      assert.deepEqual(new Set(seen.map(({ id }) => id)), ours)
      for (const { id } of made) await store.invitations.revoke(id, AT)
      // Other runs of the contract must find these last.
      await store.invitations.deleteExpired({ before: later(60_000), most: 1_000 })
    },
  ],
  [
    'invitations.deleteExpired takes what had ended with its uses, and no more than it may',
    async (store) => {
      await deleteLongAgo(store)
      const { id: userId } = await withUser(store)
      const ended: InvitationRecord[] = []
      for (const age of [1, 2, 3]) ended.push(await withInvitation(store, { expiresAt: later(-age, LONG_AGO) }))
      const alive = await withInvitation(store, { expiresAt: later(1, LONG_AGO) })
      for (const { id: invitationId } of [...ended, alive]) await store.invitationUses?.insert({ invitationId, userId, createdAt: AT })
      for (const count of [2, 1, 0]) assert.equal(await store.invitations.deleteExpired({ before: LONG_AGO, most: 2 }), count)
      assert.deepEqual(await store.invitations.find({ id: alive.id }), alive)
      for (const { id } of ended) assert.equal((await store.invitationUses?.isUsedBy(id, userId)) ?? false, false)
      if (store.invitationUses) assert.equal(await store.invitationUses.isUsedBy(alive.id, userId), true)
    },
  ],
]

export const INVITATION_USE_CASES: Cases = [
  [
    'an account uses an invitation once, and many accounts use it',
    async (store) => {
      const [one, other] = [await withUser(store), await withUser(store)]
      const [first, second] = [randomUUID(), randomUUID()]
      const use = { invitationId: first, userId: one.id, createdAt: AT }
      const stored = await store.invitationUses.insert(use)
      assert.deepEqual(stored, { ...use, id: stored.id })
      await assert.rejects(() => store.invitationUses.insert({ ...use, createdAt: later(1) }), DuplicateRecordError)
      await store.invitationUses.insert({ ...use, userId: other.id })
      assert.equal(await store.invitationUses.isUsedBy(first, one.id), true)
      assert.equal(await store.invitationUses.isUsedBy(first, other.id), true)
      assert.equal(await store.invitationUses.isUsedBy(second, one.id), false)
      for (const id of [NOBODY, ...STRANGE_IDS]) assert.equal(await store.invitationUses.isUsedBy(id, id), false)
    },
  ],
]
