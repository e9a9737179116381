/**
 * `npm run torture -- zones [rounds]`
 *
 * Races between two processes in two time zones, prepared and looked at by a third in another one; every pair of three zones.
 */
import { raceTests } from './race-tests'
import { runTests } from './run-tests'

const zones = ['UTC', 'Asia/Tokyo', 'America/Sao_Paulo'] as const
const rounds = process.argv[2] ?? '10'

let worst = 0
for (const [index, watcher] of zones.entries()) {
  const racers = zones.filter((zone) => zone !== watcher)
  console.log(`\n=== ${racers.join(' against ')}, watched from ${watcher} (${index + 1} of ${zones.length}) ===`)
  const asked = { TZ: watcher, DOORWARD_RACE_ZONES: racers.join(','), DOORWARD_RACE_ROUNDS: rounds }
  worst = Math.max(worst, await runTests([...raceTests, 'test/store/time-zones.test.ts'], asked, ['--no-file-parallelism']))
}
process.exit(worst)
