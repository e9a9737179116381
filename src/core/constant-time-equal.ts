import { timingSafeEqual } from 'node:crypto'

/** Returns true if the texts are equal. Compares texts of the same length in constant time. Returns false if `given` is null or empty. */
export function constantTimeEqual(expected: string, given: string | null): boolean {
  if (given === null || given === '') return false
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
