import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { AuthStore, UserFilter, UserPage, UserRecord } from '../store/auth-store'
import type { Cases } from './cases'
import { AT, later, NOBODY, newIdentity, newSession, newUser, STRANGE_IDS, withUser } from './records'

/** The filter matches the users with these first letters. */
type Row = readonly [filter: UserFilter, names: string]

export const USER_LIST_CASES: Cases = [
  [
    'each filter lets through exactly what it says, whatever the database thinks of letters, blanks and wildcards',
    async ({ users }) => {
      const mark = randomUUID()
      const add = (letter: string, overrides: Parameters<typeof newUser>[0]) =>
        withUser({ users }, { email: `${letter}-${mark}@example.test`, ...overrides })
      const a = await add('a', { name: 'Zo\u00eb', createdAt: later(0), lastLoginAt: null, isAdmin: true })
      const b = await add('b', { name: 'zo\u00cb', createdAt: later(1), lastLoginAt: later(10) })
      const c = await add('c', { name: '50%_\\[a].*', createdAt: later(2), isActive: false, lastLoginAt: later(11), totpEnabledAt: AT })
      const d = await add('d', { name: null, createdAt: later(3), lastLoginAt: later(12), activatedAt: null })
      const e = await add('e', { name: 'Zo', createdAt: later(4), lastLoginAt: later(13) })
      const own: UserFilter = { field: 'email', operator: 'endswith', value: `-${mark}@example.test` }
      for (const [filter, names] of rowsOf(a, b, c, d, e)) {
        const { users: found } = await users.list({ filters: [own, filter], after: null, limit: 10 })
        assert.equal(found.map(({ email }) => email[0]).join(''), names, JSON.stringify(filter))
      }
      const both: UserFilter[] = [
        own,
        { field: 'isActive', operator: 'eq', value: true },
        { field: 'name', operator: 'contains', value: 'Z' },
      ]
      assert.deepEqual(await users.list({ filters: both, after: null, limit: 10 }), { users: [a, e], next: null })
    },
  ],
  [
    'pages follow each other, oldest first, through equal instants, insertions and deletions',
    async (store) => {
      const mark = randomUUID()
      const own: UserFilter = { field: 'email', operator: 'startswith', value: mark }
      const add = (at: Date) => withUser(store, { email: `${mark}${randomUUID()}@example.test`, createdAt: at })
      const made = []
      for (const at of [later(2), later(1), later(1), later(1), later(3), later(1), later(0)]) made.push(await add(at))
      const seen: UserRecord[] = []
      let after: string | null = null
      do {
        const page: UserPage = await store.users.list({ filters: [own], after, limit: 2 })
        assert.ok(page.users.length === 2 || (page.users.length < 2 && page.next === null))
        seen.push(...page.users)
        after = page.next
        await add(later(-5)) // sorts before all earlier pages
      } while (after !== null)
      assert.deepEqual(
        ids(seen),
        ids(made.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime() || byId(one, other))),
      )
      assert.deepEqual(await store.users.list({ filters: [own], after: null, limit: 50 }).then(({ next }) => next), null)
    },
  ],
  [
    'the active administrators are locked: of two who end each other at once, one stays',
    async (store) => {
      const one = await withUser(store, { isAdmin: true })
      const other = await withUser(store, { isAdmin: true })
      const inactive = await withUser(store, { isAdmin: true, isActive: false })
      const member = await withUser(store)
      const end = (by: string, whom: string) =>
        store.transaction(async (inside) => {
          const admins = ids(await inside.users.lockAdmins())
          assert.ok(![inactive.id, member.id].some((id) => admins.includes(id)))
          assert.deepEqual(admins, admins.toSorted())
          if (admins.includes(by)) await inside.users.update(whom, { isAdmin: false })
        })
      await Promise.all([end(one.id, other.id), end(other.id, one.id)])
      const left = ids(await store.transaction((inside) => inside.users.lockAdmins()))
      assert.equal([one.id, other.id].filter((id) => left.includes(id)).length, 1)
      await leaveNoAdmin(store, [one.id, other.id, inactive.id])
    },
  ],
]

