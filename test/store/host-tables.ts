import type { Knex } from 'knex'
import type { HostTables } from '../../src'
import type { DatabaseName } from '../support/databases'

/** All tables under other names, with a column of the host's own that needs a value. */
export interface RenamedTables {
  ids: 'integer' | 'text'
  instants: 'epoch_ms' | 'iso'
}

type Kind = 'key' | 'given key' | 'user' | 'text' | 'flag' | 'instant' | 'integer' | 'big integer' | 'sequence' | `varchar ${number}`

const TABLES: Readonly<Record<keyof HostTables, { columns: Record<string, Kind>; unique: readonly string[][] }>> = {
  users: {
    columns: {
      id: 'key',
      isActive: 'flag',
      createdAt: 'instant',
      updatedAt: 'instant',
      email: 'varchar 320',
      hashedPassword: 'text',
      isAdmin: 'flag',
      lastLoginAt: 'instant',
      name: 'text',
      totpSecret: 'text',
      totpEnabledAt: 'instant',
      totpLastStep: 'integer',
      emailVerifiedAt: 'instant',
      activatedAt: 'instant',
      passwordSetAt: 'instant',
    },
    unique: [['email']],
  },
  identities: {
    columns: {
      id: 'key',
      userId: 'user',
      provider: 'varchar 64',
      subject: 'varchar 255',
      email: 'varchar 320',
      emailVerified: 'flag',
      name: 'text',
      picture: 'text',
      createdAt: 'instant',
      lastLoginAt: 'instant',
    },
    unique: [
      ['provider', 'subject'],
      ['userId', 'provider'],
    ],
  },
  userTokens: {
    columns: {
      id: 'key',
      userId: 'user',
      tokenHash: 'varchar 64',
      purpose: 'varchar 32',
      payload: 'text',
      expiresAt: 'instant',
      usedAt: 'instant',
      createdAt: 'instant',
    },
    unique: [['tokenHash']],
  },
  recoveryCodes: {
    columns: { id: 'key', userId: 'user', codeHash: 'varchar 64', usedAt: 'instant' },
    unique: [['userId', 'codeHash']],
  },
  passkeys: {
    columns: {
      id: 'key',
      userId: 'user',
      userHandle: 'varchar 64',
      credentialId: 'varchar 700',
      publicKey: 'text',
      signCount: 'big integer',
      transports: 'varchar 64',
      isBackupEligible: 'flag',
      isBackedUp: 'flag',
      aaguid: 'varchar 36',
      name: 'varchar 64',
      createdAt: 'instant',
      lastUsedAt: 'instant',
    },
    unique: [['credentialId']],
  },
  sessions: {
    columns: {
      id: 'given key',
      userId: 'user',
      kind: 'varchar 16',
      tokenHash: 'varchar 64',
      generation: 'integer',
      rotatedAt: 'instant',
      amr: 'varchar 64',
      authenticatedAt: 'instant',
      isPersistent: 'flag',
      ip: 'varchar 45',
      userAgent: 'text',
      provider: 'varchar 64',
      providerSid: 'varchar 255',
      createdAt: 'instant',
      lastSeenAt: 'instant',
      expiresAt: 'instant',
      endsAt: 'instant',
      revokedAt: 'instant',
    },
    unique: [['tokenHash']],
  },
  emailLogins: {
    columns: {
      id: 'given key',
      email: 'varchar 320',
      tokenHash: 'varchar 64',
      codeHash: 'varchar 64',
      tries: 'integer',
      returnTo: 'text',
      ip: 'varchar 45',
      userAgent: 'text',
      createdAt: 'instant',
      expiresAt: 'instant',
      usedAt: 'instant',
      sessionId: 'varchar 36',
      isKnownDevice: 'flag',
    },
    unique: [['tokenHash']],
  },
  trustedDevices: {
    columns: {
      id: 'key',
      userId: 'user',
      sessionId: 'varchar 36',
      tokenHash: 'varchar 64',
      digest: 'varchar 64',
      name: 'varchar 64',
      createdAt: 'instant',
      lastUsedAt: 'instant',
      endsAt: 'instant',
    },
    unique: [['tokenHash']],
  },
  invitations: {
    columns: {
      id: 'key',
      tokenHash: 'varchar 64',
      email: 'varchar 320',
      data: 'text',
      usesLeft: 'integer',
      isMailed: 'flag',
      createdBy: 'user',
      createdAt: 'instant',
      expiresAt: 'instant',
      revokedAt: 'instant',
    },
    unique: [['tokenHash']],
  },
  invitationUses: {
    columns: { id: 'key', invitationId: 'varchar 36', userId: 'user', createdAt: 'instant' },
    unique: [['invitationId', 'userId']],
  },
  outbox: {
    columns: {
      id: 'varchar 36',
      seq: 'sequence',
      name: 'varchar 64',
      userId: 'varchar 64',
      payload: 'text',
      createdAt: 'instant',
      tries: 'integer',
      nextAt: 'instant',
      leasedUntil: 'instant',
      deliveredAt: 'instant',
    },
    unique: [['id']],
  },
  leases: {
    columns: { id: 'varchar 64', holder: 'varchar 64', leasedUntil: 'instant', ranAt: 'instant' },
    unique: [['id']],
  },
}

