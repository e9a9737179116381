import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigurationError, checkTables, createAuthTables, createKnexStore, type HostTables, type KnexStore } from '../../src'
import { mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser, storeContract } from './contract'

const users = {
  fields: {
    firstName: 'first_name',
    nickname: { column: 'nick', private: true },
    plan: { column: 'Plan Name', readOnly: true },
    wantsNews: { column: 'wants_news', type: 'boolean' },
  },
} satisfies HostTables['users']

const password = 'a quiet harbour in winter'

async function addColumns(knex: Knex): Promise<void> {
  await createAuthTables(knex)
  await knex.schema.alterTable('auth_users', (table) => {
    for (const name of ['first_name', 'nick']) table.string(name, 50)
    table.string('Plan Name', 20).notNullable().defaultTo('free')
    table.boolean('wants_news')
    table.string('role', 20)
  })
}

describe.each(await databases())('fields of the host, on $name', (database) => {
  let opened: OpenDatabase
  let store: KnexStore

  beforeAll(async () => {
    opened = await database.open()
    await addColumns(opened.knex)
    store = createKnexStore({ knex: opened.knex, users })
  })
  afterAll(() => opened?.close())

  const hostFields = { makeStore: async () => store, names: ['firstName', 'nickname'] } as const
  const withoutFields = async () => createKnexStore({ knex: opened.knex })
  const cases = storeContract({ makeStore: withoutFields, hostFields })
  for (const { name, run } of cases.slice(storeContract({ makeStore: withoutFields }).length)) test(name, run)

  test('a user that is inserted has what the database filled in, and booleans are booleans', async () => {
    const { id, fields } = await store.users.insert(newUser({ fields: { firstName: 'Ana', wantsNews: true } }))
    expect(fields).toEqual({ firstName: 'Ana', nickname: null, plan: 'free', wantsNews: true })
    await store.users.update(id, { fields: { plan: 'pro', wantsNews: false } })
    expect((await store.users.find(id))?.fields).toEqual({ firstName: 'Ana', nickname: null, plan: 'pro', wantsNews: false })
  })

  test('insertDefaults hears who is inserted and why, and what the person gave wins', async () => {
    const heard: object[] = []
    const insertDefaults = (user: object) => {
      heard.push(user)
      return { [database.name === 'postgres' ? 'first_name' : 'FIRST_NAME']: 'nobody', nick: 'none' }
    }
    const own = createKnexStore({ knex: opened.knex, users: { ...users, insertDefaults } })
    const profile = { provider: 'corp', subject: '1', email: null, emailVerified: null, name: 'Ana', picture: null, raw: {} }
    const [one, other] = [newUser({ fields: { firstName: 'Ana' } }), newUser({ name: null })]

    const given = await own.users.insert(one, { by: 'provider', profile })
    await own.users.insert(other)

    expect([given.fields?.['firstName'], given.fields?.['nickname']]).toEqual(['Ana', 'none'])
    expect(heard).toEqual([
      { by: 'provider', profile, email: one.email, name: one.name },
      { by: 'command', email: other.email, name: null },
    ])
  })
})

