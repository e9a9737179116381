import type { Logger } from '../logger'
import { seeTroubleshooting } from '../troubleshooting'

/** A log entry about a setup that looks wrong but still works. */
export interface Notice {
  readonly level: 'warn' | 'error'
  /** The kind of notice. The kind is also the name of the entry in docs/troubleshooting.md. */
  readonly entry: string
  /** The cause of the problem, and the fix. */
  readonly message: string
  readonly fields?: object
  /**
   * The subject of the notice. A notice with a subject is logged once for each of the first ten subjects. A notice without a subject is
   * logged once.
   */
  readonly about?: string
}

export interface SetupNotices {
  tell(notice: Notice): void
}

/** The maximum number of subjects for each kind of notice. The number is limited, because a client can choose the subject of a notice. */
const mostOfOneKind = 10

/** Returns an object that logs each notice only once (see `about`), even if many requests cause the notice. */
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
