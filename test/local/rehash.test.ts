import { afterEach, describe, expect, test } from 'vitest'
import { createKnexStore, type PasswordHasher } from '../../src'
import { createPeople } from '../readiness/wrong-tables'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { password, post } from './people'

const email = 'ana@example.test'
const old = '$old$of an imported table'

/** Knows one hash of an imported table, and makes longer ones. */
const hasher: PasswordHasher = {
  hash: async () => `$new$${'x'.repeat(92)}`,
  verify: async (hash, given) => hash === old && given === password,
  needsRehash: (hash) => hash === old,
}

describe.each(await databases())('a hash column of $name that takes no new hash', (database) => {
  let opened: OpenDatabase
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  test('fails no login: the old hash stays, and the log says once which column it is', async () => {
    const narrow = database.name === 'sqlite' ? 'text not null check (length(pw_digest) <= 60)' : 'varchar(60) not null'
    opened = await database.open()
    const { knex } = opened
    const tables = await createPeople(knex, database.name, { pw_digest: narrow })
    const at = database.name === 'sqlite' ? 1_700_000_000_000 : '2023-11-14 22:13:20'
    await knex('people').insert({ mail: email, pw_digest: old, enabled: true, registered_on: at, changed_on: at })
    mounted = await mount({
      knex,
      settings: { oauthEnabled: false },
      providers: {},
      // Without the check, which would refuse the table of the two servers.
      options: { store: createKnexStore({ knex, ...tables }), passwordHasher: hasher, checkTables: false },
    })

    for (let login = 0; login < 2; login++) expect((await post(mounted, '/login', { email, password })).status).toBe(200)

    expect((await knex('people').first()).pw_digest).toBe(old)
    const said = mounted.logs.entries.filter(({ message }) => message.includes('a new password hash could not be stored'))
    expect(said).toHaveLength(1)
    if (database.name !== 'sqlite') expect(said[0]?.message).toContain('people.pw_digest')
    expect(mounted.logs.text()).not.toContain('xxxx')
  })
})
