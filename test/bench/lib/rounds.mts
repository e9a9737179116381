import { median, medianError } from './statistics.mjs'

type Figures<Key extends string> = Readonly<Record<Key, number>>

export interface Measured<Key extends string> {
  /** Of all rounds. */
  median(name: string, key: Key): number
  /** Of what two contestants differ by within a round: the machine is as busy for one as for the other. */
  ratio(name: string, baseline: string, key: Key): number
  difference(name: string, baseline: string, key: Key): number
  /** Of the ratio. */
  error(name: string, baseline: string, key: Key): number
}

/** How long a round is. The one before the first, which counts for nothing, is long enough for the code to be compiled. */
export function roundLength(lengths: { warmUp: number; round: number }): (round: number) => number {
  return (round) => (round < 0 ? lengths.warmUp : lengths.round)
}

/**
 * Measures each contestant once per round, in another order each time; one more round before, -1, is for warming up, unless
 * `measure` starts what it measures.
 */
export async function measureInRounds<Key extends string>(
  names: readonly string[],
  rounds: number,
  measure: (name: string, round: number) => Promise<Figures<Key>>,
  { warmsUp = true } = {},
): Promise<Measured<Key>> {
  const seen = new Map<string, Figures<Key>[]>(names.map((name) => [name, []]))
  for (let round = warmsUp ? -1 : 0; round < rounds; round++) {
    for (const name of shuffled(names)) {
      const figures = await measure(name, round)
      if (round >= 0) seen.get(name)?.push(figures)
    }
    process.stderr.write(round < 0 ? `warm; ${rounds} rounds: ` : `${round + 1} `)
  }
  process.stderr.write('\n')
  const valuesOf = (name: string, key: Key) => (seen.get(name) ?? []).map((figures) => figures[key])
  const paired = (name: string, baseline: string, key: Key, compare: (one: number, other: number) => number) =>
    valuesOf(name, key).map((value, round) => compare(value, valuesOf(baseline, key)[round] ?? Number.NaN))
  const over = (one: number, other: number) => one / other
  return {
    median: (name, key) => median(valuesOf(name, key)),
    ratio: (name, baseline, key) => median(paired(name, baseline, key, over)),
    difference: (name, baseline, key) => median(paired(name, baseline, key, (one, other) => one - other)),
    error: (name, baseline, key) => medianError(paired(name, baseline, key, over)),
  }
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, place: Math.random() }))
    .toSorted((one, other) => one.place - other.place)
    .map(({ item }) => item)
}
