import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { raceTests } from './torture/race-tests.js'

/**
 * The whole suite, once on each major of Express; every run covers SQLite and, where they are reachable, PostgreSQL and
 * MariaDB. Under CI what touches rows and instants runs again in two other time zones. Says at the end what was not
 * reached, what failed and why, and closes with one line: `N passed, N failed, N skipped`. Under CI a skipped test is a
 * failure: there everything has to be reachable. Arguments go to vitest (`npm test -- test/social`).
 */

const root = join(import.meta.dirname, '..')
const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')
const expressMajors = ['5', '4']
const otherZones = ['Asia/Tokyo', 'America/Sao_Paulo']
/** Where rows and instants decide. The store knows no Express, so one major is enough for it; races know no zone. */
const zonedTests = [
  'test/account',
  'test/events.test.ts',
  'test/guards',
  'test/local/account-states.test.ts',
  'test/local/links.test.ts',
  'test/local/main-flow.test.ts',
  'test/mailbox',
  'test/server-session',
  'test/service.test.ts',
  'test/session',
  'test/social',
]
/** Races between processes of their own, which load the same Express whichever the suite is on: once is enough, in one zone. */
const betweenProcesses = [
  ...raceTests,
  'test/admin/races.test.ts',
  'test/examples/clustered.test.ts',
  'test/faults/killed.test.ts',
  'test/faults/terminated.test.ts',
]
/** What opens no HTTP of ours: the major of Express is nothing to it. */
const expressless = [
  'test/config/**',
  'test/demo/**', // `npm run demo` runs on the one that is installed here
  'test/docs-*.test.ts',
  'test/mail/postman.test.ts',
  'test/mail/smtp-mailer.test.ts',
  'test/mail/topics.test.ts',
  'test/providers/**',
  'test/store/after-commit.test.ts',
  'test/store/driver-errors.test.ts',
  'test/store/forgotten-conditions.test.ts',
  'test/store/interleavings.test.ts',
  'test/store/knex-store.test.ts',
  'test/store/memory-store.test.ts',
  'test/store/migrations.test.ts',
  'test/store/schema.test.ts',
  'test/store/time-zones.test.ts',
  'test/throttle/budget.test.ts',
  'test/throttle/client-key.test.ts',
  'test/throttle/held-windows.test.ts',
  'test/throttle/knex-counters.test.ts',
  'test/throttle/redis-counters.test.ts',
  'test/throttle/shared-counters.test.ts',
]
/** Nor does a zone matter to what compares no instants. */
const unzonedTests = [
  ...betweenProcesses,
  'test/guards/csrf.test.ts',
  'test/guards/idempotency.test.ts',
  'test/guards/internal-token.test.ts',
  'test/guards/middleware.test.ts',
  'test/guards/rate-limit.test.ts',
]

interface Suite {
  express: string
  /** As TZ; undefined: the machine's own. */
  zone?: string
  tests: readonly string[]
  without?: readonly string[]
}

const given = process.argv.slice(2)

function suites(): Suite[] {
  const everywhere = expressMajors.map((express) => ({
    express,
    tests: given,
    without: given.length > 0 || express === '5' ? [] : [...betweenProcesses, ...expressless],
  }))
  if (!process.env.CI || given.length > 0) return everywhere
  const utc = everywhere.map((suite) => ({ ...suite, zone: 'UTC' }))
  const zoned = otherZones.flatMap((zone) =>
    expressMajors.map((express) => {
      const tests = express === '5' ? [...zonedTests, 'test/store'] : zonedTests
      return { express, zone, tests, without: unzonedTests }
    }),
  )
  return [...utc, ...zoned]
}

/** The parts of vitest's JSON report that are counted. */
interface SuiteReport {
  testResults: { name: string; status: string; message?: string; assertionResults: TestReport[] }[]
}

interface TestReport {
  fullName: string
  status: string
  failureMessages?: string[]
}

