import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { allSuites, leftOutOfQuick, nodeSuites, quickSuites, type Suite } from './suites.js'

/**
 * Runs the tests: `quick` (`npm test`), `all` (`npm run test:all`) or `node` (what a major of Node could break). More arguments go to vitest: `npm test -- test/social`.
 * At the end it says what was left out or not reached, what failed and why. The last line is `N passed, N failed, N skipped`.
 * In the whole suite, a skipped test is a failure under CI, because there everything has to be reachable.
 */

const root = join(import.meta.dirname, '..')
const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')
const [suiteName, ...given] = process.argv.slice(2)
const isQuick = suiteName === 'quick'

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
  const suitesOf = { quick: quickSuites, all: allSuites, node: nodeSuites }[suiteName ?? '']
  if (!suitesOf) throw new Error('Say which tests to run: run-matrix.mts quick, all, or node')
  const folder = mkdtempSync(join(tmpdir(), 'doorward-test-'))
  try {
    const suites = suitesOf(given)
    const outcomes: Outcome[] = []
    for (const [index, suite] of suites.entries()) outcomes.push(await runSuite(suite, join(folder, `${index}.json`)))
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
  if (suite.isQuick && !isQuick) outcome.skipped = [] // another suite runs them
  return { ...outcome, failed: exitCode !== 0 && failed.length === 0 ? [crashed] : failed, missing }
}

/** Shows the output as it comes and hands it back. */
async function run(args: string[], { express, zone, without = [], isQuick = false }: Suite): Promise<{ exitCode: number; output: string }> {
  const color = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
  const env = {
    ...process.env,
    ...color,
    ...(zone && { TZ: zone }),
    EXPRESS: express,
    DOORWARD_TEST_WITHOUT: without.join(','),
    DOORWARD_TEST_QUICK: isQuick ? '1' : '',
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
  const gaps = isQuick ? [] : [...new Set(outcomes.flatMap(({ missing }) => missing)), ...byFile(skipped)]
  if (gaps.length > 0) announce(gaps)
  if (passed === 0) console.error('\nNo test ran.')
  if (failed.length > 0) console.error(`\nFAILED\n\n${failed.join('\n\n')}`)
  if (isQuick) console.log(`\n${leftOutOfQuick}`)
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
