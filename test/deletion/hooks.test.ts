import { describe, expect, test } from 'vitest'
import { type AuthRouterOptions, createKnexStore, errors, purgeExpired } from '../../src'
import { adminOn } from '../admin/people'
import { bearerOf, post, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { askDeletion, codeOf, immediate, isGone, leave, onDeletion, purge, restore } from './people'

type Hook = NonNullable<AuthRouterOptions['onDelete']>

describe.each(await databases())('the hook and the rows of the host on $name', (database) => {
  const { start, opened } = onDeletion(database)
  const startWith = (onDelete: Hook, settings: object = immediate) => start({ settings, options: { onDelete } })

  test('32.1.5 the hook runs in the transaction before the rows go; an AppError is the answer, any other error a 500, and nothing changes', async () => {
    await opened().knex.schema.createTable('notes', (table) => void table.string('owner', 64))
    const seen: unknown[] = []
    let refusal: Error | null = new errors.NotFoundError()
    const host = await startWith(async (user, store, { trx }) => {
      seen.push([user.email, (await store.users.find(user.id))?.id])
      await trx?.('notes').where({ owner: user.id }).delete()
      if (refusal) throw refusal
    })
    const person = await signedIn(host)
    const notes = () => host.knex('notes').where({ owner: person.userId })
    await host.knex('notes').insert({ owner: person.userId })
    expect(codeOf(await askDeletion(host, person))).toEqual([404, 'NOT_FOUND'])
    refusal = new Error('a bug of the host')
    expect(codeOf(await askDeletion(host, person))).toEqual([500, 'INTERNAL_ERROR'])
    expect([await isGone(host, person.userId), (await notes()).length]).toEqual([false, 1])
    refusal = null
    expect((await askDeletion(host, person)).status).toBe(204)
    expect([await isGone(host, person.userId), (await notes()).length]).toEqual([true, 0])
    expect(seen).toEqual(Array.from({ length: 3 }, () => [person.email, person.userId]))
  })

  test('32.1.5 a row of the host that refers to the account is 409, and the log names its table, also where its key is checked at the end', async () => {
    const host = await start({ settings: immediate })
    const { knex } = host
    const isSqlite = database.name === 'sqlite'
    const admin = await adminOn(host)
    for (const checked of ['', database.name === 'mariadb' ? '' : ' deferrable initially deferred']) {
      const key = `references auth_users (id)${checked}`
      if (isSqlite) await knex.raw(`create table orders (buyer varchar(36) ${key})`)
      else {
        await knex.raw('create table orders as select id as buyer from auth_users where 1 = 0')
        await knex.raw(`alter table orders add foreign key (buyer) ${key}`)
      }
      const buyer = await signedIn(host)
      await knex('orders').insert({ buyer: buyer.userId })
      expect(codeOf(await askDeletion(host, buyer))).toEqual([409, 'CONFLICT'])
      const byAdmin = await host.browser().delete(`/auth/admin/users/${buyer.userId}`).set(bearerOf(admin))
      expect(codeOf(byAdmin)).toEqual([409, 'CONFLICT'])
      const lines = host.logs.entries.filter(({ message }) => message.includes('a row of another table refers to it'))
      // SQLite names no table at the end of a transaction, and the row is not deleted by then.
      const table = isSqlite && checked !== '' ? null : 'orders'
      expect(lines.at(-1)).toMatchObject({ level: 'warn', fields: { userId: buyer.userId, table } })
      expect((await post(host, '/refresh', { refresh_token: buyer.refreshToken })).status).toBe(200)
      await knex('orders').delete()
      expect((await askDeletion(host, buyer)).status).toBe(204)
      await knex.schema.dropTable('orders')
    }
  })

  test('32.1.6 one due account that cannot be deleted holds up no other; two purges at once delete each once', async () => {
    const refused = new Set<string>()
    const ended: string[] = []
    const host = await startWith((user) => {
      if (refused.has(user.id)) throw new Error('not now')
    }, {})
    host.auth.events.on('account.deleted', ({ userId }) => void ended.push(userId))
    const people = []
    for (let count = 0; count < 25; count += 1) people.push(await signedIn(host))
    const [stuck, back] = [people[0], people[24]] as const
    let wayBack = ''
    for (const person of people) wayBack = await leave(host, person)
    await restore(host, wayBack).expect(200)
    refused.add(String(stuck?.userId))
    host.clock.advance(30 * 86_400)
    const both = await Promise.all([purge(host), purge(host)])
    expect(both.reduce((sum, { deletions = 0 }) => sum + deletions, 0)).toBe(23)
    for (const { userId } of people.slice(1, 24)) expect(await isGone(host, userId)).toBe(true)
    for (const person of [stuck, back]) expect(await isGone(host, String(person?.userId))).toBe(false)
    expect(host.logs.entries.filter(({ level, message }) => level === 'error' && message.includes('The next purge'))).not.toEqual([])
    refused.clear()
    expect((await purge(host))['deletions']).toBe(1)
    await host.auth.drain()
    expect(ended.length).toBe(24)
    expect(new Set(ended).size).toBe(24)
  })

  test('32.5 service.purge() counts due accounts as `deletions`, and purge.done those that failed', async () => {
    const refused = new Set<string>()
    const host = await startWith((user) => {
      if (refused.has(user.id)) throw new Error('not now')
    }, {})
    const done: unknown[] = []
    host.auth.events.on('purge.done', ({ accounts, failed }) => done.push([accounts, failed]))
    const people = [await signedIn(host), await signedIn(host), await signedIn(host)]
    for (const person of people) await leave(host, person)
    const [stuck] = people
    refused.add(String(stuck?.userId))
    host.clock.advance(30 * 86_400)
    const { deletions, sessions } = await host.auth.service.purge()
    expect([deletions, sessions]).toEqual([2, 3])
    const errors = host.logs.entries.filter(({ level }) => level === 'error')
    expect(errors.map(({ fields }) => (fields as { userId?: string }).userId)).toEqual([stuck?.userId])
    refused.clear()
    expect(await host.auth.service.purge()).toMatchObject({ deletions: 1 })
    expect(await host.auth.service.purge()).toMatchObject({ deletions: 0 })
    expect(done).toEqual([
      [2, 1],
      [1, 0],
      [0, 0],
    ])
  })

  test('32.5 purgeExpired leaves due deletions and warns once; before they are due it says nothing', async () => {
    const host = await start()
    const people = [await signedIn(host), await signedIn(host)]
    for (const person of people) await leave(host, person)
    const warnings = async (accountDeletionDays?: number) => {
      const said: string[] = []
      const logger = { warn: (_fields: object, message: string) => void said.push(message) }
      const days = accountDeletionDays === undefined ? {} : { accountDeletionDays }
      expect(await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now(), logger, ...days })).not.toHaveProperty(
        'deletions',
      )
      return said
    }
    host.clock.advance(30 * 86_400 - 1)
    expect(await warnings()).toEqual([])
    expect(await warnings(7)).toHaveLength(1)
    host.clock.advance(1)
    expect(await warnings()).toEqual([expect.stringContaining('purgeExpired leaves accounts whose deletion is due')])
    for (const { userId } of people) expect(await isGone(host, userId)).toBe(false)
    await host.auth.service.purge()
    expect(await warnings()).toEqual([])
  })

  test('32.5 purgeExpired deletes rows also beside a table of an earlier version, which has no column for it', async () => {
    const host = await start()
    const before = host.clock.now()
    const store = createKnexStore({ knex: host.knex, users: { columns: { deletionRequestedAt: 'added_later' } } })
    expect(await purgeExpired(store, { before })).toMatchObject({ sessions: 0 })
  })

  test('events of the deletion are rows of the outbox, written with the change, and keep the id alone', async () => {
    const host = await start({ options: { outbox: true } })
    const person = await signedIn(host)
    await restore(host, await leave(host, person)).expect(200)
    await host.auth.service.deleteUser(person.userId)
    const rows = await host.knex('auth_outbox').where({ user_id: person.userId }).orderBy('seq').select('name', 'payload')
    const payload = JSON.stringify({ userId: person.userId })
    expect(rows).toEqual(['account.deletion_requested', 'account.deletion_cancelled', 'account.deleted'].map((name) => ({ name, payload })))
  })

  test('service.using deletes in a transaction of the host, or not at all', async () => {
    const host = await start({ settings: immediate })
    const person = await signedIn(host)
    const store = createKnexStore({ knex: host.knex })
    const deleted: unknown[] = []
    host.auth.events.on('account.deleted', (payload) => deleted.push(payload))
    const trx = await host.knex.transaction()
    await host.auth.service.using(store.using(trx)).deleteUser(person.userId)
    await trx.rollback()
    expect([await isGone(host, person.userId), deleted]).toEqual([false, []])
    await host.knex.transaction((trx) => host.auth.service.using(store.using(trx)).deleteUser(person.userId))
    expect([await isGone(host, person.userId), deleted]).toEqual([true, [{ userId: person.userId }]])
  })
})
