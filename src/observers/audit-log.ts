import { randomUUID } from 'node:crypto'
import { ConfigurationError, ServiceUnavailableError } from '../core/errors'
import type { AuthEventName, AuthEvents } from '../core/events'
import { consoleLogger, describeError, type Logger, safely } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import { type AuditRecord, type AuditRows, bindAuditRows } from '../store/knex/audit-rows'
import type { HostKnex } from '../store/knex/counter-rows'
import { emptyInBatches } from '../store/purge-expired'
import { type PayloadValue, watchAll } from './watch-all'

export interface AuditLogOptions {
  /** The id of the current request, for example from your AsyncLocalStorage. Stored if it is a text of at most 128 characters. */
  requestId?: () => string | null | undefined
  /** The age in days after which the purge deletes rows: a whole number from 1 to 36,500. `false`: never. Default 365. */
  keepDays?: number | false
  /** How many events can wait in memory while the database is down: 1 to 1,000,000. Default 10,000. Further events are dropped. */
  capacity?: number
  /** Default: the console. */
  logger?: Logger
  /** The clock. Default: the system's clock. */
  now?: () => Date
}

/** Which rows `list` returns. */
export interface AuditQuery {
  userId?: string
  /** The name of the event. */
  name?: AuthEventName
  /** The names of events that are left out. */
  except?: readonly AuthEventName[]
  /** The first time that counts. */
  from?: Date
  /** The first time that does not count. */
  to?: Date
  /** `nextCursor` of the previous page. */
  cursor?: string
  /** 1 to 500. Default 50. */
  limit?: number
}

/** A recorded event. */
export interface AuditRow {
  readonly id: string
  readonly name: AuthEventName
  readonly userId: string | null
  /** The payload of the event. */
  readonly payload: Readonly<Record<string, unknown>>
  readonly requestId: string | null
  readonly createdAt: Date
}

/** The log that `auditLog()` makes. */
export interface AuditLog {
  /** Records every event from now on. Returns a function that stops the recording. A second call for the same events does nothing. */
  watch(events: AuthEvents): () => void
  /**
   * Resolves when all earlier events are written. Call the method before a shutdown.
   * @param options `timeoutMs`: the time limit in milliseconds, default 5,000
   * @throws ServiceUnavailableError if the database is down or too slow; waiting events stay in memory
   */
  flush(options?: { timeoutMs?: number }): Promise<void>
  /**
   * Deletes rows older than `keepDays`, in batches. The purge of a router calls this method of every log that watches the router's events.
   * Returns the number of deleted rows.
   * @param options `signal`: ends the work after the current batch; `afterBatch`: called after each batch
   * @throws ServiceUnavailableError if the database cannot be reached
   */
  purge(options?: { signal?: AbortSignal | undefined; afterBatch?: (() => Promise<void>) | undefined }): Promise<number>
  /**
   * Lists the rows, newest first.
   * @throws TypeError for a wrong `cursor` or `limit`
   */
  list(query?: AuditQuery): Promise<{ items: AuditRow[]; nextCursor: string | null }>
  /**
   * Removes the client and the address from the rows of a user, also from rows that still wait. The log itself calls this method when an
   * account is deleted.
   * @throws ServiceUnavailableError if the database cannot be reached
   */
  forget(userId: string): Promise<void>
  /** The number of events that wait to be written. */
  readonly waiting: number
  /** The number of events that were dropped, because too many events waited. */
  readonly dropped: number
}

