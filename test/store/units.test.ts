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

  /** Once the next insert is on its way to the database, and not yet answered. */
  const sent = () =>
    new Promise<void>((resolve) => {
      knex.on('query', ({ sql }) => {
        if (/^insert/i.test(sql)) resolve()
      })
    })

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

  test('refuses a statement that nobody waits for and that comes after its end', async () => {
    const [email, seen, late] = [newUser().email, watched(), [] as Promise<unknown>[]]
    await store.transaction(async (inside) => {
      late.push(inside.users.insert(newUser({ email })).catch(() => 'refused'))
    })
    expect(await Promise.all(late)).toEqual(['refused'])
    expect(wordsOf(seen)).toEqual(['begin', 'commit'])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('keeps a statement that nobody waits for and that was sent before its end', async () => {
    const [email, seen, late] = [newUser().email, watched(), [] as Promise<unknown>[]]
    await store.transaction(async (inside) => {
      late.push(inside.users.insert(newUser({ email })))
      await sent()
    })
    await Promise.all(late)
    expect(wordsOf(seen)).toEqual(['begin', 'insert', 'commit'])
    expect(await store.users.findByEmail(email)).not.toBeNull()
  })

  test('is no success where such a statement fails', async () => {
    const { email: taken } = await store.users.insert(newUser())
    const [email, late] = [newUser().email, [] as Promise<unknown>[]]
    const unit = store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      late.push(inside.users.insert(newUser({ email: taken })).catch((error: unknown) => error))
      await sent()
    })
    const outcome = await unit.catch((error: unknown) => error)
    expect((await Promise.all(late))[0]).toBeInstanceOf(DuplicateRecordError)
    // Elsewhere a statement that fails undoes itself alone, and the rest may be kept: what is told is what is there.
    const isKept = (await store.users.findByEmail(email)) !== null
    expect(isKept).toBe(!(outcome instanceof Error))
    if (name === 'postgres') expect(outcome).toBeInstanceOf(DuplicateRecordError)
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
    release.mockRestore()
    expect(await store.users.findByEmail(email)).not.toBeNull()
    expect(client.logger.warn.mock.calls.flat().join()).not.toContain('secret')
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

  for (const mariadb of reachable.filter(({ name }) => name === 'mariadb'))
    test('on MariaDB, after a deadlock', async () => {
      const { knex, close } = await mariadb.open({ pool: { min: 2, max: 2 } })
      await createAuthTables(knex)
      const store = createKnexStore({ knex })
      const [one, two] = [await store.users.insert(newUser()), await store.users.insert(newUser())]
      let [holding, bothHold] = [0, () => {}]
      const both = new Promise<void>((resolve) => {
        bothHold = resolve
      })
      const lockBoth = (first: string, second: string) =>
        store.transaction(async (inside) => {
          await inside.users.lock(first)
          holding += 1
          if (holding >= 2) bothHold()
          await both
          await inside.users.lock(second).catch(() => null)
          await inside.users.update(second, { name: 'too late' })
          throw new Error('undo')
        })
      const outcomes = await Promise.allSettled([lockBoth(one.id, two.id), lockBoth(two.id, one.id)])
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
      for (const { id } of [one, two]) expect((await store.users.find(id))?.name).not.toBe('too late')
      await close()
    })
})
