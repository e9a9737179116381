import { describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, errors } from '../../src'
import { newUser } from '../../src/store/user-records'
import { databases } from '../support/databases'

const postgres = (await databases()).filter(({ name }) => name === 'postgres')
const instant = new Date('2026-03-04T05:06:07.089Z')

describe.each(postgres)('an instant is never "no value" (25.7.2), on $name', (database) => {
  const styles = ['ISO, DMY', 'ISO, MDY', 'German, DMY', 'SQL, DMY', 'SQL, MDY', 'Postgres, DMY', 'Postgres, YMD']
  const zones = ['UTC', 'Asia/Kathmandu', 'America/Sao_Paulo']

  test.each(styles.flatMap((style) => zones.map((zone) => [style, zone] as const)))(
    'with DateStyle %s and the zone %s of the connection, each instant comes back as it was written',
    async (style, zone) => {
      const { knex, close } = await database.open()
      await createAuthTables(knex)
      const store = createKnexStore({ knex })
      await knex.raw(`set datestyle to ${style}`)
      await knex.raw(`set time zone '${zone}'`)
      const made = newUser(instant, { email: 'ada@example.test', hashedPassword: 'x', name: null })
      const times = { totpEnabledAt: instant, emailVerifiedAt: instant, passwordSetAt: instant, activatedAt: instant }
      const { id } = await store.users.insert({ ...made, ...times, totpSecret: 'secret' })
      const found = [await store.users.find(id), await store.users.findByEmail('ada@example.test'), await store.users.lock(id)]
      for (const user of found) expect(user).toMatchObject({ ...times, createdAt: instant, lastLoginAt: null })
      await close()
    },
  )
})

// The columns of MariaDB hold nothing else.
describe.each((await databases()).filter(({ name }) => name !== 'mariadb'))('a value that is no instant, on $name', (database) => {
  test('is 503 with the column in the log’s cause, and never "no value" (25.7.2)', async () => {
    const { knex, close } = await database.open()
    await createAuthTables(knex)
    const { id } = await createKnexStore({ knex }).users.insert(
      newUser(instant, { email: 'ada@example.test', hashedPassword: 'x', name: null }),
    )
    const store = createKnexStore({ knex, users: { columns: { name: false, totpEnabledAt: 'name' } } })
    await knex('auth_users').where({ id }).update({ name: 'soon' })
    const refused = await store.users.find(id).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(errors.ServiceUnavailableError)
    expect(String((refused as Error).cause)).toContain('auth_users.name: A date in the database cannot be read.')
    await close()
  })
})
