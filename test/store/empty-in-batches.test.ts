import { expect, test } from 'vitest'
import { emptyInBatches } from '../../src/store/purge-expired'

/** Empties a table of so many rows, in which each row takes so long. Returns the sizes of the batches. */
async function sizesFor(rows: number, msPerRow: number, signal?: AbortSignal): Promise<number[]> {
  const sizes: number[] = []
  let [left, now] = [rows, 0]
  const deleteBatch = async ({ most }: { most: number }) => {
    const count = Math.min(most, left)
    sizes.push(count)
    left -= count
    now += count * msPerRow
    return count
  }
  expect(await emptyInBatches(deleteBatch, new Date(0), { signal, clock: () => now })).toBe(rows - left)
  return sizes
}

test('a batch becomes smaller while rows are slow, so that no later batch takes twenty milliseconds', async () => {
  const sizes = await sizesFor(400, 0.3)
  expect(Math.max(...sizes) * 0.3).toBeLessThan(20)
  expect(sizes.at(1)).toBe(30)
  expect(sizes.at(2)).toBe(33) // ten milliseconds
  expect(Math.max(...(await sizesFor(200, 5)))).toBe(20)
})

test('a batch grows while rows are fast, at most by half at once', async () => {
  const sizes = await sizesFor(3_000, 0.001)
  expect(sizes.slice(0, 3)).toEqual([20, 30, 45])
  expect(sizes.length).toBeLessThan(15)
})

test('a run ends after the batch during which it is stopped', async () => {
  expect(await sizesFor(100, 1, AbortSignal.abort())).toEqual([20])
})

test('a store that says where the run stands ends it, however few rows a batch deletes', async () => {
  let batches = 0
  const deleteBatch = async ({ run }: { run: { isOver?: boolean } }) => {
    run.isOver = ++batches === 3
    return 0
  }
  await emptyInBatches(deleteBatch, new Date(0))
  expect(batches).toBe(3)
})
