import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { CounterStore } from '../../src/rate-limits/rate-limit'

function withClock(options: { maxKeys?: number } = {}) {
  let at = 5_000
  const counters = memoryCounters({ ...options, now: () => at })
  return { counters, advance: (seconds: number) => (at += seconds * 1000) }
}

async function take(counters: CounterStore, key: string, times: number, limit?: number, windowSeconds = 900) {
  let answer = { count: 0, resetSeconds: 0 }
  for (let time = 0; time < times; time++) answer = await counters.increment(key, windowSeconds, limit)
  return answer
}

async function countOf(counters: CounterStore, key: string, limit?: number, windowSeconds = 900): Promise<number> {
  return (await counters.increment(key, windowSeconds, limit)).count
}

describe('a window', () => {
  test('counts each unit, and says when it ends', async () => {
    const { counters, advance } = withClock()
    expect(await counters.increment('a', 900)).toEqual({ count: 1, resetSeconds: 900 })
    advance(0.5)
    expect(await counters.increment('a', 900)).toEqual({ count: 2, resetSeconds: 900 })
    advance(100)
    expect(await counters.increment('a', 900)).toEqual({ count: 3, resetSeconds: 800 })
  })

  test('says the whole seconds that are left, whatever the fraction of a millisecond at which it began', async () => {
    for (let fraction = 0; fraction < 1; fraction += 0.01) {
      const counters = memoryCounters({ now: () => 86_400_000 + fraction })
      expect(await counters.increment('a', 900)).toEqual({ count: 1, resetSeconds: 900 })
    }
  })

  test('starts at the first unit and is not extended by later ones', async () => {
    const { counters, advance } = withClock()
    await counters.increment('a', 900)
    advance(899)
    expect(await counters.increment('a', 900)).toEqual({ count: 2, resetSeconds: 1 })
    advance(1)
    expect(await counters.increment('a', 900)).toEqual({ count: 1, resetSeconds: 900 })
  })

  test('that begins again before its expired predecessor was swept is not swept in its place', async () => {
    const { counters, advance } = withClock()
    for (let index = 0; index < 100; index++) await counters.increment(`k${index}`, 900, 5)
    advance(900)
    expect(await countOf(counters, 'k99')).toBe(1)
    for (let index = 0; index < 100; index++) await counters.increment(`new-${index}`, 900, 5)
    expect(await countOf(counters, 'k99')).toBe(2)
  })

  test('never says less than one second', async () => {
    const { counters, advance } = withClock()
    await counters.increment('a', 900)
    advance(899.999)
    expect((await counters.increment('a', 900)).resetSeconds).toBe(1)
  })

  test('of one key leaves the others alone, whatever their names', async () => {
    const { counters } = withClock()
    for (const key of ['a', 'b', '__proto__', 'constructor', '']) expect(await countOf(counters, key)).toBe(1)
    expect(await countOf(counters, 'a')).toBe(2)
  })

  test('units taken at once are all counted', async () => {
    const { counters } = withClock()
    const answers = await Promise.all(Array.from({ length: 100 }, () => counters.increment('a', 900, 5)))
    expect(answers.map(({ count }) => count)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1))
  })

  test('uses the monotonic clock unless another is given', async () => {
    expect(await memoryCounters().increment('a', 900)).toEqual({ count: 1, resetSeconds: 900 })
  })
})

describe('giving back', () => {
  test('takes one unit off and leaves the window where it was', async () => {
    const { counters, advance } = withClock()
    await take(counters, 'a', 3)
    advance(100)
    await counters.decrement('a')
    expect(await counters.increment('a', 900)).toEqual({ count: 3, resetSeconds: 800 })
  })

  test('never goes below zero', async () => {
    const { counters } = withClock()
    await counters.decrement('a')
    await take(counters, 'a', 1)
    for (let time = 0; time < 3; time++) await counters.decrement('a')
    expect(await countOf(counters, 'a')).toBe(1)
  })

  test('reset forgets the key, and it alone', async () => {
    const { counters } = withClock()
    await take(counters, 'a', 5, 5)
    await take(counters, 'b', 2, 5)
    await counters.reset('a')
    await counters.reset('unknown')
    expect(await countOf(counters, 'a')).toBe(1)
    expect(await countOf(counters, 'b')).toBe(3)
  })
})

