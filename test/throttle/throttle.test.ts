import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, LoginThrottledError, MfaThrottledError, TooManyRequestsError } from '../../src/core/errors'
import type { Logger } from '../../src/core/logger'
import { defaultDeadlineMs, restMs, withLocalFallback } from '../../src/rate-limits/local-fallback'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import { type CounterStore, resolveRateLimit } from '../../src/rate-limits/rate-limit'
import { attempt, clear, counterKey, giveBack } from '../../src/rate-limits/rate-limiter'

const rateLimit = { attempts: 5, windowSeconds: 900 }

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** How many of the attempts got through. */
async function passed(counters: CounterStore, key: string, times: number): Promise<number> {
  const outcomes = await Promise.allSettled(Array.from({ length: times }, () => attempt(counters, rateLimit, key, LoginThrottledError)))
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

describe('attempt', () => {
  test('a burst cannot overshoot: of a hundred at once, five get through', async () => {
    expect(await passed(memoryCounters(), 'a', 100)).toBe(5)
  })

  test('past the budget it throws the error it was given, with the seconds to wait, a whole number of at least 1', async () => {
    let at = 0
    const counters = memoryCounters({ now: () => at })
    await passed(counters, 'a', 5)
    at = 100_500
    await expect(attempt(counters, rateLimit, 'a', LoginThrottledError)).rejects.toMatchObject({
      name: 'LoginThrottledError',
      status: 429,
      code: 'LOGIN_THROTTLED',
      details: { retry_after_seconds: 800 },
    })
    await expect(attempt(counters, rateLimit, 'a', MfaThrottledError)).rejects.toBeInstanceOf(MfaThrottledError)
    at = 899_999
    await expect(attempt(counters, rateLimit, 'a', TooManyRequestsError)).rejects.toMatchObject({ details: { retry_after_seconds: 1 } })
    at = 900_000
    await expect(attempt(counters, rateLimit, 'a', LoginThrottledError)).resolves.toBeUndefined()
  })

  test('a store that says when in fractions is rounded up', async () => {
    const counters = { ...memoryCounters(), increment: async () => ({ count: 6, resetSeconds: 0.2 }) }
    await expect(attempt(counters, rateLimit, 'a', LoginThrottledError)).rejects.toMatchObject({ details: { retry_after_seconds: 1 } })
  })

  test('a refused caller leaves no unit behind: a burst of good logins does not lock itself out', async () => {
    const counters = memoryCounters()
    expect(await passed(counters, 'a', 20)).toBe(5)
    for (let login = 0; login < 5; login++) await giveBack(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 20)).toBe(5)
  })

  test('a budget of false is off, and asks no store', async () => {
    const counters = brokenStore()
    for (let time = 0; time < 100; time++) await attempt(counters, false, 'a', LoginThrottledError)
    await giveBack(counters, false, 'a')
    await clear(counters, false, 'a')
    expect(counters.asked).toBe(0)
  })

  test('the store is told the limit, so that it keeps spent keys', async () => {
    const increment = vi.fn(async () => ({ count: 1, resetSeconds: 900 }))
    await attempt({ ...memoryCounters(), increment }, rateLimit, 'a', LoginThrottledError)
    expect(increment).toHaveBeenCalledWith('a', 900, 5)
  })
})

test('giving back returns one unit, clearing returns all', async () => {
  const counters = memoryCounters()
  expect(await passed(counters, 'a', 5)).toBe(5)
  await giveBack(counters, rateLimit, 'a')
  expect(await passed(counters, 'a', 3)).toBe(1)
  await clear(counters, rateLimit, 'a')
  expect(await passed(counters, 'a', 10)).toBe(5)
})

test('a key holds a digest, not the address', () => {
  const address = 'someone@example.test'
  expect(counterKey('login:email', address)).toBe(`login:email:${createHash('sha256').update(address).digest('base64url')}`)
  expect(counterKey('login:email', address)).not.toContain('someone')
  expect(counterKey('login:email', 'x'.repeat(10_000))).toHaveLength('login:email:'.length + 43)
})

function brokenStore() {
  const fail = async () => {
    store.asked++
    throw new Error('connection lost to redis://user:canary@cache')
  }
  const store = { asked: 0, increment: fail, decrement: fail, reset: fail }
  return store
}

function tapLogger() {
  const lines: string[] = []
  const take = (fields: object, message: string) => void lines.push(JSON.stringify({ fields, message }))
  const logger: Logger = { info: take, warn: take, error: take }
  return { logger, lines }
}

