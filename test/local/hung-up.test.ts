import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createHashQueue } from '../../src/passwords/hash-queue'
import { keysInFlight } from '../../src/rate-limits/local-fallback'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import { client, countingHasher, manyClients, password, wrongPassword } from './many-clients'

const open = manyClients()
const ana = 'ana@example.test'

test('a login whose client hung up leaves the hash queue: its password is never looked at, and it is no failure', async () => {
  const run = createHashQueue({ concurrency: 1, queue: 1 })
  const counting = countingHasher()
  const looked: string[] = []
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const counters = memoryCounters()
  const hasher = Object.assign(countingHasher(), {
    verify: (hash: string, text: string, options = {}) =>
      run(async () => {
        looked.push(text)
        await held
        return counting.verify(hash, text)
      }, options),
  })
  const host = await open({
    options: { passwordHasher: hasher, throttle: { counters, login: { pair: { attempts: 2, windowSeconds: 900 } } } },
  })
  await host.signUp(ana)
  const first = host.logIn(ana, password, client(0))
  await expect.poll(() => looked).toEqual([password])

  const { port } = host.address()
  const gone = new AbortController()
  const hungUp = fetch(`http://127.0.0.1:${port}/auth/login`, {
    method: 'POST',
    signal: gone.signal,
    headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client(0) },
    body: JSON.stringify({ email: ana, password: wrongPassword }),
  }).catch(() => 'hung up')
  await delay(200)
  gone.abort()
  expect(await hungUp).toBe('hung up')
  await expect.poll(() => keysInFlight(counters)).toBe(3) // of the first one alone: its client, the pair and the address

  const next = host.logIn(ana, password, client(0)) // the place in the queue is free again
  await delay(100)
  release()
  expect([(await first).status, (await next).status]).toEqual([200, 200])
  expect(looked).toEqual([password, password])
  expect(keysInFlight(counters)).toBe(0)
})