describe('when it is full', () => {
  test('a key at its limit is never evicted before it expires', async () => {
    const { counters } = withClock({ maxKeys: 100 })
    await take(counters, 'victim', 5, 5)
    for (let index = 0; index < 10_000; index++) await counters.increment(`flood-${index}`, 900, 5)
    expect(await countOf(counters, 'victim', 5)).toBe(6)
  })

  test('nor when units beyond the limit are given back', async () => {
    const { counters } = withClock({ maxKeys: 100 })
    await take(counters, 'victim', 9, 5)
    for (let time = 0; time < 4; time++) await counters.decrement('victim')
    for (let index = 0; index < 1_000; index++) await take(counters, `flood-${index}`, 2, 5)
    expect(await countOf(counters, 'victim', 5)).toBe(6)
  })

  test('keys with fewer units make room first: naming keys once pushes out no half-spent one', async () => {
    const { counters } = withClock({ maxKeys: 100 })
    await take(counters, 'victim', 4, 5)
    for (let index = 0; index < 1_000; index++) await take(counters, `flood-${index}`, (index % 3) + 1, 5)
    expect(await countOf(counters, 'victim', 5)).toBe(5)
  })

  test('of keys with as many units the oldest makes room', async () => {
    const { counters } = withClock({ maxKeys: 3 })
    for (const key of ['a', 'b', 'c', 'd']) await counters.increment(key, 900, 5)
    expect(await countOf(counters, 'b', 5)).toBe(2)
    expect(await countOf(counters, 'c', 5)).toBe(2)
    expect(await countOf(counters, 'a', 5)).toBe(1)
  })

  test('24.7: full of keys at their limit, a new key counts in one of 65,536 buckets of 20 times its limit', async () => {
    const { counters } = withClock({ maxKeys: 10 })
    for (let index = 0; index < 10; index++) await take(counters, `spent-${index}`, 5, 5)
    const counts: number[] = []
    for (let unit = 0; unit < 101; unit++) counts.push(await countOf(counters, 'newcomer', 5))
    expect(counts.filter((count) => count <= 5)).toHaveLength(100)
    expect(counts.at(-1)).toBe(6)
    for (let index = 0; index < 10; index++) expect(await countOf(counters, `spent-${index}`, 5)).toBe(6)
  })

  test('24.7: a flood of new keys then shuts nobody out: of 1,000 other keys all get in', async () => {
    const { counters } = withClock({ maxKeys: 1 })
    await take(counters, 'spent', 1, 1)
    for (let index = 0; index < 200_000; index++) await counters.increment(`flood-${index}`, 900, 5)
    for (let person = 0; person < 1_000; person++) expect(await countOf(counters, `person-${person}`, 5)).toBe(1)
  })

  test('a key that a stranger floods fills its own bucket, which is another one in the next process', async () => {
    const sameBucketAsVictim = async () => {
      const { counters } = withClock({ maxKeys: 1 })
      await take(counters, 'spent', 1, 1)
      const others: string[] = []
      await take(counters, 'victim', 101, 5)
      for (let index = 0; index < 300_000; index++) if ((await countOf(counters, `k${index}`, 5)) > 5) others.push(`k${index}`)
      return others
    }
    const [here, there] = [await sameBucketAsVictim(), await sameBucketAsVictim()]
    expect(here.length).toBeGreaterThan(0)
    expect(here.length).toBeLessThan(30) // 4.6 on average
    expect(here).not.toEqual(there)
  })

  test('buckets have a window too, and each limit has buckets of its own', async () => {
    const { counters, advance } = withClock({ maxKeys: 1 })
    await take(counters, 'spent', 1, 1, 10_000)
    expect(await take(counters, 'a', 100, 5)).toEqual({ count: 5, resetSeconds: 900 })
    expect(await counters.increment('a', 900, 100)).toEqual({ count: 1, resetSeconds: 900 })
    expect(await counters.increment('a', 60, 5)).toEqual({ count: 1, resetSeconds: 60 })
    advance(60)
    expect(await counters.increment('a', 900, 5)).toEqual({ count: 6, resetSeconds: 840 })
    advance(840)
    expect(await counters.increment('a', 900, 5)).toEqual({ count: 1, resetSeconds: 900 })
  })

  test('giving back or forgetting a key without a place opens nothing for the others of its bucket', async () => {
    const { counters } = withClock({ maxKeys: 1 })
    await take(counters, 'spent', 1, 1)
    await take(counters, 'newcomer', 100, 5)
    await counters.decrement('newcomer')
    await counters.reset('newcomer')
    expect(await countOf(counters, 'newcomer', 5)).toBe(6)
  })

  test('full of keys that are half used, a new key makes room at once, and still gets no more than 20 times its limit', async () => {
    const { counters } = withClock({ maxKeys: 100 })
    for (let key = 0; key < 100; key++) await take(counters, `half used ${key}`, 3, 5)

    let granted = 0
    for (let turn = 0; turn < 500; turn++) {
      if ((await countOf(counters, 'guesses', 5)) <= 5) granted++
      await countOf(counters, `another ${turn}`, 5) // makes the key above go
    }

    expect(granted).toBeGreaterThan(5)
    expect(granted).toBeLessThanOrEqual(100)
    expect(await countOf(counters, 'somebody else', 5)).toBe(1)
  })

  test('a key that expired or was given back makes room again', async () => {
    const { counters, advance } = withClock({ maxKeys: 2 })
    await take(counters, 'short', 1, 1, 60)
    await take(counters, 'long', 1, 1, 900)
    await take(counters, 'a', 20, 5)
    expect(await countOf(counters, 'a', 5), 'in a bucket, which 20 units are one of').toBe(2)
    advance(60)
    await take(counters, 'c', 4, 5)
    expect(await countOf(counters, 'c', 5), 'in the place of "short"').toBe(5)
    await counters.decrement('long')
    await take(counters, 'd', 4, 5)
    expect(await countOf(counters, 'd', 5), 'in the place of "long"').toBe(5)
  })

  test('a key named without a limit can always make room', async () => {
    const { counters } = withClock({ maxKeys: 1 })
    await take(counters, 'a', 1_000)
    expect(await countOf(counters, 'b')).toBe(1)
    expect(await countOf(counters, 'a')).toBe(1)
  })
})

