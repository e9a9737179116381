import type { GuardContext } from '../refusing'
import { rowReader } from './row-reader'
import { type WatchedCredential, type WatchedSignal, watchedSignal } from './watched-signal'

export interface SessionWatch {
  /** How often the router may have ended sessions. */
  ends(): number
  /** @param endsSeen `ends()` before the session was read; later ends count for this signal too */
  open(credential: WatchedCredential, endsSeen: number): Pick<WatchedSignal, 'signal' | 'release'>
}

/** By the id of the session. Null: no session. */
type OpenSignals = Map<string | null, Set<WatchedSignal>>
/** The sessions that have open signals. */
type SessionsOfUser = Map<string, Set<string>>

/** Aborts the signals of sessions that have ended. The open signals bound its memory and statements. */
export function createSessionWatch(ctx: GuardContext): SessionWatch {
  const open: OpenSignals = new Map()
  const sessionsOfUser: SessionsOfUser = new Map()
  const rows = rowReader(ctx, {
    isWanted: (id) => open.has(id),
    answer: (id, found) => {
      for (const one of [...(open.get(id) ?? [])]) one.judge(found)
    },
  })
  const poll = pollingWhile(
    () => open.size > 0,
    ctx.settings.liveSessionPollSeconds,
    () => {
      for (const one of [...open.values()].flatMap((signals) => [...signals])) one.endIfExpired()
      return rows.ask([...open.keys()].flatMap((id) => id ?? []))
    },
  )
  let ends = 0
  ctx.sessionEnds?.listen((ended) => {
    ends += 1
    rows.ask('ids' in ended ? ended.ids.filter((id) => open.has(id)) : (sessionsOfUser.get(ended.userId) ?? []))
  })

  return {
    ends: () => ends,
    open(credential, endsSeen) {
      const id = credential.session?.id ?? null
      const ask = () => void (id !== null && rows.ask([id], true))
      const watched = watchedSignal(credential, {
        now: ctx.now,
        ask,
        answers: rows.answers,
        forget: () => forget({ open, sessionsOfUser }, id, watched),
      })
      open.set(id, (open.get(id) ?? new Set()).add(watched))
      if (id !== null) sessionsOfUser.set(credential.userId, (sessionsOfUser.get(credential.userId) ?? new Set()).add(id))
      if (ends !== endsSeen) ask()
      poll.start()
      return watched
    },
  }
}

function forget(
  { open, sessionsOfUser }: { open: OpenSignals; sessionsOfUser: SessionsOfUser },
  id: string | null,
  watched: WatchedSignal,
): void {
  const signals = open.get(id)
  signals?.delete(watched)
  if (signals?.size !== 0) return
  open.delete(id)
  const sessions = sessionsOfUser.get(watched.userId)
  if (id !== null) sessions?.delete(id)
  if (sessions?.size === 0) sessionsOfUser.delete(watched.userId)
}

/** The next poll begins `seconds` after the last one has ended. 0: never. */
function pollingWhile(isNeeded: () => boolean, seconds: number, run: () => Promise<void>): { start(): void } {
  let isStarted = seconds === 0
  const start = (): void => {
    if (isStarted) return
    isStarted = true
    setTimeout(async () => {
      await run()
      isStarted = false
      if (isNeeded()) start()
    }, seconds * 1000).unref()
  }
  return { start }
}