describe.each(await databases())('a column of the name that is NOT NULL, on $name', ({ open }) => {
  const named = (name: unknown) => ({ insertDefaults: () => ({ name, email: 'never@example.test', activated_at: 1 }) })

  test('gets the name of insertDefaults; a name that was given stays, and so does every other column of ours', async () => {
    const { knex, close } = await open()
    await createAuthTables(knex)
    const start = async (users: NonNullable<HostTables['users']>) =>
      mount({ knex, settings: { returnTokenInResponse: true }, options: { store: createKnexStore({ knex, users }) } })
    await knex.schema.alterTable('auth_users', (table) => table.dropColumn('name'))
    await knex.schema.alterTable('auth_users', (table) => table.string('name', 120).notNullable().defaultTo('?'))
    const host = await start(named('Nobody'))
    for (const body of [{ email: 'ana@example.test' }, { email: 'bo@example.test', name: 'Bo' }])
      await host
        .browser()
        .post('/auth/signup')
        .send({ ...body, password })
        .expect(201)
    const rows = await knex('auth_users').orderBy('email').select('email', 'name', 'activated_at')
    expect(rows.map(({ email, name }) => [email, name])).toEqual([
      ['ana@example.test', 'Nobody'],
      ['bo@example.test', 'Bo'],
    ])
    expect(rows[0].activated_at).toBeNull()
    await host
      .browser()
      .post('/auth/signup')
      .send({ email: 'ana@example.test', password: `another ${password}` })
      .expect(201)
    expect((await knex('auth_users').where({ email: 'ana@example.test' }).first('name')).name).toBe('You')
    const store = createKnexStore({ knex, users: named('Nobody') })
    const made = await store.users.insert(newUser({ name: null }))
    expect([made.name, (await store.users.find(made.id))?.name]).toEqual(['Nobody', 'Nobody'])
    const failing = async (users: NonNullable<HostTables['users']>) =>
      (await checkTables(knex, { users })).filter(({ key }) => key === 'users.name:not-null').map(({ fails }) => fails)
    const echoing = { insertDefaults: ({ name }: { name: string | null }) => ({ name }) }
    expect([await failing({}), await failing(echoing), await failing(named('Nobody'))]).toEqual([
      ['Sign-up without a name fails.'],
      ['Sign-up without a name fails.'],
      ['To remove a name fails.'],
    ])
    await host.close()
    await close()
  })
})

describe.each(await databases())('an administrator by a role, on $name', (database) => {
  let opened: OpenDatabase
  let store: KnexStore
  const role = { column: 'role', admin: 'admin', others: 'member' }

  beforeAll(async () => {
    opened = await database.open()
    await addColumns(opened.knex)
    await opened.knex.schema.alterTable('auth_users', (table) => table.dropColumn('is_admin'))
    store = createKnexStore({ knex: opened.knex, users: { columns: { isAdmin: role } } })
  })
  afterAll(() => opened?.close())

  for (const { name, run } of storeContract({ makeStore: async () => store })) test(name, run)

  const roleOf = async (id: string) => (await opened.knex('auth_users').where({ id }).first('role')).role
  const setRole = (id: string, role: string | null) => opened.knex('auth_users').where({ id }).update({ role })

  test('a new row gets the role of others, an administrator gets theirs', async () => {
    expect(await roleOf((await store.users.insert(newUser())).id)).toBe('member')
    expect(await roleOf((await store.users.insert(newUser({ isAdmin: true }))).id)).toBe('admin')
  })

  test.each(['editor', 'Admin', 'admin ', null])('%j is no administrator, and stays until its person becomes one', async (other) => {
    const { id } = await store.users.insert(newUser())
    await setRole(id, other)

    expect((await store.users.find(id))?.isAdmin).toBe(false)
    expect(await store.transaction(({ users }) => users.lockAdmins())).not.toContainEqual(expect.objectContaining({ id }))
    const listed = async (value: boolean) => {
      const filters = [{ field: 'id', operator: 'eq', value: id } as const, { field: 'isAdmin', operator: 'eq', value } as const]
      return (await store.users.list({ filters, after: null, limit: 1 })).users.length
    }
    expect([await listed(true), await listed(false)]).toEqual([0, 1])
    await store.users.update(id, { isAdmin: false, name: 'Bo' })
    expect(await roleOf(id)).toBe(other)

    await store.users.update(id, { isAdmin: true })
    expect([await roleOf(id), (await store.users.find(id))?.isAdmin, await listed(true)]).toEqual(['admin', true, 1])
    await store.users.update(id, { isAdmin: false })
    expect(await roleOf(id)).toBe('member')
  })
})

