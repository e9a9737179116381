/**
 * `npm run torture -- client [seconds]`
 *
 * Four tabs of the browser client in Chromium, in each delivery with cookies, with and without Web Locks: a minute of requests with access
 * tokens of two seconds, while tabs are reloaded, frozen and left, and the network is cut.
 */
import { runTests } from './run-tests'

const seconds = process.argv[2] ?? '60'
process.exit(await runTests(['test/client/traffic-in-chromium.test.ts'], { DOORWARD_TRAFFIC_SECONDS: seconds }))
