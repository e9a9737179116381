import { raceTests } from './torture/race-tests'

/** One run of vitest. */
export interface Suite {
  express: string
  /** As TZ; undefined: the machine's own. */
  zone?: string
  tests: readonly string[]
  without?: readonly string[]
  /** With SQLite only, and without Redis, Chromium and Firefox: their tests are skipped, and that is no gap. */
  isQuick?: boolean
}

/**
 * Where rows and instants decide, which know no Express; races know no zone. Each file meets one zone beside UTC: what a zone
 * shifts, any zone shifts.
 */
const zonedTests: readonly (readonly [zone: string, tests: readonly string[]])[] = [
  [
    'Asia/Tokyo',
    ['test/guards', 'test/local/account-states.test.ts', 'test/local/links.test.ts', 'test/local/main-flow.test.ts', 'test/social'],
  ],
  [
    'America/Sao_Paulo',
    ['test/account', 'test/events.test.ts', 'test/mailbox', 'test/server-session', 'test/service.test.ts', 'test/session', 'test/store'],
  ],
]
/** Races between processes of their own, which load the same Express whichever the suite is on: once is enough, in one zone. */
const betweenProcesses = [
  ...raceTests,
  'test/admin/races.test.ts',
  'test/command/rotate-under-load.test.ts',
  'test/examples/clustered.test.ts',
  'test/faults/killed.test.ts',
  'test/faults/terminated.test.ts',
  'test/invitations/races.test.ts',
  'test/outbox/killed-deliverers.test.ts',
  'test/sockets/two-processes.test.ts',
]
/** What opens no HTTP of ours: the major of Express is nothing to it. */
const expressless = [
  'test/client-key.test.ts',
  'test/typed-code.test.ts',
  'test/config/**',
  'test/demo/**', // `npm run demo` runs on the one that is installed here
  'test/docs-*.test.ts',
  'test/types/**',
  'test/package/init.test.ts', // its apps bring theirs
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
  'test/store/schema.test.ts',
  'test/store/time-zones.test.ts',
  'test/testing/mutants.test.ts',
  'test/throttle/budget.test.ts',
  'test/throttle/held-windows.test.ts',
  'test/throttle/knex-counters.test.ts',
  'test/throttle/markers.test.ts',
  'test/throttle/memory-counters.test.ts',
  'test/throttle/redis-counters.test.ts',
  'test/throttle/shared-counters.test.ts',
]
/** Floods, long tables, boot and what pages look like: what they are about is met on Express 4 by the other files of their folders. */
const aboutRules = [
  'test/boot.test.ts',
  'test/command/**',
  'test/doctor/**',
  'test/email-login/attacks.test.ts',
  'test/first-proof/sequences.test.ts',
  'test/local/flood.test.ts',
  'test/local/login-throttle.test.ts',
  'test/local/mail-budgets.test.ts',
  'test/observers/**',
  'test/page-routes/accessibility.test.ts',
  'test/page-routes/in-browsers.test.ts',
  'test/page-routes/injection.test.ts',
  'test/page-routes/keyboard.test.ts',
  'test/passwords/**',
  'test/readiness/**',
  'test/social/hostile-provider.test.ts',
  'test/social/openid-matrix.test.ts',
  'test/social/token-in-hand.test.ts',
]
/** What a major of Node could break: modules, HTTP, cryptography, streams and timers; and the main flows. */
const nodeTests = [
  'test/boot-host.test.ts',
  'test/command',
  'test/drain.test.ts',
  'test/events.test.ts',
  'test/examples',
  'test/faults',
  'test/guards',
  'test/http',
  'test/keys.test.ts',
  'test/local/main-flow.test.ts',
  'test/mail',
  'test/observers',
  'test/passkeys',
  'test/passwords',
  'test/providers',
  'test/service.test.ts',
  'test/session/delivery.test.ts',
  'test/social/main-job.test.ts',
  'test/store',
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
  'test/email-login/guesses.test.ts',
  'test/guards/key-rotation.test.ts',
  'test/guards/two-copies.test.ts',
  'test/moving/better-auth.test.ts',
  'test/package/**',
  'test/social/foreign-providers.test.ts',
  'test/store/time-zones.test.ts',
  'test/throttle/shared-counters.test.ts',
]
/** Files without a test that runs on SQLite alone. */
const needsServers = [
  'test/demo/demo.test.ts',
  'test/faults/cut.test.ts',
  'test/moving/authjs.test.ts',
  'test/moving/devise.test.ts',
  'test/moving/django.test.ts',
  'test/moving/supertokens.test.ts',
  'test/page-routes/in-browsers.test.ts',
  'test/passkeys/in-chromium.test.ts',
  'test/client/in-chromium.test.ts',
  'test/client/passkeys-in-chromium.test.ts',
  'test/client/react-in-chromium.test.ts',
  'test/session/logout-in-chromium.test.ts',
  'test/readiness/postgresql.test.ts',
  'test/readiness/widths.test.ts',
  'test/store/interleavings.test.ts',
  'test/store/list-users.test.ts',
  'test/throttle/redis-counters.test.ts',
]
const takesLong = [
  'test/docs-code.test.ts',
  'test/http/canary.test.ts',
  'test/http/faults.test.ts',
  'test/local/mail-budgets.test.ts',
  'test/page-routes/every-form.test.ts',
  'test/session/secret-rotation.test.ts',
  'test/social/hostile-provider.test.ts',
  'test/social/hung-provider.test.ts',
  'test/social/state-races.test.ts',
  'test/testing/mutants.test.ts',
  'test/torture/fuzz.test.ts',
]
/** Floods, rehashing and slow hosts. Only `npm test` leaves them out: other majors of Node meet them. */
const floods = [
  'test/passwords/rehashing-hasher.test.ts',
  'test/providers/hostile.test.ts',
  'test/throttle/markers.test.ts',
  'test/throttle/memory-counters.test.ts',
]
/**
 * Matrices of every route, guard, provider or limit, and what loads all modules anew. Only `npm test` leaves them out, so that it runs in
 * three minutes on two cores.
 */
