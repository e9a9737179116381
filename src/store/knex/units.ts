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
  const pooled: PooledConnection = await client.acquireConnection()
  const connection = dialect.unitConnection(pooled)
  pooled.__knexTxId = `doorward${++units}` // as in knex's own, and in its events
  let isOver = false

  const giveBack = () => {
    pooled.__knexTxId = undefined
    client.releaseConnection(pooled)
  }
  const rollBack = async () => {
    isOver = true
    try {
      if (dialect.mayBeOpen(pooled)) await inTime(client.query(connection, 'ROLLBACK'), rollbackMs, () => new Error('too late'))
    } catch {
      pooled.__knex__disposed ??= 'doorward: a ROLLBACK failed' // or the next to get it would be in this transaction
    } finally {
      giveBack()
    }
  }

  try {
    for (const statement of dialect.begin(atAnyLevel)) await client.query(connection, statement)
  } catch (error) {
    await rollBack()
    throw error
  }
  return {
    db: queryable(clientOn(client, connection, () => isOver)),
    async commit() {
      isOver = true
      try {
        await client.query(connection, 'COMMIT;')
      } catch (error) {
        await rollBack()
        throw error
      }
      giveBack()
    },
    rollBack,
  }
}

/** The host's client, kept to one connection. What was left behind by the unit must not meet the next one's transaction on it. */
function clientOn(client: Knex['client'], connection: unknown, isOver: () => boolean): Knex['client'] {
  return Object.assign(Object.create(client), {
    transacting: true,
    acquireConnection: async () => connection,
    releaseConnection: async () => {},
    async query(_connection: unknown, statement: unknown) {
      if (isOver()) throw new Error('The unit of work is over: a statement came too late')
      return client.query(connection, statement)
    },
  })
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
  /** Its pool destroys a connection that has it. */
  __knex__disposed?: unknown
}
