import type { Knex } from 'knex'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { ServiceUnavailableError } from '../../src/core/errors'
import { type AuthStore, DuplicateRecordError } from '../../src/store/auth-store'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

type Statement = string | { sql: string }

describe.each(await databases())('a unit on $name', ({ name, open }) => {
  let opened: OpenDatabase
  let knex: Knex
  let store: AuthStore
  const no = new Error('the work failed')

  beforeEach(async () => {
    opened = await open({ pool: { min: 1, max: 1 } })
    knex = opened.knex
    await createAuthTables(knex)
    store = createKnexStore({ knex })
    vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
  })
  afterEach(async () => {
    vi.restoreAllMocks()
    await opened.close()
  })

  /** Each statement from now on. */
  function watched() {
    const seen: { sql: string }[] = []
    knex.on('query', ({ sql }) => void seen.push({ sql }))
    return seen
  }

  const wordsOf = (seen: readonly { sql: string }[]) =>
    seen.flatMap(({ sql }) => /^(begin|insert|update|commit|rollback)/.exec(sql.toLowerCase())?.[0] ?? [])

  /** The statements of one unit. On SQLite the write lock is taken before a first insert, and COMMIT is sent before Knex sends its own. */
  const wordsOfUnit = (...words: string[]) =>
    name === 'sqlite'
      ? ['begin', ...(words.length > 0 ? ['commit', 'begin'] : []), ...words, 'commit', 'begin', 'commit']
      : ['begin', ...words, 'commit']

  /** What a client of the host's class does with a statement. */
  function answering(statement: RegExp, answer: (send: () => Promise<unknown>) => Promise<unknown>) {
    const prototype = Object.getPrototypeOf(knex.client)
    const query: (this: unknown, connection: unknown, asked: Statement) => Promise<unknown> = prototype.query
    return vi.spyOn(prototype, 'query').mockImplementation(function (this: unknown, ...[connection, asked]: unknown[]) {
      const send = () => query.call(this, connection, asked as Statement) // what Knex gives
      const sql = typeof asked === 'string' ? asked : (asked as { sql: string }).sql // as above
      return statement.test(sql) ? answer(send) : send()
    })
  }

  const insertThenFail = (email: string) =>
    store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      throw no
    })

  test("is one transaction to the host's listeners", async () => {
    const seen = watched()
    for (let round = 0; round < 2; round++) await store.transaction((inside) => inside.users.insert(newUser()))
    expect(wordsOf(seen)).toEqual([...wordsOfUnit('insert'), ...wordsOfUnit('insert')])
  })

  test('is over when it is over: what is asked of its store later is refused, and harms nobody', async () => {
    const kept: AuthStore[] = []
    await store.transaction(async (inside) => void kept.push(inside))
    const failed = store.transaction(async (inside) => {
      kept.push(inside)
      throw no
    })
    await expect(failed).rejects.toBe(no)
    const [email, seen] = [newUser().email, watched()]
    await store.transaction(async () => {
      for (const inside of kept) await expect(inside.users.insert(newUser({ email }))).rejects.toThrow(/users\.insert/)
    })
    expect(wordsOf(seen)).toEqual(wordsOfUnit())
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('is no success where it ends before a verb of it does, and keeps nothing of that', async () => {
    const { id } = await store.users.insert(newUser())
    await store.recoveryCodes?.replaceForUser(id, ['an old code'])
    const late: Promise<unknown>[] = []
    const unit = store.transaction(async (inside) => {
      late.push(inside.recoveryCodes?.replaceForUser(id, ['one', 'two']).catch(() => null) ?? Promise.resolve())
    })
    await expect(unit).rejects.toThrow('The transaction ended before recoveryCodes.replaceForUser did')
    await Promise.all(late)
    expect(await store.recoveryCodes?.consume(id, 'one', new Date())).toBe(false)
    expect(await store.recoveryCodes?.consume(id, 'an old code', new Date())).toBe(true)
  })

  test('nor where it ends between two statements of a unit inside it', async () => {
    const { id } = await store.users.insert(newUser({ name: 'before' }))
    const late: Promise<unknown>[] = []
    const unit = store.transaction(async (inside) => {
      await new Promise<void>((resolve) => {
        const nested = inside.transaction(async ({ users }) => {
          await users.update(id, { name: 'half' })
          resolve()
          await new Promise(setImmediate)
          await users.update(id, { name: 'whole' })
        })
        late.push(nested.catch(() => 'refused'))
      })
    })
    await expect(unit).rejects.toThrow('The transaction ended before transaction did')
    expect(await Promise.all(late)).toEqual(['refused'])
    expect((await store.users.find(id))?.name).toBe('before')
  })

  test('inside another takes work that is not asynchronous', async () => {
    const work = (() => 5) as unknown as () => Promise<number> // as a host in JavaScript may write it
    expect(await store.transaction((inside) => inside.transaction(work))).toBe(5)
  })

  test('ends, and is no success, where somebody goes on asking for ever', async () => {
    const { id } = await store.users.insert(newUser())
    const late: Promise<unknown>[] = []
    const unit = store.transaction(async (inside) => {
      const poll = async () => {
        for (;;) await inside.users.find(id)
      }
      late.push(poll().catch(() => 'refused'))
      await inside.users.find(id)
    })
    await expect(unit).rejects.toThrow('users.find')
    expect(await Promise.all(late)).toEqual(['refused'])
  })

  test('is no success where a statement failed, whoever caught that', async () => {
    const { email: taken } = await store.users.insert(newUser())
    const [email, late] = [newUser().email, [] as unknown[]]
    const unit = store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      late.push(await inside.users.insert(newUser({ email: taken })).catch((error: unknown) => error))
    })
    await expect(unit).rejects.toBeInstanceOf(DuplicateRecordError)
    expect(late).toEqual([expect.any(DuplicateRecordError)])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  if (name === 'postgres')
    test('is no success where PostgreSQL answers its COMMIT with ROLLBACK, whatever made it', async () => {
      const { email: taken } = await store.users.insert(newUser())
      const email = newUser().email
      // A client that hides a failure: nobody here hears of it, and the server knows.
      const hiding = answering(/^insert/i, (send) =>
        send().catch(() => ({ method: 'insert', response: { command: 'INSERT', rowCount: 1, rows: [] } })),
      )
      const unit = store.transaction(async (inside) => {
        await inside.users.insert(newUser({ email }))
        await inside.users.insert(newUser({ email: taken }))
      })
      await expect(unit).rejects.toThrow(/transaction/)
      hiding.mockRestore()
      expect(await store.users.findByEmail(email)).toBeNull()
    })

  test('sends one statement at a time', async () => {
    let [underWay, most] = [0, 0]
    answering(/^insert/i, async (send) => {
      most = Math.max(most, ++underWay)
      await new Promise(setImmediate)
      const answer = await send()
      underWay -= 1
      return answer
    })
    await store.transaction((inside) => Promise.all([1, 2, 3].map(() => inside.users.insert(newUser()))))
    expect(most).toBe(1)
  })

  if (name !== 'sqlite')
    test('that loses to another at its COMMIT is run again, whatever came too late', async () => {
      let left = 1
      const commit = answering(/^commit/i, async (send) => {
        await new Promise(setImmediate) // by now the late one has been refused
        if (left-- <= 0) return send()
        commit.mockRestore()
        await send()
        throw Object.assign(new Error('lost'), { code: name === 'postgres' ? '40001' : 'ER_LOCK_DEADLOCK' })
      })
      const late: Promise<unknown>[] = []
      let runs = 0
      await store.transaction(async (inside) => {
        runs += 1
        const user = await inside.users.insert(newUser())
        setImmediate(() => late.push(inside.users.insert(newUser()).catch(() => 'refused')))
        return user
      })
      await vi.waitFor(() => expect(late).toHaveLength(2))
      expect(await Promise.all(late)).toEqual(['refused', 'refused'])
      expect(runs).toBe(2)
    })

  if (name !== 'mariadb')
    test('a COMMIT that the database refuses keeps nothing, and its connection is free of it', async () => {
      await knex.raw('create table late_parent (id integer primary key)')
      await knex.raw('create table late (parent integer references late_parent deferrable initially deferred)')
      if (name === 'postgres') {
        await knex.raw(
          'create function orphan() returns trigger as $$ begin insert into late values (1); return new; end $$ language plpgsql',
        )
        await knex.raw('create trigger orphan after update on auth_users for each row execute function orphan()')
      } else {
        await knex.raw('create trigger orphan after update on auth_users begin insert into late values (1); end')
      }
      const { id, email } = await store.users.insert(newUser({ name: 'before' }))
      await expect(store.transaction((inside) => inside.users.update(id, { name: 'after' }))).rejects.toThrow(/transaction/)
      expect((await store.users.findByEmail(email))?.name).toBe('before')
      expect(await store.transaction(async () => 2)).toBe(2)
    })

  test('a ROLLBACK that fails is not what the caller hears', async () => {
    const rollback = answering(/^rollback/i, (send) => send().then(() => Promise.reject(new Error('gone'))))
    const email = newUser().email
    await expect(insertThenFail(email)).rejects.toBe(no)
    rollback.mockRestore()
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('where the work fails for no reason at all is no success', async () => {
    const email = newUser().email
    const unit = store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      return Promise.reject()
    })
    expect(
      await unit.then(
        () => 'success',
        (reason: unknown) => reason,
      ),
    ).toBeUndefined()
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  if (name === 'sqlite')
    test('leaves a transaction alone that the host has open on the connection', async () => {
      const { id } = await store.users.insert(newUser())
      await knex.raw('BEGIN')
      await store.users.update(id, { name: 'kept' })
      await expect(store.transaction(async () => 1)).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      await knex.raw('COMMIT')
      expect((await store.users.find(id))?.name).toBe('kept')
      expect(await store.transaction(async () => 2)).toBe(2)
    })

  // SQLite answers before it returns.
  if (name !== 'sqlite')
    test('given up while a statement of it waits for a lock, it closes the connection behind which nobody is to wait', async () => {
      const { id } = await store.users.insert(newUser())
      const other = createKnexStore({ knex: opened.connect({ min: 1, max: 1 }) })
      await other.transaction(async (holding) => {
        await holding.users.lock(id)
        const seen = watched()
        const unit = store.transaction(async (inside) => {
          inside.users.update(id, { name: 'too late' }).catch(() => null)
          while (!wordsOf(seen).includes('update')) await new Promise(setImmediate)
          throw no
        })
        await expect(unit).rejects.toBe(no)
        expect((await store.users.find(id))?.name).not.toBe('too late')
      })
      expect((await store.users.find(id))?.name).not.toBe('too late')
    }, 20_000)

  if (name === 'postgres')
    test('a deadline that comes during COMMIT waits for it: what is kept is a success', async () => {
      await knex.raw(
        `create function slow_commit() returns trigger language plpgsql as $$ begin perform pg_sleep(0.6); return null; end $$`,
      )
      await knex.raw(
        'create constraint trigger slow after insert on auth_users deferrable initially deferred for each row execute function slow_commit()',
      )
      const email = newUser().email
      await store.transaction((inside) => inside.users.insert(newUser({ email })), { deadlineMs: 300 })
      expect((await store.users.findByEmail(email))?.email).toBe(email)
      await knex.raw('drop function slow_commit cascade')
    })

  describe('past its deadline', () => {
    const deadlineMs = 100
    const never = new Promise<never>(() => {})

    test('is a 503; it is rolled back, its connection is free again, and what it asks later reaches nothing', async () => {
      const email = newUser().email
      const kept: AuthStore[] = []
      const unit = store.transaction(
        async (inside) => {
          kept.push(inside)
          await inside.users.insert(newUser({ email }))
          await never
        },
        { deadlineMs },
      )
      await expect(unit).rejects.toBeInstanceOf(ServiceUnavailableError)
      expect(await store.users.findByEmail(email)).toBeNull() // on the one connection there is
      for (const inside of kept) await expect(inside.users.insert(newUser({ email }))).rejects.toThrow()
      expect(await store.users.findByEmail(email)).toBeNull()
      expect(knex.client.pool.numUsed()).toBe(0)
    })

    test('a unit that waits for a connection is a 503, and its work is not even begun', async () => {
      let isBegun = false
      await store.transaction(async () => {
        const work = async () => {
          isBegun = true
        }
        const unit = store.transaction(work, { deadlineMs })
        await expect(unit).rejects.toBeInstanceOf(ServiceUnavailableError)
      })
      expect(await store.transaction(async () => 'next')).toBe('next')
      expect(isBegun).toBe(false)
    })
  })
})

describe('what the database ended by itself is over: the next statement is refused, and is not in no transaction at all', async () => {
  const reachable = await databases()

  test('on SQLite, where a trigger rolls back', async () => {
    const sqlite = reachable.find(({ name }) => name === 'sqlite')
    if (!sqlite) throw new Error('SQLite is always there')
    const { knex, close } = await sqlite.open({ memory: true })
    await createAuthTables(knex)
    await knex.raw(
      `create trigger refused before update of name on auth_users when new.name = 'no' begin select raise(rollback, 'no'); end`,
    )
    const store = createKnexStore({ knex })
    const { id } = await store.users.insert(newUser())
    const unit = store.transaction(async (inside) => {
      await inside.users.update(id, { name: 'no' }).catch(() => null)
      await inside.users.update(id, { name: 'too late' })
    })
    await expect(unit).rejects.toThrow()
    expect((await store.users.find(id))?.name).not.toBe('too late')
    expect(await store.users.update(id, { name: 'another' })).toBe(true) // in memory, and still there
    await close()
  })

  for (const mariadb of reachable.filter(({ name }) => name === 'mariadb'))
    test('on MariaDB, after a deadlock', async () => {
      const { knex, connect, close } = await mariadb.open()
      await createAuthTables(knex)
      const [store, another] = [createKnexStore({ knex }), createKnexStore({ knex: connect() })]
      const [one, two] = [await store.users.insert(newUser()), await store.users.insert(newUser())]
      let [holding, bothHold] = [0, () => {}]
      const both = new Promise<void>((resolve) => {
        bothHold = resolve
      })
      const lockBoth = (on: AuthStore, first: string, second: string) =>
        on.transaction(async (inside) => {
          await inside.users.lock(first)
          holding += 1
          if (holding >= 2) bothHold()
          await both
          await inside.users.lock(second).catch(() => null)
          await inside.users.update(second, { name: 'too late' })
          throw new Error('undo')
        })
      const outcomes = await Promise.allSettled([lockBoth(store, one.id, two.id), lockBoth(another, two.id, one.id)])
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      for (const { id } of [one, two]) expect((await store.users.find(id))?.name).not.toBe('too late')
      await close()
    })

  for (const mariadb of reachable.filter(({ name }) => name === 'mariadb')) {
    /** As InnoDB does: it has rolled back by the time it says so. */
    async function endingAt(statement: RegExp, code: string) {
      const { knex, close } = await mariadb.open({ pool: { min: 1, max: 1 } })
      const prototype = Object.getPrototypeOf(knex.client)
      const query = prototype.query
      const spy = vi.spyOn(prototype, 'query').mockImplementation(async function (this: unknown, ...[connection, asked]: unknown[]) {
        const sql = typeof asked === 'string' ? asked : (asked as { sql: string }).sql // what Knex gives
        if (!statement.test(sql)) return query.call(this, connection, asked)
        await query.call(this, connection, 'ROLLBACK')
        throw Object.assign(new Error('ended'), { code })
      })
      return { knex, close, spy }
    }

    test.each(['ER_LOCK_DEADLOCK', 'ER_LOCK_WAIT_TIMEOUT', 'ER_CHECKREAD'])(
      'on MariaDB, also what was asked already and what nobody waited for (%s)',
      async (code) => {
        const { knex, close, spy } = await endingAt(/set `name` = \?/, code)
        await createAuthTables(knex)
        const store = createKnexStore({ knex })
        const { id } = await store.users.insert(newUser())
        const email = newUser().email
        const both = store.transaction(async (inside) => {
          await Promise.allSettled([inside.users.update(id, { name: 'fails' }), inside.users.insert(newUser({ email }))])
          throw new Error('undo')
        })
        await expect(both).rejects.toThrow()
        const unheard = store.transaction(async (inside) => {
          await inside.users.insert(newUser({ email }))
          inside.users.update(id, { name: 'fails' }).catch(() => null)
          await Promise.resolve()
        })
        await expect(unheard).rejects.toThrow()
        spy.mockRestore()
        expect(await store.users.findByEmail(email)).toBeNull()
        await close()
      },
    )

    test('nor is it in a transaction of the host’s, which could not be undone', async () => {
      const { knex, close } = await mariadb.open({ pool: { min: 1, max: 1 } })
      await createAuthTables(knex)
      const store = createKnexStore({ knex })
      const { id } = await store.users.insert(newUser())
      const prototype = Object.getPrototypeOf(knex.client)
      const query = prototype._query
      vi.spyOn(prototype, '_query').mockImplementation(async function (this: unknown, ...[connection, asked]: unknown[]) {
        if (!/set `name` = \?/.test((asked as { sql: string }).sql)) return query.call(this, connection, asked) // what Knex gives
        await query.call(this, connection, { sql: 'ROLLBACK' }) // as InnoDB has done by the time it says so
        throw Object.assign(new Error('ended'), { code: 'ER_LOCK_DEADLOCK' })
      })
      const undone = knex.transaction(async (trx) => {
        const inside = store.using(trx)
        await expect(inside.users.update(id, { name: 'fails' })).rejects.toThrow()
        for (const again of [inside, store.using(trx), store.using(await trx.transaction())])
          await expect(again.users.update(id, { isActive: false })).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
        throw new Error('undo')
      })
      await expect(undone).rejects.toThrow('undo')
      vi.restoreAllMocks()
      expect((await store.users.find(id))?.isActive).toBe(true)
      await close()
    })

    test('and createAuthTables holds its lock no longer, and is run again', async () => {
      const { knex, close, spy } = await endingAt(/^create table if not exists auth_identities/, 'ER_LOCK_DEADLOCK')
      const outcome = createAuthTables(knex)
      await expect(outcome).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      spy.mockRestore()
      const [[{ held }]] = await knex.raw("select is_used_lock(concat('doorward.', md5(database()))) as held")
      expect(held).toBeNull()
      await createAuthTables(knex)
      await close()
    })
  }
})
