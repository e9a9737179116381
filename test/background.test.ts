import { expect, test } from 'vitest'
import { createBackground } from '../src/background'
import { ServiceUnavailableError } from '../src/errors'
import { logTap } from './support/log-tap'

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

test('work begins after the caller has gone on; however it fails, the failure is logged by its name and goes nowhere else', async () => {
  const logs = logTap()
  const background = createBackground(logs)
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
  const background = createBackground(logs)
  const ends: ((fails: boolean) => void)[] = []
  const waiting = () => new Promise<void>((resolve, reject) => ends.push((fails) => (fails ? reject(new Error('no')) : resolve())))
  for (let number = 0; number < 1_000; number++) background.run('waiting', waiting)
  await settled()
  expect(ends).toHaveLength(1_000)
  expect(() => background.run('one too many', waiting)).toThrow(ServiceUnavailableError)
  expect(background.runIfRoom('left out', waiting)).toBe(false)
  expect(logs.entries.map(({ fields }) => fields)).toEqual([{ work: 'left out' }])
  ends[0]?.(true)
  ends[1]?.(false)
  await settled()
  background.run('waiting', waiting)
  expect(background.runIfRoom('waiting', waiting)).toBe(true)
  await settled()
  expect(ends).toHaveLength(1_002)
  expect(() => background.run('one too many', waiting)).toThrow(ServiceUnavailableError)
})
