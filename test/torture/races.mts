/**
 * `npm run torture -- races [rounds]`
 *
 * The races of the security bar, C01 to C24, from two processes on each database, 50 rounds each unless told otherwise (where a
 * race needs no database or no second process, as it stands). One line per id and database; 1 on a violation or a gap.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { raceTests } from './race-tests'
import { runTests } from './run-tests'

/** What a race of the list is about beside those: refusals that hold under pressure, and budgets of one database call. */
const others = [
  'test/admin/races.test.ts',
  'test/faults/conflicts.test.ts',
  'test/guards/published-keys.test.ts',
  'test/local/round-trips.test.ts',
  'test/social/round-trips.test.ts',
  'test/store/outages.test.ts',
]
const ids = Array.from({ length: 24 }, (_, index) => `C${String(index + 1).padStart(2, '0')}`)
const databases = ['sqlite', 'postgres', 'mariadb']
const rounds = process.argv[2] ?? '50'

interface Outcome {
  fullName: string
  status: string
  duration?: number | null
}

const folder = mkdtempSync(join(tmpdir(), 'doorward-races-'))
const report = join(folder, 'report.json')
const exitCode = await runTests([...raceTests, ...others], { DOORWARD_RACE_ROUNDS: rounds }, [
  '--no-file-parallelism',
  '--reporter=json',
  `--outputFile.json=${report}`,
])
const { testResults } = JSON.parse(readFileSync(report, 'utf8')) as { testResults: { assertionResults: Outcome[] }[] } // vitest's own form
rmSync(folder, { recursive: true, force: true })
const outcomes = testResults.flatMap(({ assertionResults }) => assertionResults)

console.log(`\n${rounds} rounds`)
const gaps = ids.filter((id) => !describe(id))
if (gaps.length > 0) console.log(`no race at all: ${gaps.join(', ')}`)
process.exit(exitCode !== 0 || gaps.length > 0 ? 1 : 0)

/** One line for each database; true when there was any. */
function describe(id: string): boolean {
  const races = outcomes.filter(({ fullName }) => new RegExp(`\\b${id}\\b`).test(fullName))
  const onDatabases = databases.map((name) => [name, races.filter(({ fullName }) => mentions(fullName, name))] as const)
  const elsewhere = races.filter(({ fullName }) => !databases.some((name) => mentions(fullName, name)))
  for (const [name, of] of [...onDatabases, ['no database', elsewhere] as const]) if (of.length > 0) console.log(line(id, name, of))
  return races.length > 0
}

function mentions(fullName: string, database: string): boolean {
  return fullName.toLowerCase().includes(database)
}

function line(id: string, database: string, races: readonly Outcome[]): string {
  const bad = races.filter(({ status }) => status !== 'passed')
  const seconds = races.reduce((total, { duration }) => total + (duration ?? 0), 0) / 1000
  const verdict = bad.length === 0 ? 'no violation' : `VIOLATED: ${bad.map(({ fullName }) => fullName).join('; ')}`
  return `${id}  ${database.padEnd(11)}  ${String(races.length).padStart(2)} races  ${seconds.toFixed(1).padStart(6)} s  ${verdict}`
}
