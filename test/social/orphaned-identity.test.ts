import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore } from '../../src'
import { type Mounted, mount, signIn } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { beginLink, finishLink, member } from './link-steps'
import { newPerson } from './redirect-steps'

// A table of the host's without a foreign key: its own code deletes an account and leaves the identity behind.
describe.each(await databases())('an identity whose account is gone, on $name', (database) => {
  let opened: OpenDatabase
  let host: Mounted | undefined
  afterEach(async () => {
    await host?.close()
    await opened.close()
  })

  async function start(): Promise<Mounted> {
    opened = await database.open()
    await createAuthTables(opened.knex)
    await opened.knex.raw('create table links as select * from auth_identities')
    await opened.knex.schema.alterTable('links', (table) => {
      table.unique(['provider', 'subject'])
      table.unique(['user_id', 'provider'])
    })
    const store = createKnexStore({ knex: opened.knex, identities: { table: 'links' } })
    host = await mount({ knex: opened.knex, providers: { corp: {}, acme: {} }, options: { store } })
    return host
  }

  async function orphaned(host: Mounted, key: string) {
    const profile = newPerson()
    const { status, body } = await signIn(host, host.browser(), { key, profile })
    expect(status).toBe(200)
    await host.knex('auth_users').where({ id: body.user_id }).delete()
    return profile
  }

  test('signs nobody in: 401 UNAUTHORIZED, and no account is made', async () => {
    const host = await start()
    const profile = await orphaned(host, 'corp')

    const response = await signIn(host, host.browser(), { profile })

    expect([response.status, response.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect(await host.knex('auth_users')).toEqual([])
  })

  test('is linked to no other account: 401 UNAUTHORIZED', async () => {
    const host = await start()
    const profile = await orphaned(host, 'acme')
    const who = await member(host)

    const { query } = await beginLink(host, who, { profile })
    const response = await finishLink(host, who.browser, query)

    expect([response.status, response.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect(await host.knex('links').where({ user_id: who.userId })).toHaveLength(1)
  })
})
