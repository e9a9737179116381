import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { DuplicateRecordError } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  EMPTY_IDENTITY,
  EMPTY_USER,
  FULL_IDENTITY,
  FULL_USER,
  later,
  NOBODY,
  newIdentity,
  STRANGE_IDS,
  withIdentity,
  withUser,
} from './records'

export const IDENTITY_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: identities',
    async ({ identities }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.deepEqual(await identities.listForUser(id), [])
        assert.equal(await identities.deleteForUser(id), 0)
        assert.equal(await identities.recordLogin({ userId: id, provider: 'google', subject: 's' }, AT), null)
      }
    },
  ],
  [
    'an identity is found with its user',
    async (store) => {
      const fields = [
        [FULL_IDENTITY, FULL_USER],
        [EMPTY_IDENTITY, EMPTY_USER],
      ] as const
      for (const [profile, account] of fields) {
        const user = await withUser(store, { ...account, isAdmin: false })
        const given = newIdentity(user.id, { ...profile, lastLoginAt: later(1) })
        const identity = await store.identities.insert(given)
        assert.deepEqual(identity, { ...given, id: identity.id })
        assert.deepEqual(await store.identities.findWithUser('google', identity.subject), { identity, user })
        assert.deepEqual(await store.identities.listForUser(user.id), [identity])
      }
      const identity = await withIdentity(store, (await withUser(store)).id)
      assert.equal(await store.identities.findWithUser('github', identity.subject), null)
      assert.equal(await store.identities.findWithUser('google', `${identity.subject}\0`), null)
    },
  ],
  [
    "subjects 'AbC', 'abc' and 'AbC ' are three users, and so are providers in other letters",
    async (store) => {
      const tail = randomUUID()
      const subjects = [`AbC${tail}`, `abc${tail}`, `AbC${tail} `, `ÀbC${tail}`, ` AbC${tail}`]
      const owners = new Map<string, string>()
      for (const subject of subjects) {
        const { id } = await withUser(store)
        await withIdentity(store, id, { subject })
        owners.set(subject, id)
      }
      for (const subject of subjects) {
        assert.equal((await store.identities.findWithUser('google', subject))?.user?.id, owners.get(subject))
      }
      assert.equal(await store.identities.findWithUser('Google', subjects[0] ?? ''), null)
      assert.equal(await store.identities.findWithUser('google', `AbC${tail}  `), null)
    },
  ],
  [
    'a numeric-looking subject matches itself only',
    async (store) => {
      const { id } = await withUser(store)
      const provider = `p${randomUUID().slice(0, 8)}`
      await withIdentity(store, id, { provider, subject: 'abc' })
      for (const subject of ['0', '', 'abc0']) assert.equal(await store.identities.findWithUser(provider, subject), null)
    },
  ],
  [
    'an identity belongs to one account, and an account has one identity of a provider',
    async (store) => {
      const [one, other] = [await withUser(store), await withUser(store)]
      const identity = await withIdentity(store, one.id)
      await assert.rejects(store.identities.insert(newIdentity(other.id, { subject: identity.subject })), DuplicateRecordError)
      await assert.rejects(store.identities.insert(newIdentity(one.id)), DuplicateRecordError)
      await withIdentity(store, one.id, { provider: 'github' })
      await withIdentity(store, other.id, { provider: 'github', subject: identity.subject })
    },
  ],
  [
    'of ten inserts of one identity exactly one succeeds',
    async (store) => {
      const subject = randomUUID()
      const owners = await Promise.all(Array.from({ length: 10 }, () => withUser(store)))
      const results = await Promise.allSettled(owners.map(({ id }) => store.identities.insert(newIdentity(id, { subject }))))
      assert.equal(results.filter((result) => result.status === 'fulfilled').length, 1)
      for (const result of results) if (result.status === 'rejected') assert.ok(result.reason instanceof DuplicateRecordError)
    },
  ],
  [
    'identities are listed oldest first',
    async (store) => {
      const { id } = await withUser(store)
      for (const [provider, age] of [
        ['b', 2],
        ['c', 1],
        ['a', 3],
      ] as const) {
        await withIdentity(store, id, { provider, createdAt: later(-age) })
      }
      assert.deepEqual(
        (await store.identities.listForUser(id)).map(({ provider }) => provider),
        ['a', 'b', 'c'],
      )
    },
  ],
  [
    'recordLogin stamps the identity and its user, and nothing else',
    async (store) => {
      for (const fields of [FULL_USER, EMPTY_USER]) {
        const user = await withUser(store, { ...fields, isAdmin: false })
        const identity = await withIdentity(store, user.id)
        const other = await withIdentity(store, user.id, { provider: 'github' })
        const stamped = await store.identities.recordLogin({ userId: user.id, provider: 'google', subject: identity.subject }, later(7))
        assert.deepEqual(stamped, { ...user, lastLoginAt: later(7) })
        assert.deepEqual(await store.users.find(user.id), stamped)
        assert.deepEqual(await store.identities.listForUser(user.id), byId([{ ...identity, lastLoginAt: later(7) }, other]))
      }
    },
  ],
  [
    'recordLogin of an inactive user or of a link that is gone answers null and changes nothing',
    async (store) => {
      const user = await withUser(store, { isActive: false })
      const identity = await withIdentity(store, user.id)
      const link = { userId: user.id, provider: 'google', subject: identity.subject }
      assert.equal(await store.identities.recordLogin(link, later(7)), null)
      await store.users.update(user.id, { isActive: true })
      assert.equal(await store.identities.recordLogin({ ...link, provider: 'github' }, later(7)), null)
      assert.equal(await store.identities.recordLogin({ ...link, subject: identity.subject.toUpperCase() }, later(7)), null)
      assert.equal(await store.identities.recordLogin({ ...link, userId: (await withUser(store)).id }, later(7)), null)
      assert.equal((await store.users.find(user.id))?.lastLoginAt, null)
      assert.deepEqual((await store.identities.listForUser(user.id))[0], identity)
    },
  ],
  [
    'deleteForUser removes one provider or all, and says how many',
    async (store) => {
      const [{ id }, other] = [await withUser(store), await withUser(store)]
      for (const provider of ['a', 'b', 'c']) await withIdentity(store, id, { provider })
      const foreign = await withIdentity(store, other.id, { provider: 'b' })
      assert.equal(await store.identities.deleteForUser(id, 'x'), 0)
      assert.equal(await store.identities.deleteForUser(id, 'b'), 1)
      assert.deepEqual((await store.identities.listForUser(id)).map(({ provider }) => provider).toSorted(), ['a', 'c'])
      assert.equal(await store.identities.deleteForUser(id), 2)
      assert.deepEqual(await store.identities.listForUser(id), [])
      assert.deepEqual(await store.identities.listForUser(other.id), [foreign])
    },
  ],
]

function byId<R extends { id: string }>(records: R[]): R[] {
  return records.toSorted((one, other) => (one.id < other.id ? -1 : 1))
}