interface Outcome {
  passed: number
  /** Each with what it ran on and why, to be read where the log of a run is kept from its end. */
  failed: string[]
  skipped: { file: string; test: string }[]
  /** What the tests announced as `*** SKIPPED: … ***`: a database or a browser they did not find. */
  missing: string[]
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-test-'))
  try {
    const outcomes: Outcome[] = []
    for (const [index, suite] of suites().entries()) outcomes.push(await runSuite(suite, join(folder, `${index}.json`)))
    return conclude(outcomes)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runSuite(suite: Suite, report: string): Promise<Outcome> {
  const name = `Express ${suite.express}${suite.zone === undefined ? '' : `, ${suite.zone}`}`
  console.log(`\n=== ${name} ===`)
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const { exitCode, output } = await run([vitest, 'run', '--config', 'test/vitest.config.mts', ...reporters, ...suite.tests], suite)
  const missing = [...output.matchAll(/\*\*\* SKIPPED: (.+) \*\*\*/g)].map(([, what = '']) => what)
  const crashed = `${name}: vitest ended with ${exitCode}, for no test's reason`
  if (!existsSync(report)) return { passed: 0, failed: [crashed], skipped: [], missing }
  const outcome = count(JSON.parse(readFileSync(report, 'utf8')) as SuiteReport)
  const failed = outcome.failed.map((failure) => `${name}: ${failure}`)
  return { ...outcome, failed: exitCode !== 0 && failed.length === 0 ? [crashed] : failed, missing }
}

/** Shows the output as it comes and hands it back. */
async function run(args: string[], { express, zone, without = [] }: Suite): Promise<{ exitCode: number; output: string }> {
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
  const env = {
    ...process.env,
    ...color,
    ...(zone && { TZ: zone }),
    EXPRESS: express,
    DOORWARD_TEST_WITHOUT: without.join(','),
    VITE_CONFIG_NATIVE_IGNORE_WARNING: 'true',
  }
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], env })
  let output = ''
  for (const [from, to] of [
    [child.stdout, process.stdout],
    [child.stderr, process.stderr],
  ] as const) {
    from.setEncoding('utf8').on('data', (text: string) => {
      output += text
      to.write(text)
    })
  }
  const [exitCode] = (await once(child, 'close')) as [number | null]
  return { exitCode: exitCode ?? 1, output }
}

/** A file that failed before any of its tests ran counts as one failure. */
function count(report: SuiteReport): Omit<Outcome, 'missing'> {
  const outcome: Omit<Outcome, 'missing'> = { passed: 0, failed: [], skipped: [] }
  for (const file of report.testResults) {
    const path = relative(root, file.name)
    if (file.status === 'failed' && !file.assertionResults.some(({ status }) => status === 'failed')) {
      outcome.failed.push(`${path}\n${indent(file.message ?? '')}`)
    }
    for (const { fullName, status, failureMessages = [] } of file.assertionResults) {
      if (status === 'passed') outcome.passed++
      else if (status === 'failed') outcome.failed.push(`${path} > ${fullName}\n${indent(ourFrames(failureMessages.join('\n')))}`)
      else outcome.skipped.push({ file: path, test: fullName })
    }
  }
  return outcome
}

function ourFrames(stack: string): string {
  return stack.replaceAll(/\n +at .*node_modules.*/g, '')
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ')
}

function conclude(outcomes: Outcome[]): number {
  const passed = sum(outcomes.map((outcome) => outcome.passed))
  const failed = outcomes.flatMap((outcome) => outcome.failed)
  const skipped = outcomes.flatMap((outcome) => outcome.skipped)
  const gaps = [...new Set(outcomes.flatMap(({ missing }) => missing)), ...byFile(skipped)]
  if (gaps.length > 0) announce(gaps)
  if (passed === 0) console.error('\nNo test ran.')
  if (failed.length > 0) console.error(`\nFAILED\n\n${failed.join('\n\n')}`)
  console.log(`\n${passed} passed, ${failed.length} failed, ${skipped.length} skipped`)
  return passed === 0 || failed.length > 0 || (process.env.CI && gaps.length > 0) ? 1 : 0
}

function byFile(skipped: Outcome['skipped']): string[] {
  return [...new Set(skipped.map(({ file }) => file))].map((name) => {
    const tests = skipped.filter(({ file }) => file === name)
    return `${name}: ${tests.length} skipped, the first is "${tests[0]?.test}"`
  })
}

function announce(gaps: string[]): void {
  const line = '!'.repeat(100)
  console.log(`\n${line}\nNOT TESTED HERE, because something was not reached:\n${gaps.map((gap) => `  ${gap}`).join('\n')}\n${line}`)
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

process.exit(await main())
