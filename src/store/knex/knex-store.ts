import type { Knex } from 'knex'
import { ConfigurationError } from '../../errors'
import type { AuthStore } from '../auth-store'
import { type Connection, poolConnection, transactionConnection } from './connection'
import { bindTables, type Tables } from './default-tables'
import { dialectOf } from './dialect'
import { identitiesStore } from './identities'
import { recoveryCodesStore } from './recovery-codes'
import { refreshTokensStore } from './refresh-tokens'
import { sessionsStore } from './sessions'
import { userTokensStore } from './user-tokens'
import { usersStore } from './users'

export interface KnexStoreOptions {
  /** The host's own instance, for PostgreSQL (`pg`), MariaDB (`mysql2`) or SQLite (`better-sqlite3`). */
  knex: Knex
}

export interface KnexStore extends Required<AuthStore> {
  /**
   * The same store inside the host's transaction, which the host commits or rolls back. Nothing is repeated there after
   * a conflict. Begin it at READ COMMITTED: PostgreSQL's default, not MariaDB's.
   */
  using(trx: Knex.Transaction): Required<AuthStore>
}

/**
 * Rows in the default tables (`createAuthTables` or `migrationSource` make them).
 *
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function createKnexStore({ knex }: KnexStoreOptions): KnexStore {
  const dialect = dialectOf(knex)
  if (knex.isTransaction) throw new ConfigurationError('createKnexStore() needs the pool; inside a transaction call store.using(trx).')
  const tables = bindTables(knex, dialect)
  return {
    ...storeOn(poolConnection(knex, dialect), tables),
    using(trx) {
      if (!trx?.isTransaction) throw new ConfigurationError('store.using() needs the transaction that knex.transaction() hands out.')
      return storeOn(transactionConnection(trx, dialect), tables)
    },
  }
}

function storeOn(connection: Connection, tables: Tables): Required<AuthStore> {
  const store: Required<AuthStore> = {
    users: usersStore(connection, tables),
    userTokens: userTokensStore(connection, tables),
    identities: identitiesStore(connection, tables),
    refreshTokens: refreshTokensStore(connection, tables),
    recoveryCodes: recoveryCodesStore(connection, tables),
    sessions: sessionsStore(connection, tables),
    // Inside a transaction `unit` hands back the same connection: the work joins, on this very store.
    transaction: (work) => connection.unit((inside) => work(inside === connection ? store : storeOn(inside, tables))),
  }
  return store
}
