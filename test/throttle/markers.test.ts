import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { withLocalFallback } from '../../src/rate-limits/local-fallback'
import { createLocalMarkers, createMarkers, type LocalMarkers } from '../../src/rate-limits/markers'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { CounterStore } from '../../src/rate-limits/rate-limit'
import { logTap } from '../support/log-tap'

const startSeconds = 1_800_000_000
const lifespan = 600

function open(counters: CounterStore | null = null) {
  let at = startSeconds * 1000
  const now = () => at
  const shared = counters && withLocalFallback(counters, { now, logger: logTap() })
  const markers = createMarkers('state', { counters: shared, now })
  const claim = (value: string, expiresAt = startSeconds + lifespan) => markers.claim(value, expiresAt)
  return { claim, advance: (seconds: number) => (at += seconds * 1000) }
}

/** A store of this process that behaves as one of another machine, and says what it was asked. */
function remote() {
  const inner = memoryCounters()
  const state = { isDown: false }
  const run = <T>(work: () => Promise<T>) => (state.isDown ? Promise.reject(new Error('down')) : work())
  const counters: CounterStore = {
    increment: (...given) => run(() => inner.increment(...given)),
    decrement: (key) => run(() => inner.decrement(key)),
    reset: (key) => run(() => inner.reset(key)),
  }
  return { counters, state }
}

describe('in one process', () => {
  test('of twenty callers at once exactly one is first, and no later one is', async () => {
    const { claim, advance } = open()
    const answers = await Promise.all(Array.from({ length: 20 }, () => claim('a')))
    expect(answers.filter(Boolean)).toHaveLength(1)
    advance(lifespan - 1)
    expect([await claim('a'), await claim('b')]).toEqual([false, true])
  })

  /** As fast as strangers could at the very most: without HTTP, without a promise. */
  function flood(claim: LocalMarkers['claim'], count: number, expiresAt: (index: number) => number): number {
    let refused = 0
    for (let index = 0; index < count; index++) if (!claim(digestOf(`flood-${index}`), expiresAt(index))) refused += 1
    return refused
  }

  test('a flood of more states than it holds refuses nobody, and takes less than 32 MiB', () => {
    let seconds = startSeconds
    const { claim } = createLocalMarkers(() => seconds * 1000)
    const heapBefore = collectedHeap()
    const atFourThousandASecond = (index: number) => {
      if (index % 4_000 === 0) seconds += 1
      return seconds + lifespan
    }

    expect(flood(claim, 299_999, atFourThousandASecond)).toBe(0)
    const held = collectedHeap() - heapBefore
    expect(held).toBeGreaterThan(2 ** 20)
    expect(held).toBeLessThan(32 * 2 ** 20)

    expect([1, 2].map(() => claim(digestOf('somebody'), seconds + lifespan))).toEqual([true, false])
    expect(flood(claim, 1_000, () => seconds + lifespan + 10)).toBe(0)
    expect(collectedHeap() - heapBefore).toBeLessThan(held + 2 ** 20)
    expect(claim(digestOf('somebody'), seconds + lifespan)).toBe(false)
  })

  test('when it is full the oldest markers give way', () => {
    const { claim } = createLocalMarkers(() => startSeconds * 1000)
    const [old, young] = [startSeconds + 100, startSeconds + lifespan]
    const [first, last] = [digestOf('old'), digestOf('young')]
    expect([claim(first, old), claim(last, young), flood(claim, 300_000, () => startSeconds + 300)]).toEqual([true, true, 0])
    expect([claim(first, old), claim(last, young)]).toEqual([true, false])
  })

  test('what has expired takes no room: the markers of later ones stay', () => {
    let seconds = startSeconds
    const { claim } = createLocalMarkers(() => seconds * 1000)
    for (let round = 0; round < 2; round++) {
      expect(claim(digestOf('kept'), seconds + lifespan)).toBe(true)
      expect(flood(claim, 160_000, () => seconds + lifespan - 1)).toBe(0)
      expect(claim(digestOf('kept'), seconds + lifespan)).toBe(false)
      seconds += lifespan + 10
    }
  })
})

describe('with a shared store', () => {
  test('its answer decides between two processes', async () => {
    const inner = memoryCounters()
    const [one, other] = [open({ ...inner }), open({ ...inner })]
    const answers = await Promise.all([one.claim('a'), other.claim('a'), one.claim('a'), other.claim('a')])
    expect(answers.filter(Boolean)).toHaveLength(1)
  })

  test.each([
    ['the first', [1, 2], [true, false]],
    ['the second', [2, 1], [false, true]],
  ])('it counted %s of two callers here first: that one gets in', async (_case, counts, expected) => {
    const left = [...counts]
    const increment = async () => ({ count: left.shift() ?? 0, resetSeconds: lifespan })
    const { claim } = open({ ...memoryCounters(), increment })
    expect(await Promise.all([claim('a'), claim('a')])).toEqual(expected)
  })

  test('while it is down each process decides for itself, and what it decided stays decided', async () => {
    const { counters, state } = remote()
    const { claim, advance } = open(counters)
    expect(await claim('before')).toBe(true)
    state.isDown = true
    expect([await claim('before'), await claim('during'), await claim('during')]).toEqual([false, true, false])
    state.isDown = false
    advance(5)
    expect([await claim('before'), await claim('during'), await claim('after')]).toEqual([false, false, true])
  })

  test('an answer that came too late counts once', { timeout: 10_000 }, async () => {
    const inner = memoryCounters()
    let isLate = true
    const increment: CounterStore['increment'] = async (...given) => {
      const answer = await inner.increment(...given)
      if (isLate) await new Promise((resolve) => setTimeout(resolve, 600))
      return answer
    }
    const { claim, advance } = open({ ...inner, increment })
    expect(await claim('a')).toBe(true)
    isLate = false
    advance(5)
    expect(await claim('a')).toBe(false)
  })
})

function digestOf(value: string): Buffer {
  return createHash('sha256').update(value).digest()
}

/** Bytes in use after a collection. */
function collectedHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void // what the flag puts there
  collect()
  return process.memoryUsage().heapUsed
}