const tableName = (record: string) => `CRM_${record}`
const columnName = (field: string) => `Our ${field}`

export async function createRenamedTables(knex: Knex, database: DatabaseName, { ids, instants }: RenamedTables): Promise<HostTables> {
  const tables: Record<string, unknown> = {}
  // A table without a column of the host's own has its statements compiled once.
  const hasOwnColumn = (record: string) => record !== 'sessions' || instants === 'iso'
  for (const [record, { columns, unique }] of Object.entries(TABLES)) {
    await knex.schema.createTable(tableName(record), (table) => {
      if (database === 'mariadb') table.collate('utf8mb4_nopad_bin')
      if (hasOwnColumn(record)) table.string('tenant', 20).notNullable()
      for (const [field, kind] of Object.entries(columns)) addColumn(table, columnName(field), kind, { ids, instants })
      for (const fields of unique) table.unique(fields.map(columnName), { indexName: `u_${record}_${fields.join('_')}` })
    })
    tables[record] = {
      table: tableName(record),
      columns: Object.fromEntries(Object.keys(columns).map((field) => [field, columnName(field)])),
      ids: columns['id'] === 'key' ? ids : 'text',
      instants,
      ...(hasOwnColumn(record) && { insertDefaults: () => ({ tenant: 'acme' }) }),
    }
  }
  return tables as HostTables // one entry for each of its names
}

function addColumn(table: Knex.CreateTableBuilder, name: string, kind: Kind, { ids, instants }: RenamedTables): void {
  switch (kind) {
    case 'key':
      return void (ids === 'integer' ? table.increments(name) : table.string(name, 64).primary())
    case 'given key':
      return void table.string(name, 36).primary()
    case 'sequence':
      return void table.bigIncrements(name)
    case 'user':
      return void (ids === 'integer' ? table.integer(name).unsigned() : table.string(name, 64))
    case 'flag':
      return void table.boolean(name)
    case 'integer':
      return void table.integer(name)
    case 'big integer':
      return void table.bigInteger(name)
    case 'instant':
      return void (instants === 'iso' ? table.string(name, 24) : table.bigInteger(name))
    case 'text':
      return void table.text(name)
    default:
      return void table.string(name, Number(kind.split(' ')[1]))
  }
}

/** The users table of an app that was there before us: integer keys, other names, columns of its own, little of ours. */
export const PEOPLE: HostTables = {
  users: {
    table: 'people',
    ids: 'integer',
    columns: {
      id: 'person_id',
      isActive: 'enabled',
      createdAt: 'registered_on',
      updatedAt: 'changed_on',
      email: 'mail',
      hashedPassword: 'pw_digest',
      name: 'full_name',
      isAdmin: false,
      lastLoginAt: false,
      totpSecret: false,
      totpEnabledAt: false,
      totpLastStep: false,
      emailVerifiedAt: false,
      activatedAt: false,
      passwordSetAt: false,
    },
    insertDefaults: () => ({ tenant_code: 'main', newsletter: false }),
  },
}

const DAY = 86_400_000
export const PEOPLE_COUNT = 3 * 365

/** Three years of registrations, one a day, addresses lower-cased. */
export async function createPeople(knex: Knex, database: DatabaseName): Promise<void> {
  await knex.schema.createTable('people', (table) => {
    table.increments('person_id')
    table.string('mail', 320).notNullable().unique()
    table.string('pw_digest', 255).notNullable()
    table.string('full_name', 120)
    table.boolean('enabled').notNullable()
    table.string('tenant_code', 8).notNullable()
    table.boolean('newsletter').notNullable()
    for (const name of ['registered_on', 'changed_on']) instantColumn(table, name, database)
  })
  const rows = Array.from({ length: PEOPLE_COUNT }, (_, day) => {
    const at = nativeInstant(new Date(Date.UTC(2023, 2, 1, 9, 30, 0, 250) + day * DAY), database)
    return {
      mail: `person${day}@example.test`,
      pw_digest: '$2b$12$of.an.older.time',
      full_name: `Person ${day}`,
      enabled: day % 10 !== 9,
      tenant_code: 'main',
      newsletter: day % 2 === 0,
      registered_on: at,
      changed_on: at,
    }
  })
  await knex.batchInsert('people', rows, 100)
}

function instantColumn(table: Knex.CreateTableBuilder, name: string, database: DatabaseName): void {
  if (database === 'sqlite') table.integer(name).notNullable()
  else if (database === 'postgres') table.timestamp(name, { useTz: true, precision: 3 }).notNullable()
  else table.datetime(name, { precision: 3 }).notNullable()
}

function nativeInstant(instant: Date, database: DatabaseName): string | number {
  if (database === 'sqlite') return instant.getTime()
  return database === 'postgres' ? instant.toISOString() : instant.toISOString().slice(0, -1)
}
