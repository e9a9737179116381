/**
 * A list of values in the order of their arrival. Appending a value, removing any value and reading the oldest value take constant time. A
 * Set would be slower: to find the oldest value, a Set passes over the values that were removed before.
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

/** Removes an entry from its list. Call the function only once per entry. */
export function leave<T>(place: ArrivalPlace<T>): void {
  place.older.newer = place.newer
  place.newer.older = place.older
}

/**
 * Returns an empty ring: only the sentinel, which has no value. `newer` of the sentinel is the oldest entry, and `older` of the sentinel is
 * the newest entry.
 */
function emptyRing<T>(): ArrivalPlace<T> {
  const ring = { value: undefined } as ArrivalPlace<T> // the next line completes the object
  ring.older = ring.newer = ring
  return ring
}
