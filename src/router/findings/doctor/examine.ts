import { isProduction } from '../../../core/config/environment'
import { sentenceOf } from '../../../core/error-sentence'
import { withTimeout } from '../../../core/with-timeout'
import { accountChecks } from './accounts'
import { type Check, type DoctorFinding, type DoctorReport, lateAfter, type Patient, type Result } from './check'
import { databaseChecks, lastPurge } from './database'
import { providerChecks } from './providers'
import { secretChecks } from './secrets'
import { mailChecks, processChecks, webChecks } from './web'

/** All checks, in the order of the report. */
export const checks: readonly Check[] = [
  ...secretChecks,
  ...databaseChecks,
  ...mailChecks,
  ...webChecks,
  ...processChecks,
  ...providerChecks,
  ...accountChecks,
]

const longestSeconds = 5

/** Runs all checks in parallel. Each check has 5 seconds. */
export async function examine(patient: Omit<Patient, 'isProduction'>): Promise<DoctorReport> {
  const whole = { ...patient, isProduction: isProduction(patient.options.environment) }
  const [results, lastPurgeAt] = await Promise.all([
    Promise.all(checks.map(async (check) => ({ check: check.name, result: await resultOf(check, whole) }))),
    lastPurge(patient.options).catch(() => null), // the checks say what fails
  ])
  const findings = results.flatMap(({ check, result }) => findingsOf(check, result))
  return {
    ok: findings.every(({ level }) => level !== 'error'),
    findings: findings.toSorted((one, other) => one.level.localeCompare(other.level)),
    skipped: results.flatMap(({ check, result }) => (result && 'skipped' in result ? [{ check, why: result.skipped }] : [])),
    ...(lastPurgeAt && { lastPurgeAt }),
  }
}

/** Runs one check. If the check fails, the check counts as skipped, and the other checks continue. */
async function resultOf({ examine }: Check, patient: Patient): Promise<Result> {
  try {
    return await withTimeout(Promise.resolve(examine(patient)), longestSeconds * 1_000, () => lateAfter(longestSeconds))
  } catch (problem) {
    return { skipped: `The check could not be made: ${sentenceOf(problem)}` }
  }
}

function findingsOf(check: string, result: Result): DoctorFinding[] {
  if (result === null || 'skipped' in result) return []
  return [result].flat().map((fault) => ({ check, ...fault }))
}
