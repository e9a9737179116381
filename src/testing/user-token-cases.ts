import assert from 'node:assert/strict'
import { DuplicateRecordError, type UserTokenRecord } from '../store/auth-store'
import type { Cases } from './cases'
import { AT, deleteLongAgo, freshHash, LONG_AGO, later, newUserToken, withUser, withUserToken } from './records'

export const USER_TOKEN_CASES: Cases = [
  [
    'a one-shot token is spent once, also when ten callers bring it at once; its account stays as it is',
    async (store) => {
      const user = await withUser(store, { isActive: false, activatedAt: null })
      const { id } = user
      const token = await withUserToken(store, id, { payload: 'new@example.test' })
      const spent = await Promise.all(
        Array.from({ length: 10 }, () => store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(5))),
      )
      assert.deepEqual(spent.filter(Boolean), [{ ...token, usedAt: later(5) }])
      assert.equal(await store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(6)), null)
      assert.deepEqual(await store.users.find(id), user)
    },
  ],
  [
    'an unknown, expired or spent token, or one of another purpose, is not spent',
    async (store) => {
      const { id } = await withUser(store)
      const token = await withUserToken(store, id, { expiresAt: later(100) })
      const used = await withUserToken(store, id, { usedAt: AT })
      const { consume } = store.userTokens
      assert.equal(await consume(freshHash(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(`${token.tokenHash}\0`, 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash.toUpperCase(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash, 'ACTIVATION', AT), null)
      assert.equal(await consume(token.tokenHash, 'PASSWORD_RESET', later(100)), null) // at `expiresAt`, a token is no longer valid
      assert.equal(await consume(used.tokenHash, 'PASSWORD_RESET', AT), null)
      assert.ok(await consume(token.tokenHash, 'PASSWORD_RESET', later(99)))
    },
  ],
  [
    'a token hash is unique',
    async (store) => {
      const { id } = await withUser(store)
      const token = await withUserToken(store, id)
      await assert.rejects(
        store.userTokens.insert(newUserToken(id, { tokenHash: token.tokenHash, purpose: 'MFA_CHALLENGE' })),
        DuplicateRecordError,
      )
    },
  ],
  [
    "consumeAllForUser spends the user's open tokens, of one purpose or all",
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const insert = (userId: string, purpose: UserTokenRecord['purpose']) => withUserToken(store, userId, { purpose })
      const tokens = [await insert(mine.id, 'ACTIVATION'), await insert(mine.id, 'PASSWORD_RESET'), await insert(mine.id, 'PASSWORD_RESET')]
      const foreign = await insert(other.id, 'PASSWORD_RESET')
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT, 'PASSWORD_RESET'), 2)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 1)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 0)
      for (const { tokenHash, purpose } of tokens) assert.equal(await store.userTokens.consume(tokenHash, purpose, AT), null)
      assert.ok(await store.userTokens.consume(foreign.tokenHash, 'PASSWORD_RESET', AT))
    },
  ],
  [
    'consumeAllForUser spends the open tokens of several purposes, and an UNDO token only where it is named',
    async (store) => {
      const { id } = await withUser(store)
      const insert = (purpose: UserTokenRecord['purpose']) => withUserToken(store, id, { purpose })
      const [change, ticket, undo] = [await insert('EMAIL_CHANGE'), await insert('LINK_TICKET'), await insert('UNDO')]
      await insert('ACTIVATION')
      const { consume, consumeAllForUser } = store.userTokens
      assert.equal(await consumeAllForUser(id, AT, ['EMAIL_CHANGE', 'LINK_TICKET', 'REAUTH_TICKET']), 2)
      assert.equal(await consumeAllForUser(id, AT, []), 0)
      assert.equal(await consumeAllForUser(id, AT), 1)
      for (const { tokenHash, purpose } of [change, ticket]) assert.equal(await consume(tokenHash, purpose, AT), null)
      assert.ok(await consume(undo.tokenHash, 'UNDO', AT))
      await insert('UNDO')
      assert.equal(await consumeAllForUser(id, AT, 'UNDO'), 1)
    },
  ],
  [
    'listOpen returns the open tokens of one user and purpose, oldest first',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const insert = (userId: string, changes: Partial<UserTokenRecord>) =>
        withUserToken(store, userId, { purpose: 'UNDO', expiresAt: later(100), ...changes })
      const second = await insert(mine.id, { createdAt: later(2) })
      const first = await insert(mine.id, { createdAt: later(1), payload: 'what it was' })
      await insert(mine.id, { purpose: 'PASSWORD_RESET' })
      await insert(mine.id, { usedAt: AT })
      await insert(mine.id, { expiresAt: later(3) }) // at `expiresAt`, a token is no longer valid
      await insert(other.id, {})
      assert.deepEqual(await store.userTokens.listOpen(mine.id, 'UNDO', later(3)), [first, second])
      assert.deepEqual(await store.userTokens.listOpen(mine.id, 'ACTIVATION', AT), [])
      assert.deepEqual(await store.userTokens.listOpen('nobody', 'UNDO', AT), [])
    },
  ],
  [
    'a one-shot token is found by its hash alone, whatever its purpose and state',
    async (store) => {
      const { id } = await withUser(store)
      const { insert, find, consume } = store.userTokens
      for (const state of [{}, { usedAt: later(1), payload: 'new@example.test' }]) {
        const given = newUserToken(id, { ...state, createdAt: later(2) })
        const token = await insert(given)
        assert.deepEqual(token, { ...given, id: token.id })
        assert.deepEqual(await find(token.tokenHash), token)
      }
      const unbound = await withUserToken(store, id)
      assert.deepEqual(await consume(unbound.tokenHash, 'PASSWORD_RESET', AT), { ...unbound, usedAt: AT })
      for (const purpose of ['ACTIVATION', 'MFA_CHALLENGE'] as const) {
        const token = await withUserToken(store, id, { purpose, payload: 'new@example.test', expiresAt: later(100) })
        assert.deepEqual(await find(token.tokenHash), token)
        await consume(token.tokenHash, purpose, later(99))
        assert.deepEqual(await find(token.tokenHash), { ...token, usedAt: later(99) })
      }
      const expired = await withUserToken(store, id, { expiresAt: later(-1) })
      assert.deepEqual(await find(expired.tokenHash), expired)
      const { tokenHash } = expired
      for (const other of [freshHash(), tokenHash.toUpperCase(), `${tokenHash} `, `${tokenHash}\0`, '', '%']) {
        assert.equal(await find(other), null, other)
      }
    },
  ],
  [
    'a superseded token ends when it was superseded, unless it had ended before',
    async (store) => {
      const { id } = await withUser(store)
      const { find, consume, consumeAllForUser } = store.userTokens
      const open = await withUserToken(store, id, { expiresAt: later(100) })
      const expired = await withUserToken(store, id, { expiresAt: later(3) })
      const redeemed = await withUserToken(store, id, { expiresAt: later(100) })
      await consume(redeemed.tokenHash, 'PASSWORD_RESET', later(4))
      assert.equal(await consumeAllForUser(id, later(5)), 2)
      assert.deepEqual(await find(open.tokenHash), { ...open, usedAt: later(5), expiresAt: later(5) })
      assert.deepEqual(await find(expired.tokenHash), { ...expired, usedAt: later(5) })
      assert.deepEqual(await find(redeemed.tokenHash), { ...redeemed, usedAt: later(4) })
    },
  ],
  [
    'wasConsumed tells a redeemed token from an open, an expired and a superseded one, also of another purpose or user',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const { consume, consumeAllForUser, wasConsumed } = store.userTokens
      const [first, second] = [
        await withUserToken(store, mine.id, { purpose: 'ACTIVATION', expiresAt: later(100) }),
        await withUserToken(store, mine.id, { purpose: 'ACTIVATION', expiresAt: later(100) }),
      ]
      await withUserToken(store, mine.id, { expiresAt: later(-1) })
      await withUserToken(store, mine.id, { expiresAt: later(100) })
      const reset = await withUserToken(store, other.id)
      await consume(reset.tokenHash, 'PASSWORD_RESET', AT)
      assert.equal(await wasConsumed(mine.id, 'ACTIVATION'), false)
      await consumeAllForUser(mine.id, later(5), 'PASSWORD_RESET')
      assert.equal(await wasConsumed(mine.id, 'PASSWORD_RESET'), false)

      await consume(first.tokenHash, 'ACTIVATION', later(99)) // the last millisecond in which the token is valid
      assert.equal(await wasConsumed(mine.id, 'ACTIVATION'), true)
      await consumeAllForUser(mine.id, later(99))
      assert.equal(await consume(second.tokenHash, 'ACTIVATION', later(99)), null)
      assert.equal(await wasConsumed(mine.id, 'ACTIVATION'), true)
      assert.equal(await wasConsumed(mine.id, 'PASSWORD_RESET'), false)
      assert.equal(await wasConsumed(other.id, 'ACTIVATION'), false)
    },
  ],
  [
    'a token that is redeemed and superseded at once counts as what it was',
    async (store) => {
      const users = await Promise.all(Array.from({ length: 5 }, () => withUser(store)))
      for (const { id } of users) {
        const { tokenHash } = await withUserToken(store, id)
        const [redeemed, superseded] = await Promise.all([
          store.userTokens.consume(tokenHash, 'PASSWORD_RESET', AT),
          store.userTokens.consumeAllForUser(id, AT),
        ])
        assert.deepEqual([superseded, await store.userTokens.wasConsumed(id, 'PASSWORD_RESET')], redeemed ? [0, true] : [1, false])
      }
    },
  ],
  [
    'deleteExpired takes what ended, at most so many at once: one-shot tokens',
    async (store) => {
      await deleteLongAgo(store)
      const { id } = await withUser(store)
      const ends = [LONG_AGO, later(-1_000, LONG_AGO), later(-2_000, LONG_AGO), later(1_000, LONG_AGO)]
      const hashes: string[] = []
      for (const expiresAt of ends) hashes.push((await withUserToken(store, id, { expiresAt })).tokenHash)
      const left = async () => (await Promise.all(hashes.map((hash) => store.userTokens.find(hash)))).map((token) => token !== null)

      assert.equal(await store.userTokens.deleteExpired({ before: LONG_AGO, most: 2 }), 2)
      assert.equal((await left()).filter((isLeft) => isLeft).length, 2)
      assert.equal(await store.userTokens.deleteExpired({ before: LONG_AGO, most: 2 }), 1)
      assert.deepEqual(await left(), [false, false, false, true])
      assert.equal(await store.userTokens.deleteExpired({ before: LONG_AGO, most: 2 }), 0)
    },
  ],
  [
    'deleteExpired keeps a redeemed activation token where nothing else tells that the account was activated',
    async (store) => {
      const { id } = await withUser(store)
      const { consume, find } = store.userTokens
      const redeemed = await withUserToken(store, id, { purpose: 'ACTIVATION', expiresAt: LONG_AGO })
      await consume(redeemed.tokenHash, 'ACTIVATION', later(-1, LONG_AGO))
      const forgotten = await withUserToken(store, id, { purpose: 'ACTIVATION', expiresAt: LONG_AGO })
      const reset = await withUserToken(store, id, { expiresAt: LONG_AGO })
      await consume(reset.tokenHash, 'PASSWORD_RESET', later(-1, LONG_AGO))
      await store.userTokens.deleteExpired({ before: later(8 * 86_400_000, LONG_AGO), most: 10 })

      const isKept = !store.users.fields.has('activatedAt')
      assert.equal(await store.userTokens.wasConsumed(id, 'ACTIVATION'), isKept)
      for (const { tokenHash } of [forgotten, reset]) assert.equal(await find(tokenHash), null)
    },
  ],
  [
    'deleteExpired keeps an open activation token that names an invitation, until it is spent',
    async (store) => {
      await deleteLongAgo(store)
      const { id } = await withUser(store)
      const insert = (payload: string) => withUserToken(store, id, { purpose: 'ACTIVATION', expiresAt: LONG_AGO, payload })
      const [invited, plain] = [await insert('{"id":"x","invitation":"some"}'), await insert('{"id":"x"}')]
      const { deleteExpired, find, consumeAllForUser } = store.userTokens
      const expired = { before: later(8 * 86_400_000, LONG_AGO), most: 10 }
      assert.equal(await deleteExpired(expired), 1)
      assert.deepEqual(await find(invited.tokenHash), invited)
      assert.equal(await find(plain.tokenHash), null)
      await consumeAllForUser(id, AT)
      assert.equal(await deleteExpired(expired), 1)
    },
  ],
]