/**
 * Writes every event as a row of `auth_audit_log`: `auditLog(knex).watch(auth.events)`. `createAuthTables` and the migrations create that
 * table.
 *
 * The rows are written after the operations, many rows at once. The writer uses connections of the pool and never a transaction. While the
 * database is down, the rows wait in memory, up to `capacity`. No row is written twice.
 *
 * A rate limit counts each key (for example a client or an address) in windows. If a key exceeds the limit many times (`throttled`), only
 * the first refusal of each window becomes a row. The row's `count` includes the refusals since the key's previous row.
 *
 * @throws ConfigurationError for a transaction, and for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function auditLog(knex: HostKnex, options: AuditLogOptions = {}): AuditLog {
  checkOptions(knex, options)
  const { capacity = 10_000, keepDays = 365, now = () => new Date(), requestId = () => null } = options
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
  const stops = new Map<AuthEvents, () => void>()
  const forget = async (userId: string) => {
    await writer.forget(userId)
    for (let after = ''; ; ) {
      const traces = await rows.listTraces(userId, after, mostAtOnce)
      for (const { id, payload } of traces) await rows.replacePayload(id, withoutTraces(payload))
      const last = traces.at(-1)
      if (!last || traces.length < mostAtOnce) return
      after = last.id
    }
  }
  const forgetQuietly = (userId: string) =>
    forget(userId).catch((error: unknown) => {
      safely(options.logger ?? consoleLogger).warn(
        { userId, error: describeError(error) },
        'doorward: the audit log could not forget a deleted account. The purge tries it again',
      )
    })
  const log: AuditLog = {
    watch(events) {
      const known = stops.get(events)
      if (known) return known
      const stopForgetting = events.on('account.deleted', ({ userId }) => forgetQuietly(userId))
      const stop = watchAll(events, (name, payload) => {
        const payloads = name === 'throttled' ? throttledRows.add(payload, now().getTime()) : [payload]
        for (const payload of payloads) write(name, payload)
      })
      const logs = watching.get(events) ?? new Set()
      watching.set(events, logs.add(log))
      const end = () => {
        logs.delete(log)
        stops.delete(events)
        stopForgetting()
        stop()
      }
      stops.set(events, end)
      return end
    },
    async purge({ signal, afterBatch } = {}) {
      // An event of a request that ended later, or a database that was down.
      for (const userId of await rows.usersSince('account.deleted', new Date(now().getTime() - forgetsAgainMs))) await forget(userId)
      if (keepDays === false) return 0
      const before = new Date(now().getTime() - keepDays * 86_400_000)
      return emptyInBatches((older) => rows.deleteOlder(older), before, { signal, afterBatch })
    },
    async list({ cursor, limit = 50, ...wanted } = {}) {
      if (!Number.isInteger(limit) || limit < 1 || limit > 500) throw new TypeError('limit must be a whole number from 1 to 500.')
      const found = await rows.list({ ...wanted, limit: limit + 1, ...(cursor !== undefined && { after: readCursor(cursor) }) })
      const items = found.slice(0, limit)
      const last = items.at(-1)
      return { items: items.map(rowOf), nextCursor: last && found.length > limit ? writeCursor(last) : null }
    },
    forget,
    async flush({ timeoutMs = 5_000 } = {}) {
      await new Promise((resolve) => setImmediate(resolve)) // listeners run after the operation that emitted the event
      for (const payload of throttledRows.takeRest()) write('throttled', payload)
      // A database that does not respond must not prevent a process from stopping.
      await withTimeout(writer.flush(), timeoutMs, () => new ServiceUnavailableError())
    },
    get waiting() {
      return writer.waiting
    },
    get dropped() {
      return writer.dropped
    },
  }
  return log
}

const forgetsAgainMs = 2 * 86_400_000

/** Says as much as before, but nothing of the client and the address. */
function withoutTraces(payload: string): string {
  const { clientKey, addressDigest, ...others } = JSON.parse(payload) as Record<string, unknown> // as `write` wrote it
  return JSON.stringify({
    ...others,
    ...(clientKey !== undefined && { clientKey: null }),
    ...(addressDigest !== undefined && { addressDigest: null }),
  })
}

function rowOf({ name, payload, ...row }: AuditRecord): AuditRow {
  return { ...row, name: name as AuthEventName, payload: JSON.parse(payload) } // as `write` wrote them
}

function writeCursor({ createdAt, id }: AuditRecord): string {
  return Buffer.from(JSON.stringify([createdAt.getTime(), id])).toString('base64url')
}

/** @throws TypeError */
function readCursor(cursor: string): Pick<AuditRecord, 'id' | 'createdAt'> {
  try {
    const [at, id]: unknown[] = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Number.isSafeInteger(at) && typeof id === 'string') return { createdAt: new Date(Number(at)), id }
  } catch {
    // no cursor of ours
  }
  throw new TypeError('cursor must be the nextCursor of an earlier page.')
}

const watching = new WeakMap<AuthEvents, Set<AuditLog>>()

export function auditLogsOf(events: AuthEvents): readonly AuditLog[] {
  return [...(watching.get(events) ?? [])]
}

/** If the host's function throws, returns null, and the event is recorded without an id. */
function askHost(requestId: NonNullable<AuditLogOptions['requestId']>): unknown {
  try {
    return requestId()
  } catch {
    return null
  }
}

interface Writer {
  add(record: AuditRecord): void
  /** Changes the rows that wait, and resolves when no row from before is on its way to the database. */
  forget(userId: string): Promise<void>
  flush(): Promise<void>
  readonly waiting: number
  readonly dropped: number
}

const mostAtOnce = 100
const longestPauseMs = 30_000

