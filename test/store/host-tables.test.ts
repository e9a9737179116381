import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  checkTables,
  createAuthTables,
  createKnexStore,
  DuplicateRecordError,
  type HostTables,
  type KnexStore,
  type PartialKnexStore,
} from '../../src'
import type { CompleteStore } from '../../src/store/auth-store'
import { databases, type OpenDatabase } from '../support/databases'
import { AT, freshHash, later, newIdentity, newSession, newUser, newUserToken, rotationOf, storeContract } from './contract'
import { createPeople, createRenamedTables, PEOPLE, PEOPLE_COUNT } from './host-tables'

for (const database of await databases()) {
  describe.each([
    { ids: 'integer', instants: 'epoch_ms' },
    { ids: 'text', instants: 'iso' },
  ] as const)(`renamed tables with $ids keys and $instants instants on ${database.name}`, (tables) => {
    let opened: OpenDatabase
    let store: PartialKnexStore

    beforeAll(async () => {
      opened = await database.open()
      const hostTables = await createRenamedTables(opened.knex, database.name, tables)
      store = createKnexStore({ knex: opened.knex, ...hostTables })
    })
    afterAll(() => opened?.close())

    for (const { name, run } of storeContract({ makeStore: async () => store })) test(name, run)
  })

  describe(`an app's own users on ${database.name}`, () => {
    let opened: OpenDatabase
    let store: KnexStore
    let knex: Knex

    beforeAll(async () => {
      opened = await database.open()
      knex = opened.knex
      await createPeople(knex, database.name)
      await createAuthTables(knex, PEOPLE)
      store = createKnexStore({ knex, users: PEOPLE.users ?? {} })
    })
    afterAll(() => opened?.close())

    test('createAuthTables makes the other tables beside them, may run again, and makes no auth_users', async () => {
      await createAuthTables(knex, PEOPLE)
      expect(await knex.schema.hasTable('auth_users')).toBe(false)
      expect(await knex.schema.hasTable('auth_sessions')).toBe(true)
    })

    test('a person of three years ago is found, and reads as the columns that are there say', async () => {
      expect(await store.users.findByEmail('person7@example.test')).toEqual({
        id: '8',
        isActive: true,
        createdAt: new Date('2023-03-08T09:30:00.250Z'),
        updatedAt: new Date('2023-03-08T09:30:00.250Z'),
        email: 'person7@example.test',
        hashedPassword: '$2b$12$of.an.older.time',
        isAdmin: false,
        lastLoginAt: null,
        name: 'Person 7',
        totpSecret: null,
        totpEnabledAt: null,
        totpLastStep: null,
        emailVerifiedAt: null,
        activatedAt: null,
        passwordSetAt: new Date('2023-03-08T09:30:00.250Z'), // no column: every password counts as the person's own
      })
      expect((await store.users.find('10'))?.isActive).toBe(false)
      expect([...store.users.fields].sort()).toEqual(['createdAt', 'email', 'hashedPassword', 'id', 'isActive', 'name', 'updatedAt'])
    })

    test('a new person gets the key that the database makes, and the columns of the app their values', async () => {
      const user = await store.users.insert(newUser({ isAdmin: true, lastLoginAt: AT }))
      expect(Number(user.id)).toBeGreaterThan(PEOPLE_COUNT)
      expect(await store.users.find(user.id)).toEqual(user)
      expect(user).toMatchObject({ isAdmin: false, lastLoginAt: null, activatedAt: null })
      const row = await knex('people')
        .where({ person_id: Number(user.id) })
        .first()
      expect({ ...row, newsletter: Boolean(row.newsletter) }).toMatchObject({ mail: user.email, tenant_code: 'main', newsletter: false })
      await expect(store.users.insert(newUser({ email: user.email }))).rejects.toBeInstanceOf(DuplicateRecordError)
    })

    test('a key is its canonical text: every other way to write the number is nobody', async () => {
      const before = await knex('people').where({ person_id: 7 }).first()
      const others = [
        '007',
        '7e0',
        '7.0',
        ' 7',
        '7 ',
        '+7',
        '-7',
        '0x7',
        '7abc',
        '٧',
        '',
        '2147483648',
        '99999999999',
        '9223372036854775808',
        '1e3',
      ]
      for (const id of others) {
        expect(await store.users.find(id), id).toBeNull()
        expect(await store.users.lock(id), id).toBeNull()
        expect(await store.users.update(id, { name: 'x' }), id).toBe(false)
        expect(await store.identities.listForUser(id), id).toEqual([])
        expect(await store.sessions.revokeForUser(id, AT), id).toBe(0)
      }
      expect(await knex('people').where({ person_id: 7 }).first()).toEqual(before)
      expect((await store.users.find('7'))?.email).toBe('person6@example.test')
    })

    test('every verb works where the optional columns are not there', async () => {
      const user = await store.users.insert(newUser())
      const identity = await store.identities.insert(newIdentity(user.id))
      expect(await store.identities.findWithUser('google', identity.subject)).toEqual({ identity, user })
      expect(await store.identities.recordLogin(identity, later(5))).toEqual(user)
      expect((await store.identities.listForUser(user.id))[0]?.lastLoginAt).toEqual(later(5))
      expect(await store.users.recordLogin(user, later(5))).toEqual(user)
      const rehashed = { ...user, hashedPassword: 'rehashed' }
      expect(await store.users.recordLogin(user, later(5), { hashedPassword: 'rehashed' })).toEqual(rehashed)
      expect(await store.users.find(user.id)).toEqual(rehashed)
      expect(await store.users.recordLogin(user, later(5))).toBeNull()
      expect(await store.users.update(user.id, { hashedPassword: user.hashedPassword })).toBe(true)
      expect(await store.users.update(user.id, { lastLoginAt: AT, isAdmin: true })).toBe(true)
      expect(await store.users.update('99999', { lastLoginAt: AT })).toBe(false)
      expect(await store.users.advanceTotpStep(user.id, 1)).toBe(false)
      const rotating = newSession(user.id)
      await store.sessions.insert(rotating)
      const rotation = rotationOf(rotating.tokenHash)
      expect(await store.sessions.rotate(rotation)).toEqual({
        user: { id: user.id, email: user.email },
        session: {
          id: rotating.id,
          userId: user.id,
          amr: rotating.amr,
          authenticatedAt: rotating.authenticatedAt,
          isPersistent: rotating.isPersistent,
          expiresAt: rotation.expiresAt,
        },
      })
      expect(await store.sessions.revokeForUser(user.id, later(9))).toBe(1)
      const oneShot = await store.userTokens.insert(newUserToken(user.id))
      expect(await store.userTokens.consume(oneShot.tokenHash, 'PASSWORD_RESET', AT)).toMatchObject({ userId: user.id })
      expect(await store.userTokens.wasConsumed(user.id, 'PASSWORD_RESET')).toBe(true)
      expect(await store.userTokens.wasConsumed(`0${user.id}`, 'PASSWORD_RESET')).toBe(false)
      const code = freshHash()
      await store.recoveryCodes.replaceForUser(user.id, [code])
      expect(await store.recoveryCodes.consume(user.id, code, AT)).toBe(true)
      const session = newSession(user.id)
      await store.sessions.insert(session)
      expect(await store.sessions.find({ id: session.id })).toEqual({ session, user })
      expect(await store.users.update(user.id, { isActive: false })).toBe(true)
      expect(await store.identities.recordLogin(identity, later(6))).toBeNull()
      expect(await store.users.recordLogin(user, later(6))).toBeNull()
    })

    // A unit on SQLite holds the file.
    if (database.name !== 'sqlite')
      test('a login holds the person although nothing of the row is stamped', async () => {
        const user = await store.users.insert(newUser())
        const identity = await store.identities.insert(newIdentity(user.id))
        const logins: ((inside: CompleteStore) => Promise<unknown>)[] = [
          (inside) => inside.identities.recordLogin(identity, AT),
          (inside) => inside.users.recordLogin(user, AT),
        ]
        const others = opened.connect() // nobody waits for a connection that this transaction has
        for (const login of logins)
          await knex.transaction(async (trx) => {
            const free = () =>
              others('people')
                .where({ person_id: Number(user.id) })
                .forUpdate()
                .skipLocked()
            expect(await free()).toHaveLength(1)
            await login(store.using(trx))
            expect(await free()).toHaveLength(0)
          })
      })

    test('a person the app deletes takes every row of ours along', async () => {
      const { id } = await store.users.insert(newUser())
      await store.identities.insert(newIdentity(id))
      await store.sessions.insert(newSession(id))
      await knex('people')
        .where({ person_id: Number(id) })
        .delete()
      for (const table of ['auth_identities', 'auth_sessions']) expect(await knex(table).where({ user_id: Number(id) })).toEqual([])
    })

    test("the host's rollback undoes ours, the host's commit keeps it", async () => {
      for (const end of ['rollback', 'commit'] as const) {
        const email = newUser().email
        const trx = await knex.transaction()
        const user = await store.using(trx).transaction(async (inside) => {
          const created = await inside.users.insert(newUser({ email }))
          await inside.identities?.insert(newIdentity(created.id))
          return created
        })
        await trx('people')
          .where({ person_id: Number(user.id) })
          .update({ tenant_code: 'other' })
        await trx[end]()
        expect(await store.users.findByEmail(email)).toEqual(end === 'commit' ? user : null)
        expect(await store.identities.listForUser(user.id)).toHaveLength(end === 'commit' ? 1 : 0)
        expect(await knex('people').where({ mail: email, tenant_code: 'other' })).toHaveLength(end === 'commit' ? 1 : 0)
      }
    })
  })

  describe(`keys of a host's users on ${database.name}`, () => {
    let opened: OpenDatabase
    afterEach(() => opened?.close())

    async function withUsers(ids: 'integer' | 'text' | 'uuid', key: (table: Knex.CreateTableBuilder) => void, insertDefaults = () => ({})) {
      opened = await database.open()
      await opened.knex.schema.createTable('members', (table) => {
        key(table)
        table.string('email').notNullable().unique()
        table.text('hashed_password')
        table.boolean('is_active')
        table.string('name')
        for (const name of ['created_at', 'updated_at']) table.bigInteger(name)
      })
      const absent = [
        'isAdmin',
        'lastLoginAt',
        'totpSecret',
        'totpEnabledAt',
        'totpLastStep',
        'emailVerifiedAt',
        'activatedAt',
        'passwordSetAt',
      ]
      const columns = Object.fromEntries(absent.map((field) => [field, false]))
      const tables: HostTables = { users: { table: 'members', ids, instants: 'epoch_ms', columns, insertDefaults } }
      await createAuthTables(opened.knex, tables)
      const store = createKnexStore({ knex: opened.knex, users: tables.users ?? {} })
      const user = await store.users.insert(newUser())
      const identity = await store.identities.insert(newIdentity(user.id))
      expect(await store.identities.findWithUser('google', identity.subject)).toEqual({ identity, user })
      await expect(store.identities.insert(newIdentity(ids === 'uuid' ? freshUuid : '424242'))).rejects.toThrow(/identities\.insert/) // the foreign key is there
      return { store, user }
    }
    const freshUuid = '11111111-2222-4333-8444-555555555555'

    test('bigint, also past what a JavaScript number can tell apart', async () => {
      const { store } = await withUsers('integer', (table) => table.bigIncrements('id'))
      const columns = 'id, email, hashed_password, is_active, created_at, updated_at'
      for (const [id, email] of [
        ['9007199254740993', 'odd@example.test'],
        ['9007199254740992', 'even@example.test'],
      ] as const)
        await opened.knex.raw(`insert into members (${columns}) values (${id}, '${email}', '', ?, 0, 0)`, [true])
      expect((await store.users.find('9007199254740993'))?.email).toBe('odd@example.test')
      expect((await store.users.find('9007199254740992'))?.email).toBe('even@example.test')
      expect((await store.users.findByEmail('odd@example.test'))?.id).toBe('9007199254740993')
      const next = await store.users.insert(newUser())
      if (database.name !== 'postgres') expect(next.id).toBe('9007199254740994') // whose sequence does not look at the rows
      expect(await store.users.find(next.id)).toEqual(next)
      const identity = await store.identities.insert(newIdentity('9007199254740993'))
      expect((await store.identities.findWithUser('google', identity.subject))?.user?.email).toBe('odd@example.test')
      expect((await store.identities.recordLogin(identity, AT))?.id).toBe('9007199254740993')
    })

    test('a uuid', async () => {
      const { user } = await withUsers('uuid', (table) => table.uuid('id').primary())
      expect(user.id).toMatch(/^[0-9a-f-]{36}$/)
    })

    test('text that the host makes', async () => {
      let number = 0
      const { user, store } = await withUsers(
        'text',
        (table) => table.string('id', 40).primary(),
        () => ({ id: `cm_${++number}` }),
      )
      expect(user.id).toBe('cm_1')
      expect(await store.users.find('CM_1')).toBeNull()
    })

    test("a key of the host that is none is the host's mistake, and no row is made", async () => {
      const keys: unknown[] = ['cm_1', 'CM 2\0', 3]
      const { store } = await withUsers(
        'text',
        (table) => table.string('id', 40).primary(),
        () => ({ id: keys.shift() }),
      )
      for (let key = 0; key < 2; key++) await expect(store.users.insert(newUser())).rejects.toThrow(/look at insertDefaults/)
      expect(await opened.knex('members')).toHaveLength(1)
    })

    test('a users table that is not there is named in a sentence', async () => {
      opened = await database.open()
      await expect(createAuthTables(opened.knex, PEOPLE)).rejects.toThrow(/people\.person_id.*create your own users table first/)
    })
  })

  describe(`a sessions table of the host on ${database.name}`, () => {
    let opened: OpenDatabase
    afterEach(() => opened?.close())

    const fewColumns = { ip: false, userAgent: false, provider: false, providerSid: false, amr: false } as const

    async function withOwnTable() {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex, { sessions: false })
      await knex.schema.createTable('logins', (table) => {
        if (database.name === 'mariadb') table.collate('utf8mb4_nopad_bin')
        table.string('id', 36).notNullable().unique()
        table.uuid('user_id').notNullable()
        table.string('kind', 16).notNullable()
        table.string('token_hash', 64).notNullable().unique()
        table.integer('generation').notNullable()
        table.boolean('is_persistent').notNullable()
        const instants = ['rotated_at', 'authenticated_at', 'created_at', 'last_seen_at', 'expires_at', 'ends_at', 'revoked_at']
        for (const column of instants) table.bigInteger(column)
        table.primary(['user_id', 'id'])
      })
      return createKnexStore({ knex, sessions: { table: 'logins', ids: 'text', instants: 'epoch_ms', columns: fewColumns } })
    }

    test('a table without the optional columns keeps a session, and reads them as empty', async () => {
      const store = await withOwnTable()
      const user = await store.users.insert(newUser())
      const session = newSession(user.id)
      await store.sessions.insert(session)
      const empty = { ip: null, userAgent: null, provider: null, providerSid: null, amr: '' }
      expect(await store.sessions.find({ id: session.id })).toEqual({ session: { ...session, ...empty }, user })

      const rotation = rotationOf(session.tokenHash)
      expect(await store.sessions.rotate(rotation)).toEqual({
        session: {
          id: session.id,
          userId: user.id,
          amr: '',
          authenticatedAt: session.authenticatedAt,
          isPersistent: session.isPersistent,
          expiresAt: rotation.expiresAt,
        },
        user: { id: user.id, email: user.email },
      })
      expect(await store.sessions.rotate(rotationOf(session.tokenHash))).toBeNull()
      expect(await store.sessions.update(session.id, { amr: 'pwd' })).toBe(false)
    })

    test('a rotation to a token that is taken is refused whole', async () => {
      const store = await withOwnTable()
      const { id } = await store.users.insert(newUser())
      const [one, other] = [newSession(id), newSession(id)]
      for (const session of [one, other]) await store.sessions.insert(session)
      const collision = store.sessions.rotate(rotationOf(one.tokenHash, { successorHash: other.tokenHash }))
      await expect(collision).rejects.toThrow(DuplicateRecordError)
      const hashes = (await store.sessions.listForUser(id, later(1))).map(({ tokenHash }) => tokenHash)
      expect(hashes.sort()).toEqual([one.tokenHash, other.tokenHash].sort())
    })
  })

  describe(`a column of the host that ignores case on ${database.name}`, () => {
    let opened: OpenDatabase
    afterEach(() => opened?.close())

    async function start(exact: boolean) {
      opened = await database.open()
      const { knex } = opened
      if (database.name === 'postgres')
        await knex.raw("create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
      const loose = { sqlite: 'collate nocase', postgres: 'collate loose', mariadb: 'collate utf8mb4_unicode_ci' }[database.name]
      const binary = { sqlite: '', postgres: '', mariadb: 'collate utf8mb4_nopad_bin' }[database.name]
      await createAuthTables(knex)
      await knex.raw(
        `create table links (id varchar(36) primary key, user_id varchar(36) ${binary}, provider varchar(64) ${binary}, subject varchar(255) ${exact ? binary : loose}, email varchar(320), email_verified boolean, name varchar(200), picture varchar(1024), created_at bigint, last_login_at bigint)`,
      )
      if (database.name === 'postgres')
        await knex.raw('alter table links alter id type uuid using id::uuid, alter user_id type uuid using user_id::uuid')
      const identities = { table: 'links', instants: 'epoch_ms' } as const
      return { store: createKnexStore({ knex, identities }), knex, tables: { identities } }
    }

    test('finds no near match, and the check of the tables says why', async () => {
      const { store, knex, tables } = await start(false)
      const user = await store.users.insert(newUser())
      const identity = await store.identities.insert(newIdentity(user.id, { subject: 'AbC' }))
      expect(await knex('links').where({ subject: 'aBc' }), 'the column does ignore case').toHaveLength(1)
      expect(await store.identities.findWithUser('google', 'abc')).toBeNull()
      expect(await store.identities.findWithUser('google', 'AbC')).toEqual({ identity, user })
      expect(await looseColumns(knex, tables)).toEqual(['identities.subject:collation'])
    })

    test('of two rows that differ in case only, each is found by its own subject', async () => {
      const { store } = await start(false)
      for (const subject of ['AbC', 'abc']) {
        const user = await store.users.insert(newUser())
        await store.identities.insert(newIdentity(user.id, { subject }))
        expect((await store.identities.findWithUser('google', subject))?.user).toEqual(user)
      }
    })

    test('a column that compares byte for byte is not complained about', async () => {
      const { knex, tables } = await start(true)
      expect(await looseColumns(knex, tables)).toEqual([])
    })
  })
}

