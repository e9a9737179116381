import { expect, test } from 'vitest'
import { createArrivalList, createHeldWindows, leave, type Window } from '../../src/rate-limits/memory-counters'

function windowOf(key: string, { seconds = 900, endsAt = 900_000, count = 1, limit = 5 }: Partial<Window> = {}): Window {
  return { key, seconds, endsAt, count, limit }
}

test('a sweep drops a bounded number of what has expired, the oldest first, and nothing else', () => {
  const held = createHeldWindows()
  for (let index = 0; index < 1_000; index++) held.hold(windowOf(`k${index}`, { endsAt: index }))
  held.sweep(499)
  expect(held.size()).toBeLessThan(1_000)
  expect(held.size()).toBeGreaterThan(900)
  expect(held.find('k0')).toBeUndefined()
  for (let round = 0; round < 1_000; round++) held.sweep(499)
  expect(held.size()).toBe(500)
  expect(held.find('k499')).toBeUndefined()
  expect(held.find('k500')?.key).toBe('k500')
})

test('windows of each length are swept on their own', () => {
  const held = createHeldWindows()
  held.hold(windowOf('long', { seconds: 3_600, endsAt: 3_600_000 }))
  held.hold(windowOf('short', { seconds: 60, endsAt: 60_000 }))
  held.sweep(60_000)
  expect(held.find('short')).toBeUndefined()
  expect(held.find('long')?.seconds).toBe(3_600)
})

test('room is made by the fewest units, then by age, and never by one at its limit', () => {
  const held = createHeldWindows()
  held.hold(windowOf('spent', { count: 5 }))
  held.hold(windowOf('three', { count: 3 }))
  held.hold(windowOf('one', { count: 1 }))
  held.hold(windowOf('another one', { count: 1 }))
  held.hold(windowOf('many, without a limit', { count: 10_000, limit: Number.POSITIVE_INFINITY }))
  const left = () => ['spent', 'three', 'one', 'another one', 'many, without a limit'].filter((key) => held.find(key))
  expect(held.makeRoom()).toBe(true)
  expect(left()).not.toContain('one')
  expect(held.makeRoom()).toBe(true)
  expect(left()).not.toContain('another one')
  expect(held.makeRoom()).toBe(true)
  expect(left()).toEqual(['spent', 'many, without a limit'])
  expect(held.makeRoom()).toBe(true)
  expect(held.makeRoom()).toBe(false)
  expect(left()).toEqual(['spent'])
})

test('a window is graded anew when its count changes, in both directions', () => {
  const held = createHeldWindows()
  const [first, second] = [windowOf('first', { count: 5 }), windowOf('second', { count: 2 })]
  held.hold(first)
  held.hold(second)
  first.count = 1
  held.regrade(first)
  second.count = 5
  held.regrade(second)
  expect(held.makeRoom()).toBe(true)
  expect(held.find('first')).toBeUndefined()
  expect(held.makeRoom()).toBe(false)
})

test('a window that is not held is not graded, also under the name of one that is', () => {
  const held = createHeldWindows()
  held.hold(windowOf('a', { count: 5 }))
  held.regrade(windowOf('a', { count: 1 }))
  held.regrade(windowOf('b'))
  expect(held.makeRoom()).toBe(false)
})

test('an arrival list gives the oldest, whatever left before', () => {
  const list = createArrivalList<number>()
  expect(list.oldest()).toBeUndefined()
  const places = [1, 2, 3, 4].map((value) => list.append(value))
  for (const index of [1, 0, 3]) {
    const place = places[index]
    if (place) leave(place)
  }
  expect(list.oldest()).toBe(3)
  list.append(5)
  if (places[2]) leave(places[2])
  expect(list.oldest()).toBe(5)
})
