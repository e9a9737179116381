import assert from 'node:assert/strict'
import { DuplicateRecordError } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  EMPTY_USER,
  emptyPasskey,
  FULL_USER,
  freshHash,
  later,
  NOBODY,
  newPasskey,
  newUserToken,
  STRANGE_IDS,
  withPasskey,
  withUser,
} from './records'

const spent = (userId: string) => newUserToken(userId, { purpose: 'PASSKEY_CHALLENGE', usedAt: AT })

export const PASSKEY_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: passkeys',
    async ({ passkeys }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        const use = { id, userId: id, seenCount: 0, signCount: 1, isBackedUp: true, at: AT }
        assert.deepEqual(await passkeys.listForUser(id), [])
        assert.equal(await passkeys.findWithUser(id), null)
        assert.equal(await passkeys.recordUse(use), false)
        assert.equal(await passkeys.recordLogin(use, spent(NOBODY)), null)
        assert.equal(await passkeys.rename(id, id, 'x'), false)
        assert.equal(await passkeys.deleteForUser(id), 0)
      }
    },
  ],
  [
    'a passkey is read as it was inserted, with its user, and those of a user oldest first',
    async (store) => {
      for (const fields of [FULL_USER, EMPTY_USER]) {
        const user = await withUser(store, { ...fields, isAdmin: false })
        const second = await withPasskey(store, user.id, { createdAt: later(1), signCount: 4_294_967_295, lastUsedAt: later(2) })
        const first = await withPasskey(store, user.id, emptyPasskey())
        assert.deepEqual(await store.passkeys.findWithUser(second.credentialId), { passkey: second, user })
        assert.deepEqual(await store.passkeys.findWithUser(first.credentialId), { passkey: first, user })
        assert.deepEqual(await store.passkeys.listForUser(user.id), [first, second])
      }
    },
  ],
  [
    'isPresent, if the store has it, is true while the table can be used: passkeys',
    async ({ passkeys }) => assert.equal((await passkeys.isPresent?.()) ?? true, true),
  ],
  [
    'a credential is one passkey, whosever it is; another case of its letters is another credential',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const passkey = await withPasskey(store, mine.id, { credentialId: `Ab-${freshHash()}` })
      await assert.rejects(store.passkeys.insert(newPasskey(other.id, { credentialId: passkey.credentialId })), DuplicateRecordError)
      assert.equal(await store.passkeys.findWithUser(passkey.credentialId.toLowerCase()), null)
      await withPasskey(store, other.id, { credentialId: passkey.credentialId.toLowerCase() })
      assert.equal((await store.passkeys.findWithUser(passkey.credentialId))?.user?.id, mine.id)
    },
  ],
  [
    'a use is written down only for the owner, and only over the counter that was seen; nothing else changes',
    async (store) => {
      const [mine, other] = [await withUser(store, { isActive: false }), await withUser(store)]
      for (const fields of [{}, emptyPasskey()]) {
        const passkey = await withPasskey(store, mine.id, { ...fields, signCount: 7 })
        const used = { signCount: 8, isBackedUp: !passkey.isBackedUp }
        const use = { id: passkey.id, userId: mine.id, seenCount: 7, at: later(1), ...used }
        assert.equal(await store.passkeys.recordUse({ ...use, userId: other.id }), false)
        assert.equal(await store.passkeys.recordUse({ ...use, seenCount: 6 }), false)
        const answers = await Promise.all(Array.from({ length: 8 }, () => store.passkeys.recordUse(use)))
        assert.equal(answers.filter(Boolean).length, 1)
        const after = { passkey: { ...passkey, ...used, lastUsedAt: later(1) }, user: mine }
        assert.deepEqual(await store.passkeys.findWithUser(passkey.credentialId), after)
      }
    },
  ],
  [
    'a counter that stays 0 can be used again at the same instant',
    async (store) => {
      const { id: userId } = await withUser(store)
      const { id } = await withPasskey(store, userId)
      const use = { id, userId, seenCount: 0, signCount: 0, isBackedUp: false, at: AT }
      assert.equal(await store.passkeys.recordUse(use), true)
      assert.equal(await store.passkeys.recordUse(use), true)
      assert.notEqual(await store.passkeys.recordLogin(use, spent(userId)), null)
      assert.notEqual(await store.passkeys.recordLogin(use, spent(userId)), null)
    },
  ],
  [
    'a login by passkey writes the use, stamps the user and spends its token, all or nothing',
    async (store) => {
      const other = await withUser(store)
      for (const fields of [FULL_USER, EMPTY_USER]) {
        const user = await withUser(store, { ...fields, isAdmin: false })
        const passkey = await withPasskey(store, user.id, { signCount: 1 })
        const { id, credentialId } = passkey
        const [use, token] = [{ id, userId: user.id, seenCount: 1, signCount: 2, isBackedUp: true, at: later(9) }, spent(user.id)]
        assert.equal(await store.passkeys.recordLogin({ ...use, seenCount: 0 }, token), null)
        assert.equal(await store.passkeys.recordLogin({ ...use, userId: other.id }, token), null)
        assert.equal(await store.userTokens.find(token.tokenHash), null)
        assert.deepEqual(await store.passkeys.recordLogin(use, token), { ...user, lastLoginAt: later(9) })
        assert.equal((await store.userTokens.find(token.tokenHash))?.purpose, 'PASSKEY_CHALLENGE')
        const after = {
          passkey: { ...passkey, signCount: 2, isBackedUp: true, lastUsedAt: later(9) },
          user: { ...user, lastLoginAt: later(9) },
        }
        assert.deepEqual(await store.passkeys.findWithUser(credentialId), after)
        await assert.rejects(store.passkeys.recordLogin({ ...use, seenCount: 2, signCount: 3 }, token), DuplicateRecordError)
        assert.deepEqual(await store.passkeys.findWithUser(credentialId), after)
      }
    },
  ],
  [
    'an inactive user does not log in by passkey, and nothing changes',
    async (store) => {
      const user = await withUser(store, { isActive: false })
      const passkey = await withPasskey(store, user.id)
      const token = spent(user.id)
      const use = { id: passkey.id, userId: user.id, seenCount: 0, signCount: 5, isBackedUp: true, at: AT }
      assert.equal(await store.passkeys.recordLogin(use, token), null)
      assert.equal(await store.userTokens.find(token.tokenHash), null)
      assert.deepEqual(await store.passkeys.findWithUser(passkey.credentialId), { passkey, user })
    },
  ],
  [
    'a passkey is renamed and removed by its owner alone; without an id all of the account go',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const [one, two] = [await withPasskey(store, mine.id), await withPasskey(store, mine.id)]
      await withPasskey(store, mine.id)
      const foreign = await withPasskey(store, other.id)
      assert.equal(await store.passkeys.rename(one.id, other.id, 'theirs'), false)
      assert.equal(await store.passkeys.rename(one.id, mine.id, 'mine'), true)
      assert.equal(await store.passkeys.rename(one.id, mine.id, 'mine'), true)
      assert.deepEqual(await store.passkeys.findWithUser(one.credentialId), { passkey: { ...one, name: 'mine' }, user: mine })
      assert.equal(await store.passkeys.deleteForUser(other.id, one.id), 0)
      assert.equal(await store.passkeys.deleteForUser(mine.id, two.id), 1)
      assert.equal(await store.passkeys.deleteForUser(mine.id), 2)
      assert.deepEqual(await store.passkeys.listForUser(other.id), [foreign])
    },
  ],
]

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
