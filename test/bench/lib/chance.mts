/** The chance that a larger time is of the second kind: 0.5 tells nothing (Mann and Whitney; equal times count half). */
export function areaUnderCurve(first: readonly number[], second: readonly number[]): number {
  const all = [...first.map((time) => ({ time, isSecond: false })), ...second.map((time) => ({ time, isSecond: true }))]
  all.sort((one, other) => one.time - other.time)
  let ranks = 0
  for (let begin = 0; begin < all.length; ) {
    let end = begin
    while (end < all.length && all[end]?.time === all[begin]?.time) end++
    const middleRank = (begin + 1 + end) / 2
    ranks += middleRank * all.slice(begin, end).filter(({ isSecond }) => isSecond).length
    begin = end
  }
  return (ranks - (second.length * (second.length + 1)) / 2) / (first.length * second.length)
}

/** The attacker knows which kind is the slower one: never below 0.5. */
export function chanceOf(first: readonly number[], second: readonly number[]): number {
  const area = areaUnderCurve(first, second)
  return Math.max(area, 1 - area)
}

/** One standard error of `areaUnderCurve` where nothing can be told. */
export function errorOf(first: number, second: number): number {
  return Math.sqrt((first + second + 1) / (12 * first * second))
}

/** The same chance for an attacker who takes the median of five probes. */
export function chanceOfFive(first: readonly number[], second: readonly number[]): number {
  return chanceOf(mediansOfFive(first), mediansOfFive(second))
}

/** One standard error of `chanceOfFive`, by samples that are drawn again. */
export function errorOfFive(first: readonly number[], second: readonly number[]): number {
  const all = [...first, ...second]
  const areas = Array.from({ length: 60 }, () => {
    const [one, other] = [drawn(all, first.length), drawn(all, second.length)]
    return areaUnderCurve(mediansOfFive(one), mediansOfFive(other))
  })
  return Math.sqrt(areas.reduce((sum, area) => sum + (area - 0.5) ** 2, 0) / areas.length)
}

function mediansOfFive(times: readonly number[]): number[] {
  return Array.from({ length: 1_000 }, () => drawn(times, 5).sort((one, other) => one - other)[2] ?? Number.NaN)
}

function drawn(values: readonly number[], count: number): number[] {
  return Array.from({ length: count }, () => values[Math.floor(Math.random() * values.length)] ?? Number.NaN)
}
