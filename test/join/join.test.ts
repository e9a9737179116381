import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import createKnex from 'knex'
import { CamelCasePlugin, CompiledQuery, Kysely, SqliteDialect } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  ConfigurationError,
  createAuthTables,
  createKnexStore,
  errors,
  type KnexStore,
  knexOn,
  kyselyRunner,
  type OAuthUser,
  type SignupOptions,
  type SqlRunner,
} from '../../src'
import { type AuthStore, DuplicateRecordError } from '../../src/store/auth-store'
import { transactionOf } from '../../src/store/knex/knex-store'
import { storeContract } from '../../src/testing'
import { newAddress, password } from '../local/people'
import { newSession, newUser, rotationOf } from '../store/contract'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { linkTemplates, type Mailbox, mailbox } from '../support/mailbox'
import { type AppTransaction, type Library, librariesOf, openLibrary } from './libraries'

const reachable = await databases()
const kinds = reachable.flatMap((database) => librariesOf[database.name].map((library) => ({ database, library, title: database.name })))
const undone = new Error('the app changed its mind')

describe.each(kinds)('store.join() in a transaction of $library on $title', ({ database, library }) => {
  const dialect = ({ sqlite: 'sqlite', postgres: 'postgresql', mariadb: 'mysql' } as const)[database.name]
  let opened: OpenDatabase
  let app: Library
  let store: KnexStore
  let host: Mounted
  let mails: Mailbox
  let events: string[]

  beforeAll(async () => {
    opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    app = await openLibrary(library, database.name, opened.config)
    await createAuthTables(app.knex)
    await app.knex.schema.createTable('profiles', (table) => {
      table.string('user_id', 36).primary()
      table.string('company', 100).notNullable()
    })
    store = createKnexStore({ knex: app.knex })
    mails = mailbox()
    host = await mount({ knex: app.knex, options: { mailer: mails }, settings: { ...linkTemplates, autoActivate: true } })
    host.auth.events.on('signup', ({ userId }) => events.push(`signup ${userId}`))
    host.auth.events.on('identity.linked', ({ userId }) => events.push(`linked ${userId}`))
  })
  afterAll(async () => {
    await host?.close()
    await app?.close()
    await opened?.close()
  })
  beforeEach(() => {
    events = []
    mails.mails.splice(0)
  })

  /** Signs a person up, links an account of a provider, which sends a mail, and adds the row of the app. */
  async function signUp({ runner, addProfile }: AppTransaction, email = newAddress()) {
    const joined = store.join(runner)
    const service = host.auth.service.using(joined.store)
    const [user] = await service.signUp({ email, password })
    await service.linkIdentity(user.id, profileOf(user.id))
    await addProfile(user.id, 'Acme')
    return { joined, user }
  }

  const countOf = async (table: string, where: object): Promise<number> =>
    Number((await app.knex(table).where(where).count({ count: '*' }))[0]?.['count'])

  test('a sign-up and the row of the app are committed together, and the mail and the events follow at committed()', async () => {
    const { joined, user } = await app.transact((inside) => signUp(inside))
    await host.auth.drain()
    expect([events, mails.mails]).toEqual([[], []])
    joined.committed()
    await host.auth.drain()
    expect(events).toEqual([`signup ${user.id}`, `linked ${user.id}`])
    expect(mails.mails.map(({ to }) => to)).toEqual([user.email])
    expect(await countOf('auth_users', { email: user.email })).toBe(1)
    expect(await countOf('auth_identities', { user_id: user.id })).toBe(1)
    expect(await countOf('profiles', { user_id: user.id })).toBe(1)
  })

  test('a rollback undoes the sign-up with the row of the app, and nothing is sent', async () => {
    const email = newAddress()
    const work = app.transact(async (inside) => {
      const { joined } = await signUp(inside, email)
      joined.rolledBack()
      throw undone
    })
    await expect(work).rejects.toThrow(undone)
    await host.auth.drain()
    expect([events, mails.mails]).toEqual([[], []])
    expect(await countOf('auth_users', { email })).toBe(0)
    expect(await countOf('profiles', { company: 'Acme' })).toBe(await countOf('auth_identities', {}))
  })

  test('an address that is taken is refused, and the transaction of the app goes on', async () => {
    const { joined, user } = await app.transact(async (inside) => {
      const first = await signUp(inside)
      const service = host.auth.service.using(first.joined.store)
      await expect(service.signUp({ email: first.user.email, password })).rejects.toThrow(errors.EmailTakenError)
      await expect(first.joined.store.users.insert(newUser({ email: first.user.email }))).rejects.toThrow(DuplicateRecordError)
      expect(await first.joined.store.users.find(first.user.id)).toMatchObject({ email: first.user.email })
      return first
    })
    joined.committed()
    await host.auth.drain()
    expect(events).toHaveLength(2)
    expect(await countOf('auth_users', { email: user.email })).toBe(1)
    expect(await countOf('profiles', { user_id: user.id })).toBe(1)
  })

  test('of ten transactions at once that sign up one address, one is committed, and its event alone is emitted', async () => {
    const email = newAddress()
    const attempts = Array.from({ length: 10 }, async () => {
      const { joined, user } = await app.transact((inside) => signUp(inside, email))
      joined.committed()
      return user.id
    })
    const outcomes = await Promise.allSettled(attempts)
    const won = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    const lost = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
    await host.auth.drain()
    expect(won).toHaveLength(1)
    expect(lost.filter((code) => !['EMAIL_TAKEN', 'SERVICE_UNAVAILABLE'].includes(code))).toEqual([])
    expect(events).toEqual([`signup ${won[0]}`, `linked ${won[0]}`])
    expect(await countOf('auth_users', { email })).toBe(1)
    expect(await countOf('profiles', { user_id: won[0] })).toBe(1)
  })

  if (library === 'prisma')
    test('a call after the time limit of Prisma is 503', async () => {
      const work = app.transact(async ({ runner }) => {
        const joined = store.join(runner)
        await joined.store.users.insert(newUser())
        await new Promise((resolve) => setTimeout(resolve, 600))
        await joined.store.users.insert(newUser())
      }, 300)
      await expect(work).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    })

  test('effects of a transaction of doorward that failed are dropped, those before and after it run', async () => {
    const seen: string[] = []
    const joined = await app.transact(async ({ runner }) => {
      const joined = store.join(runner)
      joined.store.afterCommit(() => seen.push('before'))
      await joined.store.users.insert(newUser())
      const failing = joined.store.transaction(async (inside) => {
        await inside.users.insert(newUser())
        inside.afterCommit?.(() => seen.push('undone'))
        throw undone
      })
      await expect(failing).rejects.toThrow(undone)
      joined.store.afterCommit(() => seen.push('after'))
      return joined
    })
    expect(seen).toEqual([])
    joined.committed()
    expect(seen).toEqual(['before', 'after'])
  })

  test('every call after committed() and rolledBack() is refused, and sends nothing', async () => {
    const sent: string[] = []
    const [one, other] = await app.transact(async ({ runner }) => {
      const both = [store.join(recording(runner, sent)), store.join(runner)] as const
      for (const { store } of both) await store.users.find('00000000-0000-4000-8000-000000000000')
      return both
    })
    one.committed()
    other.rolledBack()
    sent.splice(0)
    for (const { store, committed, rolledBack } of [one, other]) {
      await expect(store.users.insert(newUser())).rejects.toThrow(/transaction has ended/)
      await expect(store.transaction(async () => 1)).rejects.toThrow(/transaction has ended/)
      expect(() => store.afterCommit(() => undefined)).toThrow(/transaction has ended/)
      expect(() => committed()).toThrow(/transaction has ended/)
      expect(() => rolledBack()).toThrow(/transaction has ended/)
    }
    expect(sent).toEqual([])
  })

  test('each transaction is a savepoint with a name of its own, and nothing begins or ends the transaction of the app', async () => {
    const sent: string[] = []
    const joined = await app.transact(async ({ runner }) => {
      const joined = store.join(recording(runner, sent))
      for (let time = 0; time < 3; time++) await joined.store.transaction((inside) => inside.users.insert(newUser()))
      await joined.store.transaction(async () => Promise.reject(undone)).catch(() => undefined)
      return joined
    })
    joined.committed()
    const names = sent.flatMap((sql) => /^savepoint (\w+)/i.exec(sql)?.[1] ?? []).filter((name) => !name.startsWith('doorward_join_'))
    expect(names).toHaveLength(4)
    expect(new Set(names).size).toBe(4)
    expect(sent.filter((sql) => /^rollback to savepoint/i.test(sql))).toHaveLength(1)
    expect(sent.filter((sql) => /^\s*(begin|commit|rollback(?! to)|start transaction|set transaction)/i.test(sql))).toEqual([])
  })

  test('calls at once are sent one statement at a time, and a transaction that fails takes no other call with it', async () => {
    let running = 0
    let most = 0
    const users = Array.from({ length: 4 }, () => newUser())
    await app.transact(async ({ runner }) => {
      const counting: SqlRunner = {
        dialect: runner.dialect,
        async run(...given) {
          running += 1
          most = Math.max(most, running)
          await new Promise((resolve) => setTimeout(resolve, 1))
          return runner.run(...given).finally(() => {
            running -= 1
          })
        },
      }
      const joined = store.join(counting)
      const failing = joined.store.transaction(async (inside) => {
        await inside.users.insert(newUser())
        throw undone
      })
      const inserted = users.map((user) => joined.store.users.insert(user))
      await Promise.all([expect(failing).rejects.toThrow(undone), ...inserted])
    })
    expect(most).toBe(1)
    for (const { email } of users) expect(await store.users.findByEmail(email)).not.toBeNull()
  })

  test('the app alone begins and ends the transaction, so a hook of the app cannot commit it', async () => {
    await app.transact(async ({ runner }) => {
      const joined = store.join(runner)
      for (const sql of ['commit', 'rollback', 'begin', 'set transaction isolation level serializable'])
        await expect(joined.store.transaction(async (inside) => transactionOf(inside)?.raw(sql))).rejects.toThrow()
      await joined.store.users.insert(newUser())
    })
  })

  test('the text of an error of the library never leaves', async () => {
    const bare = createKnexStore({ knex: app.knex, users: { table: 'nowhere_at_all' } })
    const email = newAddress()
    const error: Error = await app
      .transact(({ runner }) => bare.join(runner).store.users.insert(newUser({ email })))
      .then(
        () => expect.unreachable(),
        (failure) => failure,
      )
    expect(error.message).toMatch(
      /^The database failed at users\.insert \((42P01|ER_NO_SUCH_TABLE|SQLITE_ERROR)\): there is no table nowhere_at_all/,
    )
    expect([error.message, error.stack].join()).not.toContain(email)
    expect(error.cause).toBeUndefined()
  })

  test('the hook of a sign-up writes by its `trx`, inside the transaction of the app', async () => {
    const onSignup: SignupOptions['onSignup'] = async ({ id }, _body, _store, { trx }) => {
      await trx?.('profiles').insert({ user_id: id, company: 'by the hook' })
    }
    const hooked = await mount({ knex: app.knex, options: { signup: { onSignup } }, settings: { autoActivate: true } })
    const signUp = (isUndone: boolean) =>
      app.transact(async ({ runner }) => {
        await hooked.auth.service.using(store.join(runner).store).signUp({ email: newAddress(), password })
        if (isUndone) throw undone
      })
    await expect(signUp(true)).rejects.toThrow(undone)
    expect(await countOf('profiles', { company: 'by the hook' })).toBe(0)
    await signUp(false)
    expect(await countOf('profiles', { company: 'by the hook' })).toBe(1)
    await hooked.close()
  })

  test('a key that the database makes comes back', async () => {
    const instant = { postgresql: 'timestamptz(3)', mysql: 'datetime(3)', sqlite: 'integer' }[dialect]
    await app.knex.schema.createTable('people', (table) => {
      table.increments('id')
      for (const name of ['email', 'hashed_password', 'name', 'totp_secret']) table.string(name, 190)
      for (const name of ['is_active', 'is_admin']) table.boolean(name)
      for (const name of ['created', 'updated', 'last_login', 'email_verified', 'activated', 'password_set', 'totp_enabled'])
        table.specificType(`${name}_at`, instant)
      table.integer('totp_last_step')
    })
    const own = createKnexStore({ knex: app.knex, users: { table: 'people', ids: 'integer' } })
    const people = await app.transact(async ({ runner }) => {
      const joined = own.join(runner)
      return [await joined.store.users.insert(newUser()), await joined.store.users.insert(newUser())]
    })
    expect(people.map(({ id }) => id)).toEqual(['1', '2'])
    expect(await own.users.find('2')).toEqual(people[1])
  })

  test('a Knex of the app that maps names between snake_case and camelCase gets the same records', async () => {
    const camelRow = (row: object) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]))
    const mapping = createKnex({
      ...opened.config,
      wrapIdentifier: (name, wrap) => wrap(name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
      postProcessResponse: (response) => (Array.isArray(response) ? response.map(camelRow) : response),
    })
    const mapped = createKnexStore({ knex: mapping })
    await app.transact(async ({ runner }) => {
      const joined = mapped.join(runner)
      const user = await joined.store.users.insert(newUser())
      const session = newSession(user.id)
      await joined.store.sessions.insert(session)
      expect(await joined.store.users.findByEmail(user.email)).toEqual(user)
      expect(await joined.store.sessions.rotate(rotationOf(session.tokenHash))).not.toBeNull()
      expect(await joined.store.users.update(user.id, { name: 'Zoë' })).toBe(true)
    })
    await mapping.destroy()
  })

  test('a placeholder in a name or a text of the statement is none', async () => {
    const [given, quoted] = { sqlite: ['?', '`a?b`'], mysql: ['?', '`a?b`'], postgresql: ['$1', '"a?b"'] }[dialect]
    const text = `select cast(${given} as char(5)) as ${quoted}, 'it''s $1 ?' as words`
    const { rows } = await app.transact(({ runner }) => runner.run(text, ['value'], 'rows'))
    expect(rows).toEqual([{ 'a?b': 'value', words: "it's $1 ?" }])
  })

  if (dialect === 'postgresql')
    test('a list, an object, a Date and the operator ? of a column of the app arrive unchanged', async () => {
      const given = { tags: ['a', 'b'], meta: { a: 'x ? $1' }, born: new Date('2020-01-02T03:04:05Z'), raw: Buffer.from([0, 1, 255]) }
      await app.knex.raw('create table gifts (id text primary key, tags text[], meta jsonb, born timestamptz, raw bytea)')
      const text = `insert into gifts values ($1, $2, $3, $4, $5) returning '{"a":1}'::jsonb ? 'a' as has, $$it's ? $1$$ as words, $word$'$word$ as mark`
      const { rows } = await app.transact(({ runner }) => runner.run(text, ['one', ...Object.values(given)] as never, 'rows'))
      expect(rows).toEqual([{ has: true, words: "it's ? $1", mark: "'" }])
      expect(await app.knex('gifts')).toEqual([{ id: 'one', ...given }])
    })

  test('a conflict is not repeated, and where it ends the transaction of the app, nothing is sent afterwards', async () => {
    let attempts = 0
    const sent: string[] = []
    const code = { postgresql: '40001', mysql: 'ER_LOCK_DEADLOCK', sqlite: 'SQLITE_BUSY_SNAPSHOT' }[dialect]
    const work = app.transact(async ({ runner }) => {
      const conflicting: SqlRunner = {
        dialect,
        run: async (sql, ...rest) => {
          if (/^insert/.test(sql)) throw Object.assign(new Error('conflict'), { code })
          return runner.run(sql, ...rest)
        },
      }
      const joined = store.join(recording(conflicting, sent))
      const failed = joined.store.transaction(async (inside) => {
        attempts += 1
        await inside.users.insert(newUser())
      })
      await expect(failed).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      sent.splice(0)
      await joined.store.users.find('00000000-0000-4000-8000-000000000000')
    })
    if (dialect === 'mysql') await expect(work).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    else await work
    expect(attempts).toBe(1)
    expect(sent.some((sql) => /select/.test(sql))).toBe(dialect !== 'mysql')
  })

  describe('the contract of a store', () => {
    let joined: AuthStore
    for (const { name, run } of storeContract({ makeStore: async () => joined }))
      test(name, async () => {
        await app.transact(async ({ runner }) => {
          joined = store.join(runner).store
          await run()
        })
      })
  })

  test('a runner outside of a transaction is refused', () => {
    expect(() => app.outside()).toThrow(ConfigurationError)
    expect(() => app.outside()).toThrow(/needs a transaction: the `\w+` that .* passes/)
  })
})

