import type { Knex } from 'knex'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
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

  /** Each statement from now on: what it says, on which connection, in which transaction. */
  function watched() {
    const seen: { sql: string; connection: string; transaction: string | undefined }[] = []
    knex.on('query', ({ sql, __knexUid: connection, __knexTxId: transaction }) => void seen.push({ sql, connection, transaction }))
    return seen
  }

  const wordsOf = (seen: readonly { sql: string }[]) =>
    seen.flatMap(({ sql }) => /^(begin|insert|update|commit|rollback)/.exec(sql.toLowerCase())?.[0] ?? [])

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

  test("is one transaction to the host's listeners, from its BEGIN to its COMMIT, under a name of its own", async () => {
    const seen = watched()
    for (let round = 0; round < 2; round++) await store.transaction((inside) => inside.users.insert(newUser()))
    await store.users.findByEmail('nobody@example.test')
    const last = seen.pop()
    const names = seen.map(({ transaction }) => transaction)
    const half = seen.length / 2
    expect(wordsOf(seen)).toEqual(['begin', 'insert', 'commit', 'begin', 'insert', 'commit'])
    expect(names.every((name, index) => typeof name === 'string' && name === names[index < half ? 0 : half])).toBe(true)
    expect(names[0]).not.toBe(names[half])
    expect(last?.transaction).toBeUndefined()
  })

  test.each(['runner', 'queryBuilder', 'raw'])('is not left by what a host bound to its own client (%s)', async (method) => {
    const { client } = knex
    client[method] = client[method].bind(client)
    const email = newUser().email
    await expect(insertThenFail(email)).rejects.toBe(no)
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('tells a client of the host’s class that it is in a transaction, at each statement', async () => {
    const seen: unknown[] = []
    const query = answering(/./, (send) => send())
    await store.transaction((inside) => inside.users.insert(newUser()))
    seen.push(...query.mock.contexts.map((client) => (client as { transacting?: boolean }).transacting))
    expect(seen.length).toBeGreaterThanOrEqual(3)
    expect(new Set(seen)).toEqual(new Set([true]))
  })

  test('begins and ends where the host’s client lets nobody set its query', async () => {
    const { client } = knex
    Object.defineProperty(client, 'query', { value: client.query.bind(client) })
    for (let round = 0; round < 2; round++) expect(await store.transaction((inside) => inside.users.insert(newUser()))).toBeTruthy()
  })

  test('lets a client of the host’s class ask something of its own before a statement, and listen to itself', async () => {
    const heard: string[] = []
    const prototype = Object.getPrototypeOf(knex.client)
    const query = prototype.query
    vi.spyOn(prototype, 'query').mockImplementation(async function (this: Knex['client'], ...[connection, asked]: unknown[]) {
      const sql = typeof asked === 'string' ? asked : (asked as { sql: string }).sql // what Knex gives
      if (sql === 'select 42') return query.call(this, connection, asked)
      this.once('query', (query: { sql: string }) => heard.push(query.sql))
      await this.query(connection, 'select 42')
      return query.call(this, connection, asked)
    })
    const { id } = await store.transaction((inside) => inside.users.insert(newUser()))
    vi.restoreAllMocks()
    expect(await store.users.find(id)).not.toBeNull()
    expect(heard.length).toBeGreaterThanOrEqual(3) // BEGIN, INSERT, COMMIT
    expect(new Set(heard)).toEqual(new Set(['select 42']))
  })

  test('does not mind a client that answers nothing to BEGIN and COMMIT', async () => {
    answering(/^(begin|commit)/i, async (send) => void (await send()))
    const { id } = await store.transaction((inside) => inside.users.insert(newUser()))
    expect(await store.users.find(id)).not.toBeNull()
  })

  test('gives its connection back where it cannot even be made', async () => {
    const version = Object.getOwnPropertyDescriptor(knex.client, 'version')
    Object.defineProperty(knex.client, 'version', {
      configurable: true,
      get() {
        throw no
      },
    })
    await expect(store.transaction(async () => 1)).rejects.toThrow(/transaction/)
    Reflect.deleteProperty(knex.client, 'version')
    if (version) Object.defineProperty(knex.client, 'version', version)
    expect(await store.transaction(async () => 2)).toBe(2)
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
    expect(wordsOf(seen)).toEqual(['begin', 'commit'])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test.each<[string, (inside: AuthStore, id: string) => Promise<unknown>]>([
    ['recoveryCodes.replaceForUser', async (inside, id) => inside.recoveryCodes?.replaceForUser(id, ['one', 'two'])],
    ['refreshTokens.revokeForUser', async (inside, id) => inside.refreshTokens?.revokeForUser(id, new Date())],
  ])('is no success where it ends before its %s does, and keeps nothing of that', async (verb, begin) => {
    const { id } = await store.users.insert(newUser())
    await store.recoveryCodes?.replaceForUser(id, ['an old code'])
    const late: Promise<unknown>[] = []
    const unit = store.transaction(async (inside) => void late.push(begin(inside, id).catch(() => 'refused')))
    await expect(unit).rejects.toThrow(`A unit of work ended before its ${verb} did`)
    expect(await Promise.all(late)).toEqual(['refused'])
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
    await expect(unit).rejects.toThrow('A unit of work ended before its transaction did')
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

  test('that loses to another at its COMMIT is run again, whatever came too late', async () => {
    const conflict = { sqlite: 'SQLITE_BUSY', postgres: '40001', mariadb: 'ER_LOCK_DEADLOCK' }[name]
    let left = 1
    answering(/^commit/i, async (send) => {
      await new Promise(setImmediate) // by now the late one has been refused
      if (left-- > 0) throw Object.assign(new Error('lost'), { code: conflict })
      return send()
    })
    const late: Promise<unknown>[] = []
    let runs = 0
    const { id } = await store.transaction(async (inside) => {
      runs += 1
      const user = await inside.users.insert(newUser())
      setImmediate(() => late.push(inside.users.insert(newUser()).catch(() => 'refused')))
      return user
    })
    expect(await Promise.all(late)).toEqual(['refused', 'refused'])
    expect(runs).toBe(2)
    expect(await store.users.find(id)).not.toBeNull()
  })

  test('a BEGIN whose answer is lost leaves no transaction open, and gives its connection back', async () => {
    const begin = answering(/^begin/i, async (send) => {
      await send()
      throw new Error('no answer')
    })
    const seen = watched()
    await expect(store.transaction(async () => 1)).rejects.toThrow(/transaction/)
    begin.mockRestore()
    expect(wordsOf(seen)).toEqual(['begin', 'rollback'])
    expect(await store.transaction(async () => 2)).toBe(2) // on the one connection there is
  })

  test('a COMMIT that fails keeps nothing, and gives its connection back', async () => {
    const email = newUser().email
    const commit = answering(/^commit/i, () => Promise.reject(new Error('no')))
    await expect(store.transaction((inside) => inside.users.insert(newUser({ email })))).rejects.toThrow(/transaction/)
    commit.mockRestore()
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('a pool that does not take its connection back changes neither a success nor a refusal', async () => {
    const { client } = knex
    const release = vi.spyOn(client, 'releaseConnection').mockImplementation((connection) => {
      client.pool.release(connection)
      throw new Error('a secret of the pool')
    })
    const email = newUser().email
    await store.transaction((inside) => inside.users.insert(newUser({ email })))
    await expect(insertThenFail(newUser().email)).rejects.toBe(no)
    expect(client.logger.warn.mock.calls.flat().join()).not.toContain('secret')
    client.logger.warn.mockImplementation(() => {
      throw new Error('nor does the logger')
    })
    expect(await store.transaction(async () => 'done')).toBe('done')
    await expect(insertThenFail(newUser().email)).rejects.toBe(no)
    release.mockRestore()
    expect(await store.users.findByEmail(email)).not.toBeNull()
  })

  test('is rolled back behind a statement that the host’s class still keeps back', async () => {
    const [email, seen] = [newUser().email, watched()]
    let isKept = () => {}
    const kept = new Promise<void>((resolve) => {
      isKept = resolve
    })
    const keeping = answering(/^insert/i, async (send) => {
      isKept()
      await new Promise(setImmediate)
      return send()
    })
    const unit = store.transaction((inside) => Promise.all([inside.users.insert(newUser({ email })), kept.then(() => Promise.reject(no))]))
    await expect(unit).rejects.toBe(no)
    keeping.mockRestore()
    expect(wordsOf(seen)).toEqual(['begin', 'insert', 'rollback'])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('a ROLLBACK that fails is not what the caller hears; its connection ends at once, and its rows and locks with it', async () => {
    const other = opened.connect({ min: 1, max: 1 })
    const { id } = await store.users.insert(newUser())
    const rollback = answering(/^rollback/i, () => Promise.reject(new Error('gone')))
    const email = newUser().email
    const unit = store.transaction(async (inside) => {
      await inside.users.update(id, { name: 'lost' })
      await inside.users.insert(newUser({ email }))
      throw no
    })
    await expect(unit).rejects.toBe(no)
    rollback.mockRestore()
    expect(await createKnexStore({ knex: other }).users.update(id, { name: 'kept' })).toBe(true)
    expect((await store.users.find(id))?.name).toBe('kept')
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

  test('a ROLLBACK that comes after it was given up does not meet the transaction of another', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let letGo = () => {}
      const asked = new Promise<void>((resolve) => {
        answering(/^rollback/i, (send) => {
          resolve()
          return new Promise((answer) => {
            letGo = () => answer(send().catch(() => null))
          })
        })
      })
      const heard = expect(insertThenFail(newUser().email)).rejects.toBe(no)
      await asked
      await vi.advanceTimersByTimeAsync(5_000)
      await heard
      vi.useRealTimers()
      const { id } = await store.transaction(async (inside) => {
        const user = await inside.users.insert(newUser())
        letGo()
        await new Promise(setImmediate)
        await inside.users.update(user.id, { name: 'kept' })
        return user
      })
      expect((await store.users.find(id))?.name).toBe('kept')
    } finally {
      vi.useRealTimers()
    }
  })

  if (name !== 'sqlite')
    test('given up while a statement of it waits for a lock, it tells whoever waits for that', async () => {
      const { id } = await store.users.insert(newUser())
      const other = createKnexStore({ knex: opened.connect({ min: 1, max: 1 }) })
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        await other.transaction(async (holding) => {
          await holding.users.lock(id)
          const [late, seen] = [[] as Promise<unknown>[], watched()]
          const isWaiting = () => wordsOf(seen).includes('update')
          const unit = store.transaction(async (inside) => {
            late.push(inside.users.update(id, { name: 'too late' }).catch(() => 'refused'))
            while (!isWaiting()) await new Promise(setImmediate)
            throw no
          })
          const heard = expect(unit).rejects.toBe(no)
          while (!isWaiting()) await new Promise(setImmediate)
          await new Promise(setImmediate)
          await vi.advanceTimersByTimeAsync(5_000)
          await heard
          expect(await Promise.all(late)).toEqual(['refused'])
        })
      } finally {
        vi.useRealTimers()
      }
      expect((await store.users.find(id))?.name).not.toBe('too late')
    })

  // SQLite answers before it returns.
  if (name !== 'sqlite')
    test('a ROLLBACK that is never answered is given up after five seconds', async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      try {
        let isAsked = () => {}
        const asked = new Promise<void>((resolve) => {
          isAsked = resolve
        })
        const rollback = answering(/^rollback/i, () => {
          isAsked()
          return new Promise(() => {})
        })
        const email = newUser().email
        let isSettled = false
        const heard = expect(insertThenFail(email).finally(() => (isSettled = true))).rejects.toBe(no)
        await asked
        await vi.advanceTimersByTimeAsync(4_999)
        expect(isSettled).toBe(false)
        await vi.advanceTimersByTimeAsync(1)
        await heard
        vi.useRealTimers()
        rollback.mockRestore()
        expect(await store.users.findByEmail(email)).toBeNull()
      } finally {
        vi.useRealTimers()
      }
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

  test('on SQLite, where neither ROLLBACK nor the driver gets through, nobody gets that connection', async () => {
    const sqlite = reachable.find(({ name }) => name === 'sqlite')
    if (!sqlite) throw new Error('SQLite is always there')
    const { knex, close } = await sqlite.open({ pool: { min: 1, max: 1 } })
    await createAuthTables(knex)
    vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
    const store = createKnexStore({ knex })
    const [no, email] = [new Error('the work failed'), newUser().email]
    const connection = await knex.client.acquireConnection()
    knex.client.releaseConnection(connection)
    let reading: IterableIterator<unknown> | undefined
    const unit = store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      reading = connection.prepare('select 1 union select 2').iterate()
      reading?.next() // the driver refuses everything until it is done
      throw no
    })
    await expect(unit).rejects.toBe(no)
    reading?.return?.()
    expect(await store.users.findByEmail(email)).toBeNull()
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
