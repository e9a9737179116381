import assert from 'node:assert/strict'
import { DuplicateRecordError } from '../store/auth-store'
import { AT, freshHash, later, NOBODY, newPasskey, newUserToken, STRANGE_IDS, withUser } from './records'
import type { Cases } from './store-contract'

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
      const user = await withUser(store)
      const full = newPasskey(user.id, { createdAt: later(1), signCount: 4_294_967_295, lastUsedAt: later(2) })
      const empty = newPasskey(user.id, {
        name: null,
        transports: '',
        isBackupEligible: false,
        isBackedUp: true,
        credentialId: `${'-_Az9'.repeat(136)}xyz`,
      })
      const [second, first] = [await store.passkeys.insert(full), await store.passkeys.insert(empty)]
      assert.deepEqual(second, { ...full, id: second.id })
      assert.deepEqual(await store.passkeys.findWithUser(full.credentialId), { passkey: second, user })
      assert.deepEqual(await store.passkeys.findWithUser(empty.credentialId), { passkey: first, user })
      assert.deepEqual(await store.passkeys.listForUser(user.id), [first, second])
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
      const passkey = await store.passkeys.insert(newPasskey(mine.id, { credentialId: `Ab-${freshHash()}` }))
      await assert.rejects(store.passkeys.insert(newPasskey(other.id, { credentialId: passkey.credentialId })), DuplicateRecordError)
      assert.equal(await store.passkeys.findWithUser(passkey.credentialId.toLowerCase()), null)
      await store.passkeys.insert(newPasskey(other.id, { credentialId: passkey.credentialId.toLowerCase() }))
      assert.equal((await store.passkeys.findWithUser(passkey.credentialId))?.user?.id, mine.id)
    },
  ],
  [
    'a use is written down only for the owner, and only over the counter that was seen',
    async (store) => {
      const [mine, other] = [await withUser(store), await withUser(store)]
      const { id, credentialId } = await store.passkeys.insert(newPasskey(mine.id, { signCount: 7 }))
      const use = { id, userId: mine.id, seenCount: 7, signCount: 8, isBackedUp: true, at: later(1) }
      assert.equal(await store.passkeys.recordUse({ ...use, userId: other.id }), false)
      assert.equal(await store.passkeys.recordUse({ ...use, seenCount: 6 }), false)
      const answers = await Promise.all(Array.from({ length: 8 }, () => store.passkeys.recordUse(use)))
      assert.equal(answers.filter(Boolean).length, 1)
      const found = await store.passkeys.findWithUser(credentialId)
      assert.deepEqual([found?.passkey.signCount, found?.passkey.isBackedUp, found?.passkey.lastUsedAt], [8, true, later(1)])
    },
  ],
  [
    'a counter that stays 0 can be used again at the same instant',
    async (store) => {
      const { id: userId } = await withUser(store)
      const { id } = await store.passkeys.insert(newPasskey(userId))
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
      const [user, other] = [await withUser(store), await withUser(store)]
      const { id, credentialId } = await store.passkeys.insert(newPasskey(user.id, { signCount: 1 }))
      const [use, token] = [{ id, userId: user.id, seenCount: 1, signCount: 2, isBackedUp: true, at: later(9) }, spent(user.id)]
      assert.equal(await store.passkeys.recordLogin({ ...use, seenCount: 0 }, token), null)
      assert.equal(await store.passkeys.recordLogin({ ...use, userId: other.id }, token), null)
      assert.equal(await store.userTokens.find(token.tokenHash), null)
      assert.deepEqual(await store.passkeys.recordLogin(use, token), { ...user, lastLoginAt: later(9) })
      assert.equal((await store.userTokens.find(token.tokenHash))?.purpose, 'PASSKEY_CHALLENGE')
      assert.equal((await store.passkeys.findWithUser(credentialId))?.passkey.signCount, 2)
      await assert.rejects(store.passkeys.recordLogin({ ...use, seenCount: 2, signCount: 3 }, token), DuplicateRecordError)
      const after = await store.passkeys.findWithUser(credentialId)
      assert.deepEqual([after?.passkey.signCount, after?.user?.lastLoginAt], [2, later(9)])
    },
  ],
  [
    'an inactive user does not log in by passkey, and nothing changes',
    async (store) => {
      const user = await withUser(store, { isActive: false })
      const passkey = await store.passkeys.insert(newPasskey(user.id))
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
      const [one, two] = [await store.passkeys.insert(newPasskey(mine.id)), await store.passkeys.insert(newPasskey(mine.id))]
      await store.passkeys.insert(newPasskey(mine.id))
      const foreign = await store.passkeys.insert(newPasskey(other.id))
      assert.equal(await store.passkeys.rename(one.id, other.id, 'theirs'), false)
      assert.equal(await store.passkeys.rename(one.id, mine.id, 'mine'), true)
      assert.equal(await store.passkeys.rename(one.id, mine.id, 'mine'), true)
      assert.equal((await store.passkeys.findWithUser(one.credentialId))?.passkey.name, 'mine')
      assert.equal(await store.passkeys.deleteForUser(other.id, one.id), 0)
      assert.equal(await store.passkeys.deleteForUser(mine.id, two.id), 1)
      assert.equal(await store.passkeys.deleteForUser(mine.id), 2)
      assert.deepEqual(await store.passkeys.listForUser(other.id), [foreign])
    },
  ],
]
