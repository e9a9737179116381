import type { Knex } from 'knex'
import { inTime } from '../../in-time'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'

/** A transaction of ours. However it ends, its connection goes back to the pool. */
export interface Unit {
  readonly db: Queryable
  /** Rejects with what the driver said; then nothing was kept, unless only the answer was lost. */
  commit(): Promise<void>
  /** Never rejects: what it is for is told by another error. */
  rollBack(): Promise<void>
}

/** As long as knex gives its own. */
const rollbackMs = 5_000

let units = 0

/**
 * Takes a connection of the host's pool for as long as the unit lasts, with the settings and events of the host's knex.
 * `knex.transaction` makes a knex of over a hundred methods each time, which takes it several times as long as all that a
 * login's four statements take it.
 */
export async function beginUnit(knex: Knex, dialect: Dialect, { atAnyLevel }: { atAnyLevel: boolean }): Promise<Unit> {
  const { client } = knex
  const connection: PooledConnection = await client.acquireConnection()
  connection.__knexTxId = `doorward${++units}` // as in knex's own, and in its events
  const { own, send, close } = clientOn(client, dialect, connection)

  const giveBack = async () => {
    connection.__knexTxId = undefined
    try {
      await client.releaseConnection(connection)
    } catch {
      client.logger.warn('doorward: a connection could not be given back to the pool.') // the work is done, or has its own error
    }
  }
  const rollBack = async () => {
    close()
    try {
      if (dialect.mayBeOpen(connection)) await inTime(send('ROLLBACK'), rollbackMs, () => new Error('too late'))
    } catch {
      // The next to get it would be in this transaction, and what it has locked stays locked meanwhile.
      if (!dialect.endByForce(connection)) connection.__knex__disposed ??= 'doorward: a ROLLBACK failed'
    } finally {
      await giveBack()
    }
  }
  const commit = async () => {
    close()
    try {
      dialect.checkCommit(await send('COMMIT;'))
    } catch (error) {
      await rollBack()
      throw error
    }
    await giveBack()
  }

  try {
    for (const statement of dialect.begin(atAnyLevel)) await send(statement)
  } catch (error) {
    await rollBack()
    throw error
  }
  return { db: queryable(own), commit, rollBack }
}

/**
 * A client for one connection, as knex makes one for a transaction: of the class of the host's, with its settings, and without what
 * somebody put on the host's own instance, which may be bound to that and go past the unit. It speaks to the host's listeners.
 * What comes once it is closed, or once the database ended the transaction by itself, is refused: it would be in nobody's.
 */
function clientOn(client: Knex['client'], dialect: Dialect, connection: PooledConnection) {
  const prototype = Object.getPrototypeOf(client)
  const used = dialect.unitConnection(connection)
  let isClosed = false
  const { version, config, driver, connectionSettings, valueForUndefined, logger } = client
  const own = {
    __proto__: prototype,
    version,
    config,
    driver,
    connectionSettings,
    valueForUndefined,
    logger,
    transacting: true, // a client that repeats what failed must not do so here
    query: async (_connection: unknown, statement: string | object) => ask(statement),
    emit: (...event: unknown[]) => client.emit(...event),
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
  }

  const send = async (statement: string | object): Promise<unknown> => prototype.query.call(own, used, statement)
  async function ask(statement: string | object): Promise<unknown> {
    if (isClosed || !dialect.mayBeOpen(connection)) throw new Error('The unit of work is over: a statement came too late')
    try {
      return await send(statement)
    } catch (error) {
      isClosed ||= dialect.endsTransaction(error)
      throw error
    }
  }
  return {
    own,
    send,
    close() {
      isClosed = true
    },
  }
}

function queryable(client: Knex['client']): Queryable {
  const from = (table: string): Knex.QueryBuilder => client.queryBuilder().from(table)
  return Object.assign(from, {
    client,
    isTransaction: true,
    raw: client.raw.bind(client),
    ref: client.ref.bind(client),
    queryBuilder: () => client.queryBuilder(),
  })
}

/** A driver's connection, as far as knex marks it. */
interface PooledConnection {
  __knexTxId?: string | undefined
  /** Knex's pool closes a connection that has it before anybody gets it. */
  __knex__disposed?: unknown
}
