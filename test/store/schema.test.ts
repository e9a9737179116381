import type { Knex } from 'knex'
import { afterEach, describe, expect, test } from 'vitest'
import { checkTables } from '../../src/router/findings/readiness/check-tables'
import { createKnexStore } from '../../src/store/knex/knex-store'
import { createAuthTables, migrationSource, migrationSourceFor } from '../../src/store/knex/schema'
import { databases, type OpenDatabase } from '../support/databases'
import { freshHash, later, newIdentity, newSession, newUser, newUserToken, rotationOf } from './contract'

const COLUMNS: Readonly<Record<string, string>> = {
  auth_users:
    'activated_at approval_requested_at created_at deletion_requested_at email email_verified_at hashed_password id is_active is_admin last_login_at name password_expired_at password_set_at totp_enabled_at totp_last_step totp_secret updated_at',
  auth_identities: 'created_at email email_verified id last_login_at name picture provider subject user_id',
  auth_user_tokens: 'created_at expires_at id payload purpose token_hash used_at user_id',
  auth_recovery_codes: 'code_hash id used_at user_id',
  auth_passkeys:
    'aaguid created_at credential_id id is_backed_up is_backup_eligible last_used_at name public_key sign_count transports user_handle user_id',
  auth_sessions:
    'amr authenticated_at created_at ends_at expires_at generation id ip is_persistent kind last_seen_at provider provider_sid revoked_at rotated_at token_hash user_agent user_id',
  auth_counters: 'count counter_key ends_at',
  auth_invitations: 'created_at created_by data email expires_at id is_mailed revoked_at token_hash uses_left',
  auth_invitation_uses: 'created_at id invitation_id user_id',
  auth_audit_log: 'created_at id name payload request_id user_id',
  auth_email_logins:
    'code_hash created_at email expires_at id invitation_id ip is_known_device purpose return_to session_id token_hash tries used_at user_agent',
}