const onServers = kinds.filter(({ title }) => title !== 'sqlite')

describe.each(onServers)('a session that the server ends inside a transaction of $library on $title', ({ database, library }) => {
  test('answers 503, and the process lives and serves the next request', async () => {
    const opened = await database.open()
    const given = JSON.stringify({ library, database: database.name, config: opened.config })
    const file = join(import.meta.dirname, 'killed-child.ts')
    const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file, given])
    expect(JSON.parse(stdout)).toEqual({ killed: [503, 'SERVICE_UNAVAILABLE'], next: 201 })
    await opened.close()
  }, 60_000)
})

test('a plugin of Kysely that renames columns changes nothing for doorward', async () => {
  const handle = new Database(':memory:')
  const knex = knexOn(handle)
  await createAuthTables(knex)
  const db = new Kysely({ dialect: new SqliteDialect({ database: handle }), plugins: [new CamelCasePlugin()] })
  const user = await db.transaction().execute(async (trx) => {
    const joined = createKnexStore({ knex }).join(kyselyRunner(trx, { dialect: 'sqlite', CompiledQuery }))
    const { id, email } = await joined.store.users.insert(newUser())
    expect(await joined.store.users.find(id)).toMatchObject({ email, isActive: true })
    return { id, email }
  })
  expect(await createKnexStore({ knex }).users.find(user.id)).toMatchObject(user)
  await db.destroy()
})

function profileOf(subject: string): OAuthUser {
  return { provider: 'corp', subject, email: null, emailVerified: false, name: null, picture: null, raw: {} }
}

function recording(runner: SqlRunner, sent: string[]): SqlRunner {
  return {
    dialect: runner.dialect,
    run(sql, ...rest) {
      sent.push(sql)
      return runner.run(sql, ...rest)
    },
  }
}
