import { randomBytes, randomUUID } from 'node:crypto'
import knexOf, { type Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { createAuthTables, createKnexStore, migrationSource } from '../../src'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { moveSessions } from '../../src/store/knex/move-sessions'
import { sha256 } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'

const tableName = 'auth_migrations'
const newToken = () => randomBytes(32).toString('base64url')
const day = 86_400_000

/** How a host brings its tables up to date. */
const ways: Readonly<Record<string, (opened: OpenDatabase) => Promise<unknown>>> = {
  createAuthTables: ({ knex }) => createAuthTables(knex),
  'createAuthTables after an upgrade that was interrupted': async ({ knex }) => {
    await moveSessions.begin(knex, dialectOf(knex))
    await createAuthTables(knex)
  },
  'migrations from the first one on, after createAuthTables was interrupted': async ({ knex }) => {
    await moveSessions.begin(knex, dialectOf(knex))
    await knex.migrate.latest({ migrationSource, tableName: 'other_migrations' })
  },
  migrations: ({ knex }) => knex.migrate.latest({ migrationSource, tableName }),
}

describe.each(await databases())('a database of release 0.1.0 with living sessions on $name', (database) => {
  let opened: OpenDatabase
  let host: Mounted | undefined
  afterEach(async () => {
    await host?.close()
    await opened.close()
  })

  describe.each(Object.entries(ways))('brought up to date by %s', (_name, upgrade) => {
    async function upgraded() {
      opened = await database.open()
      const old = await filled(opened.knex)
      await upgrade(opened)
      host = await mount({ knex: opened.knex, options: { now: () => new Date() } })
      return { ...old, host }
    }

    test('a client goes on with its next refresh, and gets a token of the new form', async () => {
      const { host, living, userId } = await upgraded()
      const [refresh, codeOf] = refreshing(host)

      const second = await refresh(living.token)
      expect(second.status, second.text).toBe(200)
      expect(second.body.user_id).toBe(userId)
      expect(second.body.refresh_token).toMatch(/^[\w-]{112}$/)
      const third = await refresh(second.body.refresh_token)
      expect(third.status).toBe(200)

      // What was used, before the upgrade or after it, is refused and ends nothing.
      for (const used of [...living.used, living.token]) expect(await codeOf(used)).toEqual([401, 'INVALID_TOKEN'])
      expect((await refresh(third.body.refresh_token)).status).toBe(200)
    })

    test('a browser goes on with its next request, by the same cookie', async () => {
      const { host, cookie, expiredCookie } = await upgraded()
      const me = (value: string) => host.browser().get('/auth/session/me').set('Cookie', `auth_session=${value}`)
      const answer = await me(cookie.value)
      expect(answer.status, answer.text).toBe(200)
      expect(answer.body).toMatchObject({
        amr: ['pwd'],
        ip: '2001:db8::1',
        user_agent: 'Agent/1.0',
        created_at: cookie.createdAt.toISOString(),
      })
      expect((await me(cookie.value)).status).toBe(200)
      expect((await me(expiredCookie)).status).toBe(401)
      const logout = await host.browser().post('/auth/session/logout').set('Cookie', `auth_session=${cookie.value}`).send({})
      expect([logout.status, (await me(cookie.value)).status]).toEqual([204, 401])
    })

    test('a token of one kind does not pass as the other, and nothing that had ended comes back', async () => {
      const { host, living, cookie, ended } = await upgraded()
      const [, codeOf] = refreshing(host)
      for (const token of [...ended, cookie.value]) expect(await codeOf(token)).toEqual([401, 'INVALID_TOKEN'])
      const me = await host.browser().get('/auth/session/me').set('Cookie', `auth_session=${living.token}`)
      expect(me.status).toBe(401)
      expect((await refreshing(host)[0](living.token)).status).toBe(200)
    })

    test('each living session is one row, which begins and ends as before; the old tables are gone', async () => {
      const { living, cookie } = await upgraded()
      const rows = await opened.knex('auth_sessions').orderBy('kind')
      const { sessions } = createKnexStore({ knex: opened.knex })
      const recordOf = async (id: string) => (await sessions.find({ id }))?.session

      expect(rows.map(({ kind, token_hash }) => [kind, token_hash])).toEqual([
        ['session', sha256(cookie.value)],
        ['tokens', sha256(living.token)],
      ])
      const [session, tokens] = [await recordOf(cookie.id), await recordOf(living.familyId)]
      const begun = { generation: 0, revokedAt: null, isPersistent: true, amr: 'pwd' }
      expect(session).toMatchObject({ ...begun, createdAt: cookie.createdAt, authenticatedAt: cookie.createdAt })
      expect(tokens).toMatchObject({ ...begun, createdAt: living.createdAt, authenticatedAt: living.createdAt, endsAt: living.endsAt })
      expect(Math.abs(Number(session?.endsAt) - Date.now() - 30 * day)).toBeLessThan(60_000)
      for (const table of ['auth_refresh_tokens', 'auth_sessions_moving']) expect(await opened.knex.schema.hasTable(table)).toBe(false)

      await createAuthTables(opened.knex)
      expect(await opened.knex('auth_sessions').orderBy('kind')).toEqual(rows)
    })
  })

  test('of a family with two living tokens one goes on, and rows without an account or a session are left behind', async () => {
    opened = await database.open()
    const { living, userId } = await filled(opened.knex)
    const [row] = await opened.knex('auth_refresh_tokens').where({ token_hash: sha256(living.token) })
    const twin = { ...row, id: randomUUID(), token_hash: sha256(newToken()), parent_id: null }
    const strange = { ...row, id: randomUUID(), token_hash: sha256(newToken()), family_id: 'no session of ours' }
    await opened.knex('auth_refresh_tokens').insert([twin, strange])
    if (database.name === 'sqlite') {
      await opened.knex.raw('pragma foreign_keys = off')
      const orphan = { ...row, id: randomUUID(), token_hash: sha256(newToken()), family_id: randomUUID(), user_id: randomUUID() }
      await opened.knex('auth_refresh_tokens').insert(orphan)
    }

    await createAuthTables(opened.knex)

    const sessions = await opened.knex('auth_sessions').where({ kind: 'tokens' })
    expect(sessions.map(({ id, user_id }) => [id, user_id])).toEqual([[living.familyId, userId]])
  })

  test.each(['auth_refresh_tokens', 'auth_sessions'])(
    'a table %s with a column of the host’s is refused by its name, and keeps every row',
    async (table) => {
      opened = await database.open()
      await filled(opened.knex)
      await opened.knex.schema.alterTable(table, (altered) => void altered.string('device_name', 50))
      const before = [await opened.knex('auth_refresh_tokens').orderBy('id'), await opened.knex('auth_sessions').orderBy('id')]

      await expect(createAuthTables(opened.knex)).rejects.toThrow(
        new RegExp(`the table ${table} has columns that release 0.1.0 did not make`),
      )

      expect([await opened.knex('auth_refresh_tokens').orderBy('id'), await opened.knex('auth_sessions').orderBy('id')]).toEqual(before)
    },
  )

  test('a table auth_refresh_tokens of another shape is the host’s, and stays', async () => {
    opened = await database.open()
    await opened.knex.schema.createTable('auth_refresh_tokens', (table) => void table.string('token_hash'))
    await opened.knex('auth_refresh_tokens').insert({ token_hash: 'the host’s' })
    await createAuthTables(opened.knex)
    expect(await opened.knex('auth_refresh_tokens')).toHaveLength(1)
  })

  if (database.name === 'postgres')
    test('tables of another schema in the search path are not touched', async () => {
      opened = await database.open()
      const shared = opened.knex
      await filled(shared)
      const before = await shared('auth_refresh_tokens').orderBy('id')
      const { rows } = await shared.raw('select current_schema() as name')
      await shared.raw('create schema ??', [`${rows[0].name}_tenant`])
      const tenant = knexOf({
        client: 'pg',
        connection: shared.client.config.connection,
        searchPath: [`${rows[0].name}_tenant`, rows[0].name],
      })
      try {
        await createAuthTables(tenant)
        expect(await shared('auth_refresh_tokens').orderBy('id')).toEqual(before)
        expect(await tenant('auth_sessions')).toEqual([])
        expect(Object.keys(await shared('auth_sessions').columnInfo())).toContain('session_hash')
      } finally {
        await tenant.raw('drop schema ?? cascade', [`${rows[0].name}_tenant`])
        await tenant.destroy()
      }
    })

  test('the migrations can be taken back: the tables are there again, and sessions have ended', async () => {
    opened = await database.open()
    await filled(opened.knex)
    await opened.knex.migrate.latest({ migrationSource, tableName })
    await opened.knex.migrate.down({ migrationSource, tableName, name: 'doorward_0006_user_filters' })
    await opened.knex.migrate.down({ migrationSource, tableName, name: 'doorward_0005_sessions' })
    expect(await opened.knex('auth_refresh_tokens')).toEqual([])
    expect(Object.keys(await opened.knex('auth_sessions').columnInfo())).toContain('session_hash')
    await opened.knex.migrate.latest({ migrationSource, tableName })
    expect(Object.keys(await opened.knex('auth_sessions').columnInfo())).toContain('token_hash')
  })
})

function refreshing(host: Mounted) {
  const refresh = (refresh_token: string) => host.browser().post('/auth/refresh').send({ refresh_token })
  const codeOf = async (token: string) => {
    const { status, body } = await refresh(token)
    return [status, body.code]
  }
  return [refresh, codeOf] as const
}

/** The tables of release 0.1.0, with sessions as that release wrote them: begun, rotated, revoked and expired. */
async function filled(knex: Knex) {
  const versions = await migrationSource.getMigrations([])
  await knex.migrate.latest({ migrationSource: { ...migrationSource, getMigrations: async () => versions.slice(0, 4) }, tableName })
  const { id: userId } = await addUser(knex)
  const at = (milliseconds: number) => new Date(Date.now() + milliseconds)
  const column = dialectOf(knex).instantToColumn
  const familyId = randomUUID()
  const [first, second, living, revoked, idle, over] = Array.from({ length: 6 }, newToken) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const [createdAt, endsAt] = [at(-3 * day), at(27 * day)]

  let parent: string | null = null
  const addToken = async (
    token: string,
    given: { family?: string; created?: Date; expires?: Date; ends?: Date; used?: boolean; revoked?: boolean },
  ) => {
    const id = randomUUID()
    await knex('auth_refresh_tokens').insert({
      id,
      user_id: userId,
      token_hash: sha256(token),
      family_id: given.family ?? randomUUID(),
      parent_id: given.family ? parent : null,
      amr: 'pwd',
      created_at: column(given.created ?? at(-day)),
      expires_at: column(given.expires ?? at(6 * day)),
      family_expires_at: column(given.ends ?? endsAt),
      used_at: given.used ? column(at(-day)) : null,
      revoked_at: given.revoked ? column(at(-1000)) : null,
    })
    if (given.family) parent = id
  }
  await addToken(first, { family: familyId, created: createdAt, used: true })
  await addToken(second, { family: familyId, created: at(-2 * day), used: true })
  await addToken(living, { family: familyId })
  await addToken(revoked, { revoked: true })
  await addToken(idle, { expires: at(-1000) })
  await addToken(over, { ends: at(-1000), expires: at(-1000) })

  const cookie = { id: randomUUID(), value: newToken(), createdAt: at(-2 * day) }
  const expiredCookie = newToken()
  for (const [id, value, end] of [
    [cookie.id, cookie.value, at(day / 2)],
    [randomUUID(), expiredCookie, at(-1000)],
  ] as const)
    await knex('auth_sessions').insert({
      id,
      user_id: userId,
      session_hash: sha256(value),
      amr: 'pwd',
      ip: '2001:db8::1',
      user_agent: 'Agent/1.0',
      created_at: column(cookie.createdAt),
      last_seen_at: column(at(-day / 2)),
      expires_at: column(end),
    })
  const session = { token: living, used: [first, second], familyId, createdAt, endsAt }
  return { userId, living: session, cookie, expiredCookie, ended: [revoked, idle, over] }
}
