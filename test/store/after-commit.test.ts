import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuthStore, UserRecord } from '../../src/store/auth-store'
import { createKnexStore, type KnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables } from '../../src/store/knex/schema'
import { recheckedStore } from '../../src/store/rechecked-store'
import { databases, type OpenDatabase } from '../support/databases'
import { newUser } from './contract'

describe.each(await databases())('effects after the commit of the host on $name', (database) => {
  let opened: OpenDatabase
  let knex: Knex
  let store: KnexStore
  let seen: string[]

  beforeAll(async () => {
    opened = await database.open()
    knex = opened.knex
    await createAuthTables(knex)
    store = createKnexStore({ knex })
  })
  afterAll(() => opened?.close())
  beforeEach(() => {
    seen = []
  })

  /** An operation of ours: it writes, and something is to be told once that is committed. */
  async function operate(trx: Knex.Transaction, name = 'effect'): Promise<UserRecord> {
    const inside = store.using(trx)
    const user = await inside.users.insert(newUser())
    inside.afterCommit(() => seen.push(name))
    return user
  }

  test('run once the callback’s transaction is committed, and before the host goes on', async () => {
    await knex.transaction(async (trx) => {
      await operate(trx, 'one')
      await operate(trx, 'two')
      await trx.raw('select 1')
      await nextTurn()
      seen.push('end of the callback')
    })
    seen.push('host')
    expect(seen).toEqual(['end of the callback', 'one', 'two', 'host'])
  })

  test('run after commit() of a transaction that was handed out, never after its rollback(), which knex resolves too', async () => {
    const committed = await knex.transaction()
    await operate(committed)
    expect(seen).toEqual([])
    await committed.commit()
    seen.push('host')
    expect(seen).toEqual(['effect', 'host'])

    for (const reason of [undefined, new Error('no')]) {
      const undone = await knex.transaction()
      await operate(undone, 'undone')
      await undone.rollback(reason)
      await nextTurn()
    }
    expect(seen).toEqual(['effect', 'host'])
  })

  test('never run when the callback throws, rolls back itself or sends ROLLBACK', async () => {
    const no = new Error('no')
    const thrown = knex.transaction(async (trx) => {
      await operate(trx)
      throw no
    })
    await expect(thrown).rejects.toBe(no)
    await knex.transaction((trx) => void operate(trx).then(() => trx.rollback()))
    const raw = knex.transaction(async (trx) => {
      const user = await operate(trx)
      await trx.raw('ROLLBACK')
      expect(await trx('auth_users').where({ id: user.id })).toEqual([])
    })
    await raw.catch(() => null) // SQLite refuses the COMMIT that follows
    await nextTurn()
    expect(seen).toEqual([])
  })

  test('of a nested transaction run after the outermost commit, not at its RELEASE', async () => {
    await knex.transaction(async (outer) => {
      await outer.transaction(async (nested) => {
        await nested.transaction((innermost) => operate(innermost, 'innermost'))
        await operate(nested, 'nested')
      })
      await nextTurn()
      expect(seen).toEqual([])
    })
    expect(seen).toEqual(['innermost', 'nested'])
  })

  test('of a nested transaction never run when it, or what is around it, was rolled back; those before it do', async () => {
    await knex.transaction(async (outer) => {
      await operate(outer, 'before')
      const nested = await outer.transaction()
      await operate(nested, 'nested')
      await nested.transaction((innermost) => operate(innermost, 'innermost'))
      await nested.rollback()
      await operate(outer, 'afterwards')
    })
    expect(seen).toEqual(['before', 'afterwards'])
    const undone = knex.transaction(async (outer) => {
      await outer.transaction((nested) => operate(nested, 'nested'))
      throw new Error('no')
    })
    await expect(undone).rejects.toThrow('no')
    expect(seen).toEqual(['before', 'afterwards'])
  })

  test('follow savepoints of the host’s own', async () => {
    await knex.transaction(async (trx) => {
      await trx.raw('savepoint early')
      await operate(trx, 'before')
      await trx.raw('SAVEPOINT a')
      await operate(trx, 'undone')
      await trx.raw('savepoint b')
      await trx.raw('release savepoint b')
      await trx.raw('rollback to A')
      await operate(trx, 'after')
      await trx.raw('release savepoint a')
    })
    expect(seen).toEqual(['before', 'after'])

    await knex.transaction(async (trx) => {
      await trx.raw('savepoint early') // the store joins later
      await operate(trx, 'undone')
      await trx.raw('rollback to savepoint early')
    })
    await knex.transaction(async (trx) => {
      await trx.raw('savepoint early')
      await operate(trx, 'kept')
      await trx.raw('release savepoint early')
    })
    expect(seen).toEqual(['before', 'after', 'kept'])
  })

  test('that throw end neither the others nor the process', async () => {
    const error = vi.spyOn(knex.client.logger, 'error').mockImplementation(() => {})
    await knex.transaction(async (trx) => {
      store.using(trx).afterCommit(() => {
        throw new TypeError('ana@example.test')
      })
      await operate(trx)
    })
    expect(seen).toEqual(['effect'])
    expect(error.mock.calls).toEqual([[expect.stringMatching(/after the commit failed \(TypeError\)$/)]])
    error.mockRestore()
  })

  test('are asked for on the host’s transaction and the units that join it, and nowhere else', async () => {
    const isThere = (some: AuthStore) => 'afterCommit' in some && 'afterCommit' in recheckedStore(some, () => {})
    expect(['afterCommit' in store, 'afterCommit' in recheckedStore(store, () => {})]).toEqual([false, false])
    await store.transaction(async (inside) => expect('afterCommit' in inside).toBe(false))
    await knex.transaction(async (trx) => {
      const joined = recheckedStore(store.using(trx), () => {})
      expect(isThere(store.using(trx))).toBe(true)
      await joined.transaction(async (inside) => {
        expect(isThere(inside)).toBe(true)
        await inside.transaction(async (deeper) => deeper.afterCommit?.(() => seen.push('deeper')))
      })
      expect(seen).toEqual([])
    })
    expect(seen).toEqual(['deeper'])
  })

  test('cost the host one listener, however often the store joins', async () => {
    await knex.transaction(async (trx) => {
      const before = trx.listenerCount('query')
      for (let time = 0; time < 20; time += 1) store.using(trx)
      await trx.transaction(async (nested) => void store.using(nested))
      expect(trx.listenerCount('query')).toBe(before + 1)
    })
  })

  if (database.name === 'postgres')
    test('never run after a COMMIT that was a silent ROLLBACK, unless a savepoint saved it', async () => {
      const fail = (trx: Knex.Transaction) => trx.raw('select nothing from nowhere').catch(() => null)
      const user = await knex.transaction(async (trx) => {
        const created = await operate(trx, 'undone')
        await fail(trx)
        return created
      })
      expect(await store.users.find(user.id)).toBeNull()
      expect(seen).toEqual([])
      await knex.transaction(async (trx) => {
        await operate(trx, 'before')
        const nested = await trx.transaction()
        await operate(nested, 'nested')
        await fail(nested)
        await nested.rollback()
      })
      expect(seen).toEqual(['before'])

      const refused = knex.transaction(async (trx) => {
        await operate(trx, 'undone')
        await trx.transaction(fail) // whose RELEASE fails, so that nothing is rolled back to the savepoint
      })
      await expect(refused).rejects.toThrow(/current transaction is aborted/)
      expect(seen).toEqual(['before'])
    })

  if (database.name === 'mariadb')
    test('never run after a deadlock that the host swallowed: the server rolled everything back', async () => {
      const [one, other] = await Promise.all([store.users.insert(newUser()), store.users.insert(newUser())])
      const survived: string[] = []
      const cross = async (db: Knex, name: string, [first, second]: readonly [UserRecord, UserRecord], met: () => Promise<void>) => {
        await db.transaction(async (trx) => {
          await operate(trx, name)
          await store.using(trx).users.lock(first.id)
          await met()
          const got = await store
            .using(trx)
            .users.lock(second.id)
            .catch(() => null)
          if (got) survived.push(name)
        })
      }
      let waiting = 2
      const met = () => vi.waitFor(() => expect(waiting).toBe(0), { timeout: 10_000 })
      const arrive = async () => {
        waiting -= 1
        await met()
      }
      // Each from a pool of its own: there may be no more than one connection in one.
      await Promise.all([cross(knex, 'one', [one, other], arrive), cross(opened.connect(), 'other', [other, one], arrive)])
      expect(survived).toHaveLength(1)
      expect(seen).toEqual(survived)
    })
})
