import { expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { databases } from '../support/databases'

/** A JavaScript host passes `request.user?.id` where nobody is signed in. */
const nobody = undefined as unknown as string
/** Or what a column of his own holds. */
const nothing = null as unknown as string

test.each(await databases())('an id that is undefined means nobody, never everybody ($name)', async (database) => {
  const { knex, close } = await database.open()
  await createAuthTables(knex)
  const store = createKnexStore({ knex })
  const at = new Date('2026-01-02T03:04:05.678Z')
  const record = {
    isActive: true,
    createdAt: at,
    updatedAt: at,
    email: 'a@example.test',
    hashedPassword: 'x',
    isAdmin: true,
    lastLoginAt: null,
  }
  const factors = {
    name: null,
    totpSecret: null,
    totpEnabledAt: null,
    totpLastStep: null,
    emailVerifiedAt: null,
    activatedAt: at,
    passwordSetAt: null,
  }
  const { id } = await store.users.insert({ ...record, ...factors })
  const profile = { email: null, emailVerified: null, name: null, picture: null, createdAt: at, lastLoginAt: at }
  await store.identities.insert({ userId: id, provider: 'corp', subject: 's', ...profile })

  expect(await store.users.find(nobody)).toBeNull()
  expect(await store.users.findByEmail(nobody)).toBeNull()
  expect(await store.users.find(nothing)).toBeNull()
  expect(await store.users.findByEmail(nothing)).toBeNull()
  expect(await store.sessions.find({ id: nothing })).toBeNull()
  expect(await store.sessions.find({ tokenHash: nothing, kind: 'tokens' })).toBeNull()
  expect(await store.identities.findWithUser('corp', nothing)).toBeNull()
  expect(await store.transaction((inside) => inside.users.lock(nobody))).toBeNull()
  expect(await store.users.update(nobody, { isAdmin: false })).toBe(false)
  expect(await store.users.recordLogin({ id: nobody, hashedPassword: 'x' }, at)).toBeNull()
  expect(await store.users.recordLogin({ id, hashedPassword: nobody }, at)).toBeNull()
  expect(await store.userTokens.find(nobody)).toBeNull()
  expect(await store.userTokens.wasConsumed(nobody, 'ACTIVATION')).toBe(false)
  expect(await store.identities.findWithUser('corp', nobody)).toBeNull()
  expect(await store.identities.listForUser(nobody)).toEqual([])
  expect(await store.identities.deleteForUser(nobody)).toBe(0)
  expect(await store.identities.deleteForUser(nobody, 'corp')).toBe(0)
  expect(await store.sessions.find({ id: nobody })).toBeNull()
  expect(await store.sessions.findMany?.([nobody, nothing])).toEqual([])
  expect(await store.sessions.revokeForUser(nobody, at)).toBe(0)
  expect(await store.sessions.revoke({ id: nobody }, at)).toBe(false)
  expect(await store.sessions.revoke({ id, userId: nobody }, at)).toBe(false)
  expect(await store.sessions.listForUser(nobody, at)).toEqual([])
  expect(await store.userTokens.consumeAllForUser(nobody, at)).toBe(0)
  expect(await store.recoveryCodes.deleteForUser(nobody)).toBe(0)
  expect(await store.users.find(id)).toMatchObject({ isAdmin: true })
  expect(await store.identities.listForUser(id)).toHaveLength(1)
  await close()
})
