/**
 * `npm run torture -- faults [part of a test's name]`
 *
 * Every fault of test/faults, and every route that changes rows at every one of its statements: the connection to
 * PostgreSQL and MariaDB is cut, or the process killed (SQLite too), before the statement reaches the database and after.
 */
import { runTests } from './run-tests'

const name = process.argv.slice(2).join(' ')
process.exit(await runTests(['test/faults'], { DOORWARD_EVERY_ACT: '1' }, name === '' ? [] : ['-t', name]))
