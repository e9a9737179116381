import type { Knex } from 'knex'
import { createAuthTables, type HostTables, type TableFinding } from '../../src'
import type { DatabaseName } from '../support/databases'

/** Columns of a host's users table, and what a test makes of them. */
type Types = Readonly<Record<'id' | 'text' | 'flag' | 'instant' | 'zoneless', string>>

const TYPES: Readonly<Record<DatabaseName, Types>> = {
  sqlite: { id: 'integer primary key', text: 'text', flag: 'boolean', instant: 'integer', zoneless: 'integer' },
  postgres: { id: 'serial primary key', text: 'text', flag: 'boolean', instant: 'timestamptz', zoneless: 'timestamp' },
  mariadb: { id: 'int auto_increment primary key', text: 'text', flag: 'boolean', instant: 'datetime(3)', zoneless: 'datetime(3)' },
}

/** An app's own table, with nothing wrong. `null` leaves a column out. */
function peopleColumns(database: DatabaseName): Record<string, string | null> {
  const { id, text, flag, instant } = TYPES[database]
  return {
    person_id: id,
    mail: 'varchar(320) not null unique',
    pw_digest: `${text} not null`,
    full_name: 'varchar(200)',
    enabled: `${flag} not null`,
    registered_on: `${instant} not null`,
    changed_on: `${instant} not null`,
  }
}

export const PEOPLE = {
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
} satisfies HostTables['users']

const BINARY: Readonly<Record<DatabaseName, string>> = {
  sqlite: '',
  postgres: '',
  mariadb: ' character set utf8mb4 collate utf8mb4_nopad_bin',
}

/** Makes the table `people`, with `changes` over a right one, and our own tables beside it. */
export async function createPeople(
  knex: Knex,
  database: DatabaseName,
  changes: Record<string, string | null> = {},
  { table = 'people', rest = '', users = PEOPLE as HostTables['users'] } = {},
): Promise<HostTables> {
  const columns = Object.entries({ ...peopleColumns(database), ...changes }).filter(([, type]) => type !== null)
  await knex.raw(`create table ${table} (${columns.map(([name, type]) => `${name} ${type}`).join(', ')}${rest})${BINARY[database]}`)
  const tables = { users: users ?? PEOPLE }
  await createAuthTables(knex, tables)
  return tables
}

/** One thing that is wrong with a users table, and what must be said of it. */
export interface WrongTable {
  title: string
  changes: Partial<Record<DatabaseName, Record<string, string | null>>>
  /** What `PEOPLE` is changed to. */
  users?: HostTables['users']
  finding: { key: string; level: 'error' | 'warning'; column: string | null }
  /** What the message says. */
  says: string
  /** Where the finding has a statement that mends it. */
  mends: readonly DatabaseName[]
}

const all = (changes: Record<string, string | null>) => ({ sqlite: changes, postgres: changes, mariadb: changes })
const everywhere: readonly DatabaseName[] = ['sqlite', 'postgres', 'mariadb']
const servers: readonly DatabaseName[] = ['postgres', 'mariadb']

export const WRONG_TABLES: readonly WrongTable[] = [
  {
    title: 'a column is missing',
    changes: all({ enabled: null }),
    finding: { key: 'users.enabled', level: 'error', column: 'enabled' },
    says: '`users.columns.isActive`',
    mends: everywhere,
  },
  {
    title: 'an instant is missing',
    changes: all({ changed_on: null }),
    finding: { key: 'users.changed_on', level: 'error', column: 'changed_on' },
    says: '`users.columns.updatedAt`',
    mends: everywhere,
  },
  {
    title: '`ids` is forgotten over an integer key',
    changes: all({}),
    users: { ...PEOPLE, ids: 'uuid' },
    finding: { key: 'users.person_id:type', level: 'error', column: 'person_id' },
    says: "`users: { ids: 'integer' }`",
    mends: [],
  },
  {
    title: 'a flag is text',
    changes: all({ enabled: "varchar(5) not null default 'true'" }),
    finding: { key: 'users.enabled:type', level: 'error', column: 'enabled' },
    says: 'flag',
    mends: ['postgres'],
  },
  {
    title: 'a flag is an integer',
    changes: { postgres: { enabled: 'integer not null default 1' }, mariadb: { enabled: 'int not null default 1' } },
    finding: { key: 'users.enabled:type', level: 'error', column: 'enabled' },
    says: 'flag',
    mends: servers,
  },
  {
    title: 'an instant is text',
    changes: all({ registered_on: 'varchar(30) not null' }),
    finding: { key: 'users.registered_on:type', level: 'error', column: 'registered_on' },
    says: "instants: 'iso'",
    mends: [],
  },
  {
    title: 'an instant has no zone',
    changes: { postgres: { registered_on: 'timestamp not null default now()' } },
    finding: { key: 'users.registered_on:zone', level: 'warning', column: 'registered_on' },
    says: 'UTC',
    mends: ['postgres'],
  },
  {
    title: 'the address has no unique rule',
    changes: all({ mail: 'varchar(320) not null' }),
    finding: { key: 'users.mail:unique', level: 'error', column: 'mail' },
    says: 'unique',
    mends: everywhere,
  },
  {
    title: 'a NOT NULL column of the host is filled by nobody',
    changes: all({ tenant_id: 'varchar(10) not null' }),
    finding: { key: 'users.tenant_id', level: 'error', column: 'tenant_id' },
    says: '`users.insertDefaults`',
    mends: [],
  },
  {
    title: 'the hash column is as wide as a bcrypt hash',
    changes: { postgres: { pw_digest: 'varchar(60) not null' }, mariadb: { pw_digest: 'varchar(60) not null' } },
    finding: { key: 'users.pw_digest:width', level: 'error', column: 'pw_digest' },
    says: '97 characters',
    mends: servers,
  },
  {
    title: 'the address is as wide as every ORM makes it',
    changes: { postgres: { mail: 'varchar(255) not null unique' }, mariadb: { mail: 'varchar(255) not null unique' } },
    finding: { key: 'users.mail:width', level: 'warning', column: 'mail' },
    says: '320',
    mends: servers,
  },
  {
    title: 'a name is demanded that some people lack',
    changes: all({ full_name: 'varchar(200) not null' }),
    finding: { key: 'users.full_name:not-null', level: 'warning', column: 'full_name' },
    says: 'null',
    mends: servers,
  },
  {
    title: 'the hash has blanks behind it',
    changes: { postgres: { pw_digest: 'char(120) not null' } },
    finding: { key: 'users.pw_digest:type', level: 'error', column: 'pw_digest' },
    says: 'blanks',
    mends: ['postgres'],
  },
  {
    title: 'a column is generated',
    changes: {
      sqlite: { full_name: 'text generated always as (mail) stored' },
      postgres: { full_name: 'text generated always as (mail) stored' },
      mariadb: { full_name: 'varchar(320) generated always as (mail) stored' },
    },
    finding: { key: 'users.full_name:generated', level: 'error', column: 'full_name' },
    says: '`users.columns.name`',
    mends: [],
  },
  {
    title: 'the collation ignores case',
    changes: {
      sqlite: { mail: 'varchar(320) collate nocase not null unique' },
      mariadb: { mail: 'varchar(320) character set utf8mb4 collate utf8mb4_general_ci not null unique' },
    },
    finding: { key: 'users.mail:collation', level: 'warning', column: 'mail' },
    says: 'binary collation',
    mends: ['mariadb'],
  },
]

export function keysOf(findings: readonly TableFinding[]): string[] {
  return findings.map(({ level, key }) => `${level} ${key}`)
}
