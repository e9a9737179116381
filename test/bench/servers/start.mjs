/**
 * A host of `lib/hosts.mjs` (BENCH_WITH) that starts and ends. BENCH_UNTIL=import: once its packages are loaded; listening: once it
 * listens. Prints the milliseconds of loading, and the CPU time of it all, as a line of JSON.
 */
import { once } from 'node:events'
import { hosts } from '../lib/hosts.mjs'

const begun = performance.now()
const makeApp = await hosts[process.env.BENCH_WITH]()
const importMilliseconds = performance.now() - begun
if (process.env.BENCH_UNTIL === 'listening') await once((await makeApp()).listen(0, '127.0.0.1'), 'listening')
const { user, system } = process.cpuUsage()
console.log(JSON.stringify({ importMilliseconds, cpu: (user + system) / 1000 }))
process.exit()
