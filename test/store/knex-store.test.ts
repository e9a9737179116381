import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { databases, type OpenDatabase, type OpenOptions } from '../support/databases'
import { hashOf, later, newIdentity, newRefreshToken, newUser, newUserToken, rotationOf, storeContract } from './contract'

const reachable = await databases()

const SETTINGS: readonly { title: string; name: string; options: OpenOptions }[] = [
  { title: 'a SQLite file', name: 'sqlite', options: {} },
  { title: 'SQLite in memory', name: 'sqlite', options: { memory: true } },
  { title: 'PostgreSQL', name: 'postgres', options: {} },
  { title: 'PostgreSQL with a pool of one', name: 'postgres', options: { pool: { min: 1, max: 1 } } },
]

for (const { title, name, options } of SETTINGS) {
  const database = reachable.find((candidate) => candidate.name === name)

  describe.skipIf(!database)(`the store on ${title}`, () => {
    let opened: OpenDatabase
    let store: KnexStore

    beforeAll(async () => {
      if (!database) return
      opened = await database.open(options)
      await createAuthTables(opened.knex)
      store = createKnexStore({ knex: opened.knex })
    })
    afterAll(() => opened?.close())

    for (const { name: promise, run } of storeContract({ makeStore: async () => store })) test(promise, run)

    test("inside the host's transaction our rows are undone by the host's rollback", async () => {
      const email = newUser().email
      const trx = await opened.knex.transaction()
      await store.using(trx).transaction((inside) => inside.users.insert(newUser({ email })))
      await trx.rollback()
      expect(await store.users.findByEmail(email)).toBeNull()
    })

    test("inside the host's transaction our rows are kept by the host's commit", async () => {
      const email = newUser().email
      await opened.knex.transaction(async (trx) => {
        const { id } = await store.using(trx).users.insert(newUser({ email }))
        await trx('auth_users').where({ id }).update({ name: 'by the host' })
      })
      expect((await store.users.findByEmail(email))?.name).toBe('by the host')
    })

    test('using() takes nothing but a transaction', () => {
      // @ts-expect-error the type says so too
      expect(() => store.using(opened.knex)).toThrow(/knex\.transaction/)
    })

    test('no verb waits for a second connection inside a unit', async () => {
      await store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser())
        const identity = newIdentity(user.id)
        await inside.identities?.insert(identity)
        await inside.identities?.recordLogin(identity, later(1))
        const token = newRefreshToken(user.id)
        await inside.refreshTokens?.insert(token)
        await inside.refreshTokens?.rotate(rotationOf(token.tokenHash))
        await inside.refreshTokens?.revokeForUser(user.id, later(1))
        await inside.recoveryCodes?.replaceForUser(user.id, [hashOf('a')])
        await inside.userTokens.insert(newUserToken(user.id))
        await inside.users.lock(user.id)
      })
    }, 4000)

    test('a refused statement tells the verb and the code, and nothing that was bound', async () => {
      const secret = 'canary-5f3a'
      const email = `${secret}@example.test`
      await store.users.insert(newUser({ email }))
      const failures = [
        await failure(store.users.insert(newUser({ email, hashedPassword: secret }))),
        await failure(store.identities.insert(newIdentity('00000000-0000-4000-8000-000000000000', { subject: secret }))),
        // @ts-expect-error a caller without types
        await failure(store.users.insert(newUser({ name: secret, isAdmin: null }))),
      ]
      for (const error of failures) expect(printed(error)).not.toContain(secret)
      expect(failures.map((error) => /(\w+\.insert)/.exec(error.message)?.[1])).toEqual([
        'users.insert',
        'identities.insert',
        'users.insert',
      ])
    })
  })
}

async function failure(promise: Promise<unknown>): Promise<Error> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  )
  if (!(error instanceof Error)) throw new Error('expected a failure')
  return error
}

/** Everything a logger or `console.error` could show. */
function printed(error: Error): string {
  return inspect(error, { depth: 10, showHidden: true }) + JSON.stringify(error, Object.getOwnPropertyNames(error))
}
