import type { Knex } from 'knex'
import { ConfigurationError } from '../../core/errors'
import { quietly } from '../../core/logger'
import type {
  AuthStore,
  EmailLoginRecord,
  IdentityRecord,
  InvitationRecord,
  InvitationUseRecord,
  LeaseRecord,
  OutboxRecord,
  PasskeyRecord,
  RecoveryCodeRecord,
  SessionRecord,
  TrustedDeviceRecord,
} from '../auth-store'
import { afterCommitOf, refuseEnded } from './after-commit'
import type { CheckedTables } from './check/check-store-tables'
import { tableAdviceOn } from './check/mend'
import { type Connection, poolConnection, transactionConnection } from './connection'
import { bindTables, type HostTables, type Tables } from './default-tables'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import { identitiesStore } from './identities'
import { invitationsStore, invitationUsesStore } from './invitations'
import { type JoinedStore, joinTransaction } from './join'
import { surviveEndedSessions } from './knex-on'
import { leasesStore } from './leases'
import { outboxStore } from './outbox'
import { passkeysStore } from './passkeys'
import type { SqlRunner } from './runners'
import { sessionsStore } from './sessions'
import { neverPrepare } from './statements'
import type { TableOptions } from './table-options'
import { trustedDevicesStore } from './trusted-devices'
import { emailLoginsStore, recoveryCodesStore, userTokensStore } from './user-tokens'
import { usersStore } from './users'

/** The options of `createKnexStore`. Each table can be a table of yours. If you do not name a table, the store uses the default table. */
export interface KnexStoreOptions extends HostTables {
  /** Your own knex instance, for PostgreSQL (`pg`), MariaDB (`mysql2`) or SQLite (`better-sqlite3`). */
  knex: Knex
  /**
   * On PostgreSQL, and on MariaDB over `knexOn`, the store prepares its most frequent statements once per connection. Set `preparedStatements` to false if your pooler in
   * transaction mode does not support prepared statements (PgBouncer before 1.21). If you leave it true, the store stops preparing
   * statements at the first failure, and logs one warning. Default true.
   */
  preparedStatements?: boolean
}

interface CompleteOptions extends KnexStoreOptions {
  identities?: TableOptions<IdentityRecord>
  recoveryCodes?: TableOptions<RecoveryCodeRecord>
  passkeys?: TableOptions<PasskeyRecord>
  sessions?: TableOptions<SessionRecord>
  emailLogins?: TableOptions<EmailLoginRecord>
  trustedDevices?: TableOptions<TrustedDeviceRecord>
  invitations?: TableOptions<InvitationRecord>
  invitationUses?: TableOptions<InvitationUseRecord>
  outbox?: TableOptions<OutboxRecord>
  leases?: TableOptions<LeaseRecord>
}

export interface KnexStore extends Required<Omit<AuthStore, 'afterCommit' | 'check'>> {
  /**
   * Returns the store inside your transaction. You commit the transaction or roll it back. After a conflict the store does not repeat
   * anything in your transaction. Begin the transaction at READ COMMITTED, which is the default of PostgreSQL, but not of MariaDB.
   */
  using(trx: Knex.Transaction): Required<Omit<AuthStore, 'check'>>
  /**
   * Returns the store inside a transaction of another library: `store.join(kyselyRunner(trx, …))`. After its commit call `committed()`,
   * and in a `catch` inside of it `rolledBack()`. Await one call after the other. After a 503 roll your transaction back. Each transaction of doorward is a savepoint, and nothing is repeated after a conflict. Begin the
   * transaction at READ COMMITTED.
   *
   * @throws ConfigurationError if the runner is not for the database of this store
   */
  join(runner: SqlRunner): JoinedStore<Required<Omit<AuthStore, 'check'>>>
}

/** A `KnexStore` for which some optional tables are `false`. */
export interface PartialKnexStore extends AuthStore {
  using(trx: Knex.Transaction): AuthStore
  join(runner: SqlRunner): JoinedStore<AuthStore>
}

/**
 * Returns a store on the default tables, or on your own tables. `createAuthTables` and `migrationSource` make the default tables.
 *
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`, and for table options that are unknown or
 * wrong
 */
