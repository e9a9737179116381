/**
 * How long a host takes to load its packages, and from the spawn until it listens: with doorward, with all that doorward depends
 * on but without it, with nothing but Express, with better-auth, with Auth.js. Each start is a process of its own, one after the
 * other. Fails when doorward misses a goal beside its dependencies. `npm run bench -- start [--rounds 15] [--quick] [--write]`,
 * at a quiet moment.
 */
import { readOptions } from './lib/options.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds } from './lib/rounds.mjs'
import { baseline, type HostDatabase, hosts, makeHostDatabase, runServer } from './lib/run-host.mjs'

const options = readOptions({ rounds: 15 })
const [mostImport, mostBoot] = [1.3, 1.2]
const ours = 'doorward'

async function main(): Promise<number> {
  const database = await makeHostDatabase()
  const names = [...hosts.keys()].filter((name) => options.only === null || name.includes('doorward') || name.includes(options.only))
  const measured = await measureInRounds(names, options.rounds, (name) => start(hosts.get(name) ?? '', database))
  database.remove()
  return report({
    name: 'start',
    columns: ['Host with', 'import ms', 'of its dependencies', 'boot ms', 'of its dependencies', 'boot CPU ms'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'importMilliseconds'),
      measured.ratio(name, baseline, 'importMilliseconds'),
      measured.median(name, 'bootMilliseconds'),
      measured.ratio(name, baseline, 'bootMilliseconds'),
      measured.median(name, 'bootCpu'),
    ]),
    goals: [
      {
        text: 'Import of its dependencies',
        presented: measured.ratio(ours, baseline, 'importMilliseconds'),
        bound: 'at most',
        wanted: mostImport,
      },
      {
        text: 'Boot of its dependencies',
        presented: measured.ratio(ours, baseline, 'bootMilliseconds'),
        bound: 'at most',
        wanted: mostBoot,
      },
    ],
    packages: ['express', 'knex', 'better-sqlite3', 'better-auth', '@auth/express'],
    options,
  })
}

/** One process that only loads its packages, and one that goes on until it listens: from the spawn to its end. */
async function start(host: string, database: HostDatabase) {
  const { importMilliseconds } = await run(host, database, 'import')
  const { milliseconds: bootMilliseconds, cpu: bootCpu } = await run(host, database, 'listening')
  return { importMilliseconds, bootMilliseconds, bootCpu }
}

async function run(host: string, { environment }: HostDatabase, until: 'import' | 'listening') {
  const { stdout, milliseconds } = await runServer('start.mjs', { ...environment, BENCH_WITH: host, BENCH_UNTIL: until })
  return { milliseconds, ...(JSON.parse(stdout) as { importMilliseconds: number; cpu: number }) } // its one line
}

process.exit(await main())
