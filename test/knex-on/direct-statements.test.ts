import { randomUUID } from 'node:crypto'
import Database from 'better-sqlite3'
import type { Knex } from 'knex'
import mysql from 'mysql2'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthTables, createKnexStore, type KnexStore, knexOn } from '../../src'
import { AT, freshHash, newSession, newUser, rotationOf, withSession } from '../store/contract'
import { databases, type OpenDatabase } from '../support/databases'
import { type AppPool, kindsOf, openPool, type PoolKind } from './pools'

const reachable = await databases()
const pools = reachable.flatMap((database) => kindsOf[database.name].map((kind) => ({ database, kind })))

/** What reached the driver: the text, and the values and the name where they are apart from it. */
type Sent = readonly unknown[]

const sent: Sent[] = []

interface WatchedPool extends AppPool {
  /** SQLite's own. */
  readonly handle: Database.Database | null
}

/** SQLite's driver logs each statement with its values. */
function openWatched(kind: PoolKind, config: Knex.Config): WatchedPool {
  if (kind !== 'better-sqlite3') return { ...openPool(kind, config, 1), handle: null }
  const handle = new Database((config.connection as { filename: string }).filename, { verbose: (text) => sent.push([text]) })
  return { knex: knexOn(handle), query: async (sql) => handle.exec(sql), close: async () => handle.close(), handle }
}

interface PgQuery {
  name?: string
  text: string
  values: unknown[]
}

/** Writes down from now on what the driver is asked to send. */
function watchDriver(): void {
  sent.splice(0)
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...given: unknown[]) {
    const { text, values, name } = given[0] as PgQuery
    sent.push([text, values, name])
    return query.apply(this, given)
  } as never)
  for (const verb of ['query', 'execute'] as const) {
    const send = mysql.Connection.prototype[verb] as (...given: unknown[]) => unknown
    vi.spyOn(mysql.Connection.prototype as mysql.Connection, verb).mockImplementation(function (
      this: mysql.Connection,
      ...given: unknown[]
    ) {
      const [asked, values] = given as [string | { sql: string }, unknown[]]
      sent.push([typeof asked === 'string' ? asked : asked.sql, values])
      return send.apply(this, given)
    } as never)
  }
}

