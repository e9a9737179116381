import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ConfigurationError, createAuthTables, createKnexStore, type KnexStore, type SqlRunner } from '../../src'
import { newUser } from '../store/contract'
import { databases, type OpenDatabase } from '../support/databases'
import { type Library, librariesOf, openLibrary } from './libraries'

const reachable = await databases()
const kinds = reachable.flatMap((database) => librariesOf[database.name].map((library) => ({ database, library, title: database.name })))
const undone = new Error('the app changed its mind')
const moment = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

describe.each(kinds)('after the app has ended its transaction of $library on $title', ({ database, library }) => {
  let opened: OpenDatabase
  let app: Library
  let store: KnexStore

  beforeAll(async () => {
    opened = await database.open()
    if (!opened.config) throw new Error('the test shares a database')
    app = await openLibrary(library, database.name, opened.config)
    await createAuthTables(app.knex)
    store = createKnexStore({ knex: app.knex })
  })
  afterAll(async () => {
    await app?.close()
    await opened?.close()
  })

  test.each(['rolledBack', 'committed'] as const)('a method that is in progress at %s() sends nothing more', async (name) => {
    const sent: string[] = []
    const { email } = newUser()
    const inProgress = await app.transact(async ({ runner }) => {
      const joined = store.join(recording(runner, sent))
      let goOn = () => {}
      const gate = new Promise<void>((resolve) => (goOn = resolve))
      let hasRead = () => {}
      const read = new Promise<void>((resolve) => (hasRead = resolve))
      const late = joined.store.transaction(async ({ users }) => {
        await users.findByEmail(email)
        hasRead()
        await gate
        await users.insert(newUser({ email }))
      })
      const outcome = expect(late).rejects.toThrow(`store.join(): ${name}() was called, so the transaction has ended`)
      await read
      return { joined, goOn, outcome }
    })
    inProgress.joined[name]()
    sent.splice(0)
    inProgress.goOn()
    await inProgress.outcome
    expect(sent).toEqual([])
    expect(await store.users.findByEmail(email)).toBeNull()
  })

  test('a deadline is 503 only when the savepoint is rolled back, and nothing is sent afterwards', async () => {
    const sent: string[] = []
    const work = app.transact(async ({ runner }) => {
      const joined = store.join(recording(runner, sent))
      await joined.store.users.findByEmail('nobody@example.test')
      const late = joined.store.transaction(
        async ({ users }) => {
          await users.insert(newUser())
          await moment(1_000)
        },
        { deadlineMs: 100 },
      )
      await late.finally(() => sent.push('rejected'))
    })
    await expect(work).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
    await moment(100)
    expect(sent.at(-1)).toBe('rejected')
    expect(sent.at(-2)).toMatch(/^rollback to savepoint/i)
  })

  test('a statement that the database never answers is 503, and what waits behind it is never sent', async () => {
    const sent: string[] = []
    let answer = () => {}
    const work = app.transact(async ({ runner }) => {
      const hanging: SqlRunner = {
        dialect: runner.dialect,
        async run(sql, ...rest) {
          if (/^insert/.test(sql)) await new Promise<void>((resolve) => (answer = resolve))
          return runner.run(sql, ...rest)
        },
      }
      const joined = store.join(recording(hanging, sent))
      const late = joined.store.transaction(({ users }) => users.insert(newUser()), { deadlineMs: 100 })
      await expect(late).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      sent.splice(0)
      answer()
      await moment(50)
      await expect(joined.store.users.findByEmail('nobody@example.test')).rejects.toMatchObject({ code: 'SERVICE_UNAVAILABLE' })
      joined.rolledBack()
      throw undone
    })
    await expect(work).rejects.toThrow(undone)
    expect(sent).toEqual([])
  }, 20_000)

  test('two joins of one transaction take turns, so neither loses what the other writes', async () => {
    const [lost, kept] = [newUser(), newUser()]
    await app.transact(async ({ runner }) => {
      const [one, other] = [store.join(runner), store.join(runner)]
      const failing = one.store.transaction(async ({ users }) => {
        await users.insert(lost)
        await moment(50)
        throw undone
      })
      await moment(10)
      await Promise.all([expect(failing).rejects.toThrow(undone), other.store.users.insert(kept)])
    })
    expect(await store.users.findByEmail(lost.email)).toBeNull()
    expect(await store.users.findByEmail(kept.email)).not.toBeNull()
  })

  test('a runner that does not say how many rows an UPDATE changed is refused by name, not read as no change', async () => {
    const user = await store.users.insert(newUser())
    const work = app.transact(async ({ runner }) => {
      const silent: SqlRunner = {
        dialect: runner.dialect,
        run: async (...given) => ({ ...(await runner.run(...given)), affected: null }),
      }
      await store.join(silent).store.users.update(user.id, { name: 'Zoë' })
    })
    await expect(work).rejects.toThrow(ConfigurationError)
    await expect(work).rejects.toThrow(/the runner must answer `affected`, the number of changed rows/)
  })
})

function recording(runner: SqlRunner, sent: string[]): SqlRunner {
  return {
    dialect: runner.dialect,
    run(sql, ...rest) {
      sent.push(sql)
      return runner.run(sql, ...rest)
    },
  }
}
