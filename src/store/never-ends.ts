const yearMs = 366 * 86_400_000

/** Returns the end of a row that no purge deletes. A TIMESTAMP column of a host holds no later year than 2037. */
export function neverEnds(now: Date): Date {
  return new Date(Math.max(Date.UTC(2037, 11, 31), now.getTime() + yearMs))
}
