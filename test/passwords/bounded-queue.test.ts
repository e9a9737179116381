import { expect, test } from 'vitest'
import { ServiceUnavailableError } from '../../src/errors'
import { createBoundedQueue } from '../../src/passwords/bounded-queue'

/** Work that ends when told. */
function heldWork() {
  const started: number[] = []
  const ends: (() => void)[] = []
  let running = 0
  let most = 0
  const work = (id: number) => async () => {
    started.push(id)
    most = Math.max(most, ++running)
    await new Promise<void>((resolve) => ends.push(resolve))
    running--
    return id
  }
  const endNext = () => ends.shift()?.()
  return { work, started, endNext, mostAtOnce: () => most }
}

const settle = () => new Promise((resolve) => setImmediate(resolve))

test('never more at once than allowed, and first come is first served', async () => {
  const { work, started, endNext, mostAtOnce } = heldWork()
  const run = createBoundedQueue({ concurrency: 2, queue: 64 })
  const all = Array.from({ length: 10 }, (_, id) => run(work(id)))
  for (let round = 0; round < 10; round++) {
    await settle()
    endNext()
  }
  expect(await Promise.all(all)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(mostAtOnce()).toBe(2)
})

test('the one too many is refused without waiting, and its work never starts', async () => {
  const { work, started, endNext } = heldWork()
  const run = createBoundedQueue({ concurrency: 1, queue: 1 })
  const [first, second] = [run(work(1)), run(work(2))]
  await expect(run(work(3))).rejects.toBeInstanceOf(ServiceUnavailableError)
  await settle()
  endNext()
  await settle()
  endNext()
  expect(await Promise.all([first, second])).toEqual([1, 2])
  expect(started).toEqual([1, 2])
})

test('a newcomer does not slip in between a place that frees up and the one waiting for it', async () => {
  const { work, started, endNext } = heldWork()
  const run = createBoundedQueue({ concurrency: 1, queue: 5 })
  const first = run(work(1))
  const second = run(work(2))
  await settle()
  endNext()
  await first
  const third = run(work(3))
  await settle()
  expect(started).toEqual([1, 2])
  endNext()
  await settle()
  endNext()
  await Promise.all([second, third])
})

test('work that fails, or throws before its first await, gives its place back', async () => {
  const run = createBoundedQueue({ concurrency: 1, queue: 5 })
  const failing = [
    run(async () => Promise.reject(new Error('late'))),
    run(() => {
      throw new Error('early')
    }),
  ]
  expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await run(async () => 'next')).toBe('next')
})

test('work that is aborted while it waits never runs and leaves its place; work that runs already goes on', async () => {
  const run = createBoundedQueue({ concurrency: 1, queue: 1 })
  const { work, endNext } = heldWork()
  const first = run(work(1))
  const gone = new AbortController()
  const aborted = run(async () => 'ran', gone.signal)
  gone.abort()
  await expect(aborted).rejects.toThrow(ServiceUnavailableError)
  const next = run(async () => 'next')
  await settle()
  endNext()
  expect([await first, await next]).toEqual([1, 'next'])
  await expect(run(async () => 'ran', gone.signal)).rejects.toThrow(ServiceUnavailableError)
})
