import assert from 'node:assert/strict'
import type { Cases } from './cases'
import { AT, freshHash, NOBODY, STRANGE_IDS, withUser } from './records'

export const RECOVERY_CODE_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: recoveryCodes',
    async ({ recoveryCodes }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await recoveryCodes.consume(id, freshHash(), AT), false)
        assert.equal(await recoveryCodes.deleteForUser(id), 0)
      }
    },
  ],
  [
    'a recovery code is spent once by its owner only',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const codes = [freshHash(), freshHash()] as const
      await store.recoveryCodes.replaceForUser(mine.id, codes)
      assert.equal(await store.recoveryCodes.consume(other.id, codes[0], AT), false)
      const answers = await Promise.all(Array.from({ length: 10 }, () => store.recoveryCodes.consume(mine.id, codes[0], AT)))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.equal(await store.recoveryCodes.consume(mine.id, codes[0], AT), false)
      assert.equal(await store.recoveryCodes.consume(mine.id, codes[1].toUpperCase(), AT), false)
      assert.equal(await store.recoveryCodes.consume(mine.id, codes[1], AT), true)
    },
  ],
  [
    'replaceForUser removes the old set, also when two sets arrive at once',
    async (store) => {
      const [{ id }, other] = [await withUser(store), await withUser(store)]
      const foreign = freshHash()
      await store.recoveryCodes.replaceForUser(other.id, [foreign])
      await store.recoveryCodes.replaceForUser(id, [freshHash()])
      const sets = Array.from({ length: 4 }, () => [freshHash(), freshHash(), freshHash()])
      await Promise.all(sets.map((set) => store.recoveryCodes.replaceForUser(id, set)))
      const alive = await Promise.all(sets.map(async ([code = '']) => store.recoveryCodes.consume(id, code, AT)))
      assert.equal(alive.filter(Boolean).length, 1)
      assert.equal(await store.recoveryCodes.deleteForUser(id), 3)
      const last = freshHash()
      await store.recoveryCodes.replaceForUser(id, [last])
      await store.recoveryCodes.replaceForUser(id, [])
      assert.equal(await store.recoveryCodes.consume(id, last, AT), false)
      assert.equal(await store.recoveryCodes.deleteForUser(id), 0)
      assert.equal(await store.recoveryCodes.consume(other.id, foreign, AT), true)
    },
  ],
]