describe('when the shared store is down', () => {
  let lines: string[]
  let logger: Logger
  beforeEach(() => {
    ;({ lines, logger } = tapLogger())
  })

  test('a local limiter takes over: five get through, not a hundred', async () => {
    const counters = withLocalFallback(brokenStore(), { logger })
    expect(await passed(counters, 'a', 100)).toBe(5)
    await giveBack(counters, rateLimit, 'a')
    await clear(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 100)).toBe(5)
  })

  test('it does so even for a store nobody wrapped', async () => {
    const error = vi.spyOn(console, 'error').mockReturnValue()
    const store = brokenStore()
    expect(await passed(store, 'a', 50)).toBe(5)
    expect(await passed(store, 'a', 50)).toBe(0)
    expect(error).toHaveBeenCalledTimes(1)
  })

  test('a store that throws before its first await counts as down', async () => {
    const fail = () => {
      throw new Error('not connected')
    }
    const counters = withLocalFallback({ increment: fail, decrement: fail, reset: fail }, { logger })
    expect(await passed(counters, 'a', 20)).toBe(5)
    await giveBack(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 20)).toBe(1)
  })

  test.each([
    [{ count: '6', resetSeconds: 900 }],
    [{ count: Number.NaN, resetSeconds: 900 }],
    [{ count: 0, resetSeconds: 900 }],
    [{ count: 3, resetSeconds: 'soon' }],
    [{}],
    [null],
    [undefined],
  ])('an answer that is no count (%j) is no pass', async (answer) => {
    // wrong on purpose: what a careless adapter returns
    const increment = async () => answer as unknown as { count: number; resetSeconds: number }
    const counters = withLocalFallback({ ...memoryCounters(), increment }, { logger })
    expect(await passed(counters, 'a', 20)).toBe(5)
  })

  test('a store that accepts and stays silent is waited for less than half a second, then left alone for one', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let at = 0
    let asked = 0
    const silent = () => {
      asked++
      return new Promise<never>(() => {})
    }
    const counters = withLocalFallback({ increment: silent, decrement: silent, reset: silent }, { logger, now: () => at })
    expect(defaultDeadlineMs).toBeLessThan(450)
    const first = counters.increment('a', 900, 5)
    await vi.advanceTimersByTimeAsync(defaultDeadlineMs)
    expect(await first).toEqual({ count: 1, resetSeconds: 900 })
    expect(await counters.increment('a', 900, 5)).toEqual({ count: 2, resetSeconds: 900 })
    expect(asked).toBe(1)
    at = 1_000
    const third = counters.increment('a', 900, 5)
    expect(asked).toBe(2)
    await vi.advanceTimersByTimeAsync(defaultDeadlineMs)
    expect((await third).count).toBe(3)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('an answer that waited only for this busy process is not late', async () => {
    // Like a socket's, the answer is there at once and is read in the loop's next turn.
    const increment = () => stat(import.meta.filename).then(() => ({ count: 4, resetSeconds: 900 }))
    const counters = withLocalFallback({ ...memoryCounters(), increment }, { logger })
    const answer = counters.increment('a', 900, 5)
    const busyUntil = performance.now() + defaultDeadlineMs + 50
    while (performance.now() < busyUntil);
    expect(await answer).toEqual({ count: 4, resetSeconds: 900 })
    expect(lines).toEqual([])
  })

  test("a late failure is nobody's: no rejection is left unhandled", async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const failures: ((error: Error) => void)[] = []
    const late = () => new Promise<never>((_, reject) => failures.push(reject))
    const unhandled = vi.fn()
    process.once('unhandledRejection', unhandled)
    const counters = withLocalFallback({ increment: late, decrement: late, reset: late }, { logger })
    const first = counters.increment('a', 900, 5)
    await vi.advanceTimersByTimeAsync(defaultDeadlineMs)
    expect((await first).count).toBe(1)
    for (const fail of failures) fail(new Error('connection closed'))
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  /** A store the test takes down and brings back, on one clock with its guard. */
  function outage() {
    let at = 0
    let isDown = false
    let asked = 0
    const shared = memoryCounters({ now: () => at })
    const whileUp =
      <Input extends unknown[], Output>(verb: (...input: Input) => Promise<Output>) =>
      async (...input: Input) => {
        asked++
        if (isDown) throw new Error('down')
        return verb(...input)
      }
    const flaky: CounterStore = {
      increment: whileUp(shared.increment),
      decrement: whileUp(shared.decrement),
      reset: whileUp(shared.reset),
    }
    return {
      shared,
      counters: withLocalFallback(flaky, { logger, now: () => at }),
      asked: () => asked,
      goDown: () => {
        isDown = true
      },
      comeBack: () => {
        isDown = false
        at += restMs
      },
    }
  }

  test('once it is back, it counts again', async () => {
    const { shared, counters, goDown, comeBack } = outage()
    goDown()
    await counters.increment('a', 900, 5)
    comeBack()
    expect((await counters.increment('b', 900, 5)).count).toBe(1)
    expect((await counters.increment('b', 900, 5)).count).toBe(2)
    expect((await shared.increment('b', 900)).count).toBe(3)
    expect(lines).toHaveLength(1)
    goDown()
    await counters.increment('a', 900, 5)
    expect(lines).toHaveLength(2)
  })

  test('what was counted here meanwhile stays counted: a store that comes and goes gives no fresh budgets', async () => {
    const { shared, counters, goDown, comeBack } = outage()
    expect(await passed(counters, 'a', 20)).toBe(5)
    let during = 0
    for (let flap = 0; flap < 5; flap++) {
      goDown()
      during += await passed(counters, 'a', 20)
      comeBack()
      await shared.reset('a') // a Redis that was restarted has forgotten
      expect(await passed(counters, 'a', 20)).toBe(0)
    }
    expect(during).toBe(0) // spent there is spent here, too
  })

  test('the larger count is believed, whichever store has it', async () => {
    const { shared, counters, goDown, comeBack } = outage()
    for (let unit = 0; unit < 4; unit++) await shared.increment('a', 900) // another process
    goDown()
    for (let unit = 0; unit < 2; unit++) await counters.increment('a', 900, 9)
    comeBack()
    expect((await counters.increment('a', 900, 9)).count).toBe(5)
    await shared.reset('a')
    expect((await counters.increment('a', 900, 9)).count).toBe(4)
  })

  test('giving back and clearing reach whichever counted', async () => {
    const { shared, counters, goDown, comeBack } = outage()
    goDown()
    expect(await passed(counters, 'a', 5)).toBe(5)
    await giveBack(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 5)).toBe(1)
    comeBack()
    await giveBack(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 5)).toBe(1)
    await clear(counters, rateLimit, 'a')
    expect(await passed(counters, 'a', 20)).toBe(5)
    expect((await shared.increment('a', 900)).count).toBe(6)
  })

  test('after its rest one call tries it, and the others wait for nothing', async () => {
    const { counters, asked, goDown, comeBack } = outage()
    goDown()
    await counters.increment('a', 900, 5)
    const before = asked()
    comeBack()
    goDown()
    await Promise.all(Array.from({ length: 50 }, () => counters.increment('a', 900, 5)))
    expect(asked() - before).toBe(1)
  })

  test('a store that still deletes, and counts no more, stays down', async () => {
    let at = 0
    let asked = 0
    const counters = withLocalFallback(
      {
        ...memoryCounters(),
        increment: async () => {
          asked++
          throw new Error('out of memory')
        },
      },
      { logger, now: () => at },
    )
    await counters.increment('a', 900, 5)
    for (let second = 1; second <= 3; second++) {
      at += restMs
      await clear(counters, rateLimit, 'b')
      await giveBack(counters, rateLimit, 'b')
      expect(await passed(counters, 'a', 20)).toBe(second === 1 ? 4 : 0)
    }
    expect(asked).toBe(4)
    expect(lines).toHaveLength(1)
  })

  test('the outage is logged once, without what the error says', async () => {
    await passed(withLocalFallback(brokenStore(), { logger }), 'someone', 20)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('counter store failed')
    expect(lines[0]).not.toContain('canary')
    expect(lines[0]).not.toContain('someone')
  })

  test('one store has one guard, and a store of this process needs none', () => {
    const store = brokenStore()
    const counters = withLocalFallback(store, { logger })
    expect(withLocalFallback(store)).toBe(counters)
    expect(withLocalFallback(counters)).toBe(counters)
    const local = memoryCounters()
    expect(withLocalFallback(local)).toBe(local)
  })
})

