import type { Knex } from 'knex'
import { poolConnection } from './connection'
import { deleteUpTo } from './delete-up-to'
import type { Dialect } from './dialect'
import { dialectOf } from './dialect-of'
import type { Queryable } from './queryable'

/** The instance the host made: rooms above this one hand it on and use nothing of it. */
export type HostKnex = Knex

/** The rows of `auth_counters`. Every verb is one statement; instants are milliseconds since 1970, all by the caller's clock. */
export interface CounterRows {
  /** One more in the window that is open at `now`; if there is none, the first of a window that ends at `endsAt`. */
  countUp(key: string, endsAt: number, now: number): Promise<Counted>
  /** One less, never below zero. Of an ended window it makes no difference: the next one begins at one. */
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

/** @throws ConfigurationError for a knex client other than `pg`, `mysql2` and `better-sqlite3` */
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

/** Bits for the seconds left: over a year. With a count below 2^27 the sum is exact as a JavaScript number. */
const YEAR = 2 ** 25
const topCount = 2 ** 27 - 1

/**
 * MySQL has no RETURNING. LAST_INSERT_ID(n) in an UPDATE hands one integer back with the same answer, so the count and the
 * seconds left travel in one. It is 0 where the row was inserted.
 */
async function countUpPacked(db: Queryable, key: string, endsAt: number, now: number): Promise<Counted> {
  const secondsLeft = 'least(ceil((?? - ?) / 1000), ?)'
  const [packed] = await db(TABLE)
    .insert({ [KEY]: key, [COUNT]: 1, [ENDS_AT]: endsAt })
    .onConflict(KEY)
    // In this order: an assignment sees the new values of those before it.
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

/** `ends_at` is asked for again outside: a window that opened anew meanwhile, under the same key, is not deleted. */
function removeEnded(db: Queryable, { name }: Dialect, instant: number, most: number): PromiseLike<number> {
  const ended = db(TABLE).where(ENDS_AT, '<', instant)
  if (name === 'mysql') return deleteUpTo(db, ended, most)
  const keys = db(TABLE).where(ENDS_AT, '<', instant).orderBy(ENDS_AT).limit(most).select(KEY)
  return ended.whereIn(KEY, keys).delete()
}

function secondsBetween(now: number, endsAt: number): number {
  return Math.ceil((endsAt - now) / 1000)
}
