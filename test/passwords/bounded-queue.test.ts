import { expect, test } from 'vitest'
import { ServiceUnavailableError } from '../../src/core/errors'
import { createBoundedQueue, type Turn } from '../../src/passwords/hash-queue'

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
  const aborted = run(async () => 'ran', { signal: gone.signal })
  gone.abort()
  await expect(aborted).rejects.toThrow(ServiceUnavailableError)
  const next = run(async () => 'next')
  await settle()
  endNext()
  expect([await first, await next]).toEqual([1, 'next'])
  await expect(run(async () => 'ran', { signal: gone.signal })).rejects.toThrow(ServiceUnavailableError)
})

/** Fills the one slot, lets tasks wait in this order, and returns in which order they begin. A task that lost its place is `lost`. */
async function orderOf(waiting: readonly (Turn & { name: string })[], queue = 64): Promise<string[]> {
  const run = createBoundedQueue({ concurrency: 1, queue })
  const order: string[] = []
  const { work, endNext } = heldWork()
  const held = run(work(0))
  const all = waiting.map(({ name, ...turn }) => run(async () => void order.push(name), turn).catch(() => void order.push(`${name} lost`)))
  await settle()
  endNext()
  await Promise.all([held, ...all])
  return order
}

const tasks = (network: string, count: number) => Array.from({ length: count }, (_, index) => ({ name: `${network}${index}`, network }))

test('networks take turns, and the tasks of a network stay in order', async () => {
  expect(await orderOf([...tasks('a', 3), ...tasks('b', 1), ...tasks('c', 2)])).toEqual(['a0', 'b0', 'c0', 'a1', 'c1', 'a2'])
})

test('where all places are taken, the network with the most gives its newest one to a network with fewer', async () => {
  expect(await orderOf([...tasks('a', 4), ...tasks('b', 2)], 4)).toEqual(['a3 lost', 'a2 lost', 'a0', 'b0', 'a1', 'b1'])
  expect(await orderOf([...tasks('a', 2), ...tasks('b', 2), ...tasks('c', 1)], 3)).toEqual(['b1 lost', 'a1 lost', 'a0', 'b0', 'c0'])
  expect(await orderOf([...tasks('a', 1), ...tasks('b', 1), ...tasks('c', 1)], 2)).toEqual(['c0 lost', 'a0', 'b0'])
})

test('known devices have places of their own and every second turn, however many others wait', async () => {
  const known = tasks('k', 3).map((task) => ({ ...task, isKnownDevice: true }))
  expect(await orderOf([...tasks('a', 4), ...known], 4)).toEqual(['k0', 'a0', 'k1', 'a1', 'k2', 'a2', 'a3'])
  expect(await orderOf([...known, ...tasks('a', 1)], 2)).toEqual(['k2 lost', 'k0', 'a0', 'k1'])
})

test('a task that gives up leaves the others their turns', async () => {
  const gone = new AbortController()
  const order = orderOf([...tasks('a', 2), { name: 'gone', network: 'a', signal: gone.signal }, ...tasks('b', 1)])
  gone.abort()
  expect(await order).toEqual(['gone lost', 'a0', 'b0', 'a1'])
})
