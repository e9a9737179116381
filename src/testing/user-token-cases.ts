import assert from 'node:assert/strict'
import { DuplicateRecordError, type UserTokenRecord } from '../store/auth-store'
import { AT, freshHash, later, newUserToken, withUser } from './records'
import type { Cases } from './store-contract'

export const USER_TOKEN_CASES: Cases = [
  [
    'a one-shot token is spent once, also when ten callers bring it at once',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id, { payload: 'new@example.test' }))
      const spent = await Promise.all(
        Array.from({ length: 10 }, () => store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(5))),
      )
      assert.deepEqual(spent.filter(Boolean), [{ ...token, usedAt: later(5) }])
      assert.equal(await store.userTokens.consume(token.tokenHash, 'PASSWORD_RESET', later(6)), null)
    },
  ],
  [
    'an unknown, expired or spent token, or one of another purpose, is not spent',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id, { expiresAt: later(100) }))
      const used = await store.userTokens.insert(newUserToken(id, { usedAt: AT }))
      const { consume } = store.userTokens
      assert.equal(await consume(freshHash(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(`${token.tokenHash}\0`, 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash.toUpperCase(), 'PASSWORD_RESET', AT), null)
      assert.equal(await consume(token.tokenHash, 'ACTIVATION', AT), null)
      assert.equal(await consume(token.tokenHash, 'PASSWORD_RESET', later(100)), null) // ends at expiresAt, not after it
      assert.equal(await consume(used.tokenHash, 'PASSWORD_RESET', AT), null)
      assert.ok(await consume(token.tokenHash, 'PASSWORD_RESET', later(99)))
    },
  ],
  [
    'a token hash is unique',
    async (store) => {
      const { id } = await withUser(store)
      const token = await store.userTokens.insert(newUserToken(id))
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
      const insert = (userId: string, purpose: UserTokenRecord['purpose']) => store.userTokens.insert(newUserToken(userId, { purpose }))
      const tokens = [await insert(mine.id, 'ACTIVATION'), await insert(mine.id, 'PASSWORD_RESET'), await insert(mine.id, 'PASSWORD_RESET')]
      const foreign = await insert(other.id, 'PASSWORD_RESET')
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT, 'PASSWORD_RESET'), 2)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 1)
      assert.equal(await store.userTokens.consumeAllForUser(mine.id, AT), 0)
      for (const { tokenHash, purpose } of tokens) assert.equal(await store.userTokens.consume(tokenHash, purpose, AT), null)
      assert.ok(await store.userTokens.consume(foreign.tokenHash, 'PASSWORD_RESET', AT))
    },
  ],
]
