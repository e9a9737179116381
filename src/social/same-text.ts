import { timingSafeEqual } from 'node:crypto'

/** Constant time for texts of one length, and an absent or empty one equals nothing. */
export function sameText(expected: string, given: string | null): boolean {
  if (given === null || given === '') return false
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
