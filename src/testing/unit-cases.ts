import assert from 'node:assert/strict'
import { type AuthStore, DuplicateRecordError } from '../store/auth-store'
import type { Cases } from './cases'
import { freshHash, later, newIdentity, newSession, newUser, newUserToken, rotationOf, withUser, withUserToken } from './records'

export const UNIT_CASES: Cases = [
  [
    'a unit keeps all of its work',
    async (store: AuthStore) => {
      const email = newUser().email
      const id = await store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser({ email }))
        await inside.identities?.insert(newIdentity(user.id))
        assert.ok(await inside.users.find(user.id)) // a transaction sees its own writes
        return user.id
      })
      assert.equal((await store.users.findByEmail(email))?.id, id)
      if (store.identities) assert.equal((await store.identities.listForUser(id)).length, 1)
    },
  ],
  [
    'a throw inside a unit leaves nothing and comes out as it was thrown',
    async (store: AuthStore) => {
      const before = await withUser(store)
      const email = newUser().email
      const session = newSession(before.id)
      await store.sessions?.insert(session)
      const oneShot = await withUserToken(store, before.id)
      const reason = new Error('the host changed its mind')
      const unit = store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser({ email }))
        await inside.identities?.insert(newIdentity(user.id))
        await inside.userTokens.insert(newUserToken(user.id))
        await inside.recoveryCodes?.replaceForUser(user.id, [freshHash()])
        await inside.sessions?.insert(newSession(user.id))
        await inside.sessions?.rotate(rotationOf(session.tokenHash))
        await inside.users.update(before.id, { name: 'changed' })
        await inside.users.recordLogin(before, later(1), { hashedPassword: 'rehashed' })
        await inside.userTokens.consumeAllForUser(before.id, later(1))
        throw reason
      })
      await assert.rejects(unit, (error) => error === reason)
      assert.equal(await store.users.findByEmail(email), null)
      assert.deepEqual(await store.users.find(before.id), before)
      assert.deepEqual(await store.userTokens.find(oneShot.tokenHash), oneShot)
      if (store.sessions) assert.deepEqual((await store.sessions.find({ id: session.id }))?.session, session)
    },
  ],
  [
    'a unit inside a unit joins it: the outer throw undoes the inner work',
    async (store) => {
      const emails = [newUser().email, newUser().email] as const
      const unit = store.transaction(async (outer) => {
        await outer.users.insert(newUser({ email: emails[0] }))
        await outer.transaction(async (inner) => {
          await inner.users.insert(newUser({ email: emails[1] }))
        })
        throw new Error('outer')
      })
      await assert.rejects(unit, { message: 'outer' })
      for (const email of emails) assert.equal(await store.users.findByEmail(email), null)
    },
  ],
  [
    'a throw in a unit inside a unit reaches the outer one as it was thrown, and undoes both',
    async (store) => {
      const emails = [newUser().email, newUser().email] as const
      const reason = new Error('inner')
      const unit = store.transaction(async (outer) => {
        await outer.users.insert(newUser({ email: emails[0] }))
        await outer.transaction(async (inner) => {
          await inner.users.insert(newUser({ email: emails[1] }))
          throw reason
        })
      })
      await assert.rejects(unit, (error) => error === reason)
      for (const email of emails) assert.equal(await store.users.findByEmail(email), null)
    },
  ],
  [
    'a unit past its deadline is a ServiceUnavailableError and leaves nothing, also of what it asks for later',
    async (store) => {
      const user = await withUser(store)
      const email = newUser().email
      let goOn = () => {}
      const waiting = new Promise<void>((resolve) => {
        goOn = resolve
      })
      let late: Promise<unknown> = Promise.resolve()
      const unit = store.transaction(
        (inside) => {
          const work = async () => {
            await inside.users.insert(newUser({ email }))
            await waiting
            await inside.users.update(user.id, { name: 'too late' })
          }
          late = work()
          return late
        },
        { deadlineMs: 200 },
      )
      const patience = setTimeout(goOn, 2_000) // without this timer, the case would never end for a store without deadlines
      await assert.rejects(unit, { code: 'SERVICE_UNAVAILABLE' })
      clearTimeout(patience)
      goOn()
      await late.catch(() => null)
      assert.equal(await store.users.findByEmail(email), null)
      assert.deepEqual(await store.users.find(user.id), user)
    },
  ],
  [
    'a unit that swallowed a failed write is not a success',
    async (store) => {
      const { email: taken } = await withUser(store)
      const email = newUser().email
      const unit = store.transaction(async (inside) => {
        await inside.users.insert(newUser({ email }))
        await inside.users.insert(newUser({ email: taken })).catch(() => null)
        return 'done'
      })
      await assert.rejects(unit, DuplicateRecordError)
      assert.equal(await store.users.findByEmail(email), null)
    },
  ],
  [
    'the store works on after a failed unit',
    async (store) => {
      for (let round = 0; round < 8; round++) {
        await assert.rejects(store.transaction(() => Promise.reject(new Error('no'))))
      }
      assert.ok(await store.transaction((inside) => inside.users.insert(newUser())))
    },
  ],
]
