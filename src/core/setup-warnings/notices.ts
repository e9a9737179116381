import type { Logger } from '../logger'
import { seeTroubleshooting } from '../troubleshooting'

/** A log entry about a setup that looks wrong but still works. */
export interface SetupWarning {
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

export interface SetupWarnings {
  tell(notice: SetupWarning): void
  /** Keeps a notice for `doctor` without a log line, because the log has its own line. Replaces the last notice about the same subject. */
  keep(notice: SetupWarning): void
  /** Returns the notices that were logged or kept. `doctor` repeats them. */
  told(): readonly SetupWarning[]
}

/** Returns the text of the log line. */
export function lineOf({ message, entry }: SetupWarning): string {
  return `doorward: ${message} ${seeTroubleshooting(entry)}`
}

/** The maximum number of subjects for each kind of notice. The number is limited, because a client can choose the subject of a notice. */
const mostOfOneKind = 10

/** Returns an object that logs each notice only once (see `about`), even if many requests cause the notice. */
export function createSetupWarnings(logger: Logger): SetupWarnings {
  const told: SetupWarning[] = []
  return {
    tell(notice) {
      const { level, entry, fields = {}, about } = notice
      const known = told.filter((other) => other.entry === entry)
      if (known.length >= mostOfOneKind || known.some((other) => other.about === about)) return
      told.push(notice)
      logger[level](fields, lineOf(notice))
    },
    keep(notice) {
      const same = told.findIndex(({ entry, about }) => entry === notice.entry && about === notice.about)
      if (same !== -1) told[same] = notice
      else if (told.filter(({ entry }) => entry === notice.entry).length < mostOfOneKind) told.push(notice)
    },
    told: () => told,
  }
}