describe.each(pools)('a compiled statement outside of a transaction, on $kind', ({ database, kind }) => {
  let opened: OpenDatabase
  let app: WatchedPool
  let store: KnexStore
  let warn: ReturnType<typeof vi.spyOn>

  beforeEach(async () => {
    opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    app = openWatched(kind, opened.config)
    await createAuthTables(app.knex)
    store = createKnexStore({ knex: app.knex })
    warn = vi.spyOn(app.knex.client.logger, 'warn').mockImplementation(() => {})
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await app?.close()
    await opened?.close()
  })

  /** The same through Knex, because a host that listens to Knex hears every statement. */
  async function throughKnex<T>(work: () => Promise<T>): Promise<{ result: T; heard: string[] }> {
    const heard: string[] = []
    const listener = ({ sql }: { sql: string }) => void heard.push(sql)
    app.knex.on('query', listener)
    const result = await work()
    app.knex.removeListener('query', listener)
    return { result, heard }
  }

  const failureOf = async (work: Promise<unknown>) =>
    work.then(
      () => 'no failure',
      (error: Error & { code?: string }) => ({ class: error.constructor.name, message: error.message, code: error.code }),
    )

  const nobody = randomUUID()
  const tokenHash = freshHash()
  const rotation = rotationOf(freshHash())
  const statements: readonly (readonly [string, () => Promise<unknown>])[] = [
    ['users.find', () => store.users.find(nobody)],
    ['users.findByEmail', () => store.users.findByEmail('nobody@example.test')],
    ['sessions.find by id', () => store.sessions.find({ id: nobody })],
    ['sessions.find by token', () => store.sessions.find({ tokenHash, kind: 'session' })],
    ['sessions.rotate', () => store.sessions.rotate(rotation)],
    ['identities.findWithUser', () => store.identities.findWithUser('google', 'nobody')],
    ['passkeys.findWithUser', () => store.passkeys.findWithUser('nobody')],
  ]

  test('has the text, the values and the name that Knex would send, and what it reads is the same', async () => {
    await withSession(store)
    watchDriver()
    for (const [verb, run] of statements) {
      const { result, heard } = await throughKnex(run)
      const ofKnex = sent.splice(0)
      expect([await run(), sent.splice(0)], verb).toEqual([result, ofKnex])
      expect(heard, verb).toHaveLength(ofKnex.length)
    }
  })

  test('is heard by a host that listens to Knex, and by none before and after', async () => {
    const { heard } = await throughKnex(() => store.users.find(nobody))
    await store.users.find(nobody)
    expect(heard).toHaveLength(1)
  })

  test('rotates and finds a session as Knex does', async () => {
    const session = await withSession(store)
    const one = rotationOf(session.tokenHash)
    const rotated = await store.sessions.rotate(one)
    expect(rotated).toMatchObject({ session: { id: session.id }, user: { id: session.userId } })
    const found = await store.sessions.find({ id: session.id })
    expect(found?.session).toMatchObject({ tokenHash: one.successorHash, generation: 1 })
    expect((await throughKnex(() => store.sessions.find({ id: session.id }))).result).toEqual(found)
    expect(await store.sessions.rotate(one)).toBeNull()
  })

  test('fails with the error that it has through Knex, and gives its connection back', async () => {
    const session = await withSession(store)
    const failing: (() => Promise<unknown>)[] = [
      () => store.sessions.insert(session), // a duplicate
      () => store.sessions.insert(newSession(nobody)), // a user that does not exist
    ]
    for (const run of failing) {
      const failure = await failureOf(run())
      expect(failure).not.toBe('no failure')
      expect((await throughKnex(() => failureOf(run()))).result).toEqual(failure)
    }
    expect(await failureOf(store.sessions.insert(session))).toMatchObject({ class: 'DuplicateRecordError' })
    await app.knex.schema.dropTable('auth_sessions')
    const missing = await failureOf(store.sessions.rotate(rotation))
    expect(missing).toMatchObject({ message: expect.stringMatching(/there is no table auth_sessions/) })
    expect((await throughKnex(() => failureOf(store.sessions.rotate(rotation)))).result).toEqual(missing)
    expect(await store.users.find(nobody)).toBeNull() // on the one connection that there is
    expect(warn).not.toHaveBeenCalled()
  })

  test('is repeated after a conflict, at most twice', async () => {
    await collide(2)
    const { tokenHash } = await withSession(store)
    expect(await store.sessions.rotate(rotationOf(tokenHash))).not.toBeNull()
    await collide(3)
    expect(await failureOf(store.sessions.rotate(rotationOf((await withSession(store)).tokenHash)))).toMatchObject({
      code: 'SERVICE_UNAVAILABLE',
    })
  })

  /** The next changes of a session lose to another transaction. */
  async function collide(times: number): Promise<void> {
    if (kind === 'better-sqlite3') {
      let left = times
      const lose = () => {
        if (left-- > 0) throw Object.assign(new Error('lost'), { code: 'SQLITE_BUSY_SNAPSHOT' })
        return 1
      }
      app.handle?.function('lose', lose)
      await app.query('drop trigger if exists collide')
      return void (await app.query('create trigger collide before update on auth_sessions begin select lose(); end'))
    }
    if (kind === 'pg') {
      await app.query('drop sequence if exists collisions')
      await app.query('create sequence collisions')
      await app.query(
        `create or replace function collide() returns trigger language plpgsql as $$ begin
           if nextval('collisions') <= ${times} then raise exception 'lost' using errcode = '40001'; end if; return new; end $$`,
      )
      return void (await app.query(
        'create or replace trigger collide before update on auth_sessions for each row execute function collide()',
      ))
    }
    await app.query('set @collisions = 0') // of the session, and there is one connection
    await app.query('drop trigger if exists collide')
    await app.query(
      `create trigger collide before update on auth_sessions for each row begin
         set @collisions = @collisions + 1;
         if @collisions <= ${times} then signal sqlstate '40001' set mysql_errno = 1213; end if; end`,
    )
  }

  if (kind !== 'better-sqlite3')
    test('is 503 if the server ends its session, and the next one has another session', async () => {
      const session = await withSession(store)
      const holder = await opened.knex.transaction()
      await holder('auth_sessions').where({ id: session.id }).forUpdate()
      try {
        const waiting = failureOf(store.sessions.rotate(rotationOf(session.tokenHash)))
        await vi.waitFor(async () => expect(await endWaiting()).toBe(1), { timeout: 10_000 })
        expect(await waiting).toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
        expect((await store.sessions.find({ id: session.id }))?.session.generation).toBe(0)
      } finally {
        await holder.rollback()
      }
    })

  /** @returns how many sessions of the server waited for a lock with a rotation */
  async function endWaiting(): Promise<number> {
    if (kind === 'pg') {
      const waiting =
        "select pg_terminate_backend(pid) from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0 and query like 'update%'"
      return (await opened.knex.raw(waiting)).rows.length
    }
    const [found] = await opened.knex.raw(
      "select id from information_schema.processlist where db = database() and info like 'update%auth\\_sessions%'",
    )
    for (const { id } of found) await opened.knex.raw(`kill connection ${id}`)
    return found.length
  }
})

