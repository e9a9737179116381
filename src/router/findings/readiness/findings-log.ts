import type { Logger } from '../../../core/logger'
import { seeTroubleshooting } from '../../../core/troubleshooting'
import type { TableFinding } from '../../../store/auth-store'
import { stopwatch } from './stopwatch'

/** Logs each finding once. Also logs, at most once a minute, that requests are rejected. */
export interface FindingsLog {
  tell(findings: readonly TableFinding[]): void
  tellRefusal(errors: readonly TableFinding[]): void
}

const minute = 60_000

export function findingsLog(logger: Logger, now: () => Date): FindingsLog {
  const told = new Set<string>()
  let sinceTold = stopwatch(now)
  let wasBroken = false
  return {
    tell(findings) {
      for (const finding of findings) {
        if (told.has(finding.key)) continue
        told.add(finding.key)
        const { key, level, table, column, message, sql } = finding
        if (level === 'error') sinceTold = stopwatch(now)
        logger[level === 'error' ? 'error' : 'warn']({ key, table, column, sql }, `doorward: ${message}`)
      }
      const isBroken = findings.some(({ level }) => level === 'error')
      if (wasBroken && !isBroken)
        logger.info({ checked: [...told] }, 'doorward: the tables have no errors any more, so doorward accepts requests.')
      wasBroken = isBroken
    },
    tellRefusal(errors) {
      if (sinceTold.milliseconds() < minute) return
      sinceTold = stopwatch(now)
      const findings = errors.map(({ key, table, column, sql }) => ({ key, table, column, sql }))
      const keys = errors.map(({ key }) => key).join(', ')
      logger.error(
        { findings },
        `doorward: requests that need the store get 503, because the tables have errors: ${keys}. ${seeTroubleshooting('sign-in-is-not-available')}`,
      )
    },
  }
}
