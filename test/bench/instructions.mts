/**
 * What a guard costs, counted instead of timed: instructions of the server process per request, as callgrind counts them. A count
 * comes out nearly the same whatever else the machine does, so that it tells apart what the times of `guard` cannot. Each round starts
 * the contestant anew, and with it the same app without a guard. Without the kernel's share, and with V8 on one thread: what another
 * compiles and collects, and when, is chance. Fails when doorward misses a goal.
 * `npm run bench -- instructions [--rounds 1] [--quick] [--write]`; needs valgrind, and may run beside anything.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { algorithms, ask, bareOf, type Contestant, jwtGuard, makeKeys, named, run } from './lib/guarded.mjs'
import { readOptions } from './lib/options.mjs'
import { type Goal, report } from './lib/report.mjs'
import { type Measured, measureInRounds } from './lib/rounds.mjs'

const options = readOptions({ rounds: 1 })
const connections = 4
/** Requests. After the first two thousand nearly all that is used has been compiled. */
const [warmUp, counted] = options.quick ? [3_000, 500] : [20_000, 3_000]
/** 5 µs of the 73.4 that a request took bare Express where that goal was set. A count leaves out the kernel, so it allows less. */
const mostOfBare = 1 + 5 / 73.4

async function main(): Promise<number> {
  const made = algorithms.map((algorithm) => ({ algorithm, keys: makeKeys(algorithm, warmUp + counted) }))
  const bare = made.map((one) => jwtGuard('bare Express', 'none', one))
  const all = [
    ...bare,
    ...made.map((one) => jwtGuard('doorward, repeated', 'doorward', one, 64)),
    ...made.map((one) => jwtGuard('doorward, first sight', 'doorward', one)),
    ...made.map((one) => jwtGuard('jsonwebtoken by hand', 'jsonwebtoken', one)),
    ...made.map((one) => jwtGuard('express-jwt', 'express-jwt', one)),
  ]
  const names = all.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, (name) => measure(named(all, name), named(bare, bareOf(name))), {
    warmsUp: false,
  })
  return report({
    name: 'instructions',
    columns: ['Guard', 'thousands of instructions', 'above bare Express', 'of bare Express'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'thousands').toFixed(0),
      measured.median(name, 'aboveBare'),
      measured.median(name, 'ofBare').toFixed(3),
    ]),
    goals: algorithms.flatMap((algorithm) => goalsOf(algorithm, measured)),
    packages: ['express', 'jsonwebtoken', 'express-jwt'],
    options,
  })
}

type Figure = 'thousands' | 'aboveBare' | 'ofBare'

async function measure(contestant: Contestant, bare: Contestant): Promise<Record<Figure, number>> {
  const [own, beside] = (await Promise.all([contestant, bare].map(instructionsOf))) as [number, number] // as many
  return { thousands: own / 1000, aboveBare: (own - beside) / 1000, ofBare: own / beside }
}

const execute = promisify(execFile)

async function instructionsOf(contestant: Contestant): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
  const callgrind = ['--tool=callgrind', '--smc-check=all-non-file', '--instr-atstart=no', `--callgrind-out-file=${join(folder, 'count')}`]
  try {
    const one = await run(contestant, connections, { under: ['valgrind', '--quiet', ...callgrind], execArgv: ['--single-threaded'] })
    await ask(one, { operations: warmUp })
    await execute('callgrind_control', ['--instr=on', String(one.server.pid)])
    await ask(one, { operations: counted })
    await execute('callgrind_control', ['--instr=off', String(one.server.pid)])
    await one.stop()
    return readTotal(folder) / counted
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readTotal(folder: string): number {
  const totals = readdirSync(folder).map((file) => /^totals: (\d+)$/m.exec(readFileSync(join(folder, file), 'utf8'))?.[1] ?? 0)
  const sum = totals.reduce<number>((sum, total) => sum + Number(total), 0)
  if (sum === 0) throw new Error('callgrind counted nothing')
  return sum
}

function goalsOf(algorithm: string, measured: Measured<Figure>): Goal[] {
  const above = (name: string) => measured.median(`${name}, ${algorithm}`, 'aboveBare')
  return [
    {
      text: `${algorithm}, repeated, instructions of bare Express`,
      presented: measured.median(`doorward, repeated, ${algorithm}`, 'ofBare'),
      bound: 'at most',
      wanted: mostOfBare,
    },
    {
      text: `${algorithm}, first sight, thousands of instructions above bare Express`,
      presented: above('doorward, first sight'),
      bound: 'at most',
      wanted: above('express-jwt'),
    },
  ]
}

process.exit(await main())
