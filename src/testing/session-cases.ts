import assert from 'node:assert/strict'
import { DuplicateRecordError } from '../store/auth-store'
import { AT, LONG_AGO, later, NOBODY, newSession, STRANGE_IDS, withUser } from './records'
import type { Cases } from './store-contract'

export const SESSION_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: sessions',
    async ({ sessions }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await sessions.touch(id, AT, { lastSeenAt: AT, expiresAt: AT }), false)
        assert.equal(await sessions.delete(id, id), false)
        assert.deepEqual(await sessions.listForUser(id), [])
        assert.equal(await sessions.deleteForUser(id), 0)
      }
    },
  ],
  [
    'a session is found with its user and slides',
    async (store) => {
      const user = await withUser(store)
      const session = newSession(user.id)
      await store.sessions.insert(session)
      assert.deepEqual(await store.sessions.findWithUser(session.sessionHash), { session, user })
      assert.equal(await store.sessions.findWithUser(session.sessionHash.toUpperCase()), null)
      assert.equal(await store.sessions.findWithUser('\0'), null)
      const moved = { lastSeenAt: later(1_000), expiresAt: later(2_000) }
      assert.equal(await store.sessions.touch(session.id, later(-1_000), moved), false)
      const racers = await Promise.all(Array.from({ length: 5 }, () => store.sessions.touch(session.id, AT, moved)))
      assert.deepEqual(racers.filter(Boolean), [true])
      const slid = { ...session, ...moved }
      assert.deepEqual(await store.sessions.listForUser(user.id), [slid])
      await assert.rejects(store.sessions.insert(newSession(user.id, { sessionHash: session.sessionHash })), DuplicateRecordError)
    },
  ],
  [
    'sessions are listed oldest first and ended one by one, or all but one, by their owner only',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const sessions = [2, 1, 3, 4].map((age) => newSession(mine.id, { createdAt: later(-1_000 * age) }))
      const foreign = newSession(other.id)
      for (const session of [...sessions, foreign]) await store.sessions.insert(session)
      const listed = (await store.sessions.listForUser(mine.id)).map(({ id }) => id)
      assert.deepEqual(
        listed,
        [3, 2, 0, 1].map((index) => sessions[index]?.id),
      )
      const [first = '', second = ''] = listed
      assert.equal(await store.sessions.delete(other.id, first), false)
      assert.equal(await store.sessions.delete(mine.id, first), true)
      assert.equal(await store.sessions.delete(mine.id, first), false)
      assert.equal(await store.sessions.deleteForUser(mine.id, { exceptId: second }), 2)
      assert.equal(await store.sessions.deleteForUser(mine.id), 1)
      assert.equal((await store.sessions.listForUser(other.id)).length, 1)
    },
  ],
  [
    'deleteExpired takes what ended, at most so many at once: sessions',
    async (store) => {
      const { id } = await withUser(store)
      const sessions = [2, 1, 0, -1].map((age) =>
        newSession(id, { expiresAt: later(-1_000 * age, LONG_AGO), createdAt: later(-1_000 * age) }),
      )
      for (const session of sessions) await store.sessions.insert(session)

      assert.equal(await store.sessions.deleteExpired({ before: LONG_AGO, most: 2 }), 2)
      assert.equal((await store.sessions.listForUser(id)).length, 2)
      assert.equal(await store.sessions.deleteExpired({ before: LONG_AGO, most: 2 }), 1)
      assert.deepEqual(await store.sessions.listForUser(id), sessions.slice(3))
    },
  ],
]
