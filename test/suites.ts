import { raceTests } from './torture/race-tests'

/** One run of vitest. */
export interface Suite {
  express: string
  /** As TZ; undefined: the machine's own. */
  zone?: string
  tests: readonly string[]
  without?: readonly string[]
  /** With SQLite only, and without Redis and Chromium: their tests are skipped, and that is no gap. */
  isQuick?: boolean
}

const otherZones = ['Asia/Tokyo', 'America/Sao_Paulo']
/** Where rows and instants decide, which know no Express; races know no zone. */
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
  'test/types/**',
  'test/mail/postman.test.ts',
  'test/mail/smtp-mailer.test.ts',
  'test/mail/smtp-options.test.ts',
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
  'test/testing/mutants.test.ts',
  'test/throttle/budget.test.ts',
  'test/throttle/client-key.test.ts',
  'test/throttle/held-windows.test.ts',
  'test/throttle/knex-counters.test.ts',
  'test/throttle/markers.test.ts',
  'test/throttle/memory-counters.test.ts',
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

/** Files that start other processes, beside the races. */
const startsProcesses = [
  'test/bench/**',
  'test/guards/key-rotation.test.ts',
  'test/guards/two-copies.test.ts',
  'test/package/**',
  'test/social/foreign-providers.test.ts',
  'test/store/time-zones.test.ts',
  'test/throttle/shared-counters.test.ts',
]
/** Files without a test that runs on SQLite alone. */
const needsServers = [
  'test/demo/demo.test.ts',
  'test/demo/devices-demo.test.ts',
  'test/faults/cut.test.ts',
  'test/readiness/postgresql.test.ts',
  'test/readiness/widths.test.ts',
  'test/store/interleavings.test.ts',
  'test/store/list-users.test.ts',
  'test/throttle/redis-counters.test.ts',
]
const takesLong = [
  'test/docs-code.test.ts',
  'test/http/faults.test.ts',
  'test/session/secret-rotation.test.ts',
  'test/social/hung-provider.test.ts',
  'test/social/state-races.test.ts',
  'test/testing/mutants.test.ts',
  'test/torture/fuzz.test.ts',
]
const notQuick = [...betweenProcesses, ...startsProcesses, ...needsServers, ...takesLong]

export const leftOutOfQuick = `This was the quick suite: SQLite, Express 5, one time zone. It left out
  PostgreSQL, MariaDB, Redis and Chromium,
  Express 4,
  the other time zones,
  races between processes, the built package, the code in the docs, fuzzing,
  and what takes ten seconds or more: faults of the store, a provider that hangs, changed secrets, mutants of the store.
To run everything: npm run test:all
To install the package beside older and newer peers: DOORWARD_PACK=registry npx vitest run --config test/vitest.config.mts test/package/registry`

/** Returns what `npm test` runs. `given`: only these files or folders. */
export function quickSuites(given: readonly string[]): Suite[] {
  return [{ express: '5', tests: given, without: notQuick, isQuick: true }]
}

/**
 * Returns what `npm run test:all` runs: everything on Express 5, what knows Express again on Express 4, and the tests of rows and
 * instants again in two more time zones. Express 4 meets SQLite alone, for no major of Express knows a database; files that are
 * given run on everything.
 */
export function allSuites(given: readonly string[]): Suite[] {
  if (given.length > 0) return ['5', '4'].map((express) => ({ express, tests: given }))
  const express4 = [...betweenProcesses, ...expressless, ...needsServers]
  // A zone is between us and the databases, and each major has met both in UTC: one is enough.
  const zoned = otherZones.map((zone) => ({ express: '5', zone, tests: [...zonedTests, 'test/store'], without: unzonedTests }))
  return [{ express: '5', zone: 'UTC', tests: [] }, { express: '4', zone: 'UTC', tests: [], without: express4, isQuick: true }, ...zoned]
}

/** Every file, folder and pattern that this page names. */
export const namedTests: readonly string[] = [...zonedTests, ...unzonedTests, ...expressless, ...notQuick]
