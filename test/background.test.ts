import { expect, test, vi } from 'vitest'
import { createBackground, startDelayMs } from '../src/core/background'
import { ServiceUnavailableError } from '../src/core/errors'
import { logTap } from './support/log-tap'

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

test('work begins after the caller has gone on; however it fails, the failure is logged by its name and goes nowhere else', async () => {
  const logs = logTap()
  const background = createBackground(logs, { isDelayed: false })
  const order: string[] = []
  background.run('fine', async () => void order.push('work'))
  background.run('throws', () => {
    throw new Error('canary')
  })
  background.run('rejects', () => Promise.reject(undefined))
  order.push('caller')
  await settled()
  expect(order).toEqual(['caller', 'work'])
  expect(logs.entries.map(({ fields }) => (fields as { work: string }).work)).toEqual(['throws', 'rejects'])
  expect(logs.text()).not.toContain('canary')
})

test('a thousand at once, no more: the next is 503; whatever ends makes room, well or badly', async () => {
  const logs = logTap()
  const background = createBackground(logs, { isDelayed: false })
  const ends: ((fails: boolean) => void)[] = []
  const waiting = () => new Promise<void>((resolve, reject) => ends.push((fails) => (fails ? reject(new Error('no')) : resolve())))
  for (let number = 0; number < 1_000; number++) background.run('waiting', waiting)
  await settled()
  expect(ends).toHaveLength(1_000)
  expect(() => background.run('one too many', waiting)).toThrow(ServiceUnavailableError)
  expect(background.runIfRoom('left out', waiting)).toBe(false)
  expect(logs.entries.map(({ fields }) => fields)).toEqual([{ work: 'left out', count: 1 }])
  ends[0]?.(true)
  ends[1]?.(false)
  await settled()
  background.run('waiting', waiting)
  expect(background.runIfRoom('waiting', waiting)).toBe(true)
  await settled()
  expect(ends).toHaveLength(1_002)
  expect(() => background.run('one too many', waiting)).toThrow(ServiceUnavailableError)
})

test('24.4: work begins after a random delay of 200 to 2,000 ms, which keeps no process alive; `finish` ends the delay of what waits, and of nothing else', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  try {
    const background = createBackground(logTap(), { isDelayed: true })
    const begun: number[] = []
    let now = 0
    for (let number = 0; number < 300; number++) background.run('counted', async () => void begun.push(now))
    for (now = 0; now <= 2_100; now += 10) await vi.advanceTimersByTimeAsync(10)
    expect(begun).toHaveLength(300)
    const [least, most] = startDelayMs
    expect([Math.min(...begun) >= least - 10, Math.max(...begun) <= most]).toEqual([true, true])
    // By chance: all thirds of the time are used, which 300 draws miss with less than one in 10^50.
    for (const third of [0, 1, 2]) {
      const from = least + third * 600
      expect(begun.filter((at) => at >= from && at < from + 600).length).toBeGreaterThan(30)
    }
    background.run('hurried', async () => void begun.push(-1))
    await background.finish()
    expect(begun.at(-1)).toBe(-1)
    background.run('after', async () => void begun.push(-2))
    await vi.advanceTimersByTimeAsync(least - 10)
    expect(begun.at(-1)).toBe(-1)
    await vi.advanceTimersByTimeAsync(most)
    expect(begun.at(-1)).toBe(-2)
  } finally {
    vi.useRealTimers()
  }
})
