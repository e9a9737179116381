import type { Knex } from 'knex'
import type { PurgeRun } from '../auth-store'
import { type Connection, poolConnection } from './connection'
import { whereLater } from './delete-expired'
import { dialectOf } from './dialect-of'
import type { Queryable, Row } from './queryable'

export type HostKnex = Knex

/** Each method is one statement. Instants are milliseconds since 1970, by the caller's clock. */
export interface CounterRows {
  /** If no window is open at `now`, begins a window with a count of one, which ends at `endsAt`. */
  countUp(key: string, endsAt: number, now: number): Promise<Counted>
  /** Never goes below zero. An ended window does no harm, because the next window begins at one. */
  countDown(key: string): Promise<void>
  remove(key: string): Promise<void>
  removeEnded(instant: number, most: number, run?: PurgeRun): Promise<number>
}

export interface Counted {
  readonly count: number
  readonly secondsLeft: number
}

const TABLE = 'auth_counters'
const [KEY, COUNT, ENDS_AT] = ['counter_key', 'count', 'ends_at']

/** @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3` */
export function bindCounterRows(knex: HostKnex): CounterRows {
  const dialect = dialectOf(knex)
  const connection = poolConnection(knex, dialect)
  const { statement } = connection
  const countUp = dialect.returning ? countUpReturning : countUpPacked
  return {
    countUp: (key, endsAt, now) => statement('counters.countUp', (db) => countUp(db, key, endsAt, now)),

    async countDown(key) {
      await statement('counters.countDown', (db) =>
        db(TABLE)
          .where({ [KEY]: key })
          .where(COUNT, '>', 0)
          .decrement(COUNT),
      )
    },

    async remove(key) {
      await statement('counters.remove', (db) =>
        db(TABLE)
          .where({ [KEY]: key })
          .delete(),
      )
    },

    removeEnded: (instant, most, run) => removeEnded(connection, instant, most, run),
  }
}

async function countUpReturning(db: Queryable, key: string, endsAt: number, now: number): Promise<Counted> {
  const held = [`${TABLE}.${ENDS_AT}`, now] as const
  const [row] = await db(TABLE)
    .insert({ [KEY]: key, [COUNT]: 1, [ENDS_AT]: endsAt })
    .onConflict(KEY)
    .merge({
      [COUNT]: db.raw('case when ?? <= ? then 1 else ?? + 1 end', [...held, `${TABLE}.${COUNT}`]),
      [ENDS_AT]: db.raw('case when ?? <= ? then ? else ?? end', [...held, endsAt, held[0]]),
    })
    .returning([`${COUNT} as counted`, `${ENDS_AT} as ends`])
  return { count: Number(row.counted), secondsLeft: secondsBetween(now, Number(row.ends)) }
}

/** The seconds get 25 bits (more than a year), and the count 27 bits. A JavaScript number holds the 52 bits exactly. */
const YEAR = 2 ** 25
const topCount = 2 ** 27 - 1

/** MySQL has no RETURNING, but LAST_INSERT_ID(n) in an UPDATE returns one integer. Zero: a new window began. */
async function countUpPacked(db: Queryable, key: string, endsAt: number, now: number): Promise<Counted> {
  const secondsLeft = 'least(ceil((?? - ?) / 1000), ?)'
  const [packed] = await db(TABLE)
    .insert({ [KEY]: key, [COUNT]: 1, [ENDS_AT]: endsAt })
    .onConflict(KEY)
    // The order matters: an assignment reads the new values of the assignments before it.
    .merge({
      [COUNT]: db.raw('if(?? <= ?, 1, least(?? + 1, ?))', [ENDS_AT, now, COUNT, topCount]),
      [ENDS_AT]: db.raw(`if(?? <= ?, ?, ?? + 0 * last_insert_id(?? * ? + ${secondsLeft}))`, [
        ...[ENDS_AT, now, endsAt, ENDS_AT, COUNT, YEAR],
        ...[ENDS_AT, now, YEAR - 1],
      ]),
    })
  const answer = Number(packed)
  if (answer === 0) return { count: 1, secondsLeft: secondsBetween(now, endsAt) }
  return { count: Math.floor(answer / YEAR), secondsLeft: answer % YEAR }
}

/** A row stays if another request began a new window in it meanwhile. */
async function removeEnded({ dialect, statement }: Connection, instant: number, most: number, run: PurgeRun = {}): Promise<number> {
  const position = run.position as { ends: number; ended: string } | undefined // only this function writes it
  const rows = await statement<Row[]>('counters.removeEnded', (db) => {
    const query = db(TABLE).where(ENDS_AT, '<', instant)
    if (position) whereLater(query, dialect, [ENDS_AT, position.ends], [KEY, position.ended])
    return query.orderBy([ENDS_AT, KEY]).limit(most).select(`${KEY} as ended`, `${ENDS_AT} as ends`)
  })
  run.isOver = rows.length < most
  if (rows.length === 0) return 0
  run.position = rows.at(-1)
  const keys = rows.map((row) => String(row['ended']))
  return statement<number>('counters.removeEnded', (db) => db(TABLE).where(ENDS_AT, '<', instant).whereIn(KEY, keys).delete())
}

function secondsBetween(now: number, endsAt: number): number {
  return Math.ceil((endsAt - now) / 1000)
}
