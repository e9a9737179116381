import type { Logger } from '../logger'
import { seeTroubleshooting } from '../troubleshooting'

/** A log entry about a setup that looks wrong, but does not stop anything. */
export interface Notice {
  readonly level: 'warn' | 'error'
  /** The kind of notice, which is also the entry in docs/troubleshooting.md. */
  readonly entry: string
  /** The cause and the fix. */
  readonly message: string
  readonly fields?: object
  /** The subject. Then the notice is logged once for each of the first ten subjects, instead of once. */
  readonly about?: string
}

export interface SetupNotices {
  tell(notice: Notice): void
}

/** A client can choose the subject of a notice, so their number is limited. */
const mostOfOneKind = 10

/** Logs each kind of notice once, even if many requests cause it. */
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
