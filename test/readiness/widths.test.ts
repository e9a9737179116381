import { afterEach, describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { post } from '../local/people'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { createPeople } from './wrong-tables'

// SQLite keeps texts of any length.
const servers = (await databases()).filter(({ name }) => name !== 'sqlite')

if (servers.length === 0) test.skip('PostgreSQL and MariaDB are not reachable, or left out of this suite')

describe.each(servers)('columns that are narrower than our own on $name', (database) => {
  let opened: OpenDatabase
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  test('a longer address is 422, and a longer name is cut', async () => {
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, { mail: 'varchar(40) not null unique', full_name: 'varchar(5)' })
    mounted = await mount({
      knex,
      settings: { oauthEnabled: false, autoActivate: true },
      providers: {},
      options: { store: createKnexStore({ knex, ...tables }) },
    })
    await mounted.auth.ready()
    const password = 'three quiet green rivers'

    const long = await post(mounted, '/signup', { email: `${'a'.repeat(40)}@example.test`, password })
    expect([long.status, long.body.code]).toEqual([422, 'VALIDATION_ERROR'])
    const fits = await post(mounted, '/signup', { email: 'ana@example.test', password, name: 'Ana 😀 Silva' })
    expect(fits.status, fits.text).toBe(201)
    expect((await knex('people').first()).full_name).toBe('Ana 😀')
  })
})
