import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

/**
 * The whole suite, once on each major of Express; every run covers SQLite and, where it is reachable, PostgreSQL.
 * Says at the end what was not reached, and closes with one line: `N passed, N failed, N skipped`. Under CI a skipped
 * test is a failure: there everything has to be reachable. Arguments go to vitest (`npm test -- test/social`).
 */

const root = join(import.meta.dirname, '..')
const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')
const expressMajors = ['5', '4']

/** The parts of vitest's JSON report that are counted. */
interface SuiteReport {
  testResults: { name: string; status: string; assertionResults: { fullName: string; status: string }[] }[]
}

interface Outcome {
  passed: number
  failed: number
  skipped: { file: string; test: string }[]
  exitCode: number
}

function main(): number {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-test-'))
  try {
    const outcomes = expressMajors.map((express) => runSuite(express, join(folder, `${express}.json`)))
    return conclude(outcomes)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function runSuite(express: string, report: string): Outcome {
  console.log(`\n=== Express ${express} ===`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const { status } = spawnSync(
    process.execPath,
    [vitest, 'run', '--config', 'test/vitest.config.ts', ...reporters, ...process.argv.slice(2)],
    {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, EXPRESS: express, VITE_CONFIG_NATIVE_IGNORE_WARNING: 'true' },
    },
  )
  if (!existsSync(report)) return { passed: 0, failed: 1, skipped: [], exitCode: status ?? 1 }
  return count(JSON.parse(readFileSync(report, 'utf8')) as SuiteReport, status ?? 1)
}

/** A file that failed before any of its tests ran counts as one failure, and so does a run that failed for no test's reason. */
function count(report: SuiteReport, exitCode: number): Outcome {
  const outcome: Outcome = { passed: 0, failed: 0, skipped: [], exitCode }
  for (const file of report.testResults) {
    if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) outcome.failed++
    for (const { fullName, status } of file.assertionResults) {
      if (status === 'passed') outcome.passed++
      else if (status === 'failed') outcome.failed++
      else outcome.skipped.push({ file: relative(root, file.name), test: fullName })
    }
  }
  if (exitCode !== 0 && outcome.failed === 0) outcome.failed = 1
  return outcome
}

function conclude(outcomes: Outcome[]): number {
  const passed = sum(outcomes.map((outcome) => outcome.passed))
  const failed = sum(outcomes.map((outcome) => outcome.failed))
  const skipped = outcomes.flatMap((outcome) => outcome.skipped)
  if (skipped.length > 0) announce(skipped)
  console.log(`\n${passed} passed, ${failed} failed, ${skipped.length} skipped`)
  if (passed === 0) console.error('No test ran.')
  return passed === 0 || failed > 0 || (process.env.CI && skipped.length > 0) ? 1 : 0
}

function announce(skipped: Outcome['skipped']): void {
  const line = '!'.repeat(100)
  const files = [...new Set(skipped.map(({ file }) => file))]
  console.log(`\n${line}\nNOT TESTED HERE, because something was not reached:`)
  for (const name of files) {
    const tests = skipped.filter(({ file }) => file === name)
    console.log(`  ${name}: ${tests.length}, the first is "${tests[0]?.test}"`)
  }
  console.log(line)
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

process.exit(main())
