import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { type AuthContext, unitOfWork } from '../../src/context'
import { recordMailboxProof } from '../../src/mailbox/record-proof'
import type { AuthStore, IdentityRecord, UserRecord } from '../../src/store/auth-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { addIdentity, addUser, userById } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'

const now = new Date('2026-03-01T12:00:00.000Z')

describe.each(await databases())('a mailbox proof, on $name', (database) => {
  async function withDatabase(play: (opened: OpenDatabase, ctx: AuthContext) => Promise<void>): Promise<void> {
    const opened = await database.open()
    try {
      await createAuthTables(opened.knex)
      const store = createKnexStore({ knex: opened.knex })
      await play(opened, { store, now: () => now, settings: { unitTimeoutSeconds: 30 } } as unknown as AuthContext) // all it reads
    } finally {
      await opened.close()
    }
  }

  /** As a route does it: the row locked, the proof inside the unit. */
  const prove = (ctx: AuthContext, { id }: UserRecord) =>
    unitOfWork(ctx, async (ctx) => {
      const user = await ctx.store.users.lock(id)
      if (!user) throw new Error('no user')
      return recordMailboxProof(ctx, user)
    })

  const own = 'ana@example.test'
  const cases: [what: string, identity: Pick<IdentityRecord, 'email' | 'emailVerified'>, isKept: boolean][] = [
    ["whose email is the account's, verified", { email: own, emailVerified: true }, true],
    ["whose email is the account's, not verified", { email: own, emailVerified: false }, false],
    ["whose email is the account's, the provider silent", { email: own, emailVerified: null }, false],
    ['with another email, verified', { email: 'mallory@example.test', emailVerified: true }, false],
    ['with an email that only ends alike', { email: `x${own}`, emailVerified: true }, false],
    ['with an email that differs in a trailing blank', { email: `${own} `, emailVerified: true }, false],
    ['without an email', { email: null, emailVerified: null }, false],
    ['without an email, "verified"', { email: null, emailVerified: true }, false],
  ]

  test.each(cases)('an identity %s: kept or deleted', async (_what, identity, isKept) => {
    await withDatabase(async ({ knex }, ctx) => {
      const user = await addUser(knex, { email: own, emailVerifiedAt: null })
      await addIdentity(knex, user.id, { provider: 'corp', ...identity })

      expect(await prove(ctx, user)).toEqual(isKept ? [] : ['corp'])
      expect(await ctx.store.identities?.listForUser(user.id)).toHaveLength(isKept ? 1 : 0)
    })
  })

  test('the address counts as proven from now; of several identities only the one that stands for it stays, and nobody else loses any', async () => {
    await withDatabase(async ({ knex }, ctx) => {
      const [user, other] = [await addUser(knex, { email: own, emailVerifiedAt: null }), await addUser(knex)]
      await addIdentity(knex, user.id, { provider: 'trojan', email: 'mallory@example.test', emailVerified: true })
      const kept = await addIdentity(knex, user.id, { provider: 'corp', email: own, emailVerified: true })
      await addIdentity(knex, user.id, { provider: 'silent', email: own, emailVerified: null })
      const others = await addIdentity(knex, other.id, { provider: 'trojan', email: 'mallory@example.test', emailVerified: true })

      const removed = await prove(ctx, user)

      expect(removed.sort()).toEqual(['silent', 'trojan'])
      expect(await ctx.store.identities?.listForUser(user.id)).toEqual([kept])
      expect(await ctx.store.identities?.listForUser(other.id)).toEqual([others])
      expect(await userById(knex, user.id)).toEqual({ ...user, emailVerifiedAt: now, updatedAt: now })
    })
  })

  test("a link that runs at the same moment comes before it, and is judged, or after it, and is the owner's", async () => {
    await withDatabase(async ({ knex }, ctx) => {
      const user = await addUser(knex, { email: own, emailVerifiedAt: null })
      const identity = {
        provider: 'trojan',
        subject: 's',
        email: null,
        emailVerified: null,
        name: null,
        picture: null,
        createdAt: now,
        lastLoginAt: now,
      }
      const linking = unitOfWork(ctx, async ({ store }) => {
        await store.users.lock(user.id)
        const isProven = (await store.users.find(user.id))?.emailVerifiedAt !== null
        await store.identities?.insert({ ...identity, userId: user.id })
        return isProven
      })
      const [linkedAfter, removed] = await Promise.all([linking, prove(ctx, user)])

      expect(removed).toEqual(linkedAfter ? [] : ['trojan'])
      expect(await ctx.store.identities?.listForUser(user.id)).toHaveLength(linkedAfter ? 1 : 0)
    })
  })

  test('a unit that fails undoes it', async () => {
    await withDatabase(async ({ knex }, ctx) => {
      const user = await addUser(knex, { email: own, emailVerifiedAt: null })
      const identity = await addIdentity(knex, user.id, { email: null })
      const failing = unitOfWork(ctx, async (ctx) => {
        await recordMailboxProof(ctx, user)
        throw new Error('later in the same unit')
      })
      await expect(failing).rejects.toThrow('later in the same unit')
      expect(await ctx.store.identities?.listForUser(user.id)).toEqual([identity])
      expect((await userById(knex, user.id)).emailVerifiedAt).toBeNull()
    })
  })

  test('a store without identities has none to remove', async () => {
    await withDatabase(async ({ knex }, ctx) => {
      const user = await addUser(knex, { emailVerifiedAt: null })
      const { identities: _none, ...rest } = ctx.store
      expect(await recordMailboxProof({ ...ctx, store: rest as AuthStore }, user)).toEqual([])
      expect((await userById(knex, user.id)).emailVerifiedAt).toEqual(now)
    })
  })
})
