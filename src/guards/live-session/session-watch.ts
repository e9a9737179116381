import type { EndedSessions } from '../../sessions/session-ends'
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

/** Aborts the signals of sessions that have ended. The open signals bound its memory and statements. */
export function createSessionWatch(ctx: GuardContext): SessionWatch {
  const open: OpenSignals = new Map()
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
      return rows.ask(idsOf(open))
    },
  )
  let ends = 0
  ctx.sessionEnds?.listen((ended) => {
    ends += 1
    rows.ask(idsOf(open, ended))
  })

  return {
    ends: () => ends,
    open(credential, endsSeen) {
      const id = credential.session?.id ?? null
      const ask = () => void (id !== null && rows.ask([id]))
      const watched = watchedSignal(credential, { now: ctx.now, ask, forget: () => forget(open, id, watched) })
      open.set(id, (open.get(id) ?? new Set()).add(watched))
      if (ends !== endsSeen) ask()
      poll.start()
      return watched
    },
  }
}

function forget(open: OpenSignals, id: string | null, watched: WatchedSignal): void {
  const signals = open.get(id)
  signals?.delete(watched)
  if (signals?.size === 0) open.delete(id)
}

/** @param ended only these; by default every session */
function idsOf(open: OpenSignals, ended?: EndedSessions): string[] {
  if (ended && 'ids' in ended) return ended.ids.filter((id) => open.has(id))
  const named = [...open].filter(([, [first]]) => !ended || first?.userId === ended.userId) // one session has one user
  return named.flatMap(([id]) => id ?? [])
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
