import { randomUUID } from 'node:crypto'
import { ConfigurationError, ServiceUnavailableError } from '../errors'
import type { AuthEventName, AuthEvents } from '../events'
import { inTime } from '../in-time'
import { consoleLogger, describeError, type Logger, safely } from '../logger'
import { emptyInBatches } from '../store/empty-in-batches'
import { type AuditRecord, type AuditRows, bindAuditRows } from '../store/knex/audit-rows'
import type { HostKnex } from '../store/knex/counter-rows'
import { createThrottledRows } from './throttled-rows'
import { type PayloadValue, watchAll } from './watch-all'

export interface AuditLogOptions {
  /**
   * The id of the request that is being served, from your own AsyncLocalStorage; called when an event is told. Kept where
   * it is a text of at most 128 characters.
   */
  requestId?: () => string | null | undefined
  /** Rows older than this go when `purge()` is called; a whole number of 1 to 36,500. Default: rows stay. */
  keepDays?: number
  /** How many events wait in memory while the database is away, 1 to 1,000,000; default 10,000. Past it events are dropped. */
  capacity?: number
  /** Default: the console. */
  logger?: Logger
  /** The only clock. */
  now?: () => Date
}

export interface AuditLog {
  /** Writes down every event from now on; returns what stops that. */
  watch(events: AuthEvents): () => void
  /**
   * Resolves once everything told so far is written: before a shutdown.
   * @param options `timeoutMs`: how long it may take, default 5,000
   * @throws ServiceUnavailableError when the database is away or too slow; what waits goes on waiting
   */
  flush(options?: { timeoutMs?: number }): Promise<void>
  /**
   * Deletes rows older than `keepDays`, in batches; `purgeExpired(store, { auditLog })` calls it. Returns how many; 0 without `keepDays`.
   * @throws ServiceUnavailableError when the database cannot be reached
   */
  purge(): Promise<number>
  /** Events that wait to be written. */
  readonly waiting: number
  /** Events that were never written, since there was no room for them. */
  readonly dropped: number
}

/**
 * Every event as a row of `auth_audit_log`, which `createAuthTables` and the migrations make: `auditLog(knex).watch(auth.events)`.
 *
 * Rows are written behind the operations, on connections of the pool, never inside a transaction, many at once. While
 * the database is away they wait in memory, up to `capacity`; nothing is written twice. Of many refusals of one key (`throttled`) the
 * first of each window is a row, with the `count` of those before it.
 *
 * @throws ConfigurationError for a transaction, and for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function auditLog(knex: HostKnex, options: AuditLogOptions = {}): AuditLog {
  checkOptions(knex, options)
  const { capacity = 10_000, keepDays, now = () => new Date(), requestId = () => null } = options
  const rows = bindAuditRows(knex)
  const writer = createWriter(rows, capacity, safely(options.logger ?? consoleLogger))
  const throttledRows = createThrottledRows()
  const write = (name: AuthEventName, payload: Readonly<Record<string, PayloadValue>>) =>
    writer.add({
      id: randomUUID(),
      name,
      userId: rows.fitting('userId', payload['userId']),
      payload: JSON.stringify(payload),
      requestId: rows.fitting('requestId', askHost(requestId)),
      createdAt: now(),
    })
  return {
    watch: (events) =>
      watchAll(events, (name, payload) => {
        const payloads = name === 'throttled' ? throttledRows.add(payload, now().getTime()) : [payload]
        for (const payload of payloads) write(name, payload)
      }),
    async purge() {
      if (keepDays === undefined) return 0
      return emptyInBatches((older) => rows.deleteOlder(older), new Date(now().getTime() - keepDays * 86_400_000))
    },
    async flush({ timeoutMs = 5_000 } = {}) {
      await new Promise((resolve) => setImmediate(resolve)) // listeners run behind the operation that told them
      for (const payload of throttledRows.takeRest()) write('throttled', payload)
      // A database that is silent, rather than away, must not keep a process from stopping.
      await inTime(writer.flush(), timeoutMs, () => new ServiceUnavailableError())
    },
    get waiting() {
      return writer.waiting
    },
    get dropped() {
      return writer.dropped
    },
  }
}

/** Better an event without its request than none. */
function askHost(requestId: NonNullable<AuditLogOptions['requestId']>): unknown {
  try {
    return requestId()
  } catch {
    return null
  }
}

interface Writer {
  add(record: AuditRecord): void
  flush(): Promise<void>
  readonly waiting: number
  readonly dropped: number
}

const mostAtOnce = 100
const longestPauseMs = 30_000

/** One statement at a time, in the order of the events. What failed stays at the head and is tried again, ever more seldom. */
function createWriter(rows: AuditRows, capacity: number, logger: Logger): Writer {
  const queue: AuditRecord[] = []
  let writing: Promise<void> | null = null
  let pause: NodeJS.Timeout | null = null
  let failures = 0
  let dropped = 0
  let droppedSinceFailure = 0

  function add(record: AuditRecord): void {
    if (queue.length >= capacity) drop()
    else {
      queue.push(record)
      if (!pause) writeBehind()
    }
  }

  function drop(): void {
    dropped++
    if (droppedSinceFailure++ > 0) return
    logger.error({ capacity }, 'doorward: the audit log is full; events are dropped until the database takes them again')
  }

  function writeBehind(): void {
    write().catch(() => undefined) // said by `failed`
  }

  function write(): Promise<void> {
    writing ??= writeAll()
    return writing
  }

  /** Only called with something to write, so it has awaited before it ends. */
  async function writeAll(): Promise<void> {
    if (pause) clearTimeout(pause)
    pause = null
    try {
      while (queue.length > 0) {
        const batch = queue.slice(0, mostAtOnce)
        await rows.insert(batch)
        queue.splice(0, batch.length)
      }
      succeeded()
    } catch (error) {
      failed(error)
      throw error
    } finally {
      writing = null // in the same step as the last look at the queue, so that the next row starts a new write
    }
  }

  function succeeded(): void {
    if (failures > 0 || droppedSinceFailure > 0) logger.info({ dropped: droppedSinceFailure }, 'doorward: the audit log is written again')
    failures = 0
    droppedSinceFailure = 0
  }

  function failed(error: unknown): void {
    if (failures++ === 0) logger.error({ error: describeError(error), capacity }, 'doorward: the audit log cannot be written; events wait')
    pause = setTimeout(writeBehind, Math.min(longestPauseMs, 250 * 2 ** failures))
    pause.unref()
  }

  return {
    add,
    async flush() {
      while (queue.length > 0) await write()
    },
    get waiting() {
      return queue.length
    },
    get dropped() {
      return dropped
    },
  }
}

function checkOptions(knex: HostKnex, { capacity = 1, keepDays = 1, requestId }: AuditLogOptions): void {
  if (typeof knex !== 'function') throw new ConfigurationError('auditLog() needs the instance knex({ client, ... }) returns.')
  // What is written must stay when a transaction is rolled back, and must not wait for its end.
  if (knex.isTransaction) throw new ConfigurationError('auditLog() needs the knex instance itself, not a transaction.')
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > 1_000_000)
    throw new ConfigurationError('auditLog: capacity must be a whole number from 1 to 1000000.')
  if (!Number.isInteger(keepDays) || keepDays < 1 || keepDays > 36_500)
    throw new ConfigurationError('auditLog: keepDays must be a whole number from 1 to 36500.')
  if (requestId !== undefined && typeof requestId !== 'function')
    throw new ConfigurationError('auditLog: requestId must be a function that returns the id of the request, or null.')
}
