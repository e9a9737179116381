import type { Logger } from '../logger'
import { seeTroubleshooting } from '../troubleshooting'

/** A set-up that looks wrong and does not stop anything, as the log tells it. */
export interface Notice {
  readonly level: 'warn' | 'error'
  /** Names the kind, and the entry of docs/troubleshooting.md. */
  readonly entry: string
  /** Cause and fix. */
  readonly message: string
  readonly fields?: object
  /** Told once for each of the first ten of these, in place of once. */
  readonly about?: string
}

export interface SetupNotices {
  tell(notice: Notice): void
}

/** A client can choose the subject of a notice, so their number is limited. */
const mostOfOneKind = 10

/** Logs each kind of notice once, however many requests show it. */
export function createSetupNotices(logger: Logger): SetupNotices {
  const told = new Map<string, Set<string>>()
  return {
    tell({ level, entry, message, fields = {}, about = '' }) {
      const known = told.get(entry) ?? new Set()
      if (known.has(about) || known.size >= mostOfOneKind) return
      told.set(entry, known.add(about))
      logger[level](fields, `doorward: ${message} ${seeTroubleshooting(entry)}`)
    },
  }
}