/** One statement at a time, in the order of the events. A failed batch stays first, and is tried again after longer and longer pauses. */
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
    logger.error({ capacity }, 'doorward: the audit log is full. Until the database works again, new events are lost')
  }

  function writeBehind(): void {
    write().catch(() => undefined) // `failed` logs the error
  }

  function write(): Promise<void> {
    writing ??= writeAll()
    return writing
  }

  /** Call it only if the queue is not empty. Otherwise it would set `writing` to null before `write` stores the promise there. */
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
      writing = null // in the same step as the last check of the queue, so that the next row starts a new write
    }
  }

  function succeeded(): void {
    if (failures > 0 || droppedSinceFailure > 0) logger.info({ dropped: droppedSinceFailure }, 'doorward: the audit log works again')
    failures = 0
    droppedSinceFailure = 0
  }

  function failed(error: unknown): void {
    if (failures++ === 0)
      logger.error({ error: describeError(error), capacity }, 'doorward: the audit log cannot be written. Events wait in memory')
    pause = setTimeout(writeBehind, Math.min(longestPauseMs, 250 * 2 ** failures))
    pause.unref()
  }

  return {
    add,
    async forget(userId) {
      for (const record of queue) if (record.userId === userId) record.payload = withoutTraces(record.payload)
      await writing?.catch(() => undefined) // the queue keeps them, and they are changed already
    },
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
  // Rows must stay even if a transaction is rolled back, and must not wait for the end of a transaction.
  if (knex.isTransaction) throw new ConfigurationError('auditLog() needs the knex instance itself, not a transaction.')
  if (!Number.isInteger(capacity) || capacity < 1 || capacity > 1_000_000)
    throw new ConfigurationError('auditLog: capacity must be a whole number from 1 to 1000000.')
  if (keepDays !== false && (!Number.isInteger(keepDays) || keepDays < 1 || keepDays > 36_500))
    throw new ConfigurationError('auditLog: keepDays must be a whole number from 1 to 36500, or false.')
  if (requestId !== undefined && typeof requestId !== 'function')
    throw new ConfigurationError('auditLog: requestId must be a function that returns the id of the request, or null.')
}

type Payload = Readonly<Record<string, PayloadValue>>

interface ThrottledRows {
  add(refusal: Payload, time: number): Payload[]
  /** Refusals that were counted and not written yet. Each code and route has one payload, without a key. */
  takeRest(): Payload[]
}

interface Refusals {
  readonly payload: Payload
  /** Milliseconds since 1970. Before this time, further refusals of the key are only counted. */
  endsAt: number
  unwritten: number
}

/** A key takes about 300 bytes. */
const mostKeys = 10_000
const sweepEveryMs = 60_000

/**
 * An attacker decides how many refusals happen, so the first of each key and window becomes a row. Its `count` includes the key's refusals
 * since its previous row, so the sum of all `count` values is the number of all refusals.
 * Beyond 10,000 keys in memory, refusals of other keys are counted per code and route, and written once a minute.
 */
function createThrottledRows(): ThrottledRows {
  const byKey = new Map<PayloadValue | undefined, Refusals>()
  const rest = new Map<string, Refusals>()
  let sweptAt = Number.NEGATIVE_INFINITY

  function keepCount({ code = null, route = null }: Payload, count: number): void {
    const name = JSON.stringify([code, route])
    const kept = rest.get(name) ?? { payload: { code, route, keyDigest: null }, endsAt: 0, unwritten: 0 }
    kept.unwritten += count
    rest.set(name, kept)
  }

  function takeKept(): Payload[] {
    const rows = [...rest.values()].map(({ payload, unwritten }) => ({ ...payload, count: unwritten }))
    rest.clear()
    return rows
  }

  function dropEnded(time: number): void {
    for (const [key, { payload, endsAt, unwritten }] of byKey) {
      if (endsAt > time) continue
      if (unwritten > 0) keepCount(payload, unwritten)
      byKey.delete(key)
    }
  }

  function addWithoutRoom(refusal: Payload, time: number): Payload[] {
    keepCount(refusal, 1)
    if (Math.abs(time - sweptAt) < sweepEveryMs) return [] // the absolute value, because the clock may have been set back
    sweptAt = time
    dropEnded(time)
    return takeKept()
  }

  return {
    add(refusal, time) {
      const key = refusal['keyDigest']
      const held = byKey.get(key)
      if (held && time < held.endsAt) {
        held.unwritten++
        return []
      }
      if (!held && byKey.size >= mostKeys) return addWithoutRoom(refusal, time)
      byKey.set(key, { payload: refusal, endsAt: time + Number(refusal['retryAfterSeconds']) * 1000, unwritten: 0 })
      return [{ ...refusal, count: (held?.unwritten ?? 0) + 1 }]
    },
    takeRest() {
      for (const held of byKey.values()) {
        if (held.unwritten > 0) keepCount(held.payload, held.unwritten)
        held.unwritten = 0
      }
      return takeKept()
    },
  }
}
