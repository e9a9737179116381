import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { Cases } from './cases'
import { later, newIdentity, newSession, newUser } from './records'

/**
 * Returns the cases for the host's own fields. The parameters are the names of two text fields of the host. In a row without values, both
 * fields are null.
 */
export function hostFieldCases([one, other]: readonly [string, string]): Cases {
  return [
    [
      'the fields of the host are known, with what a person may do with them',
      async ({ users }) => {
        for (const name of [one, other]) {
          const { readOnly, private: isPrivate } = users.hostFields?.get(name) ?? {}
          assert.deepEqual([typeof readOnly, typeof isPrivate], ['boolean', 'boolean'], name)
        }
      },
    ],
    [
      'every verb that answers with a user answers with all fields of the host, as they were inserted',
      async (store) => {
        const { users } = store
        const user = await users.insert(newUser({ isAdmin: true, fields: { [one]: 'Zoë', [other]: null } }), { by: 'signup' })
        const { id, email } = user
        assert.deepEqual([user.fields?.[one], user.fields?.[other]], ['Zoë', null])
        assert.deepEqual(Object.keys(user.fields ?? {}).sort(), [...(users.hostFields?.keys() ?? [])].sort())
        assert.deepEqual(await users.find(id), user)
        assert.deepEqual(await users.findByEmail(email), user)
        assert.deepEqual((await users.list({ filters: [{ field: 'id', operator: 'eq', value: id }], after: null, limit: 1 })).users, [user])
        const [locked, admins] = await store.transaction(async (inside) => [await inside.users.lock(id), await inside.users.lockAdmins()])
        assert.deepEqual(locked, user)
        assert.ok(admins.some((admin) => isDeepStrictEqual(admin, user)))
        assert.deepEqual((await users.recordLogin(user, later(8)))?.fields, user.fields)
        await users.update(id, { isAdmin: false })
      },
    ],
    [
      'a user that comes with a session or an identity has the fields of the host',
      async (store) => {
        const user = await store.users.insert(newUser({ fields: { [one]: 'Zoë' } }))
        if (store.sessions) {
          const session = newSession(user.id)
          await store.sessions.insert(session)
          assert.deepEqual((await store.sessions.find({ id: session.id }))?.user, user)
        }
        if (store.identities) {
          const { provider, subject } = await store.identities.insert(newIdentity(user.id))
          assert.deepEqual((await store.identities.findWithUser(provider, subject))?.user, user)
          const link = { userId: user.id, provider, subject }
          assert.deepEqual((await store.identities.recordLogin(link, later(9)))?.fields, user.fields)
        }
      },
    ],
    [
      'a user that is inserted without fields has them all, empty',
      async ({ users }) => {
        const user = await users.insert(newUser())
        assert.deepEqual([user.fields?.[one], user.fields?.[other]], [null, null])
        assert.deepEqual(await users.find(user.id), user)
      },
    ],
    [
      'update changes the named fields only, to a value and to nothing',
      async ({ users }) => {
        const user = await users.insert(newUser({ fields: { [one]: 'Zoë', [other]: 'kept' } }))
        const stored = async () => (await users.find(user.id))?.fields
        assert.equal(await users.update(user.id, { fields: { [one]: 'Zoé' } }), true)
        assert.deepEqual(await stored(), { ...user.fields, [one]: 'Zoé' })
        assert.equal(await users.update(user.id, { fields: { [one]: null }, name: null }), true)
        assert.deepEqual(await users.find(user.id), { ...user, name: null, fields: { ...user.fields, [one]: null } })
        assert.equal(await users.update(user.id, { fields: {} }), true)
        assert.equal(await users.update(user.id, { isAdmin: false }), true)
        assert.deepEqual(await stored(), { ...user.fields, [one]: null })
      },
    ],
    [
      'a field that does not exist, and a value that is no single value, are a ValidationError, and nothing is written',
      async ({ users }) => {
        const user = await users.insert(newUser({ fields: { [one]: 'Zoë' } }))
        for (const fields of [{ isAdmin: true }, { hashed_password: 'x' }, { [one]: { toString: 'x' } }, { [one]: ['x'] }]) {
          const email = newUser().email
          await assert.rejects(users.insert(newUser({ email, fields })), { code: 'VALIDATION_ERROR' })
          assert.equal(await users.findByEmail(email), null)
          await assert.rejects(users.update(user.id, { name: 'changed', fields }), { code: 'VALIDATION_ERROR' })
        }
        assert.deepEqual(await users.find(user.id), user)
      },
    ],
  ]
}
