import { ServiceUnavailableError } from '../../core/errors'
import { describeError } from '../../core/logger'
import { seeTroubleshooting } from '../../core/troubleshooting'
import { withTimeout } from '../../core/with-timeout'
import type { SessionStore, SessionWithUser } from '../../store/auth-store'
import type { GuardContext } from '../refusing'

export interface RowReader {
  /** Reads the rows after this call. Never rejects. @param isUrgent before all others that wait */
  ask(ids: Iterable<string>, isUrgent?: boolean): Promise<void>
  /** How often the database has answered. */
  answers(): number
}

interface Asker {
  /** False: the id need not be read any more. */
  isWanted(id: string): boolean
  /** Not called if the database does not answer. */
  answer(id: string, found: SessionWithUser | null): void
}

/** Of one statement. */
const mostSessions = 1_000

/** One statement at a time. Without `findMany`, each session is a statement. Without a table, there are no ids to ask for. */
export function rowReader(ctx: GuardContext, { isWanted, answer }: Asker): RowReader {
  const sessions = ctx.store?.sessions
  if (!sessions) return { ask: async () => undefined, answers: () => 0 }
  const [urgent, due] = [new Set<string>(), new Set<string>()]
  const most = sessions.findMany ? mostSessions : 1
  const read = quietReader(ctx, sessions)
  let reading: Promise<void> | null = null
  let answers = 0

  async function readAll(): Promise<void> {
    await null // what is asked for in one turn shares a statement
    const next = () => take([urgent, due], most, isWanted)
    for (let ids = next(); ids.length > 0; ids = next()) {
      const found = await read(ids)
      if (!found) continue
      answers += 1
      for (const id of ids) answer(id, found.get(id) ?? null)
    }
    reading = null
  }

  return {
    answers: () => answers,
    ask(ids, isUrgent = false) {
      for (const id of ids) (isUrgent ? urgent : due).add(id)
      reading ??= readAll()
      return reading
    },
  }
}

function take(queues: readonly Set<string>[], most: number, isWanted: (id: string) => boolean): string[] {
  const taken: string[] = []
  for (const queue of queues)
    for (const id of queue) {
      if (taken.length === most) return taken
      queue.delete(id)
      if (isWanted(id)) taken.push(id)
    }
  return taken
}

/** Null: no answer within `unitTimeoutSeconds`, or an error. The first of them in a row is logged. */
function quietReader({ logger, settings }: GuardContext, sessions: SessionStore) {
  let isAnswering = true
  return async (ids: readonly string[]): Promise<Map<string, SessionWithUser> | null> => {
    try {
      const rows = await withTimeout(find(sessions, ids), settings.unitTimeoutSeconds * 1000, () => new ServiceUnavailableError())
      const found = new Map(rows.filter((row) => row.session && row.user).map((row) => [row.session.id, row])) // of an adapter of the host
      isAnswering = true
      return found
    } catch (error) {
      if (isAnswering)
        logger.warn(
          { error: describeError(error) },
          `doorward: the database did not answer whether the sessions of open sockets still live, so their signals stay open until they expire. ${seeTroubleshooting('sockets-of-ended-sessions-stay-open')}`,
        )
      isAnswering = false
      return null
    }
  }
}

async function find(sessions: SessionStore, ids: readonly string[]): Promise<readonly SessionWithUser[]> {
  if (sessions.findMany) return sessions.findMany(ids)
  const found = await Promise.all(ids.map((id) => sessions.find({ id })))
  return found.filter((row) => row !== null)
}
