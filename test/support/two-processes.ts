/**
 * Two child processes on one database, released at one moment: what one of them remembers cannot help the other. One
 * process would not be enough: a mutex in memory would pass and be wrong. The parent's side first, then the child's.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import knex, { type Knex } from 'knex'
import { AppError } from '../../src/core/errors'
import { type OpenDatabase, withoutFsync } from './databases'
import { raceRounds, raceZones } from './torture'

/** What a child answers to a task; `error`: the code a client would see, else the name of what was thrown. */
export type Report<Answer> = Answer | { error: string }

export interface OtherProcess<Task, Answer> {
  /** `startAt` is the barrier, in epoch milliseconds. */
  ask(task: Task, startAt?: number): Promise<Report<Answer>>
  stop(): Promise<void>
}

export interface ProcessPair<Task, Answer> {
  /** Both tasks released at one moment; half of the rounds with the two processes swapped. */
  race(one: Task, other: Task): Promise<[Report<Answer>, Report<Answer>]>
  /** One task with nobody beside it. */
  ask(task: Task): Promise<Report<Answer>>
  stop(): Promise<void>
}

/** As often as `npm run torture` asks for; usually `rounds`. */
export async function repeat(play: (round: number) => Promise<void>, rounds?: number): Promise<void> {
  for (let round = 0; round < raceRounds(rounds); round++) await play(round)
}

/** Runs the file, which calls `serveTasks`, twice; each in the zone `npm run torture` asks for, usually UTC. */
export async function startPair<Task, Answer>(file: string, opened: OpenDatabase): Promise<ProcessPair<Task, Answer>> {
  const [first, second] = await Promise.all(raceZones.map((timeZone) => startProcess<Task, Answer>(file, opened, timeZone)))
  if (!first || !second) throw new Error('a race has two processes')
  const children = [first, second] as const
  let round = 0
  return {
    async race(one, other) {
      const [first, second] = round++ % 2 === 0 ? children : [children[1], children[0]]
      const startAt = performance.timeOrigin + performance.now() + 3
      return Promise.all([first.ask(one, startAt), second.ask(other, startAt)])
    },
    ask: (task) => children[0].ask(task),
    stop: async () => void (await Promise.all(children.map((child) => child.stop()))),
  }
}

export async function startProcess<Task, Answer>(
  file: string,
  { config }: OpenDatabase,
  timeZone = 'UTC',
): Promise<OtherProcess<Task, Answer>> {
  if (!config) throw new Error('this database lives in one process only')
  const child = fork(file, { execArgv: ['--import', 'tsx'], serialization: 'advanced', env: { ...process.env, TZ: timeZone } })
  await tell(child, { config })
  return {
    ask: async (task, startAt = 0) => (await tell(child, { startAt, task })) as Report<Answer>, // the only thing `serveTasks` sends
    stop: () => stop(child),
  }
}

/** First the database, then tasks. */
type Order<Task> = { config: Knex.Config } | { startAt: number; task: Task }

async function tell(child: ChildProcess, order: Order<unknown>): Promise<unknown> {
  const waiting = new AbortController()
  const report = once(child, 'message', { signal: waiting.signal })
  const death = once(child, 'exit', { signal: waiting.signal }).then(() => null)
  child.send(order)
  const answered = await Promise.race([report, death])
  waiting.abort()
  await Promise.allSettled([report, death])
  if (!answered) throw new Error('the other process ended')
  return answered[0]
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const exit = once(child, 'exit')
  child.disconnect()
  await exit
}

/** The child: connects to the database it is told, then waits for the barrier, does one task and reports, again and again. */
export function serveTasks<Task, Answer>(
  prepare: (db: Knex) => ((task: Task) => Promise<Answer>) | Promise<(task: Task) => Promise<Answer>>,
  { connections = 1 }: { connections?: number } = {},
): void {
  let db: Knex | undefined
  let perform: ((task: Task) => Promise<Answer>) | undefined

  async function obey(order: Order<Task>): Promise<unknown> {
    if ('config' in order) {
      const isFile = order.config.client === 'better-sqlite3'
      db = knex({ ...order.config, pool: isFile ? withoutFsync({ min: 1, max: 1 }) : { min: 1, max: connections } })
      perform = await prepare(db)
      await db.raw('select 1') // connected before the first barrier
      return 'ready'
    }
    if (!perform) return { error: 'no database yet' }
    // Spinning, not a timer: both leave the barrier within a fraction of a millisecond.
    while (performance.timeOrigin + performance.now() < order.startAt);
    try {
      return await perform(order.task)
    } catch (error) {
      return { error: error instanceof AppError ? error.code : error instanceof Error ? error.name : 'unknown' }
    }
  }

  process.on('message', (order: Order<Task>) => void obey(order).then((report) => process.send?.(report)))
  process.on('disconnect', () => void db?.destroy().finally(() => process.exit(0)))
}
