import makeKnex, { type Knex } from 'knex'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { checkTables, createAuthTables } from '../../src'
import { type DatabaseName, databases } from '../support/databases'

/** A setting of the host's driver, the users' ids, and the columns that do not come back under it. */
interface Case {
  readonly what: string
  readonly changes: (config: Knex.Config) => Knex.Config
  readonly ids?: 'uuid' | 'integer'
  readonly lost: readonly string[]
}

const flags = ['is_active', 'is_admin']
const parsing = (oid: number, parse: (text: string) => unknown): Case['changes'] => {
  const getTypeParser = (id: number, format: 'text' | 'binary') => (id === oid ? parse : pg.types.getTypeParser(id, format))
  return ({ connection, ...config }) => ({
    ...config,
    connection: { connectionString: String(connection), types: { getTypeParser } } as never,
  })
}
type CastField = { type: string; string(): string | null }
const casting = (type: string, cast: (text: string | null) => unknown): Case['changes'] => {
  const typeCast = (field: CastField, next: () => unknown) => (field.type === type ? cast(field.string()) : next())
  return ({ connection, ...config }) => ({ ...config, connection: { ...(connection as object), typeCast } as never })
}
const answering = (change: (value: unknown) => unknown): Case['changes'] => {
  const changed = (row: object) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, change(value)]))
  return (config) => ({
    ...config,
    postProcessResponse: (answer: unknown) =>
      Array.isArray(answer) ? answer.map((row) => (typeof row === 'object' && row !== null ? changed(row) : row)) : answer,
  })
}

const cases: Record<DatabaseName, readonly Case[]> = {
  postgres: [
    { what: 'the driver as it comes', changes: (config) => config, lost: [] },
    { what: 'flags as Y and N', changes: parsing(16, (text) => (text === 't' ? 'Y' : 'N')), lost: flags },
    { what: 'flags as the text of the database', changes: parsing(16, (text) => text), lost: [] },
    { what: 'UUIDs as bytes', changes: parsing(2950, (text) => Buffer.from(text.replaceAll('-', ''), 'hex')), lost: ['id'] },
    { what: 'bigint as numbers', ids: 'integer', changes: parsing(20, Number), lost: ['id'] },
    { what: 'bigint as BigInt', ids: 'integer', changes: parsing(20, BigInt), lost: [] },
    { what: 'timestamps as text', changes: parsing(1184, (text) => text), lost: [] },
  ],
  mariadb: [
    { what: 'the driver as it comes', changes: (config) => config, lost: [] },
    { what: 'flags as yes and no', changes: casting('TINY', (text) => (text === '1' ? 'yes' : 'no')), lost: flags },
    { what: 'flags as booleans', changes: casting('TINY', (text) => text === '1'), lost: [] },
    { what: 'flags that are always false', changes: casting('TINY', () => false), lost: flags },
    { what: 'bigint as numbers', ids: 'integer', changes: casting('LONGLONG', Number), lost: [] },
  ],
  sqlite: [
    { what: 'the driver as it comes', changes: (config) => config, lost: [] },
    { what: 'integer ids', ids: 'integer', changes: (config) => config, lost: [] },
    { what: 'NULL as zero', changes: answering((value) => value ?? 0), lost: ['id', 'created_at', 'totp_enabled_at'] },
    { what: 'numbers as text', changes: answering((value) => (typeof value === 'number' ? String(value) : value)), lost: [] },
    { what: 'numbers as BigInt', changes: answering((value) => (Number.isInteger(value) ? BigInt(value as number) : value)), lost: [] },
  ],
}

describe.each(await databases())('what the store reads back through the host’s driver (25.7.2), on $name', (database) => {
  test.each(cases[database.name])('$what: the columns $lost are refused', async ({ changes, lost, ids = 'uuid' }) => {
    const { knex, config, close } = await database.open()
    if (ids === 'uuid') await createAuthTables(knex)
    else await knex.schema.createTable('auth_users', (table) => void table.bigIncrements('id'))
    const host = makeKnex(changes(config ?? {}))
    const findings = (await checkTables(host, { users: { ids } })).filter(({ key }) => key.endsWith(':read-back'))
    const found = findings.map(({ column }) => column)
    for (const column of lost) expect(found).toContain(column)
    if (lost.length === 0) expect(found).toEqual([])
    for (const { level, message } of findings) {
      expect(level).toBe('error')
      expect(message).toMatch(/does not come back through your driver.*type parser/)
    }
    await host.destroy()
    await close()
  })
})
