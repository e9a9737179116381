export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
}

/** The standard error of the median of values that are spread like a normal distribution, by their absolute deviation from it. */
export function medianError(values: readonly number[]): number {
  const middle = median(values)
  const deviation = 1.4826 * median(values.map((value) => Math.abs(value - middle)))
  return (1.2533 * deviation) / Math.sqrt(values.length)
}
