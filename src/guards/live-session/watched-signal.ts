import { type AppError, InvalidTokenError, TokenExpiredError } from '../../core/errors'
import { earlier } from '../../sessions/find-session'
import type { SessionWithUser } from '../../store/auth-store'
import { refusalOf } from './refusal-of'
import { callAt } from './timer'

/** What a signal watches. One of the two ends is there. */
export interface WatchedCredential {
  readonly userId: string
  /** As it was read. Null: no session was read, so the token alone counts. */
  readonly session: { readonly id: string; readonly expiresAt: Date } | null
  /** Null with `tokenDelivery: 'session'`. */
  readonly tokenEndsAt: Date | null
}

export interface WatchedSignal {
  readonly userId: string
  readonly signal: AbortSignal
  /** Ends the watch without an abort. */
  release(): void
  /** Aborts unless `requireLiveSession` would accept the session. Null: there is no such row. */
  judge(found: SessionWithUser | null): void
  /** Aborts if the access token has expired. */
  endIfExpired(): void
}

interface Watch {
  readonly now: () => Date
  /** Reads the row of the session again. */
  readonly ask: () => void
  /** How often the database has answered. */
  readonly answers: () => number
  /** Called at the abort or release. */
  readonly forget: () => void
}

/** Milliseconds. The row is read again when the session ends, because a use may have extended it. A later answer counts as none. */
const lastAnswerMs = 1_000

export function watchedSignal({ userId, session, tokenEndsAt }: WatchedCredential, { now, ask, answers, forget }: Watch): WatchedSignal {
  const controller = new AbortController()
  let sessionEndsAt = session?.expiresAt ?? null
  let stopTimer = (): void => undefined
  let isReleased = false

  function startTimer(): void {
    const endsAt = tokenEndsAt && sessionEndsAt ? earlier(tokenEndsAt, sessionEndsAt) : (tokenEndsAt ?? sessionEndsAt)
    if (endsAt) stopTimer = callAt(endsAt, now, atEnd)
  }

  function atEnd(): void {
    if (endIfExpired()) return
    ask()
    awaitAnswer()
  }

  /** As long as the database answers at all, the row is still to be read. */
  function awaitAnswer(): void {
    const before = answers()
    const judgeSilence = () => (answers() === before ? abort(new InvalidTokenError({ reason: 'session_over' })) : awaitAnswer())
    const timer = setTimeout(judgeSilence, lastAnswerMs).unref()
    stopTimer = () => clearTimeout(timer)
  }

  function endIfExpired(): boolean {
    const isExpired = !isReleased && tokenEndsAt !== null && tokenEndsAt <= now()
    if (isExpired) abort(new TokenExpiredError())
    return isExpired
  }

  function judge(found: SessionWithUser | null): void {
    if (isReleased || !session || endIfExpired()) return
    const refusal = refusalOf(found, { id: session.id, userId }, now())
    if (refusal) abort(refusal)
    else moveEnd(found?.session.expiresAt ?? null)
  }

  function moveEnd(endsAt: Date | null): void {
    if (endsAt?.getTime() === sessionEndsAt?.getTime()) return
    sessionEndsAt = endsAt
    stopTimer()
    startTimer()
  }

  /** A list of signals may still name this one, so `judge` and `endIfExpired` look at `isReleased`. */
  function release(): void {
    isReleased = true
    stopTimer()
    forget()
  }

  function abort(reason: AppError): void {
    release()
    controller.abort(reason)
  }

  startTimer()
  return { userId, signal: controller.signal, release, judge, endIfExpired: () => void endIfExpired() }
}
