/**
 * Values in the order they arrived; adding, removing anywhere and asking for the oldest take the same time however many
 * there are. (A Set would do, but finding its first value walks over the holes that earlier removals left.)
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

/** Takes a place out of its list, once. */
export function leave<T>(place: ArrivalPlace<T>): void {
  place.older.newer = place.newer
  place.newer.older = place.older
}

/** The place before the oldest and after the newest, with no value of its own. */
function emptyRing<T>(): ArrivalPlace<T> {
  const ring = { value: undefined } as ArrivalPlace<T> // closed on itself in the next line
  ring.older = ring.newer = ring
  return ring
}
