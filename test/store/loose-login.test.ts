import type { Knex } from 'knex'
import { describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, type HostTables, type KnexStore } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { type DatabaseName, databases } from '../support/databases'
import { later, newUser } from './contract'

const COLLATIONS: Readonly<Record<DatabaseName, string>> = {
  sqlite: 'collate nocase',
  postgres: 'collate loose',
  mariadb: 'collate utf8mb4_unicode_ci',
}
const ABSENT = ['isAdmin', 'totpSecret', 'totpEnabledAt', 'totpLastStep', 'emailVerifiedAt', 'activatedAt', 'passwordSetAt']
const MEMBERS: NonNullable<HostTables['users']> = {
  table: 'members',
  ids: 'text',
  instants: 'epoch_ms',
  columns: Object.fromEntries(ABSENT.map((field) => [field, false])),
  insertDefaults: () => ({ id: 'cm_1' }),
}

async function createMembers(knex: Knex, database: DatabaseName): Promise<void> {
  if (database === 'postgres') await knex.raw("create collation loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)")
  const text = (column: string, length: number) => `${column} varchar(${length}) ${COLLATIONS[database]}`
  await knex.raw(
    `create table members (${text('id', 40)} primary key, ${text('email', 190)}, ${text('hashed_password', 190)},
     name varchar(50), is_active boolean, last_login_at bigint, created_at bigint, updated_at bigint)`,
  )
}

describe.each(await databases())('a users table on $name that ignores letter case', (database) => {
  async function withMember(run: (store: KnexStore, user: UserRecord, knex: Knex) => Promise<void>): Promise<void> {
    const opened = await database.open()
    try {
      await createMembers(opened.knex, database.name)
      await createAuthTables(opened.knex, { users: MEMBERS })
      const store = createKnexStore({ knex: opened.knex, users: MEMBERS })
      await run(store, await store.users.insert(newUser({ hashedPassword: '$2b$AbC' })), opened.knex)
    } finally {
      await opened.close()
    }
  }

  test('a login with a hash or an id that is only alike changes nothing, inside a unit and alone', async () => {
    await withMember(async (store, user, knex) => {
      const alike = [
        { id: user.id, hashedPassword: '$2b$aBc' },
        { id: 'CM_1', hashedPassword: user.hashedPassword },
      ]
      for (const seen of alike) {
        const rows = knex('members').where({ id: seen.id, hashed_password: seen.hashedPassword })
        expect(await rows, 'the columns do ignore case').toHaveLength(1)
        expect(await store.users.recordLogin(seen, later(5), { hashedPassword: 'rehashed' })).toBeNull()
        expect(await store.transaction((inside) => inside.users.recordLogin(seen, later(5)))).toBeNull()
      }
      expect(await store.users.find(user.id)).toEqual(user)
    })
  })

  test('a login with the very hash is recorded', async () => {
    await withMember(async (store, user) => {
      const stamped = { ...user, lastLoginAt: later(5), hashedPassword: 'rehashed' }
      expect(await store.users.recordLogin(user, later(5), { hashedPassword: 'rehashed' })).toEqual(stamped)
      expect(await store.users.find(user.id)).toEqual(stamped)
    })
  })
})
