import type { Knex } from 'knex'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import type { AuthStore } from '../../src/store/auth-store'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

describe.each(await databases())('a unit on $name', ({ open }) => {
  let opened: OpenDatabase
  let knex: Knex
  let store: AuthStore

  beforeEach(async () => {
    opened = await open({ pool: { min: 1, max: 1 } })
    knex = opened.knex
    await createAuthTables(knex)
    store = createKnexStore({ knex })
    vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
  })
  afterEach(() => opened?.close())

  /** Each statement from now on: what it says, on which connection, in which transaction. */
  function watched() {
    const seen: { sql: string; connection: string; transaction: string | undefined }[] = []
    knex.on('query', ({ sql, __knexUid: connection, __knexTxId: transaction }) => void seen.push({ sql, connection, transaction }))
    return seen
  }

  /** What a client says once to a statement; everything else goes on as it is. */
  function answersOnce(statement: RegExp, answer: () => Promise<unknown>) {
    const { client } = knex
    const query = client.query.bind(client)
    let isDone = false
    client.query = (connection: unknown, asked: string | { sql: string }) => {
      if (isDone || !statement.test(typeof asked === 'string' ? asked : asked.sql)) return query(connection, asked)
      isDone = true
      return answer()
    }
  }

  test("is one transaction to the host's listeners, from its BEGIN to its COMMIT, under a name of its own", async () => {
    const seen = watched()
    for (let round = 0; round < 2; round++) await store.transaction((inside) => inside.users.insert(newUser()))
    await store.users.findByEmail('nobody@example.test')
    const last = seen.pop()
    const names = seen.map(({ transaction }) => transaction)
    const half = seen.length / 2
    const words = seen.flatMap(({ sql }) => /^(begin|insert|commit)/.exec(sql.toLowerCase())?.[0] ?? [])
    expect(words).toEqual(['begin', 'insert', 'commit', 'begin', 'insert', 'commit'])
    expect(names.every((name, index) => typeof name === 'string' && name === names[index < half ? 0 : half])).toBe(true)
    expect(names[0]).not.toBe(names[half])
    expect(last?.transaction).toBeUndefined()
  })

  test('is over when it is over: what is asked of its store later is refused, and harms nobody', async () => {
    const kept: AuthStore[] = []
    await store.transaction(async (inside) => void kept.push(inside))
    const failed = store.transaction(async (inside) => {
      kept.push(inside)
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    const [email, seen] = [newUser().email, watched()]
    await store.transaction(async () => {
      for (const inside of kept) await expect(inside.users.insert(newUser({ email }))).rejects.toThrow(/users\.insert/)
    })
    expect(seen.filter(({ sql }) => /insert/i.test(sql))).toEqual([])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('a statement that nobody waited for is in it or nowhere', async () => {
    const [email, later] = [newUser().email, [] as Promise<unknown>[]]
    const seen = watched()
    await store.transaction(async (inside) => {
      later.push(inside.users.insert(newUser({ email })).catch(() => 'refused'))
    })
    const [outcome] = await Promise.all(later)
    const words = seen.map(({ sql }) => sql.slice(0, 6).toLowerCase().trim())
    expect(words.indexOf('insert')).toBeLessThan(words.indexOf('commit'))
    expect((await store.users.findByEmail(email)) === null).toBe(outcome === 'refused')
  })

  test('a BEGIN that fails gives its connection back', async () => {
    answersOnce(/^begin/i, () => Promise.reject(new Error('no')))
    await expect(store.transaction(async () => 1)).rejects.toThrow(/transaction/)
    expect(await store.transaction(async () => 2)).toBe(2) // on the one connection there is
  })

  test('a COMMIT that fails keeps nothing, and gives its connection back', async () => {
    const email = newUser().email
    answersOnce(/^commit/i, () => Promise.reject(new Error('no')))
    await expect(store.transaction((inside) => inside.users.insert(newUser({ email })))).rejects.toThrow(/transaction/)
    expect(await store.users.findByEmail(email)).toBeNull()
  })
})

describe.each((await databases()).filter(({ name }) => name !== 'sqlite'))('a ROLLBACK on $name', ({ open }) => {
  const no = new Error('the work failed')

  async function unitWhoseRollback(answer: () => Promise<unknown>) {
    const opened = await open({ pool: { min: 1, max: 1 } })
    const { knex } = opened
    await createAuthTables(knex)
    const warned = vi.spyOn(knex.client.logger, 'warn').mockImplementation(() => {})
    const query = knex.client.query.bind(knex.client)
    knex.client.query = (connection: unknown, asked: unknown) => (asked === 'ROLLBACK' ? answer() : query(connection, asked))
    const [store, email] = [createKnexStore({ knex }), newUser().email]
    const uids = new Set<string>()
    knex.on('query', ({ __knexUid }) => void uids.add(__knexUid))
    const unit = store.transaction(async (inside) => {
      await inside.users.insert(newUser({ email }))
      throw no
    })
    return { unit, warned, uids, left: () => store.users.findByEmail(email), close: opened.close }
  }

  test('that fails is not what the caller hears, and its connection is nobody else’s: the rows are gone with it', async () => {
    const { unit, warned, uids, left, close } = await unitWhoseRollback(() => Promise.reject(new Error('gone')))
    await expect(unit).rejects.toBe(no)
    expect(await left()).toBeNull()
    expect(uids.size).toBe(2)
    expect(warned.mock.calls.flat().join()).toContain('a ROLLBACK failed')
    await close()
  })

  test('that is never answered is given up after five seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      let isAsked = () => {}
      const asked = new Promise<void>((resolve) => {
        isAsked = resolve
      })
      const opened = unitWhoseRollback(() => {
        isAsked()
        return new Promise(() => {})
      })
      const { unit, left, close } = await opened
      const heard = expect(unit).rejects.toBe(no)
      await asked
      await vi.advanceTimersByTimeAsync(5_000)
      await heard
      vi.useRealTimers()
      expect(await left()).toBeNull()
      await close()
    } finally {
      vi.useRealTimers()
    }
  })
})
