import assert from 'node:assert/strict'
import type { Cases } from './cases'
import { EMPTY_USER, FULL_USER, later, NOBODY, STRANGE_IDS, withUser } from './records'

export const LOGIN_CASES: Cases = [
  [
    'a login stamps lastLoginAt and nothing else',
    async (store) => {
      const [user, other] = [await withUser(store), await withUser(store)]
      const stamped = await store.users.recordLogin(user, later(7))
      assert.deepEqual(stamped, { ...user, lastLoginAt: later(7) })
      assert.deepEqual(await store.users.find(user.id), stamped)
      assert.deepEqual(await store.users.recordLogin(user, later(7)), stamped) // an update without a change is still a login
      assert.deepEqual(await store.users.find(other.id), other)
    },
  ],
  [
    'a login may replace the hash it has seen; the one before opens nothing then',
    async (store) => {
      for (const fields of [FULL_USER, EMPTY_USER]) {
        const user = await withUser(store, { ...fields, isAdmin: false })
        const stamped = await store.users.recordLogin(user, later(7), { hashedPassword: 'rehashed' })
        assert.deepEqual(stamped, { ...user, lastLoginAt: later(7), hashedPassword: 'rehashed' })
        assert.deepEqual(await store.users.find(user.id), stamped)
        assert.equal(await store.users.recordLogin(user, later(8)), null)
        assert.ok(await store.users.recordLogin({ id: user.id, hashedPassword: 'rehashed' }, later(8), {}))
      }
    },
  ],
  [
    'a login of an inactive user answers null and changes nothing',
    async (store) => {
      const user = await withUser(store, { isActive: false })
      assert.equal(await store.users.recordLogin(user, later(7), { hashedPassword: 'rehashed' }), null)
      assert.deepEqual(await store.users.find(user.id), user)
    },
  ],
  [
    'a login with another hash answers null and changes nothing, however alike the two are',
    async (store) => {
      const user = await withUser(store, { hashedPassword: 'Abc$é' })
      for (const hashedPassword of ['', 'abc$é', 'Abc$e', 'Abc$é ', ' Abc$é', 'Abc$é\0', 'Abc__', '%', 'x'.repeat(500)]) {
        assert.equal(
          await store.users.recordLogin({ id: user.id, hashedPassword }, later(7), { hashedPassword: 'x' }),
          null,
          hashedPassword,
        )
      }
      assert.deepEqual(await store.users.find(user.id), user)
    },
  ],
  [
    'a login of nobody answers null',
    async (store) => {
      const { hashedPassword, ...user } = await withUser(store)
      const others = [user.id.toUpperCase(), `${user.id} `, `0${user.id}`].filter((id) => id !== user.id)
      for (const id of [NOBODY, ...STRANGE_IDS, ...others]) {
        assert.equal(await store.users.recordLogin({ id, hashedPassword }, later(7)), null, id)
      }
      assert.deepEqual(await store.users.find(user.id), { ...user, hashedPassword })
    },
  ],
  [
    'logins that have seen the right hash all succeed, also when they come at once',
    async (store) => {
      const user = await withUser(store)
      const logins = await Promise.all(Array.from({ length: 5 }, (_, at) => store.users.recordLogin(user, later(at))))
      assert.deepEqual(
        logins.map((login) => login?.id),
        Array(5).fill(user.id),
      )
    },
  ],
  [
    'of ten logins that would replace the hash exactly one does, and no other is a login',
    async (store) => {
      const user = await withUser(store)
      const logins = await Promise.all(
        Array.from({ length: 10 }, (_, at) => store.users.recordLogin(user, later(at), { hashedPassword: `rehash ${at}` })),
      )
      const won = logins.filter((login) => login !== null)
      assert.equal(won.length, 1)
      assert.deepEqual(await store.users.find(user.id), won[0])
    },
  ],
  [
    'a login never brings back a password that was changed meanwhile',
    async (store) => {
      const users = await Promise.all(Array.from({ length: 5 }, () => withUser(store)))
      await Promise.all(
        users.flatMap((user) => [
          store.users.recordLogin(user, later(7), { hashedPassword: 'rehash of the old one' }),
          store.users.update(user.id, { hashedPassword: 'the new one' }),
        ]),
      )
      for (const user of users) {
        assert.equal((await store.users.find(user.id))?.hashedPassword, 'the new one')
        assert.equal(await store.users.recordLogin(user, later(8)), null)
      }
    },
  ],
  [
    'a login holds the user until its unit ends',
    async (store) => {
      const seen = await withUser(store, { totpLastStep: 0 })
      const increment = () =>
        store.transaction(async (inside) => {
          const user = await inside.users.recordLogin(seen, later(7))
          await inside.users.update(seen.id, { totpLastStep: (user?.totpLastStep ?? 0) + 1 })
        })
      await Promise.all(Array.from({ length: 8 }, increment))
      assert.equal((await store.users.find(seen.id))?.totpLastStep, 8)
    },
  ],
]
