/**
 * `npm run torture -- pool-of-one [tests]`
 *
 * C24: every test that touches a database, with no pool larger than one connection. Whatever asks for a second connection while
 * it holds the first waits for itself, and fails. Left out: tests that hold a transaction of their own open beside the pool.
 */
import { runTests } from './run-tests'

const given = process.argv.slice(2)
const everywhere = ['account', 'admin', 'events', 'guards', 'http', 'local', 'mailbox', 'mfa', 'observers', 'server-session', 'service']
const tests = [...everywhere, 'session', 'social', 'store', 'throttle'].map((name) => `test/${name}`)
const without = ['test/store/interleavings.test.ts', 'test/store/outages.test.ts']

process.exit(await runTests(given.length > 0 ? given : tests, { DOORWARD_TEST_POOL: '1', DOORWARD_TEST_WITHOUT: without.join(',') }))
