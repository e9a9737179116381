import type { Knex } from 'knex'
import { poolConnection } from './connection'
import { deleteUpTo } from './delete-up-to'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import type { Queryable } from './queryable'

/** The knex instance that the host made. Layers above the store only pass the instance on. */
export type HostKnex = Knex

/** The rows of `auth_counters`. Each method is one statement. Instants are milliseconds since 1970, by the caller's clock. */
export interface CounterRows {
  /**
   * Adds one to the count of the window that is open at `now`. If no window is open, begins a window with a count of one. The new window
   * ends at `endsAt`.
   */
  countUp(key: string, endsAt: number, now: number): Promise<Counted>
  /**
   * Subtracts one from the count, but never goes below zero. The window may have ended already. This does no harm, because the next window
   * begins at one.
   */
  countDown(key: string): Promise<void>
  remove(key: string): Promise<void>
  /** Deletes windows that ended before `instant`, at most `most` of them. */
  removeEnded(instant: number, most: number): Promise<void>
}

export interface Counted {
  readonly count: number
  readonly secondsLeft: number
}

const TABLE = 'auth_counters'
const [KEY, COUNT, ENDS_AT] = ['counter_key', 'count', 'ends_at']

/**
 * Returns the methods for the rows of `auth_counters`.
 * @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3`
 */
export function bindCounterRows(knex: HostKnex): CounterRows {
  const dialect = dialectOf(knex)
  const { statement } = poolConnection(knex, dialect)
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

    async removeEnded(instant, most) {
      await statement('counters.removeEnded', (db) => removeEnded(db, dialect, instant, most))
    },
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

/**
 * `countUpPacked` puts the count and the remaining seconds of the window into one number. The seconds get 25 bits, because 2^25 seconds are
 * more than a year. The count gets 27 bits. A JavaScript number holds the 52 bits exactly.
 */
const YEAR = 2 ** 25
const topCount = 2 ** 27 - 1

/**
 * Counts in MySQL, which has no RETURNING. LAST_INSERT_ID(n) in an UPDATE returns one integer with the response. So this function packs the
 * count and the remaining seconds into one number. If a new window began, the number is 0.
 */
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

/**
 * Deletes ended windows. The statement repeats the condition on `ends_at` outside of the subquery. So a row stays if another request began
 * a new window in it meanwhile.
 */
function removeEnded(db: Queryable, { name }: Dialect, instant: number, most: number): PromiseLike<number> {
  const ended = db(TABLE).where(ENDS_AT, '<', instant)
  if (name === 'mysql') return deleteUpTo(db, ended, most)
  const keys = db(TABLE).where(ENDS_AT, '<', instant).orderBy(ENDS_AT).limit(most).select(KEY)
  return ended.whereIn(KEY, keys).delete()
}

function secondsBetween(now: number, endsAt: number): number {
  return Math.ceil((endsAt - now) / 1000)
}
