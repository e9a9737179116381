import type { Knex } from 'knex'
import { ConfigurationError } from '../../errors'
import type { AuthStore, EmailLoginRecord, IdentityRecord, PasskeyRecord, RecoveryCodeRecord, SessionRecord } from '../auth-store'
import { afterCommitOf, refuseEnded } from './after-commit'
import type { CheckedTables } from './check/check-store-tables'
import { type Connection, poolConnection, transactionConnection } from './connection'
import { bindTables, type HostTables, type Tables } from './default-tables'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import { emailLoginsStore } from './email-logins'
import { identitiesStore } from './identities'
import { passkeysStore } from './passkeys'
import type { Queryable } from './queryable'
import { recoveryCodesStore } from './recovery-codes'
import { neverPrepare } from './run-prepared'
import { sessionsStore } from './sessions'
import { adviceOn } from './table-advice'
import type { TableOptions } from './table-options'
import { userTokensStore } from './user-tokens'
import { usersStore } from './users'

/** Each table may be one of yours; what is not given is the default table. */
export interface KnexStoreOptions extends HostTables {
  /** The host's own instance, for PostgreSQL (`pg`), MariaDB (`mysql2`) or SQLite (`better-sqlite3`). */
  knex: Knex
  /**
   * On PostgreSQL what is sent most often is prepared once per connection. False where a pooler in transaction mode stands
   * between that does not know prepared statements (PgBouncer before 1.21); it is noticed, too, and said once.
   */
  preparedStatements?: boolean
}

/** No optional table is switched off. */
interface CompleteOptions extends KnexStoreOptions {
  identities?: TableOptions<IdentityRecord>
  recoveryCodes?: TableOptions<RecoveryCodeRecord>
  passkeys?: TableOptions<PasskeyRecord>
  sessions?: TableOptions<SessionRecord>
  emailLogins?: TableOptions<EmailLoginRecord>
}

export interface KnexStore extends Required<Omit<AuthStore, 'afterCommit' | 'check'>> {
  /**
   * The same store inside the host's transaction, which the host commits or rolls back. Nothing is repeated there after
   * a conflict. Begin it at READ COMMITTED: PostgreSQL's default, not MariaDB's.
   */
  using(trx: Knex.Transaction): Required<Omit<AuthStore, 'check'>>
}

/** A `KnexStore` some of whose optional tables are `false`. */
export interface PartialKnexStore extends AuthStore {
  using(trx: Knex.Transaction): AuthStore
}

/**
 * Rows in the default tables (`createAuthTables` or `migrationSource` make them), or in tables of the host's.
 *
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`, and for table options that
 * cannot be meant
 */
export function createKnexStore(options: CompleteOptions): KnexStore
export function createKnexStore(options: KnexStoreOptions): PartialKnexStore
export function createKnexStore({ knex, preparedStatements = true, ...hostTables }: KnexStoreOptions): PartialKnexStore {
  const dialect = dialectOf(knex)
  if (typeof preparedStatements !== 'boolean') throw new ConfigurationError('createKnexStore(): preparedStatements must be true or false.')
  if (!preparedStatements) neverPrepare(knex)
  if (knex.isTransaction) throw new ConfigurationError('createKnexStore() needs the pool; inside a transaction call store.using(trx).')
  warnOfSeveralWriters(knex, dialect)
  const tables = bindTables(knex, dialect, hostTables)
  const advise = adviceOn(knex, tables, hostTables)
  const checked: CheckedTables = { knex, dialect, tables, hostTables }
  const onPool = {
    ...storeOn(poolConnection(knex, dialect, advise), tables, hostTables),
    using(trx: Knex.Transaction) {
      if (!trx?.isTransaction) throw new ConfigurationError('store.using() needs the transaction that knex.transaction() hands out.')
      const connection = transactionConnection(trx, dialect, { advise, refuse: () => refuseEnded(trx) })
      return marked(storeOn(connection, tables, hostTables, afterCommitOf(trx)), null)
    },
  }
  return marked(onPool, checked)
}

/** Null: it works inside a transaction of the host's. */
const ours = new WeakMap<object, CheckedTables | null>()

function marked<Store extends AuthStore>(store: Store, checked: CheckedTables | null): Store {
  ours.set(store, checked)
  return store
}

/** The tables behind a store that `createKnexStore` returned; null for every other store. */
export function checkedTablesOf(store: AuthStore): CheckedTables | null {
  return ours.get(store) ?? null
}

/** A transaction of the host's knex. */
export type HostTransaction = Knex.Transaction

const transactions = new WeakMap<AuthStore, Queryable>()

/** The knex transaction that a store of ours works in; null: it works on the pool, or is an adapter of the host's. */
export function transactionOf(store: AuthStore): HostTransaction | null {
  return (transactions.get(store) as HostTransaction | undefined) ?? null // a connection inside a transaction has one
}

/** True for the very store that `createKnexStore` or its `using` returned, not for a wrapper or a copy of it. */
export function isKnexStore(store: AuthStore): boolean {
  return ours.has(store)
}

/** The driver of SQLite waits for a lock on the same thread that the holder of the lock needs to continue. */
function warnOfSeveralWriters({ client }: Knex, { name }: Dialect): void {
  const { config }: Knex.Client = client
  if (name === 'sqlite' && (config.pool?.max ?? 1) > 1)
    client.logger.warn(
      'doorward: give knex `pool: { min: 1, max: 1 }` for SQLite: with more connections two transactions at once stop the whole process for up to five seconds.',
    )
}

function storeOn(connection: Connection, tables: Tables, hostTables: HostTables, afterCommit?: AuthStore['afterCommit']): AuthStore {
  const store: AuthStore = {
    users: usersStore(connection, tables, hostTables),
    userTokens: userTokensStore(connection, tables),
    ...(hostTables.identities !== false && { identities: identitiesStore(connection, tables) }),
    ...(hostTables.recoveryCodes !== false && { recoveryCodes: recoveryCodesStore(connection, tables) }),
    ...(hostTables.passkeys !== false && { passkeys: passkeysStore(connection, tables) }),
    ...(hostTables.sessions !== false && { sessions: sessionsStore(connection, tables) }),
    ...(hostTables.emailLogins !== false && { emailLogins: emailLoginsStore(connection, tables) }),
    ...(afterCommit && { afterCommit }),
    // Inside a transaction `unit` hands back the same connection: the work joins, on this very store.
    transaction: (work, options) =>
      connection.unit((inside) => work(inside === connection ? store : storeOn(inside, tables, hostTables)), options),
  }
  if (connection.transaction) transactions.set(store, connection.transaction)
  return store
}
