import { describe, expect, test } from 'vitest'
import { canHold, fromColumn } from '../../src/store/knex/column-values'

describe('an instant from the database', () => {
  const instant = new Date('2026-01-02T03:04:05.678Z')

  test.each([
    instant,
    instant.getTime(),
    String(instant.getTime()),
    '2026-01-02T03:04:05.678Z',
    '2026-01-02 03:04:05.678',
    '2026-01-02T05:04:05.678+02:00',
  ])('%s is that instant', (value) => {
    for (const kind of ['native', 'epoch_ms', 'iso'] as const) expect(fromColumn(kind, value)).toEqual(instant)
  })

  // Seconds with a fraction, say, in a column that was mapped as milliseconds: read as January 1970, nothing would ever be late.
  test.each([1767323045.678, Number.NaN, 1e21, Number.POSITIVE_INFINITY, 'soon', ''])('%s is refused, not guessed', (value) => {
    expect(() => fromColumn('epoch_ms', value)).toThrow('A date in the database cannot be read')
  })
})

test('a text is as long as it has characters, however many units they take', () => {
  expect(canHold('text', 'aé🎈', 3)).toBe(true)
  expect(canHold('text', '🎈🎈🎈', 3)).toBe(true)
  expect(canHold('text', '🎈🎈🎈a', 3)).toBe(false)
  expect(canHold('text', 'aaaa', 3)).toBe(false)
})