describe('a budget given by the host', () => {
  const fallback = { attempts: 60, windowSeconds: 60 }

  test('is the default when it is left out, off when false, else as given, frozen', () => {
    expect(resolveRateLimit('throttle.routes', undefined, fallback)).toEqual(fallback)
    expect(resolveRateLimit('throttle.routes', false, fallback)).toBe(false)
    const given = resolveRateLimit('throttle.routes', { attempts: 1, windowSeconds: 10 }, fallback)
    expect(given).toEqual({ attempts: 1, windowSeconds: 10 })
    expect(Object.isFrozen(given)).toBe(true)
  })

  test.each([
    { attempts: 0, windowSeconds: 60 },
    { attempts: '5', windowSeconds: 60 },
    { attempts: 5, windowSeconds: Number.NaN },
    { attempts: Number.POSITIVE_INFINITY, windowSeconds: 60 },
    { attempts: 5 },
    {},
    true,
    null,
  ])('%j is refused, naming the option', (given) => {
    // wrong on purpose
    const resolve = () => resolveRateLimit('throttle.routes', given as unknown as typeof fallback, fallback)
    if (given === null) expect(resolve()).toEqual(fallback)
    else {
      expect(resolve).toThrow(ConfigurationError)
      expect(resolve).toThrow('throttle.routes')
    }
  })
})
