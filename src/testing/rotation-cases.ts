import assert from 'node:assert/strict'
import { DuplicateRecordError, type SessionRecord } from '../store/auth-store'
import type { Cases } from './cases'
import { AT, EMPTY_SESSION, FULL_SESSION, freshHash, later, rotationOf, withSession, withUser } from './records'

export const ROTATION_CASES: Cases = [
  [
    'rotate replaces the token of a session in place and changes nothing else',
    async (store) => {
      for (const fields of [FULL_SESSION, EMPTY_SESSION]) {
        const user = await withUser(store)
        const session = await withSession(store, { userId: user.id, ...fields })
        const bystander = await withSession(store, { userId: user.id })
        const rotation = rotationOf(session.tokenHash, { generation: session.generation + 1 })
        const rotated = await store.sessions.rotate(rotation)
        const after: SessionRecord = {
          ...session,
          tokenHash: rotation.successorHash,
          generation: rotation.generation,
          rotatedAt: rotation.at,
          lastSeenAt: rotation.at,
          expiresAt: rotation.expiresAt,
        }
        assert.ok(rotated)
        const { id, userId, amr, authenticatedAt, isPersistent, expiresAt } = rotated.session
        assert.deepEqual({ ...after, id, userId, amr, authenticatedAt, isPersistent, expiresAt }, after)
        assert.deepEqual([rotated.user.id, rotated.user.email], [user.id, user.email])
        assert.deepEqual(await store.sessions.find({ id: session.id }), { session: after, user })
        assert.equal(await store.sessions.find({ tokenHash: session.tokenHash, kind: 'tokens' }), null)
        assert.deepEqual(await store.sessions.find({ id: bystander.id }), { session: bystander, user })
      }
    },
  ],
  [
    'rotate cuts the idle end to the absolute end of the session',
    async (store) => {
      const session = await withSession(store, { endsAt: later(90_000) })
      const rotated = await store.sessions.rotate(rotationOf(session.tokenHash, { expiresAt: later(120_000) }))
      assert.deepEqual(rotated?.session.expiresAt, later(90_000))
      const found = await store.sessions.find({ id: session.id })
      assert.deepEqual([found?.session.expiresAt, found?.session.endsAt], [later(90_000), later(90_000)])
    },
  ],
  [
    'of ten rotations of one token exactly one wins',
    async (store) => {
      const { id, tokenHash } = await withSession(store)
      const rotations = Array.from({ length: 10 }, () => rotationOf(tokenHash))
      const results = await Promise.all(rotations.map((rotation) => store.sessions.rotate(rotation)))
      const winners = rotations.filter((_, index) => results[index])
      assert.equal(winners.length, 1)
      assert.equal((await store.sessions.find({ id }))?.session.tokenHash, winners[0]?.successorHash)
    },
  ],
  [
    'a revoked or expired session, one behind a cookie, an unknown token and an inactive user: rotate changes nothing',
    async (store) => {
      const sleeper = await withUser(store, { isActive: false })
      const refused = [
        await withSession(store, { revokedAt: AT }),
        await withSession(store, { expiresAt: later(1) }),
        await withSession(store, { kind: 'session' }),
        await withSession(store, { userId: sleeper.id }),
      ]
      for (const session of refused) {
        assert.equal(await store.sessions.rotate(rotationOf(session.tokenHash)), null)
        assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
      }
      assert.equal(await store.sessions.rotate(rotationOf(freshHash())), null)
      assert.equal(await store.sessions.rotate(rotationOf('a\0b')), null)
    },
  ],
  [
    'a rotation to a token that another session has leaves both as they are',
    async (store) => {
      const [session, taken] = [await withSession(store), await withSession(store)]
      const rotation = rotationOf(session.tokenHash, { successorHash: taken.tokenHash })
      await assert.rejects(store.sessions.rotate(rotation), DuplicateRecordError)
      for (const { id, ...rest } of [session, taken]) assert.deepEqual((await store.sessions.find({ id }))?.session, { id, ...rest })
    },
  ],
]
