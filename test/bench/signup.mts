/**
 * Signups, 16 in flight: doorward beside those that have a signup. doorward's time grid is off, because with it each answer waits for the
 * next half second, whatever the machine does meanwhile. Fails when doorward misses a goal.
 * `npm run bench -- signup [--rounds 4] [--quick] [--write] [--only text]`, at a quiet moment.
 */
import { load, settling } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { betterAuth, betterAuthArgon2, byHand, doorward, doorwardNodeRs, newPerson } from './lib/products.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds, roundLength } from './lib/rounds.mjs'
import { first, runProduct, signUpSomebody } from './lib/run-product.mjs'

const options = readOptions({ rounds: 4 })
const milliseconds = roundLength(options.quick ? { warmUp: 800, round: 800 } : { warmUp: 8_000, round: 2_000 })
const leastOfByHand = 0.95

async function main(): Promise<number> {
  const products = [doorward, doorwardNodeRs, byHand, betterAuth, betterAuthArgon2].filter(
    ({ name }) => options.only === null || /^doorward|^by hand$/.test(name) || name.includes(options.only),
  )
  const running = await Promise.all(products.map((product) => runProduct(product, 16, { BENCH_GRID: '0' })))
  for (const one of running) await signUpSomebody(one)
  const names = running.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, async (wanted, round) => {
    const { name, server, client, connections } = first(running.filter((one) => one.name === wanted))
    return load(server, {
      leadIn: settling,
      connections,
      milliseconds: milliseconds(round),
      async operation(connection) {
        const answer = await connection.ask(client.signUp(newPerson()))
        if (answer.status >= 300) throw new Error(`${name}: a signup answered ${answer.status} ${answer.body}`)
      },
    })
  })
  for (const { stop } of running) await stop()
  return report({
    name: 'signup',
    columns: ['Signup, 16 in flight', 'signups/s', 'of by hand', 'CPU ms/signup', 'p50 ms', 'p99 ms'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'perSecond'),
      measured.ratio(name, byHand.name, 'perSecond'),
      measured.median(name, 'cpuMicros') / 1000,
      measured.median(name, 'p50'),
      measured.median(name, 'p99'),
    ]),
    goals: [
      {
        text: 'signups, of by hand',
        presented: measured.ratio(doorward.name, byHand.name, 'perSecond'),
        bound: 'at least',
        wanted: leastOfByHand,
      },
    ],
    packages: ['express', 'argon2', '@node-rs/argon2', 'better-sqlite3', 'knex', 'better-auth'],
    options,
  })
}

process.exit(await main())