export function createKnexStore(options: CompleteOptions): KnexStore
export function createKnexStore(options: KnexStoreOptions): PartialKnexStore
export function createKnexStore({ knex, preparedStatements = true, ...hostTables }: KnexStoreOptions): PartialKnexStore {
  const dialect = dialectOf(knex)
  if (typeof preparedStatements !== 'boolean') throw new ConfigurationError('createKnexStore(): preparedStatements must be true or false.')
  if (!preparedStatements) neverPrepare(knex)
  if (knex.isTransaction) throw new ConfigurationError('createKnexStore() needs the pool; inside a transaction call store.using(trx).')
  warnOfSeveralWriters(knex, dialect)
  surviveEndedSessions(knex.client.config.connectionPool)
  const tables = bindTables(knex, dialect, hostTables)
  const advise = tableAdviceOn(knex, tables, hostTables)
  const checked: CheckedTables = { knex, dialect, tables, hostTables }
  const onPool = {
    ...storeOn(poolConnection(knex, dialect, advise), tables, hostTables),
    using(trx: Knex.Transaction) {
      if (!trx?.isTransaction) throw new ConfigurationError('store.using() needs the transaction that knex.transaction() hands out.')
      const connection = transactionConnection(trx, dialect, { advise, refuse: () => refuseEnded(trx) })
      return marked(storeOn(connection, tables, hostTables, afterCommitOf(trx)), null)
    },
    join(runner: SqlRunner) {
      const { connection, afterCommit, committed, rolledBack } = joinTransaction(knex, runner, { dialect, advise })
      return { store: marked(storeOn(connection, tables, hostTables, afterCommit), null), committed, rolledBack }
    },
  }
  return marked(onPool, checked)
}

/** Null: the store works inside a transaction of the host. */
const ours = new WeakMap<object, CheckedTables | null>()

function marked<Store extends AuthStore>(store: Store, checked: CheckedTables | null): Store {
  ours.set(store, checked)
  return store
}

export function checkedTablesOf(store: AuthStore): CheckedTables | null {
  return ours.get(store) ?? null
}

/** A transaction of the host's knex. */
export type HostTransaction = Knex.Transaction

/** A WeakMap would be slower: V8's collections of young objects keep all its values, and this value keeps the whole request. */
const transaction = Symbol('transaction')

/** Null: the store works on the pool, or is an adapter of the host. */
export function transactionOf(store: AuthStore & { readonly [transaction]?: HostTransaction }): HostTransaction | null {
  return store[transaction] ?? null
}

/** Unlike a host's copy of the store, this copy has the transaction. */
export function copyWith(store: AuthStore, changes: Partial<AuthStore>): AuthStore {
  const copy = { ...store, ...changes }
  const open = transactionOf(store)
  return open ? Object.defineProperty(copy, transaction, { value: open }) : copy
}

/** False for a wrapper or a copy of a store. */
export function isKnexStore(store: AuthStore): boolean {
  return ours.has(store)
}

/** SQLite's driver blocks the only thread while it waits for a lock, but the connection that has the lock needs this thread too. */
function warnOfSeveralWriters({ client }: Knex, { name }: Dialect): void {
  const { config }: Knex.Client = client
  if (name === 'sqlite' && (config.pool?.max ?? 1) > 1)
    quietly(() =>
      client.logger.warn(
        'doorward: give knex `pool: { min: 1, max: 1 }` for SQLite. With more connections, two transactions at once stop the whole process for up to five seconds.',
      ),
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
    ...(hostTables.trustedDevices !== false && { trustedDevices: trustedDevicesStore(connection, tables) }),
    ...(hostTables.invitations !== false && { invitations: invitationsStore(connection, tables, hostTables) }),
    ...(hostTables.invitationUses !== false && { invitationUses: invitationUsesStore(connection, tables) }),
    ...(hostTables.outbox !== false && { outbox: outboxStore(connection, tables) }),
    ...(hostTables.leases !== false && { leases: leasesStore(connection, tables) }),
    ...(afterCommit && { afterCommit }),
    // If a transaction is open, `unit` passes this connection again. The work then joins the transaction and gets this store.
    transaction: (work, options) =>
      connection.unit((inside) => work(inside === connection ? store : storeOn(inside, tables, hostTables, afterCommit)), options),
  }
  if (connection.transaction) Object.defineProperty(store, transaction, { value: connection.transaction }) // not enumerable, so a copy of the store does not have it
  return store
}
