import { ServiceUnavailableError } from '../../core/errors'
import { describeError } from '../../core/logger'
import { seeTroubleshooting } from '../../core/troubleshooting'
import { withTimeout } from '../../core/with-timeout'
import type { SessionStore, SessionWithUser } from '../../store/auth-store'
import type { GuardContext } from '../refusing'

export interface RowReader {
  /** Reads the rows after this call, and after all statements before it. Never rejects. */
  ask(ids: Iterable<string>): Promise<void>
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
  if (!sessions) return { ask: async () => undefined }
  const due = new Set<string>()
  const most = sessions.findMany ? mostSessions : 1
  const read = quietReader(ctx, sessions)
  let reading: Promise<void> | null = null

  async function readAll(): Promise<void> {
    await null // what is asked for in one turn shares a statement
    for (let ids = take(due, most, isWanted); ids.length > 0; ids = take(due, most, isWanted)) {
      const found = await read(ids)
      if (found) for (const id of ids) answer(id, found.get(id) ?? null)
    }
    reading = null
  }

  return {
    ask(ids) {
      for (const id of ids) due.add(id)
      reading ??= readAll()
      return reading
    },
  }
}

function take(due: Set<string>, most: number, isWanted: (id: string) => boolean): string[] {
  const taken: string[] = []
  for (const id of due) {
    if (taken.length === most) break
    due.delete(id)
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
      const found = new Map(rows.map((row) => [row.session.id, row]))
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
