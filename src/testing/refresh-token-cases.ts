import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { DuplicateRecordError } from '../store/auth-store'
import { AT, freshHash, LONG_AGO, later, NOBODY, newRefreshToken, rotationOf, STRANGE_IDS, withRefreshToken, withUser } from './records'
import type { Cases } from './store-contract'

export const REFRESH_TOKEN_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: refreshTokens',
    async ({ refreshTokens }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await refreshTokens.revokeForUser(id, AT), 0)
        assert.equal(await refreshTokens.revokeFamily(id, AT), 0)
      }
    },
  ],
  [
    'a refresh token comes back as it was inserted',
    async (store) => {
      const token = await withRefreshToken(store, { amr: null })
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
      assert.equal(await store.refreshTokens.find(token.tokenHash.toUpperCase()), null)
      assert.equal(await store.refreshTokens.find(`${token.tokenHash} `), null)
      await assert.rejects(store.refreshTokens.insert(newRefreshToken(token.userId, { tokenHash: token.tokenHash })), DuplicateRecordError)
    },
  ],
  [
    'rotate spends the token and continues its family: same user, amr and absolute end',
    async (store) => {
      const user = await withUser(store)
      const token = await withRefreshToken(store, { userId: user.id })
      const rotation = rotationOf(token.tokenHash)
      const rotated = await store.refreshTokens.rotate(rotation)
      const child = { ...token, ...rotation.child, parentId: token.id, expiresAt: rotation.childExpiresAt, createdAt: rotation.at }
      assert.ok(rotated)
      const { tokenHash, userId, amr, expiresAt } = rotated.token
      assert.deepEqual({ ...child, tokenHash, userId, amr, expiresAt }, child)
      assert.deepEqual([rotated.user.id, rotated.user.email], [user.id, user.email])
      assert.deepEqual(await store.refreshTokens.find(rotation.child.tokenHash), child)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), { ...token, usedAt: rotation.at })
    },
  ],
  [
    'findWithSuccessor tells a token, what replaced it and its user: as they are, and nobody else’s',
    async (store) => {
      const user = await withUser(store)
      const token = await withRefreshToken(store, { userId: user.id })
      const bystander = await withRefreshToken(store, { userId: user.id })
      assert.deepEqual(await store.refreshTokens.findWithSuccessor(token.tokenHash), { token, successor: null, user })
      const rotation = rotationOf(token.tokenHash)
      await store.refreshTokens.rotate(rotation)
      const child = await store.refreshTokens.find(rotation.child.tokenHash)
      const spent = { ...token, usedAt: rotation.at }
      assert.deepEqual(await store.refreshTokens.findWithSuccessor(token.tokenHash), { token: spent, successor: child, user })
      const next = rotationOf(rotation.child.tokenHash, { at: later(2) })
      await store.refreshTokens.rotate(next)
      await store.refreshTokens.revokeFamily(token.familyId, later(3))
      const seen = await store.refreshTokens.findWithSuccessor(token.tokenHash)
      const ended = { revokedAt: later(3) }
      assert.deepEqual(seen, { token: { ...spent, ...ended }, successor: { ...child, usedAt: later(2), ...ended }, user })
      assert.equal((await store.refreshTokens.findWithSuccessor(next.child.tokenHash))?.successor, null)
      assert.deepEqual(await store.refreshTokens.findWithSuccessor(bystander.tokenHash), { token: bystander, successor: null, user })
      for (const hash of [freshHash(), token.tokenHash.toUpperCase(), `${token.tokenHash} `, 'a\0b'])
        assert.equal(await store.refreshTokens.findWithSuccessor(hash), null)
    },
  ],
  [
    "the child's idle end is cut to the family's absolute end, and a null amr stays null",
    async (store) => {
      const token = await withRefreshToken(store, { familyExpiresAt: later(90_000), amr: null })
      const rotated = await store.refreshTokens.rotate(rotationOf(token.tokenHash, { childExpiresAt: later(120_000) }))
      assert.deepEqual(rotated?.token.expiresAt, later(90_000))
      assert.equal(rotated?.token.amr, null)
    },
  ],
  [
    'of ten rotations of one token exactly one wins, and the losers insert nothing',
    async (store) => {
      const token = await withRefreshToken(store)
      const rotations = Array.from({ length: 10 }, () => rotationOf(token.tokenHash))
      const results = await Promise.all(rotations.map((rotation) => store.refreshTokens.rotate(rotation)))
      const winners = results.flatMap((result) => result?.token.tokenHash ?? [])
      assert.equal(winners.length, 1)
      for (const { child } of rotations) {
        assert.equal((await store.refreshTokens.find(child.tokenHash)) !== null, child.tokenHash === winners[0])
      }
    },
  ],
  [
    'a spent, revoked, expired or unknown token, or one of an inactive user, is not rotated and nothing changes',
    async (store) => {
      const sleeper = await withUser(store, { isActive: false })
      const dead = [
        await withRefreshToken(store, { usedAt: AT }),
        await withRefreshToken(store, { revokedAt: AT }),
        await withRefreshToken(store, { expiresAt: later(1) }),
        await withRefreshToken(store, { familyExpiresAt: later(1) }),
        await withRefreshToken(store, { userId: sleeper.id }),
      ]
      for (const token of dead) {
        const rotation = rotationOf(token.tokenHash)
        assert.equal(await store.refreshTokens.rotate(rotation), null)
        assert.equal(await store.refreshTokens.find(rotation.child.tokenHash), null)
        assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
      }
      assert.equal(await store.refreshTokens.rotate(rotationOf(freshHash())), null)
      assert.equal(await store.refreshTokens.rotate(rotationOf('a\0b')), null)
    },
  ],
  [
    'a rotation whose child cannot be inserted leaves the token unspent',
    async (store) => {
      const token = await withRefreshToken(store)
      const taken = await withRefreshToken(store)
      const rotation = rotationOf(token.tokenHash, { child: { id: randomUUID(), tokenHash: taken.tokenHash } })
      await assert.rejects(store.refreshTokens.rotate(rotation), DuplicateRecordError)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
      assert.deepEqual(await store.refreshTokens.find(taken.tokenHash), taken)
      const itself = rotationOf(token.tokenHash, { child: { id: randomUUID(), tokenHash: token.tokenHash } })
      await assert.rejects(store.refreshTokens.rotate(itself), DuplicateRecordError)
      assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
    },
  ],
  [
    'revokeFamily ends every token of the family and no other, and says how many were live',
    async (store) => {
      const token = await withRefreshToken(store)
      const rotation = rotationOf(token.tokenHash)
      await store.refreshTokens.rotate(rotation)
      const bystander = await withRefreshToken(store, { userId: token.userId })
      assert.equal(await store.refreshTokens.revokeFamily(token.familyId, later(9)), 1)
      assert.equal(await store.refreshTokens.revokeFamily(token.familyId, later(10)), 0)
      for (const hash of [token.tokenHash, rotation.child.tokenHash]) {
        assert.deepEqual((await store.refreshTokens.find(hash))?.revokedAt, later(9))
      }
      assert.equal(await store.refreshTokens.rotate(rotationOf(rotation.child.tokenHash)), null)
      assert.ok(await store.refreshTokens.rotate(rotationOf(bystander.tokenHash)))
    },
  ],
  [
    'revokeForUser ends all families of the user, except the one named',
    async (store) => {
      const { id } = await withUser(store)
      const tokens = [await withRefreshToken(store, { userId: id }), await withRefreshToken(store, { userId: id })]
      const kept = await withRefreshToken(store, { userId: id })
      const foreign = await withRefreshToken(store)
      await withRefreshToken(store, { userId: id, expiresAt: AT }) // not live any more: revoked, not counted
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9), { exceptFamilyId: kept.familyId }), 2)
      for (const { tokenHash } of tokens) assert.equal(await store.refreshTokens.rotate(rotationOf(tokenHash)), null)
      assert.ok(await store.refreshTokens.rotate(rotationOf(kept.tokenHash)))
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9), { exceptFamilyId: 'no-such\0family' }), 1)
      assert.equal(await store.refreshTokens.revokeForUser(id, later(9)), 0)
      assert.ok(await store.refreshTokens.rotate(rotationOf(foreign.tokenHash)))
    },
  ],
  [
    'hasLiveFamily tells whether a pair of that span goes on: spent is alive, revoked, ended and another user’s are not',
    async (store) => {
      const [{ id: userId }, other] = [await withUser(store), await withUser(store)]
      const token = await withRefreshToken(store, { userId, usedAt: later(5_000) })
      const { hasLiveFamily, revokeFamily } = store.refreshTokens
      const second = { from: later(-987), before: later(13) }
      assert.equal(await hasLiveFamily(userId, second, later(6_000)), true)
      assert.equal(await hasLiveFamily(userId, { from: later(13), before: later(1_013) }, later(6_000)), false)
      assert.equal(await hasLiveFamily(userId, { from: later(-1_987), before: later(-987) }, later(6_000)), false)
      assert.equal(await hasLiveFamily(userId, second, token.familyExpiresAt), false)
      assert.equal(await hasLiveFamily(other.id, second, later(6_000)), false)
      for (const id of [NOBODY, ...STRANGE_IDS]) assert.equal(await hasLiveFamily(id, second, AT), false)
      await revokeFamily(token.familyId, later(7_000))
      assert.equal(await hasLiveFamily(userId, second, later(8_000)), false)
    },
  ],
  [
    'deleteExpired takes tokens whose family has ended, and none of a living family, spent, expired or revoked',
    async (store) => {
      const { id: userId } = await withUser(store)
      const [ended, alive] = [LONG_AGO, later(1_000, LONG_AGO)]
      const doomed = newRefreshToken(userId, { expiresAt: later(-9, LONG_AGO), familyExpiresAt: ended, usedAt: later(-9, LONG_AGO) })
      const kept = [{ usedAt: AT }, { revokedAt: AT }, {}].map((state) =>
        newRefreshToken(userId, { expiresAt: later(-9, LONG_AGO), familyExpiresAt: alive, ...state }),
      )
      for (const token of [doomed, ...kept]) await store.refreshTokens.insert(token)

      assert.equal(await store.refreshTokens.deleteExpired({ before: LONG_AGO, most: 10 }), 1)
      assert.equal(await store.refreshTokens.find(doomed.tokenHash), null)
      for (const token of kept) assert.deepEqual(await store.refreshTokens.find(token.tokenHash), token)
    },
  ],
]
