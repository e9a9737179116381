import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ConfigurationError, createAuthTables, createKnexStore } from '../../src'
import type { AuthStore, CompleteStore } from '../../src/store/auth-store'
import { type Database, type DatabaseName, databases, type OpenDatabase } from '../support/databases'
import { newUser, rotationOf, withSession } from './contract'
import { createRenamedTables } from './host-tables'

const named = async (name: DatabaseName) => (await databases()).filter((database) => database.name === name)

test('preparedStatements is a boolean, and means nothing to the other databases', async () => {
  const [sqlite] = (await named('sqlite')) as [Database] // always there
  const { knex, close } = await sqlite.open({ memory: true })
  expect(() => createKnexStore({ knex, preparedStatements: 'no' as unknown as boolean })).toThrow(ConfigurationError)
  await createAuthTables(knex)
  const store = createKnexStore({ knex, preparedStatements: false })
  const { tokenHash } = await withSession(store)
  expect(await store.sessions.rotate(rotationOf(tokenHash))).not.toBeNull()
  await close()
})

for (const postgres of await named('postgres')) {
  let opened: OpenDatabase
  let knex: Knex
  let warn: ReturnType<typeof vi.spyOn>

  beforeEach(async () => {
    opened = await postgres.open({ pool: { min: 1, max: 1 } })
    knex = opened.knex
    await createAuthTables(knex)
    warn = vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
  })
  afterEach(() => opened?.close())

  /** Of rotations, on the one connection there is. */
  const prepared = async (on = knex): Promise<string[]> =>
    (await on.raw("select name from pg_prepared_statements where statement like 'update%auth_sessions%'")).rows.map(nameOf)
  const nameOf = ({ name }: { name: string }) => name

  /** A chain of refresh tokens, as long as it goes on. */
  async function chainOn(store: CompleteStore) {
    let { tokenHash } = await withSession(store)
    return async (inside: Pick<AuthStore, 'sessions'> = store) => {
      const rotation = rotationOf(tokenHash)
      const rotated = await inside.sessions?.rotate(rotation)
      tokenHash = rotation.successorHash
      return Boolean(rotated)
    }
  }

  test('what is sent again and again is prepared once per connection, under a name that says its text', async () => {
    const rotate = await chainOn(createKnexStore({ knex }))
    const another = await chainOn(createKnexStore({ knex }))
    for (const one of [rotate, rotate, another]) expect(await one()).toBe(true)
    expect(await prepared()).toEqual([expect.stringMatching(/^doorward_[0-9a-f]{32}$/)])
  })

  test.each(['uuid', 'integer'] as const)('with %s keys every name is the digest of the very text that is prepared', async (keys) => {
    const host = keys === 'integer' ? await createRenamedTables(knex, 'postgres', { ids: 'integer', instants: 'epoch_ms' }) : {}
    await (await chainOn(createKnexStore({ knex, ...host }) as CompleteStore))()
    const { rows } = await knex.raw("select name, statement from pg_prepared_statements where name like 'doorward%'")

    expect(rows.map(nameOf)).toHaveLength(2) // an insert and a rotation
    for (const { name, statement } of rows) {
      const digest = createHash('sha256').update(statement.replaceAll(/\$\d+/g, '?')).digest('hex')
      expect(name).toBe(`doorward_${digest.slice(0, 32)}`)
    }
  })

  async function nameOfRotation(): Promise<string> {
    const elsewhere = opened.connect({ min: 1, max: 1 })
    await (await chainOn(createKnexStore({ knex: elsewhere })))()
    const [name = ''] = await prepared(elsewhere)
    return name
  }

  const lost = /prepared statement was lost.*preparedStatements: false/
  const retyped = /column of a prepared statement has changed its type/
  const losses: readonly [string, RegExp, (rotate: () => Promise<boolean>) => Promise<unknown>][] = [
    ['the name no more', lost, async (rotate) => (await rotate()) && knex.raw('deallocate all')],
    ['the name for something else', lost, async () => knex.raw(`prepare ${await nameOfRotation()} as select 1`)],
    [
      'another type of a column',
      retyped,
      async (rotate) => (await rotate()) && knex.raw('alter table auth_users alter email type varchar(500)'),
    ],
  ]
  test.each(losses)(
    'where the connection knows %s, the statement is sent as it is, and so is every later one; it is said once',
    async (_what, said, happens) => {
      const [rotate, another] = [await chainOn(createKnexStore({ knex })), await chainOn(createKnexStore({ knex }))]
      await happens(rotate)
      expect(await Promise.all([rotate(), another()])).toEqual([true, true])
      expect(await rotate()).toBe(true)
      expect(warn).toHaveBeenCalledTimes(1)
      expect(warn.mock.calls.join()).toMatch(said)
    },
  )

  const namesIn = (sent: readonly Sent[]) => sent.map(({ options }) => options?.name)

  /** The statements that Knex sends from now on. */
  function watched(): Sent[] {
    const sent: Sent[] = []
    knex.on('query', (query: Sent) => sent.push(query))
    return sent
  }

  const countUsers = async () => Number((await knex('auth_users').count({ count: '*' }))[0]?.count)

  test('in a transaction of our own the statements have the same names', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await rotate()
    const [sent, names] = [watched(), await prepared()]
    for (let round = 0; round < 2; round++) expect(await store.transaction(rotate, { deadlineMs: 60_000 })).toBe(true)
    expect(namesIn(sent.filter(({ sql }) => sql.startsWith('update')))).toEqual([names[0], names[0]])
    expect(await prepared()).toEqual(names)
  })

  test.each(losses)(
    'where the connection knows %s, a transaction of our own runs again without names, and is committed once; no later one has any',
    async (_what, said, happens) => {
      const store = createKnexStore({ knex })
      const rotate = await chainOn(store)
      await happens(rotate)
      const [before, sent] = [await countUsers(), watched()]
      let runs = 0
      const unit = () =>
        store.transaction(async (inside) => {
          runs += 1
          await inside.users.insert(newUser())
          return rotate(inside)
        })
      expect(await unit()).toBe(true)
      expect([runs, await countUsers()]).toEqual([2, before + 1])
      sent.splice(0)
      expect(await unit()).toBe(true)
      expect(await rotate()).toBe(true)
      expect([runs, await countUsers()]).toEqual([3, before + 2])
      expect(namesIn(sent).filter((name) => name !== undefined)).toEqual([])
      expect(warn).toHaveBeenCalledTimes(1)
      expect(warn.mock.calls.join()).toMatch(said)
    },
  )

  test('a lost name repeats the transaction too where its work caught the error', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await rotate()
    await knex.raw('deallocate all')
    const seen: unknown[] = []
    await store.transaction(async (inside) => void seen.push(await rotate(inside).catch(() => 'caught')))
    expect(seen).toEqual(['caught', true])
  })

  test('a lost name stops the names also where the work refuses by itself the second time', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await rotate()
    await knex.raw('deallocate all')
    const no = new Error('no')
    await expect(store.transaction(async (inside) => rotate(inside).then(() => Promise.reject(no)))).rejects.toBe(no)
    expect(warn).toHaveBeenCalledTimes(1)
    const [another, sent] = [await chainOn(store), watched()]
    expect(await store.transaction(another)).toBe(true)
    expect(namesIn(sent).filter((name) => name !== undefined)).toEqual([])
  })

  test('the same code of another cause is thrown after one repetition, and the names stay; a transaction of the host runs once', async () => {
    await knex.raw(
      "create function refused() returns trigger language plpgsql as $$ begin raise exception 'no' using errcode = '0A000'; end $$",
    )
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await knex.raw('create trigger refused before update on auth_sessions for each row execute function refused()')
    let [runs, ofHost] = [0, 0]
    const unit = store.transaction(async (inside) => {
      runs += 1
      return rotate(inside)
    })
    await expect(unit).rejects.toThrow(/sessions.rotate \(0A000\)/)
    const host = knex.transaction(async (trx) => {
      ofHost += 1
      return rotate(store.using(trx))
    })
    await expect(host).rejects.toThrow(/sessions.rotate \(0A000\)/)
    expect([runs, ofHost]).toEqual([2, 1])
    expect(warn).not.toHaveBeenCalled()
    await knex.raw('drop trigger refused on auth_sessions')
    const sent = watched()
    expect(await store.transaction(rotate)).toBe(true)
    expect(namesIn(sent.filter(({ sql }) => sql.startsWith('update')))).toEqual([expect.stringMatching(/^doorward_/)])
  })

  test('with preparedStatements: false, and inside a transaction of the host, nothing is prepared', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await knex.transaction(async (trx) => expect(await rotate(store.using(trx))).toBe(true))
    expect(await prepared()).toEqual([])
    const unprepared = createKnexStore({ knex, preparedStatements: false })
    const plainly = await chainOn(unprepared)
    expect(await plainly()).toBe(true)
    expect(await unprepared.transaction(plainly)).toBe(true)
    expect(await prepared()).toEqual([])
    expect(warn).not.toHaveBeenCalled()
  })

  test('a host’s query event has its name and values, inside a transaction its values alone', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    const sent: Sent[] = []
    knex.on('query', (query: Sent) => query.sql.startsWith('update') && sent.push(query))
    expect(await rotate()).toBe(true)
    expect(await rotate()).toBe(true)
    await knex.transaction(async (trx) => expect(await rotate(store.using(trx))).toBe(true))

    expect(sent.map(({ options }) => options?.name)).toEqual([...Array(2).fill(expect.stringMatching(/^doorward_/)), undefined])
    for (const { sql, bindings } of sent) {
      const places = [...sql.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place))
      expect(places).toEqual(bindings.map((_, index) => index + 1))
      expect(bindings.length).toBeGreaterThan(5)
    }
  })

  interface Sent {
    sql: string
    bindings: readonly unknown[]
    options?: { name?: string }
  }

  test('a name in which a host’s Knex writes a place is left to it', async () => {
    const { client } = knex
    const asEver = client.customWrapIdentifier.bind(client)
    vi.spyOn(client, 'customWrapIdentifier').mockImplementation((...of) => asEver(...of).replace('"email_"', '"e\\?mail"'))
    await knex.raw('alter table auth_users rename column email to "e\\?mail"')
    const store = createKnexStore({ knex, users: { columns: { email: 'email_' } } })
    const user = await store.users.insert(newUser())
    expect((await store.users.findByEmail(user.email))?.id).toBe(user.id)
    expect(await (await chainOn(store as CompleteStore))()).toBe(true)
  })

  test('a host with a store for each tenant has no more than two hundred of them on a connection', async () => {
    await knex.raw(
      "do $$ begin for n in 1..210 loop execute format('create view tenant_%s as select * from auth_users', n); end loop; end $$",
    )
    for (let tenant = 1; tenant <= 210; tenant++) {
      const store = createKnexStore({ knex, users: { table: `tenant_${tenant}` } })
      expect(await store.users.findByEmail('nobody@example.test')).toBeNull()
    }
    const { rows } = await knex.raw('select count(*)::int as prepared from pg_prepared_statements')
    expect(rows).toEqual([{ prepared: 200 }])
  })

  test('any other failure is not repeated', async () => {
    const store = createKnexStore({ knex })
    const rotate = await chainOn(store)
    await knex.schema.dropTable('auth_sessions')
    const sent: string[] = []
    knex.on('query', ({ sql }: { sql: string }) => sent.push(sql))
    await expect(rotate()).rejects.toThrow(/sessions.rotate \(42P01\)/)
    expect(sent).toHaveLength(1)
    await store.users.insert(newUser())
  })
}
