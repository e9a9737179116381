/** What `npm run torture` asks for, and every run has no time for. */
const env = process.env

/** `races`: 50 rounds of every race, or as many as it is told; every run has fewer. */
export function raceRounds(usual = 20): number {
  return Number(env['DOORWARD_RACE_ROUNDS'] ?? usual)
}

/** More rounds take longer. */
export function raceTimeout(usual: number): number {
  const rounds = env['DOORWARD_RACE_ROUNDS']
  return rounds === undefined ? usual : Math.max(900_000, Number(rounds) * 4_000)
}

/** `zones`: the TZ of each of the two processes of a race. */
export const raceZones: readonly [string, string] = (env['DOORWARD_RACE_ZONES']?.split(',') as [string, string]) ?? ['UTC', 'UTC']

/** `client`: how long four tabs ask for data, in seconds. Every run has less time. */
export function trafficSeconds(usual: number): number {
  return Number(env['DOORWARD_TRAFFIC_SECONDS'] ?? usual)
}

/** `pool-of-one`: no pool has more than one connection, whatever a test asks for. */
export const poolOfOne = env['DOORWARD_TEST_POOL'] === '1'

/** `faults`: every route that changes rows, at every statement. */
export const everyAct = env['DOORWARD_EVERY_ACT'] === '1'