test('of 300,000 distinct keys no more than maxKeys are held, the latest, and the spent one among them', async () => {
  const { counters } = withClock({ maxKeys: 10_000 })
  await take(counters, 'victim', 5, 5)
  for (let index = 0; index < 300_000; index++) await counters.increment(`k${index}`, 900, 5)
  expect(await countOf(counters, 'k299999', 5)).toBe(2)
  expect(await countOf(counters, 'k290001', 5)).toBe(2)
  expect(await countOf(counters, 'k290000', 5)).toBe(1)
  expect(await countOf(counters, 'victim', 5)).toBe(6)
})

test('100,000 keys are held by default, and the one after makes the oldest go', async () => {
  const counters = memoryCounters({ now: () => 0 })
  for (let index = 0; index < 100_000; index++) await counters.increment(`k${index}`, 900, 5)
  expect(await countOf(counters, 'k0', 5)).toBe(2)
  await counters.increment('one too many', 900, 5)
  expect(await countOf(counters, 'k2', 5)).toBe(2)
  expect(await countOf(counters, 'k1', 5)).toBe(1)
})

test('100,000 keys that expire together are never in the way of new ones', async () => {
  const { counters, advance } = withClock()
  for (let index = 0; index < 100_000; index++) await counters.increment(`k${index}`, 900, 1)
  advance(900)
  for (let index = 0; index < 4_000; index++) expect(await countOf(counters, `new-${index}`, 1)).toBe(1)
  for (let index = 0; index < 4_000; index++) expect(await countOf(counters, `new-${index}`, 1)).toBe(2)
})

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('maxKeys %j is refused', (maxKeys) => {
  expect(() => memoryCounters({ maxKeys })).toThrow(ConfigurationError)
})