async function looseColumns(knex: Knex, tables: HostTables): Promise<string[]> {
  const findings = await checkTables(knex, tables)
  return findings.map(({ key }) => key).filter((key) => key.endsWith(':collation'))
}

describe('table options that cannot be meant are refused at once', () => {
  test.each<[string, object, RegExp]>([
    ['a table we do not have', { user: {} }, /user is not an option; known are knex, users/],
    ['an unknown key', { users: { tabel: 'people' } }, /users\.tabel is not an option/],
    ['an unknown field', { users: { columns: { mail: 'mail' } } }, /users\.columns\.mail is no field; known are id, isActive/],
    ['a required column', { users: { columns: { email: false } } }, /users\.columns\.email cannot be false/],
    ['a required column of another table', { identities: { columns: { subject: false } } }, /identities\.columns\.subject cannot be false/],
    ['a column that is no name', { users: { columns: { email: '' } } }, /users\.columns\.email must be the name/],
    ['a column that knex would read as an alias', { users: { columns: { email: 'mail as x' } } }, /must be the name/],
    ['a column that knex would take for a place', { users: { columns: { isActive: 'active?' } } }, /must be the name/],
    ['every column', { users: { columns: { email: '*' } } }, /must be the name/],
    ['one column for two fields', { users: { columns: { email: 'name' } } }, /the column name is mapped twice, to email and name/],
    ['a key type we do not know', { users: { ids: 'bigint' } }, /users\.ids must be/],
    ['integer keys where the key is made before the row', { sessions: { ids: 'integer' } }, /sessions\.ids must be 'uuid' or 'text'/],
    ['instants we do not know', { users: { instants: 'unix' } }, /users\.instants must be/],
    ['defaults that are no function', { users: { insertDefaults: {} } }, /insertDefaults must be a function/],
    ['no users at all', { users: false }, /users must be an object/],
    ['no one-shot tokens', { userTokens: false }, /userTokens must be an object/],
    ['a table that is only a name', { users: 'people' }, /users must be an object/],
  ])('%s', async (_mistake, tables, sentence) => {
    const [sqlite] = await databases()
    const opened = await sqlite?.open({ memory: true })
    if (!opened) throw new Error('SQLite is always there')
    try {
      expect(() => createKnexStore({ knex: opened.knex, ...tables })).toThrow(ConfigurationError)
      expect(() => createKnexStore({ knex: opened.knex, ...tables })).toThrow(sentence)
    } finally {
      await opened.close()
    }
  })
})

test('an optional table that is false is absent, in units and in the host’s transaction too', async () => {
  const [sqlite] = await databases()
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('SQLite is always there')
  try {
    const tables = { identities: false, sessions: false } as const
    await createAuthTables(opened.knex, tables)
    expect(await opened.knex.schema.hasTable('auth_identities')).toBe(false)
    expect(await opened.knex.schema.hasTable('auth_sessions')).toBe(false)
    expect(await opened.knex.schema.hasTable('auth_recovery_codes')).toBe(true)
    const store = createKnexStore({ knex: opened.knex, ...tables })
    const present = (some: object) => ['identities', 'recoveryCodes', 'sessions'].filter((name) => name in some)
    expect(present(store)).toEqual(['recoveryCodes'])
    await store.transaction(async (inside) => expect(present(inside)).toEqual(['recoveryCodes']))
    await opened.knex.transaction(async (trx) => expect(present(store.using(trx))).toEqual(['recoveryCodes']))
  } finally {
    await opened.close()
  }
})
