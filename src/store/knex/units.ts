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

  const giveBack = async () => {
    connection.__knexTxId = undefined
    await Promise.resolve()
      .then(() => client.releaseConnection(connection))
      .catch(() => client.logger.warn('doorward: a connection could not be given back to the pool.'))
      .catch(() => undefined) // a logger of the host's, and the work is done or has its own error
  }
  try {
    return await begun(connectionOf(client, dialect, connection), dialect, atAnyLevel, giveBack)
  } catch (error) {
    await giveBack()
    throw error
  }
}

/** Gives the connection back itself once it is begun. */
async function begun(held: HeldConnection, dialect: Dialect, atAnyLevel: boolean, giveBack: () => Promise<void>): Promise<Unit> {
  const gate = gateTo(held, dialect)
  const db = Object.assign(queryable(gate.client), { beyond: () => queryable(held.client) })
  try {
    for (const statement of dialect.begin(atAnyLevel)) await held.send(statement)
  } catch (error) {
    await undo()
    throw error
  }
  return {
    db,
    async commit() {
      try {
        await gate.close()
        dialect.checkCommit(await held.send('COMMIT;'))
      } catch (error) {
        await undo()
        throw error
      } finally {
        await giveBack()
      }
    },
    async rollBack() {
      await undo()
      await giveBack()
    },
  }

  async function undo(): Promise<void> {
    const late = new Error('too late')
    try {
      await inTime(rollBack(), rollbackMs, () => late)
    } catch (error) {
      // The next to get it would be in this transaction, or meet a ROLLBACK that is still on its way; also where closing it loses
      // what SQLite has in memory.
      const isGone = !isEnded(held.connection) || error === late
      if (isGone) held.connection.__knex__disposed ??= 'doorward: a ROLLBACK failed'
    }
  }

  /** Behind the statement that is under way: a client of the host's may keep one back for a while. */
  async function rollBack(): Promise<void> {
    await gate.settled()
    if (dialect.mayBeOpen(held.connection)) await held.send('ROLLBACK')
  }

  function isEnded(connection: PooledConnection): boolean {
    try {
      return dialect.endByForce(connection)
    } catch {
      return false
    }
  }
}

interface HeldConnection {
  readonly connection: PooledConnection
  readonly client: Knex['client']
  /** The same, but for how a statement is sent. */
  clientSendingBy(query: (connection: unknown, statement: string | object) => Promise<unknown>): Knex['client']
  send(statement: string | object): Promise<unknown>
}

/**
 * A client for one connection, as knex makes one for a transaction: of the class of the host's, with its settings, and without what
 * somebody put on the host's own instance, which may be bound to that and go past the unit. It speaks to the host's listeners.
 */
function connectionOf(host: Knex['client'], dialect: Dialect, connection: PooledConnection): HeldConnection {
  const prototype = Object.getPrototypeOf(host)
  const used = dialect.unitConnection(connection)
  const { version, config, driver, connectionSettings, valueForUndefined, logger } = host
  const clientSendingBy: HeldConnection['clientSendingBy'] = (query) => {
    const client = {
      __proto__: prototype,
      version,
      config,
      driver,
      connectionSettings,
      valueForUndefined,
      logger,
      transacting: true, // a class that repeats what failed must not do so here
      query,
      emit(...event: unknown[]) {
        prototype.emit.apply(client, event)
        return host.emit(...event)
      },
      acquireConnection: async () => connection,
      releaseConnection: async () => {},
    }
    return client
  }
  const client = clientSendingBy(prototype.query)
  return { connection, client, clientSendingBy, send: async (statement) => client.query(used, statement) }
}

/**
 * One statement at a time, in the order in which they are asked: what is behind one with which the database ended the transaction
 * must not be sent any more, since it would be in none.
 */
function gateTo(held: HeldConnection, dialect: Dialect) {
  let isOver = false
  let last: Promise<unknown> = Promise.resolve()
  let failure: { error: unknown } | null = null

  const pass = (statement: string | object) => {
    if (isOver || !dialect.mayBeOpen(held.connection)) throw tooLate()
    return held.send(statement)
  }
  async function query(_connection: unknown, statement: string | object): Promise<unknown> {
    if (isOver) throw tooLate()
    const answer = last.then(() => pass(statement))
    last = answer.catch((error) => {
      failure ??= { error }
      isOver ||= dialect.endsTransaction(error)
    })
    return answer
  }
  /** What was sent is answered first, and nothing more is sent. */
  async function settled(): Promise<void> {
    isOver = true
    await last
  }
  return {
    client: held.clientSendingBy(query),
    /** Rejects with what failed: a failure that somebody caught is no success. */
    async close() {
      await settled()
      if (failure) throw failure.error
    },
    settled,
  }
}

function tooLate(): Error {
  return new Error('The unit of work is over: a statement came too late')
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
