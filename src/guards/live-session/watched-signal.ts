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
  /** Called at the abort or release. */
  readonly forget: () => void
}

/** Milliseconds. The row is read again when the session ends, because a use may have extended it. A later answer counts as none. */
const lastAnswerMs = 1_000

export function watchedSignal({ userId, session, tokenEndsAt }: WatchedCredential, { now, ask, forget }: Watch): WatchedSignal {
  const controller = new AbortController()
  let sessionEndsAt = session?.expiresAt ?? null
  let stopTimer = (): void => undefined

  function startTimer(): void {
    const endsAt = tokenEndsAt && sessionEndsAt ? earlier(tokenEndsAt, sessionEndsAt) : (tokenEndsAt ?? sessionEndsAt)
    if (endsAt) stopTimer = callAt(endsAt, now, atEnd)
  }

  function atEnd(): void {
    if (endIfExpired()) return
    const timer = setTimeout(() => abort(new InvalidTokenError({ reason: 'session_over' })), lastAnswerMs).unref()
    stopTimer = () => clearTimeout(timer)
    ask()
  }

  function endIfExpired(): boolean {
    const isExpired = tokenEndsAt !== null && tokenEndsAt <= now()
    if (isExpired) abort(new TokenExpiredError())
    return isExpired
  }

  function judge(found: SessionWithUser | null): void {
    if (!session || endIfExpired()) return
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

  function release(): void {
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