const matrices = [
  'test/boot-host.test.ts',
  'test/doctor/lazy.test.ts',
  'test/email-login/attacks.test.ts',
  'test/first-proof/sequences.test.ts',
  'test/guards/remembered-tokens.test.ts',
  'test/http/route-budgets.test.ts',
  'test/local/answer-grid.test.ts',
  'test/local/flood.test.ts',
  'test/local/login-throttle.test.ts',
  'test/local/mailer-faults.test.ts',
  'test/local/request-throttles.test.ts',
  'test/mail/postman.test.ts',
  'test/mfa/doors.test.ts',
  'test/mfa/throttle.test.ts',
  'test/observers/audit-log.test.ts',
  'test/openapi/answers.test.ts',
  'test/openapi/limits.test.ts',
  'test/page-routes/without-passwords.test.ts',
  'test/passkeys/final-changes.test.ts',
  'test/passkeys/lazy-package.test.ts',
  'test/passkeys/limits.test.ts',
  'test/passwords/breached-passwords.test.ts',
  'test/passwords/lazy-packages.test.ts',
  'test/providers/token-audience.test.ts',
  'test/session/delivery.test.ts',
  'test/session/ended-cookies.test.ts',
  'test/session/one-name.test.ts',
  'test/social/openid-matrix.test.ts',
  'test/social/passport-provider.test.ts',
  'test/social/token-in-hand.test.ts',
  'test/step-up/routes.test.ts',
  'test/step-up/token-freshness.test.ts',
]
const notQuick = [...betweenProcesses, ...startsProcesses, ...needsServers, ...takesLong]

export const leftOutOfQuick = `This was the quick suite: SQLite, Express 5, one time zone. It left out
  PostgreSQL, MariaDB, Redis, Chromium and Firefox,
  Express 4,
  the other time zones,
  races between processes, the built package, the code in the docs, fuzzing,
  and what takes long: faults of the store, secrets in logs, providers that hang or lie, floods of mails, keys and states, rehashing, every form of the pages, changed secrets, mutants of the store,
  and the matrices of every route, guard, provider and limit.
To run everything: npm run test:all
To install the package beside older and newer peers: DOORWARD_PACK=registry npx vitest run --config test/vitest.config.mts test/package/registry`

/** Returns what `npm test` runs. `given`: only these files or folders. */
export function quickSuites(given: readonly string[]): Suite[] {
  return [{ express: '5', tests: given, without: [...notQuick, ...floods, ...matrices], isQuick: true }]
}

/** Returns what runs on each further major of Node, beside the built package and the drivers of the databases. */
export function nodeSuites(given: readonly string[]): Suite[] {
  return [{ express: '5', tests: given.length > 0 ? given : nodeTests, without: notQuick, isQuick: true }]
}

/**
 * Returns what `npm run test:all` runs: everything on Express 5, what knows Express again on Express 4, and the tests of rows and
 * instants again in one more time zone. Express 4 meets SQLite alone, for no major of Express knows a database; files that are
 * given run on everything.
 */
export function allSuites(given: readonly string[]): Suite[] {
  if (given.length > 0) return ['5', '4'].map((express) => ({ express, tests: given }))
  const express4 = [...betweenProcesses, ...expressless, ...needsServers, ...aboutRules]
  // A zone is between us and the databases, and each major has met both in UTC: one is enough.
  const zoned = zonedTests.map(([zone, tests]) => ({ express: '5', zone, tests, without: unzonedTests }))
  return [{ express: '5', zone: 'UTC', tests: [] }, { express: '4', zone: 'UTC', tests: [], without: express4, isQuick: true }, ...zoned]
}

/** Every file, folder and pattern that this page names. */
export const namedTests: readonly string[] = [
  ...zonedTests.flatMap(([, tests]) => tests),
  ...unzonedTests,
  ...expressless,
  ...aboutRules,
  ...nodeTests,
  ...notQuick,
  ...floods,
  ...matrices,
]
