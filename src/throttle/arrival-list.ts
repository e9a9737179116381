/**
 * Values in the order of their arrival. Adding one, removing any one and reading the oldest take constant time. (A Set would not, because
 * reading its first value skips the holes of earlier removals one by one.)
 */
export interface ArrivalList<T> {
  append(value: T): ArrivalPlace<T>
  oldest(): T | undefined
}

export interface ArrivalPlace<T> {
  readonly value: T | undefined
  older: ArrivalPlace<T>
  newer: ArrivalPlace<T>
}

export function createArrivalList<T>(): ArrivalList<T> {
  const ring = emptyRing<T>()
  return {
    append(value) {
      const place: ArrivalPlace<T> = { value, older: ring.older, newer: ring }
      ring.older.newer = place
      ring.older = place
      return place
    },
    oldest: () => ring.newer.value,
  }
}

/** Removes an entry from its list. Call it only once. */
export function leave<T>(place: ArrivalPlace<T>): void {
  place.older.newer = place.newer
  place.newer.older = place.older
}

/** Returns the entry before the oldest and after the newest. It has no value. */
function emptyRing<T>(): ArrivalPlace<T> {
  const ring = { value: undefined } as ArrivalPlace<T> // complete after the next line
  ring.older = ring.newer = ring
  return ring
}