function rowsOf(...[a, b, c, d, e]: UserRecord[]): readonly Row[] {
  const [first, second] = [a?.id ?? '', b?.id ?? '']
  const strange = STRANGE_IDS.flatMap((id): Row[] => [
    [{ field: 'id', operator: 'eq', value: id }, ''],
    [{ field: 'id', operator: 'in', value: [id, first] }, 'a'],
    [{ field: 'id', operator: 'not_in', value: [id, first] }, 'bcde'],
  ])
  return [
    ...strange,
    [{ field: 'id', operator: 'eq', value: first }, 'a'],
    [{ field: 'id', operator: 'ne', value: first }, 'bcde'],
    [{ field: 'id', operator: 'ne', value: NOBODY }, 'abcde'],
    [{ field: 'id', operator: 'in', value: [first, second] }, 'ab'],
    [{ field: 'id', operator: 'in', value: [] }, ''],
    [{ field: 'id', operator: 'not_in', value: [first, second] }, 'cde'],
    [{ field: 'email', operator: 'eq', value: c?.email ?? '' }, 'c'],
    [{ field: 'email', operator: 'eq', value: c?.email.toUpperCase() ?? '' }, ''],
    [{ field: 'email', operator: 'eq', value: 'x'.repeat(400) }, ''],
    [{ field: 'email', operator: 'gt', value: c?.email ?? '' }, 'de'],
    [{ field: 'email', operator: 'lte', value: c?.email ?? '' }, 'abc'],
    [{ field: 'name', operator: 'eq', value: 'Zo\u00eb' }, 'a'],
    [{ field: 'name', operator: 'eq', value: 'Zo ' }, ''],
    [{ field: 'name', operator: 'eq', value: 'Zo\0' }, ''],
    [{ field: 'name', operator: 'ne', value: 'Zo\u00eb' }, 'bce'],
    [{ field: 'name', operator: 'in', value: ['Zo', 'zo'] }, 'e'],
    [{ field: 'name', operator: 'not_in', value: ['Zo', 'zo'] }, 'abc'],
    [{ field: 'name', operator: 'gte', value: 'Zo' }, 'abe'],
    [{ field: 'name', operator: 'lt', value: 'z' }, 'ace'],
    [{ field: 'name', operator: 'between', value: ['Z', 'a'] }, 'ae'],
    [{ field: 'name', operator: 'isnull', value: true }, 'd'],
    [{ field: 'name', operator: 'isnull', value: false }, 'abce'],
    [{ field: 'name', operator: 'contains', value: 'o' }, 'abe'],
    [{ field: 'name', operator: 'contains', value: 'zO' }, ''],
    [{ field: 'name', operator: 'contains', value: '' }, 'abce'],
    [{ field: 'name', operator: 'contains', value: '%' }, 'c'],
    [{ field: 'name', operator: 'contains', value: '_' }, 'c'],
    [{ field: 'name', operator: 'contains', value: '\\[a].' }, 'c'],
    [{ field: 'name', operator: 'startswith', value: 'Zo' }, 'ae'],
    [{ field: 'name', operator: 'startswith', value: '5_' }, ''],
    [{ field: 'name', operator: 'startswith', value: '' }, 'abce'],
    [{ field: 'name', operator: 'endswith', value: '\u00eb' }, 'a'],
    [{ field: 'name', operator: 'endswith', value: 'a long prefix and Zo' }, ''],
    [{ field: 'name', operator: 'endswith', value: '' }, 'abce'],
    [{ field: 'name', operator: 'icontains', value: 'ZO' }, 'abe'],
    [{ field: 'name', operator: 'icontains', value: 'o\u00cb' }, 'b'], // only ASCII letters match without case
    [{ field: 'name', operator: 'icontains', value: '%_\\[A].*' }, 'c'],
    [{ field: 'name', operator: 'icontains', value: '.' }, 'c'],
    [{ field: 'name', operator: 'icontains', value: '' }, 'abce'],
    [{ field: 'isActive', operator: 'eq', value: false }, 'c'],
    [{ field: 'isActive', operator: 'ne', value: false }, 'abde'],
    [{ field: 'isAdmin', operator: 'in', value: [true] }, 'a'],
    [{ field: 'createdAt', operator: 'eq', value: later(2) }, 'c'],
    [{ field: 'createdAt', operator: 'gt', value: later(2) }, 'de'],
    [{ field: 'createdAt', operator: 'lt', value: later(2) }, 'ab'],
    [{ field: 'createdAt', operator: 'between', value: [later(1), later(3)] }, 'bcd'],
    [{ field: 'lastLoginAt', operator: 'gte', value: later(12) }, 'de'],
    [{ field: 'lastLoginAt', operator: 'ne', value: later(12) }, 'bce'],
    [{ field: 'lastLoginAt', operator: 'isnull', value: true }, 'a'],
    [{ field: 'activatedAt', operator: 'isnull', value: true }, 'd'],
    [{ field: 'totpEnabledAt', operator: 'isnull', value: false }, 'c'],
    [{ field: 'id', operator: 'in', value: [e?.id ?? '', d?.id ?? ''] }, 'de'],
  ]
}

const ids = (users: readonly UserRecord[]): string[] => users.map(({ id }) => id)

// Like the database: UUIDs by their text, integers by their value.
function byId(one: UserRecord, other: UserRecord): number {
  const isInteger = /^\d+$/.test(one.id)
  return isInteger ? Number(one.id) - Number(other.id) : one.id < other.id ? -1 : 1
}

async function leaveNoAdmin({ users }: AuthStore, made: readonly string[]): Promise<void> {
  for (const id of made) await users.update(id, { isAdmin: false })
}

/** The parameters are the names of two text fields of the host. In a row without values, both are null. */
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