const on = (name: string) => pools.filter(({ database }) => database.name === name)

describe.each(on('sqlite'))('a compiled statement on $kind', ({ database }) => {
  let opened: OpenDatabase
  let handle: Database.Database
  let store: KnexStore

  beforeEach(async () => {
    opened = await database.open({ memory: true })
    handle = new Database(':memory:')
    const knex = knexOn(handle)
    await createAuthTables(knex)
    store = createKnexStore({ knex })
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    handle.close()
    await opened.close()
  })

  test('is prepared once, and again after a change of the table', async () => {
    const { id } = await store.users.insert(newUser())
    await store.users.find(id)
    const prepare = vi.spyOn(handle, 'prepare')
    for (let round = 0; round < 3; round++) expect((await store.users.find(id))?.id).toBe(id)
    expect(prepare).not.toHaveBeenCalled()
    handle.exec('alter table auth_users add column shoe_size integer')
    handle.exec('alter table auth_users rename column name to full_name')
    await expect(store.users.find(id)).rejects.toThrow(/users\.find \(SQLITE_ERROR\): .* no column name/)
    handle.exec('alter table auth_users rename column full_name to name')
    expect((await store.users.find(id))?.id).toBe(id)
  })

  test('waits for an open transaction of doorward, and is kept although that rolls back', async () => {
    const { userId } = await withSession(store)
    const session = newSession(userId)
    const no = new Error('no')
    let inserted: Promise<void> | null = null
    const unit = store.transaction(async ({ users }) => {
      await users.update(userId, { name: 'lost' })
      inserted = store.sessions.insert(session)
      await new Promise((resolve) => setTimeout(resolve, 30))
      throw no
    })
    await expect(unit).rejects.toBe(no)
    await inserted
    const found = await store.sessions.find({ id: session.id })
    expect([found?.session.id, found?.user.name]).not.toContain('lost')
    expect(found?.session.id).toBe(session.id)
  })

  test('is 503 while a transaction of the app is open, and joins it at no time', async () => {
    const session = await withSession(store)
    handle.exec('begin')
    await expect(store.sessions.find({ id: session.id })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    await expect(store.sessions.insert(newSession(session.userId))).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    handle.exec('commit')
    expect(await store.sessions.listForUser(session.userId, AT)).toHaveLength(1)
  })

  test('is 503 on a handle that the app has closed', async () => {
    await store.users.find(randomUUID())
    handle.close()
    await expect(store.users.find(randomUUID())).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
  })

  test('of more stores than can be kept is answered too', async () => {
    const knex = knexOn(handle)
    const { id } = await store.users.insert(newUser())
    for (let tenant = 0; tenant < 210; tenant++) {
      handle.exec(`create view tenant_${tenant} as select * from auth_users`)
      const ofTenant = createKnexStore({ knex, users: { table: `tenant_${tenant}` } })
      expect((await ofTenant.users.find(id))?.id).toBe(id)
    }
  })
})

describe.each(on('postgres'))('names on $kind', ({ database, kind }) => {
  test.each([
    ['the connection has lost them', 'deallocate all', /prepared statement was lost/],
    ['a column has changed its type', 'alter table auth_users alter email type varchar(500)', /changed its type/],
  ])('stop with one warning where %s, and the statement is done once', async (_why, sql, said) => {
    const opened = await database.open()
    const app = openPool(kind, opened.config as Knex.Config, 1)
    await createAuthTables(app.knex)
    const store = createKnexStore({ knex: app.knex })
    const warn = vi.spyOn(app.knex.client.logger, 'warn').mockImplementation(() => {})
    const first = rotationOf((await withSession(store)).tokenHash)
    expect(await store.sessions.rotate(first)).not.toBeNull()
    await app.query(sql)
    const second = rotationOf(first.successorHash)
    expect(await store.sessions.rotate(second)).not.toBeNull()
    expect(await store.sessions.rotate(rotationOf(second.successorHash))).not.toBeNull()
    expect(warn.mock.calls).toEqual([[expect.stringMatching(said)]])
    await app.close()
    await opened.close()
  })
})

describe.each(on('mariadb'))('a compiled statement on $kind', ({ database, kind }) => {
  let opened: OpenDatabase
  let app: AppPool

  beforeEach(async () => {
    opened = await database.open()
    app = openPool(kind, opened.config as Knex.Config, 1)
    await createAuthTables(app.knex)
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await app.close()
    await opened.close()
  })

  const prepared = async (): Promise<number> => {
    const [rows] = (await app.query("show session status like 'Com_stmt_prepare'")) as [{ Value: string }[]]
    return Number(rows[0]?.Value)
  }

  test('is prepared once for each connection, and not at all with preparedStatements: false', async () => {
    const store = createKnexStore({ knex: app.knex })
    for (let round = 0; round < 3; round++) await store.users.find(randomUUID())
    expect(await prepared()).toBe(1)
    const unprepared = createKnexStore({ knex: app.knex, preparedStatements: false })
    await unprepared.users.findByEmail('nobody@example.test')
    expect(await prepared()).toBe(1)
  })

  test('is read as through Knex, whatever options of the driver the host has set', async () => {
    const isFlag = (field: mysql.TypeCastField) => field.type === 'TINY' && field.length === 1
    const typeCast: mysql.TypeCast = (field, next) => (isFlag(field) ? field.string() === '1' : next())
    const options = { typeCast, dateStrings: true, timezone: '+05:30', supportBigNumbers: true, bigNumberStrings: true }
    const connection = { ...(opened.config?.connection as object), ...options }
    const other = openPool(kind, { ...opened.config, connection } as Knex.Config, 1)
    const store = createKnexStore({ knex: other.knex })
    const { id } = await withSession(store)
    const directly = await store.sessions.find({ id })
    other.knex.on('query', () => undefined)
    expect(directly).toMatchObject({ session: { id, isPersistent: true, createdAt: AT } })
    expect(await store.sessions.find({ id })).toEqual(directly)
    await other.close()
  })

  test.each([
    'ER_MAX_PREPARED_STMT_COUNT_REACHED',
    'ER_UNSUPPORTED_PS',
    'ER_NEED_REPREPARE',
    'ER_UNKNOWN_STMT_HANDLER',
    'ER_WRONG_ARGUMENTS',
  ])('that the server does not prepare (%s) is sent as text, and so is every later one; it is said once', async (code) => {
    const store = createKnexStore({ knex: app.knex })
    const warn = vi.spyOn(app.knex.client.logger, 'warn').mockImplementation(() => {})
    const refuse = (_text: unknown, _values: unknown, callback: (error: Error) => void) =>
      callback(Object.assign(new Error('refused'), { code }))
    const execute = vi.spyOn(mysql.Connection.prototype as mysql.Connection, 'execute').mockImplementation(refuse as never)
    const user = await store.users.insert(newUser())
    expect((await store.users.find(user.id))?.id).toBe(user.id)
    expect((await store.users.findByEmail(user.email))?.id).toBe(user.id)
    expect(execute).toHaveBeenCalledTimes(1)
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/did not prepare a statement/)]])
  })
})
