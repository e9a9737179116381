import assert from 'node:assert/strict'
import { DuplicateRecordError, type EmailLoginRecord } from '../store/auth-store'
import type { Cases } from './cases'
import {
  AT,
  deleteLongAgo,
  EMPTY_EMAIL_LOGIN,
  EMPTY_USER,
  FULL_EMAIL_LOGIN,
  FULL_USER,
  freshHash,
  LONG_AGO,
  later,
  NOBODY,
  newEmailLogin,
  STRANGE_IDS,
  withEmailLogin,
  withUser,
} from './records'

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

export const EMAIL_LOGIN_CASES: Cases = [
  [
    'an unknown or malformed id is not found, and changes nothing: emailLogins',
    async ({ emailLogins }) => {
      for (const id of [NOBODY, ...STRANGE_IDS]) {
        assert.equal(await emailLogins.find({ id }), null)
        assert.equal(await emailLogins.countTry(id, 5, AT), null)
        assert.equal(await emailLogins.consume(id, AT), false)
      }
      assert.equal(await emailLogins.find({ tokenHash: freshHash() }), null)
      assert.deepEqual(await emailLogins.listOpen('nobody@example.test', AT), [])
      assert.equal(await emailLogins.consumeAllForEmail('nobody@example.test', AT), 0)
    },
  ],
  [
    'an email login is stored with every field, also the empty ones, and found by id and by the hash of its token',
    async (store) => {
      for (const fields of [FULL_EMAIL_LOGIN, EMPTY_EMAIL_LOGIN]) {
        const login = await withEmailLogin(store, fields)
        assert.deepEqual(await store.emailLogins.find({ id: login.id }), login)
        const { tokenHash } = login
        if (tokenHash !== null) assert.deepEqual(await store.emailLogins.find({ tokenHash }), login)
      }
    },
  ],
  [
    'the hash of a token is unique, byte for byte; many mails have no token',
    async (store) => {
      const { tokenHash } = await withEmailLogin(store)
      await assert.rejects(() => store.emailLogins.insert(newEmailLogin({ tokenHash })), DuplicateRecordError)
      assert.equal(await store.emailLogins.find({ tokenHash: String(tokenHash).toUpperCase() }), null)
      await withEmailLogin(store, { tokenHash: null })
      await withEmailLogin(store, { tokenHash: null })
    },
  ],
  [
    'a try is counted before the code is compared: of many at once, no more than allowed get the row',
    async (store) => {
      const { id } = await withEmailLogin(store)
      const answers = await Promise.all(Array.from({ length: 12 }, () => store.emailLogins.countTry(id, 5, AT)))
      const counted = answers.flatMap((login) => login?.tries ?? [])
      assert.deepEqual(counted.sort(), [1, 2, 3, 4, 5])
      assert.equal(await store.emailLogins.countTry(id, 5, AT), null)
      assert.equal((await store.emailLogins.find({ id }))?.tries, 5)
    },
  ],
  [
    'no try is counted of a row that is used or has expired',
    async (store) => {
      const [used, ended] = [await withEmailLogin(store, { usedAt: AT }), await withEmailLogin(store, { expiresAt: AT })]
      for (const { id } of [used, ended]) {
        assert.equal(await store.emailLogins.countTry(id, 5, AT), null)
        assert.equal((await store.emailLogins.find({ id }))?.tries, 0)
      }
      assert.equal((await store.emailLogins.countTry(ended.id, 5, later(-1)))?.tries, 1)
    },
  ],
  [
    'a try that is taken back can be made again; a used row and one without a try stay as they are (uncountTry, which may be missing)',
    async (store) => {
      const { emailLogins } = store
      if (!emailLogins.uncountTry) return
      const [{ id }, used] = [await withEmailLogin(store), await withEmailLogin(store, { tries: 1, usedAt: AT })]
      await emailLogins.uncountTry(id)
      assert.equal((await emailLogins.find({ id }))?.tries, 0)
      await emailLogins.countTry(id, 2, AT)
      await emailLogins.countTry(id, 2, AT)
      await emailLogins.uncountTry(id)
      assert.equal((await emailLogins.countTry(id, 2, AT))?.tries, 2)
      await emailLogins.uncountTry(used.id)
      assert.equal((await emailLogins.find({ id: used.id }))?.tries, used.tries)
    },
  ],
  [
    'the code beside a link is stored with its purpose, unless the table has no column for it',
    async (store) => {
      if (!store.emailLogins.fields?.has('purpose')) return
      const code = await withEmailLogin(store, { purpose: 'PASSWORD_RESET' })
      assert.deepEqual(await store.emailLogins.find({ id: code.id }), code)
      assert.equal((await store.emailLogins.countTry(code.id, 5, AT))?.purpose, 'PASSWORD_RESET')
    },
  ],
  [
    'an email login is used once, by one of any number of racers, and not after its end',
    async (store) => {
      const [login, ended] = [await withEmailLogin(store), await withEmailLogin(store, { expiresAt: AT })]
      const answers = await Promise.all(Array.from({ length: 10 }, () => store.emailLogins.consume(login.id, later(1))))
      assert.equal(answers.filter(Boolean).length, 1)
      assert.deepEqual((await store.emailLogins.find({ id: login.id }))?.usedAt, later(1))
      assert.equal(await store.emailLogins.consume(ended.id, AT), false)
      assert.equal((await store.emailLogins.find({ id: ended.id }))?.usedAt, null)
    },
  ],
  [
    'the open rows of an address are listed oldest first, and all of its rows are used up at once',
    async (store) => {
      const email = newEmailLogin().email
      const second = await withEmailLogin(store, { ...EMPTY_EMAIL_LOGIN, email, createdAt: later(2) })
      const first = await withEmailLogin(store, { email, createdAt: later(1), sessionId: FULL_EMAIL_LOGIN.sessionId })
      const ended = await withEmailLogin(store, { email, expiresAt: AT })
      await withEmailLogin(store, { email, usedAt: AT })
      const other = await withEmailLogin(store, { email: email.toUpperCase() })
      assert.deepEqual(await store.emailLogins.listOpen(email, AT), [first, second])
      assert.equal(await store.emailLogins.consumeAllForEmail(email, later(3)), 3)
      assert.deepEqual(await store.emailLogins.listOpen(email, AT), [])
      const isUsed = async ({ id }: EmailLoginRecord) => ((await store.emailLogins.find({ id }))?.usedAt ?? null) !== null
      assert.deepEqual([await isUsed(first), await isUsed(ended), await isUsed(other)], [true, true, false])
    },
  ],
  [
    'emailLogins.deleteExpired takes what had ended, and no more than it may',
    async (store) => {
      await deleteLongAgo(store)
      const old = [1, 2, 3].map((age) => newEmailLogin({ expiresAt: later(-age, LONG_AGO) }))
      for (const login of old) await store.emailLogins.insert(login)
      const alive = await withEmailLogin(store, { expiresAt: later(1, LONG_AGO) })
      assert.equal(await store.emailLogins.deleteExpired({ before: LONG_AGO, most: 2 }), 2)
      assert.equal(await store.emailLogins.deleteExpired({ before: LONG_AGO, most: 2 }), 1)
      assert.equal(await store.emailLogins.deleteExpired({ before: LONG_AGO, most: 2 }), 0)
      assert.deepEqual(await store.emailLogins.find({ id: alive.id }), alive)
    },
  ],
]
