/**
 * Social logins of people who came before: start and callback against a provider on the same machine that answers at once,
 * 8 in flight. Fails when doorward misses a goal.
 * `npm run bench -- social [--rounds 9] [--quick] [--write] [--only text]`, at a quiet moment.
 */
import { load, settling } from './lib/load.mjs'
import { readOptions } from './lib/options.mjs'
import { authJs, betterAuth, byHand, byHandOnKnex, doorward, passport, passportOnKnex, passportWithText } from './lib/products.mjs'
import { report } from './lib/report.mjs'
import { measureInRounds, roundLength } from './lib/rounds.mjs'
import { checkSocial, comeFromProvider, first, runProduct } from './lib/run-product.mjs'
import { startServer } from './lib/start-server.mjs'

const options = readOptions({ rounds: 9 })
const milliseconds = roundLength(options.quick ? { warmUp: 500, round: 500 } : { warmUp: 6_000, round: 1_200 })
/** So many that nobody gets to `maxSessionsPerUser`, past which each login revokes a session. */
const people = 1_000
const leastOfByHand = 0.9

async function main(): Promise<number> {
  const provider = await startServer('provider.mjs')
  const products = [doorward, byHand, byHandOnKnex, passport, passportWithText, passportOnKnex, authJs, betterAuth].filter(
    ({ name }) => options.only === null || /^(doorward|by hand|Passport)/.test(name) || name.includes(options.only),
  )
  const running = await Promise.all(products.map((product) => runProduct(product, 8, { BENCH_PROVIDER: provider.origin })))
  for (const one of running) {
    await checkSocial(one)
    for (let person = 0; person < people; person++) await comeFromProvider(one, first(one.connections), `u${person}`)
  }
  const names = running.map(({ name }) => name)
  const measured = await measureInRounds(names, options.rounds, async (name, round) => {
    const one = first(running.filter((candidate) => candidate.name === name))
    return load(one.server, {
      leadIn: settling,
      connections: one.connections,
      milliseconds: milliseconds(round),
      async operation(connection, turn) {
        const answer = await comeFromProvider(one, connection, `u${turn % people}`)
        if (!one.client.isLoggedIn(answer)) throw new Error(`${name}: a callback answered ${answer.status} ${answer.body}`)
      },
    })
  })
  for (const { stop } of running) await stop()
  await provider.stop()
  const goal = (other: string, wanted: number) =>
    ({ text: `logins, of ${other}`, presented: ratio(doorward.name, other), bound: 'at least', wanted }) as const
  const ratio = (name: string, baseline: string) => measured.ratio(name, baseline, 'perSecond')
  return report({
    name: 'social',
    columns: ['Social login, start and callback', 'logins/s', 'of by hand', 'CPU µs/login', 'CPU of by hand', 'p50 ms', 'p99 ms'],
    rows: names.map((name) => [
      name,
      measured.median(name, 'perSecond'),
      ratio(name, byHand.name),
      measured.median(name, 'cpuMicros'),
      measured.ratio(name, byHand.name, 'cpuMicros'),
      measured.median(name, 'p50'),
      measured.median(name, 'p99'),
    ]),
    goals: [
      ...[byHand, byHandOnKnex].map((other) => goal(other.name, leastOfByHand)),
      ...[passport, passportWithText, passportOnKnex].map((other) => goal(other.name, 1)),
    ],
    packages: [
      'express',
      'better-sqlite3',
      'knex',
      'undici',
      'passport',
      'passport-oauth2',
      'express-session',
      'better-auth',
      '@auth/express',
    ],
    options,
  })
}

process.exit(await main())