test.each(await databases())('the column of isAdmin may also be a field that only the host writes, on $name', async ({ open }) => {
  const opened = await open()
  await addColumns(opened.knex)
  const columns = { isAdmin: { column: 'role', admin: 'admin', others: 'member' } }
  await opened.knex.schema.alterTable('auth_users', (table) => table.dropColumn('is_admin'))
  const store = createKnexStore({ knex: opened.knex, users: { columns, fields: { role: { column: 'role', readOnly: true } } } })
  const read = async (id: string) => {
    const user = await store.users.find(id)
    return [user?.isAdmin, user?.fields]
  }

  const { id, fields } = await store.users.insert(newUser())
  expect(fields).toEqual({ role: 'member' })
  await store.users.update(id, { fields: { role: 'editor' } })
  expect(await read(id)).toEqual([false, { role: 'editor' }])
  await store.users.update(id, { isAdmin: true })
  expect(await read(id)).toEqual([true, { role: 'admin' }])
  const editor = await store.users.insert(newUser({ fields: { role: 'editor' } }))
  expect([editor.isAdmin, editor.fields]).toEqual([false, { role: 'editor' }])
  const stranger = await store.users.insert(newUser({ fields: { role: 'admin' } }))
  expect([stranger.isAdmin, stranger.fields]).toEqual([false, { role: 'member' }])
  await opened.close()
})

describe('options that cannot be meant', () => {
  const refusals: [what: string, users: unknown, message: RegExp][] = [
    ['fields that are no object', { fields: ['a'] }, /users\.fields must be an object/],
    [
      'an option that is misspelt',
      { fields: { plan: { column: 'plan', readonly: true } } },
      /users\.fields\.plan\.readonly is not an option; known are column, readOnly/,
    ],
    ['a field without a column', { fields: { plan: { readOnly: true } } }, /users\.fields\.plan\.column must be the name of a column/],
    ['a flag that is none', { fields: { plan: { column: 'plan', private: 'yes' } } }, /users\.fields\.plan\.private must be true or false/],
    ['a type that is none', { fields: { plan: { column: 'plan', type: 'text' } } }, /users\.fields\.plan\.type must be 'boolean'/],
    [
      'a column of ours',
      { fields: { secret: 'hashed_password' } },
      /fields\.secret: the column hashed_password is already the column of hashedPassword/,
    ],
    ['a column of ours in other letters', { fields: { secret: 'HASHED_PASSWORD' } }, /is already the column of hashedPassword/],
    [
      'a field that people write, of the column of isAdmin',
      { fields: { role: 'IS_ADMIN' } },
      /fields\.role: .* must have the same spelling and readOnly: true/,
    ],
    ['two fields of one column', { fields: { a: 'own', b: 'OWN' } }, /fields\.b: the column OWN is already the column of fields\.a/],
    ...['password', 'email', 'name', 'isAdmin', 'is_admin', 'id', 'hashed_password', 'constructor', 'toString'].map(
      (name): [string, unknown, RegExp] => [`the name ${name}`, { fields: { [name]: 'own' } }, /this name is taken/],
    ),
    ['a name that is none', { fields: { 'first name': 'own' } }, /"first name" must be 1 to 64 letters/],
    ['the name __proto__', { fields: JSON.parse('{"__proto__":"own"}') }, /must be 1 to 64 letters/],
    ['a role without a column', { columns: { isAdmin: { admin: 'a', others: 'b' } } }, /users\.columns\.isAdmin\.column must be/],
    ['a role of others that is missing', { columns: { isAdmin: { column: 'role', admin: 'a' } } }, /isAdmin\.others must be a role/],
    ['one role for all', { columns: { isAdmin: { column: 'role', admin: 'a', others: 'a' } } }, /admin and others must differ/],
    ['a misspelt key of a role', { columns: { isAdmin: { column: 'role', admin: 'a', other: 'b' } } }, /isAdmin\.other is not an option/],
    ['a list of roles', { columns: { isAdmin: [] } }, /users\.columns\.isAdmin must be the name of a column/],
  ]

  test.each(refusals)('%s', async (_what, users, message) => {
    const [database] = await databases()
    const opened = await database?.open({ memory: true })
    try {
      const create = () => createKnexStore({ knex: opened?.knex as Knex, users: users as NonNullable<HostTables['users']> })
      expect(create).toThrow(ConfigurationError)
      expect(create).toThrow(message)
    } finally {
      await opened?.close()
    }
  })

  test('fields of another table are refused', async () => {
    const [database] = await databases()
    const opened = await database?.open({ memory: true })
    const options = { knex: opened?.knex as Knex, sessions: { fields: {} } as object }
    expect(() => createKnexStore(options)).toThrow(/sessions\.fields is not an option/)
    await opened?.close()
  })
})