for (const database of await databases()) {
  describe(`the default tables on ${database.name}`, () => {
    let opened: OpenDatabase | undefined
    afterEach(() => opened?.close())

    const columns = async ({ knex }: OpenDatabase) => {
      const found: Record<string, string> = {}
      for (const table of Object.keys(COLUMNS))
        found[table] = Object.keys(await knex(table).columnInfo())
          .sort()
          .join(' ')
      return found
    }

    test('the way back drops no column of a table of the app', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex) // here the table of the app has the same name and columns as ours
      const config = { migrationSource: migrationSourceFor({ users: { table: 'auth_users' } }), tableName: 'auth_migrations' }
      await knex.migrate.latest(config)
      await knex.migrate.rollback(config)
      expect(Object.keys(await knex('auth_users').columnInfo())).toContain('password_expired_at')
    })

    test('createAuthTables makes them, and a second call changes nothing', async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      const user = await createKnexStore({ knex: opened.knex }).users.insert(newUser())
      await createAuthTables(opened.knex)
      expect(await columns(opened)).toEqual(COLUMNS)
      expect(await createKnexStore({ knex: opened.knex }).users.find(user.id)).toEqual(user)
    })

    test('the migration makes the same tables, may follow createAuthTables, and can be taken back', async () => {
      opened = await database.open()
      const config = { migrationSource, tableName: 'auth_migrations' }
      await opened.knex.migrate.latest(config)
      expect(await columns(opened)).toEqual(COLUMNS)
      expect(await opened.knex.migrate.latest(config)).toEqual([expect.anything(), []])
      await opened.knex.migrate.rollback(config)
      expect(await opened.knex.schema.hasTable('auth_users')).toBe(false)
      await createAuthTables(opened.knex)
      await opened.knex.migrate.latest(config)
      expect(await columns(opened)).toEqual(COLUMNS)
    })

    test('a table that is missing is made again, and tables of the host leave the counters ours', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex)
      await knex.schema.dropTable('auth_counters')
      await createAuthTables(knex)
      expect(await columns(opened)).toEqual(COLUMNS)
      await knex.schema.dropTable('auth_counters')
      await createAuthTables(knex, { users: { table: 'auth_users' }, sessions: false, identities: { table: 'auth_identities' } })
      expect(await columns(opened)).toEqual(COLUMNS)
    })

    test('a column of a later version is added to a table with rows, and a table of the host has it only if the host names it', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex)
      await knex.schema.alterTable('auth_users', (table) => table.dropColumn('password_expired_at'))
      const isThere = () => knex.schema.hasColumn('auth_users', 'password_expired_at')
      const ofHost = createKnexStore({ knex, users: { table: 'auth_users' } })
      const user = await ofHost.users.insert(newUser())
      expect(ofHost.users.fields.has('passwordExpiredAt')).toBe(false)
      expect(await checkTables(knex, { users: { table: 'auth_users' } })).toEqual([])
      await createAuthTables(knex, { users: { table: 'auth_users' } })
      expect(await isThere()).toBe(false)
      expect(await checkTables(knex)).toEqual([expect.objectContaining({ key: 'migrations', level: 'error' })])

      await createAuthTables(knex)
      expect(await isThere()).toBe(true)
      for (const store of [
        createKnexStore({ knex }),
        createKnexStore({ knex, users: { columns: { passwordExpiredAt: 'password_expired_at' } } }),
      ]) {
        expect(await store.users.find(user.id)).toEqual(user)
        await store.users.update(user.id, { passwordExpiredAt: later(5) })
        expect(await store.users.find(user.id)).toEqual({ ...user, passwordExpiredAt: later(5) })
        await store.users.update(user.id, { passwordExpiredAt: null })
        expect(await store.users.find(user.id)).toEqual(user)
      }
    })

    test('lists and filters of users go along indexes, which createAuthTables makes again on a table with rows (24.7)', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex)
      await createKnexStore({ knex }).users.insert(newUser())
      const lists = {
        sqlite: ['auth_users_list'],
        postgres: ['auth_users_email_bytes'],
        mariadb: ['', '_email', '_name'].map((text) => `auth_users_list${text}`),
      }
      const indexes = ['auth_users_created', 'auth_users_admins', ...lists[database.name]]
      const drop = (index: string) => knex.schema.alterTable('auth_users', (table) => table.dropIndex([], index))
      for (const index of indexes) await drop(index) // it was there
      await createAuthTables(knex)
      for (const index of indexes) await drop(index)
    })

    test('no index of the users contains the time of the last login, except on MariaDB', async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      const query = {
        sqlite: "select name from sqlite_master where type = 'index' and tbl_name = 'auth_users' and sql like '%last_login_at%'",
        postgres:
          "select indexname as name from pg_indexes where schemaname = current_schema() and tablename = 'auth_users' and indexdef like '%last_login_at%'",
        mariadb:
          "select index_name as name from information_schema.statistics where table_schema = database() and table_name = 'auth_users' and column_name = 'last_login_at'",
      }[database.name]
      const answer = await opened.knex.raw(query)
      const rows: { name: string }[] = { sqlite: answer, postgres: answer.rows, mariadb: answer[0] }[database.name]
      expect(rows.map(({ name }) => name)).toEqual(database.name === 'mariadb' ? ['auth_users_list'] : [])
    })

    if (database.name === 'sqlite') {
      test('a login, and an UPDATE that only locks the row, write no index of the users', async () => {
        opened = await database.open()
        const { knex } = opened
        await createAuthTables(knex)
        const store = createKnexStore({ knex })
        const { id, hashedPassword } = await store.users.insert(newUser())
        await store.identities.insert(newIdentity(id, { provider: 'google', subject: 's-1' }))
        const updates: { sql: string; bindings: readonly Knex.Value[] }[] = []
        knex.on('query', (query) => void (/^update .*auth_users/is.test(query.sql) && updates.push(query)))
        expect(await store.users.recordLogin({ id, hashedPassword: hashedPassword ?? '' }, later(1))).not.toBeNull()
        expect(await store.identities.recordLogin({ userId: id, provider: 'google', subject: 's-1' }, later(2))).not.toBeNull()
        expect(await store.users.lock(id)).not.toBeNull()
        await store.users.lockAdmins()
        expect(updates).toHaveLength(4)
        for (const { sql, bindings } of updates) {
          const steps: { opcode: string }[] = await knex.raw(`explain ${sql}`, bindings)
          expect(steps.map(({ opcode }) => opcode)).toContain('Insert') // the row
          expect(
            steps.filter(({ opcode }) => /^Idx(Insert|Delete)$/.test(opcode)),
            sql,
          ).toEqual([])
        }
      })
    }

    test('counters are found by their whole key, byte for byte, and the ended ones by an index', async () => {
      opened = await database.open()
      const { knex } = opened
      await createAuthTables(knex)
      const keys = ['key', 'Key', 'key ', 'kéy']
      for (const key of keys) await knex('auth_counters').insert({ counter_key: key, count: 1, ends_at: 2 ** 42 })
      for (const key of keys) expect(await knex('auth_counters').where({ counter_key: key }), key).toHaveLength(1)
      await knex.schema.alterTable('auth_counters', (table) => table.dropIndex([], 'auth_counters_end')) // it is there
    })

    test('every text is compared byte for byte, and what is unique is so by the byte', async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      const { identities, users } = createKnexStore({ knex: opened.knex })
      const subjects = ['AbC', 'abc', 'AbC ', 'àbc', 'AbC\u00ad', '0', '00', 'Straße', 'Strasse', '😀', '😁']
      for (const subject of subjects) {
        const { id } = await users.insert(newUser())
        await identities.insert(newIdentity(id, { subject }))
      }
      for (const subject of subjects) expect(await opened.knex('auth_identities').where({ subject }), subject).toHaveLength(1)
    })

    test('a deleted user takes every row of theirs along', async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      const store = createKnexStore({ knex: opened.knex })
      const { id } = await store.users.insert(newUser())
      await store.identities.insert(newIdentity(id))
      await store.userTokens.insert(newUserToken(id))
      await store.recoveryCodes.replaceForUser(id, [freshHash()])
      await store.sessions.insert(newSession(id))
      await opened.knex('auth_users').where({ id }).delete()
      for (const table of Object.keys(COLUMNS)) expect(await opened.knex(table), table).toEqual([])
    })

    test.each(['rows only', 'raw answers too'])(
      'a host that maps names between snake_case and camelCase gets the same records: %s',
      async (what) => {
        opened = await database.open()
        await createAuthTables(opened.knex)
        const { knex } = opened
        const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())
        const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
        const camelRow = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [camel(name), value]))
        Object.assign(knex.client.config, {
          wrapIdentifier: (name: string, wrap: (name: string) => string) => wrap(snake(name)),
          postProcessResponse(response: unknown) {
            if (what === 'raw answers too' && isRaw(response)) return response.rows.map(camelRow)
            return Array.isArray(response) ? response.map(camelRow) : response
          },
        })
        const isRaw = (response: unknown): response is { rows: object[] } => Array.isArray((response as { rows?: unknown } | null)?.rows)
        const store = createKnexStore({ knex })
        const user = await store.users.insert(newUser())
        expect(await store.users.findByEmail(user.email)).toEqual(user)
        const identity = await store.identities.insert(newIdentity(user.id))
        const session = newSession(user.id)
        await store.sessions.insert(session)
        expect(await store.identities.findWithUser('google', identity.subject)).toEqual({ identity, user })
        const rotation = rotationOf(session.tokenHash)
        expect(await store.sessions.rotate(rotation)).toEqual({
          user: { id: user.id, email: user.email },
          session: {
            id: session.id,
            userId: user.id,
            amr: session.amr,
            authenticatedAt: session.authenticatedAt,
            isPersistent: session.isPersistent,
            expiresAt: rotation.expiresAt,
          },
        })
        expect((await store.sessions.find({ id: session.id }))?.session).toMatchObject({ generation: 1, rotatedAt: rotation.at })
        expect(await store.identities.recordLogin(identity, later(3))).toEqual({ ...user, lastLoginAt: later(3) })
      },
    )
  })
}
