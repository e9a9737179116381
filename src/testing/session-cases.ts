import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type CompleteStore, DuplicateRecordError, type SessionChoice, type SessionRecord } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  deleteLongAgo,
  EMPTY_SESSION,
  EMPTY_USER,
  FULL_SESSION,
  FULL_USER,
  freshHash,
  LONG_AGO,
  later,
  NOBODY,
  newSession,
  rotationOf,
  STRANGE_IDS,
  withSession,
  withUser,
} from './records'

export const SESSION_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: sessions',
    async ({ sessions }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await sessions.find({ id }), null)
        assert.equal(await sessions.lock(id, AT), null)
        assert.equal(await sessions.update(id, { amr: 'pwd' }), false)
        assert.equal(await sessions.touch(id, AT, { lastSeenAt: AT, expiresAt: AT }, freshHash()), false)
        assert.deepEqual(await sessions.listForUser(id, AT), [])
        assert.equal(await sessions.revoke({ id }, AT), false)
        assert.equal(await sessions.revokeForUser(id, AT), 0)
      }
    },
  ],
  [
    'a session comes back as it was inserted, with its user, by its id, and by its token together with its kind',
    async (store) => {
      const [full, empty] = [await withUser(store, { ...FULL_USER, isAdmin: false }), await withUser(store, EMPTY_USER)]
      const sessions = [
        [await withSession(store, { userId: full.id, ...FULL_SESSION }), full],
        [await withSession(store, { userId: empty.id, kind: 'session', ...EMPTY_SESSION }), empty],
        [await withSession(store, { userId: full.id, revokedAt: AT }), full],
      ] as const
      for (const [session, user] of sessions) {
        const { id, tokenHash, kind } = session
        assert.deepEqual(await store.sessions.find({ id }), { session, user })
        assert.deepEqual(await store.sessions.find({ tokenHash, kind }), { session, user })
        assert.equal(await store.sessions.find({ tokenHash, kind: kind === 'tokens' ? 'session' : 'tokens' }), null)
        assert.equal(await store.sessions.find({ tokenHash: tokenHash.toUpperCase(), kind }), null)
        assert.equal(await store.sessions.find({ tokenHash: `${tokenHash} `, kind }), null)
        await assert.rejects(store.sessions.insert(newSession(user.id, { tokenHash })), DuplicateRecordError)
      }
    },
  ],
  [
    'findMany reads the sessions of a list with their users as find does, ended ones too, where the store has it',
    async (store) => {
      const { findMany } = store.sessions
      if (!findMany) return
      const [full, empty] = [await withUser(store, { ...FULL_USER, isAdmin: false, isActive: false }), await withUser(store, EMPTY_USER)]
      const rows = [
        await withSession(store, { userId: full.id, ...FULL_SESSION }),
        await withSession(store, { userId: empty.id, kind: 'session', ...EMPTY_SESSION }),
        await withSession(store, { userId: full.id, revokedAt: AT }),
        await withSession(store, { userId: full.id, expiresAt: later(1) }),
      ]
      await withSession(store, { userId: full.id })
      const ids = rows.map(({ id }) => id)
      const unknown = [NOBODY, ...STRANGE_IDS]
      const found = new Map((await findMany([...unknown, ...ids, ...ids.slice(0, 1)])).map((row) => [row.session.id, row]))
      assert.deepEqual([...found.keys()].sort(), [...ids].sort())
      for (const { id } of rows) assert.deepEqual(found.get(id), await store.sessions.find({ id }))
      assert.deepEqual(await findMany(unknown), [])
      assert.deepEqual(await findMany([]), [])
      const thousand = [...ids, ...Array.from({ length: 1_000 - ids.length }, () => randomUUID())]
      assert.equal((await findMany(thousand)).length, ids.length)
    },
  ],
  [
    'touch slides a living session once',
    async (store) => {
      const moved = { lastSeenAt: later(1_000), expiresAt: later(2_000) }
      for (const fields of [FULL_SESSION, EMPTY_SESSION]) {
        const session = await withSession(store, fields)
        const touch = (seenBy: Date, tokenHash = session.tokenHash) => store.sessions.touch(session.id, seenBy, moved, tokenHash)
        assert.equal(await touch(later(-1)), false)
        assert.equal(await touch(AT, freshHash()), false)
        const racers = await Promise.all(Array.from({ length: 5 }, () => touch(AT)))
        assert.deepEqual(racers.filter(Boolean), [true])
        assert.deepEqual(await store.sessions.listForUser(session.userId, AT), [{ ...session, ...moved }])
      }

      for (const ended of [await withSession(store, { revokedAt: AT }), await withSession(store, { expiresAt: moved.lastSeenAt })]) {
        assert.equal(await store.sessions.touch(ended.id, AT, moved, ended.tokenHash), false)
        assert.deepEqual((await store.sessions.find({ id: ended.id }))?.session, ended)
      }
    },
  ],
  [
    'update changes what it is given, and never a session that was revoked',
    async (store) => {
      for (const fields of [FULL_SESSION, EMPTY_SESSION]) {
        let session = await withSession(store, fields)
        const token = { tokenHash: freshHash(), generation: 8 }
        const proofs = [{ authenticatedAt: later(5) }, { authenticatedAt: null }]
        for (const changes of [{ amr: 'pwd' }, { amr: 'pwd' }, ...proofs, token, { amr: 'pwd otp', ...proofs[0] }]) {
          assert.equal(await store.sessions.update(session.id, changes), true)
          session = { ...session, ...changes }
          assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
        }
      }

      const ended = await withSession(store, { revokedAt: AT })
      assert.equal(await store.sessions.update(ended.id, { amr: 'pwd' }), false)
      assert.deepEqual((await store.sessions.find({ id: ended.id }))?.session, ended)
    },
  ],
  [
    'lock reads a living session inside a transaction, and no other',
    async (store) => {
      const living = [await withSession(store, FULL_SESSION), await withSession(store, EMPTY_SESSION)]
      const dead = [await withSession(store, { revokedAt: AT }), await withSession(store, { expiresAt: later(1) })]
      await store.transaction(async (inside) => {
        for (const session of living) assert.deepEqual(await inside.sessions?.lock(session.id, later(1)), session)
        for (const { id } of dead) assert.equal(await inside.sessions?.lock(id, later(1)), null)
      })
    },
  ],
  [
    'listForUser names the living sessions of one user, oldest first',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const sessions = [2, 1, 3].map((age) =>
        newSession(mine.id, { createdAt: later(-1_000 * age), ...(age === 1 ? { kind: 'session', ...EMPTY_SESSION } : FULL_SESSION) }),
      )
      const others = [newSession(mine.id, { revokedAt: AT }), newSession(mine.id, { expiresAt: later(1) }), newSession(other.id)]
      for (const session of [...sessions, ...others]) await store.sessions.insert(session)
      const [second, last, first] = sessions
      assert.deepEqual(await store.sessions.listForUser(mine.id, later(1)), [first, second, last])
    },
  ],
  [
    'insertWithin inserts a session and ends the living ones of its user that were unused longest, where the store has it',
    async (store) => {
      const { insertWithin } = store.sessions
      if (!insertWithin) return
      const [mine, other] = [await withUser(store), await withUser(store)]
      const used = (userId: string, age: number, fields: Partial<SessionRecord> = {}) =>
        newSession(userId, { createdAt: later(age), lastSeenAt: later(-1_000 * age), ...fields })
      const sessions = [used(mine.id, 2), used(mine.id, 1, { kind: 'session' }), used(mine.id, 3)]
      const others = [used(mine.id, 9, { revokedAt: AT }), used(mine.id, 9, { expiresAt: later(5) }), used(other.id, 9)]
      for (const session of [...sessions, ...others]) await store.sessions.insert(session)
      const insert = async (most: number) => {
        const session = newSession(mine.id, { createdAt: later(5), lastSeenAt: later(5) })
        const ended = await insertWithin(session, most)
        assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
        return [ended, (await store.sessions.listForUser(mine.id, later(6))).map(({ id }) => id)] as const
      }
      const [second, newest, oldest] = sessions.map(({ id }) => id)
      const isAlive = async (id: string | undefined, living: readonly string[]) => living.includes(String(id))
      const [none, four] = await insert(4)
      assert.deepEqual([none, four.length, await isAlive(oldest, four)], [0, 4, true])
      const [one, three] = await insert(4)
      assert.deepEqual([one, three.length, await isAlive(oldest, three), await isAlive(second, three)], [1, 4, false, true])
      const [three_, last] = await insert(2)
      assert.deepEqual([three_, last.length, await isAlive(newest, last)], [3, 2, false])
      assert.equal((await store.sessions.listForUser(other.id, later(6))).length, 1)
      const taken = newSession(mine.id, { tokenHash: sessions[0]?.tokenHash ?? '' })
      await assert.rejects(insertWithin(taken, 2), DuplicateRecordError)
    },
  ],
  [
    'revoke ends a session once, for its owner and kind where they are given',
    async (store) => {
      for (const fields of [FULL_SESSION, EMPTY_SESSION]) {
        const session = await withSession(store, fields)
        const { id, userId } = session
        const other = await withUser(store)
        assert.equal(await store.sessions.revoke({ id, userId: other.id }, later(1)), false)
        assert.equal(await store.sessions.revoke({ id, userId, kind: 'session' }, later(1)), false)
        assert.deepEqual((await store.sessions.find({ id }))?.session, session)
        const racers = await Promise.all(Array.from({ length: 5 }, () => store.sessions.revoke({ id, userId, kind: 'tokens' }, later(1))))
        assert.deepEqual(racers.filter(Boolean), [true])
        await assertRevoked(store, session, later(1))
        assert.equal(await store.sessions.rotate(rotationOf(session.tokenHash, { at: later(2) })), null)
      }
    },
  ],
  [
    'revoke takes a list of ids, and ends every session of the list',
    async (store) => {
      const [one, other, foreign] = [await withSession(store), await withSession(store), await withSession(store)]
      assert.equal(await store.sessions.revoke({ id: [] }, later(1)), false)
      assert.equal(await store.sessions.revoke({ id: [one.id, other.id, 'no-such\0session'] }, later(1)), true)
      for (const session of [one, other]) await assertRevoked(store, session, later(1))
      assert.equal(await store.sessions.revoke({ id: [one.id, other.id] }, later(2)), false)
      assert.deepEqual((await store.sessions.find({ id: foreign.id }))?.session, foreign)
    },
  ],
  [
    'revoke and revokeForUser end an expired session too: a request that began while it lived does not bring it back',
    async (store) => {
      for (const kind of ['tokens', 'session'] as const) {
        const [one, other] = [
          await withSession(store, { kind, expiresAt: later(5) }),
          await withSession(store, { kind, expiresAt: later(5) }),
        ]
        assert.equal(await store.sessions.revoke({ id: one.id }, later(6)), true)
        assert.equal(await store.sessions.revokeForUser(other.userId, later(6)), 1)
        for (const { id, userId, tokenHash } of [one, other]) {
          assert.equal(await store.sessions.touch(id, AT, { lastSeenAt: later(4), expiresAt: later(60_000) }, tokenHash), false)
          assert.equal(await store.sessions.rotate(rotationOf(tokenHash, { at: later(4) })), null)
          assert.deepEqual(await store.sessions.listForUser(userId, later(4)), [])
        }
      }
    },
  ],
  [
    'revokeForUser ends the sessions of both kinds that were not revoked before, except the one named, and says how many',
    async (store) => {
      const { id } = await withUser(store)
      const ended = [
        await withSession(store, { userId: id, ...FULL_SESSION }),
        await withSession(store, { userId: id, kind: 'session', ...EMPTY_SESSION }),
      ]
      const kept = await withSession(store, { userId: id })
      const foreign = await withSession(store)
      await withSession(store, { userId: id, revokedAt: AT })
      assert.equal(await store.sessions.revokeForUser(id, later(9), { exceptId: kept.id }), 2)
      for (const session of ended) await assertRevoked(store, session, later(9))
      assert.deepEqual((await store.sessions.find({ id: kept.id }))?.session, kept)
      assert.equal(await store.sessions.revokeForUser(id, later(9), { exceptId: 'no-such\0session' }), 1)
      assert.equal(await store.sessions.revokeForUser(id, later(9)), 0)
      assert.deepEqual((await store.sessions.find({ id: foreign.id }))?.session, foreign)
    },
  ],
  [
    'revokeForUser with a credential ends the sessions that this credential opened, and no other',
    async (store) => {
      const { id: userId } = await withUser(store)
      const open = (amr: string, provider: string | null = null) => withSession(store, { userId, amr, provider })
      const passkey = [await open('passkey'), await open('pwd passkey'), await open('passkey email')]
      const corp = [await open('ext otp', 'corp'), await open('ext', 'corp')]
      const kept = [await open('passkey'), await open('ext', 'corp')] as const
      const others = [await open(''), await open('pwd otp'), await open('ext', 'Corp'), await open('ext', 'corp2'), await open('ext')]
      const foreign = await withSession(store, { amr: 'passkey', provider: 'corp' })
      const revoke = (openedBy: SessionChoice, exceptId: string) =>
        store.sessions.revokeForUser(userId, later(9), { exceptId, ...openedBy })
      assert.equal(await revoke({ amr: 'passkey' }, kept[0].id), 3)
      for (const session of passkey) await assertRevoked(store, session, later(9))
      for (const session of [...corp, ...others, ...kept, foreign])
        assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
      assert.equal(await revoke({ provider: 'corp' }, kept[1].id), 2)
      for (const session of corp) await assertRevoked(store, session, later(9))
      for (const session of [...others, ...kept, foreign])
        assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
      assert.equal(await store.sessions.revokeForUser(userId, later(9), { amr: 'passkey' }), 1)
    },
  ],
  [
    'deleteExpired takes what ended, at most so many at once: sessions',
    async (store) => {
      await deleteLongAgo(store)
      const { id: userId } = await withUser(store)
      const sessions = [2, 1, 0, -1].map((age) => newSession(userId, { expiresAt: later(-1_000 * age, LONG_AGO) }))
      for (const session of sessions) await store.sessions.insert(session)

      assert.equal(await store.sessions.deleteExpired({ before: LONG_AGO, most: 2 }), 2)
      const before = later(-5_000, LONG_AGO)
      assert.equal((await store.sessions.listForUser(userId, before)).length, 2)
      assert.equal(await store.sessions.deleteExpired({ before: LONG_AGO, most: 2 }), 1)
      assert.deepEqual(await store.sessions.listForUser(userId, before), sessions.slice(3))
    },
  ],
  [
    'deleteExpired takes a session that was revoked by then, however long it would have lived',
    async (store) => {
      await deleteLongAgo(store)
      const { id } = await withSession(store, { lastSeenAt: LONG_AGO, createdAt: LONG_AGO })
      assert.equal(await store.sessions.revoke({ id }, LONG_AGO), true)
      assert.equal(await store.sessions.deleteExpired({ before: LONG_AGO, most: 10 }), 1)
      assert.equal(await store.sessions.find({ id }), null)
    },
  ],
]

/** A store may move `expiresAt` to the revocation, so that `deleteExpired` finds revoked sessions by an index on it. */
async function assertRevoked(store: CompleteStore, session: SessionRecord, at: Date): Promise<void> {
  const found = (await store.sessions.find({ id: session.id }))?.session
  assert.ok(found)
  assert.deepEqual({ ...found, expiresAt: session.expiresAt }, { ...session, revokedAt: at })
}

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
