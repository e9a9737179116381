import { withTimeout } from '../core/with-timeout'
import type { DoctorFinding, DoctorReport } from '../router/findings/doctor/check'
import { type AuthModuleFlags, type LoadedAuth, loadAuth } from './auth-module'
import { type FolderResult, folderChecks } from './load-module'
import { type CommandAnswer, CommandRefusal, type Surroundings } from './terminal'

export interface DoctorFlags extends AuthModuleFlags {
  readonly strict?: boolean | undefined
}

/** In milliseconds. After the start of the app, the checks take at most 5 seconds. */
const longestStartMs = 9_000

/** No finding: an empty output. A module that throws is a finding too, because it is the most common fault of an app. */
export async function doctor(flags: DoctorFlags, surroundings: Surroundings): Promise<CommandAnswer> {
  const { ofApp, cause } = await examined(flags, surroundings)
  const inFolder = folderChecks(surroundings.folder)
  const findings = [...ofApp.findings, ...inFolder.flatMap(({ finding }) => finding ?? [])]
  const skipped = [...ofApp.skipped, ...inFolder.flatMap(skippedOf)]
  const ok = findings.every(({ level }) => level !== 'error')
  const { lastPurgeAt } = ofApp
  const notes = [
    ...skipped.map(({ check, why }) => `skipped  ${check}  ${why}`),
    ...(lastPurgeAt ? [`The last purge ended at ${lastPurgeAt.toISOString()}.`] : []),
  ]
  return {
    json: { ok, findings, skipped, ...(lastPurgeAt && { lastPurgeAt }) },
    text: findings.map(paragraph).join('\n\n'),
    ...(flags.verbose && notes.length > 0 && { note: notes.join('\n') }),
    ...(cause !== undefined && { cause }),
    isNo: !ok || (flags.strict === true && findings.length > 0),
  }
}

async function examined(flags: DoctorFlags, surroundings: Surroundings): Promise<{ ofApp: DoctorReport; cause?: unknown }> {
  const late = () => new CommandRefusal('BOOT', `The auth module did not end within ${longestStartMs / 1_000} seconds.`)
  try {
    const { auth, app } = await withTimeout(loadAuth(surroundings, flags), longestStartMs, late)
    return { ofApp: await auth.doctor(hasSettings(app) ? { app } : {}) }
  } catch (error) {
    if (!(error instanceof CommandRefusal)) throw error
    return { ofApp: { ok: false, findings: [boot(error)], skipped: [] }, cause: error.cause }
  }
}

function hasSettings(app: LoadedAuth['app']): app is { get(name: string): unknown } {
  return typeof app === 'function' && 'get' in app && typeof app.get === 'function'
}

function boot({ message }: CommandRefusal): DoctorFinding {
  return {
    check: 'boot',
    level: 'error',
    what: message,
    why: 'The app does not start.',
    fix: 'The sentence above names the piece. `--verbose` says where it was thrown.',
  }
}

function skippedOf({ check, skipped }: FolderResult): DoctorReport['skipped'] {
  return skipped === undefined ? [] : [{ check, why: skipped }]
}

function paragraph({ check, level, what, why, fix }: DoctorFinding): string {
  return [`${level}  ${check}`, what, why, fix].join('\n  ')
}
