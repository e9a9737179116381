import { expect, test } from 'vitest'
import type { HashOptions } from '../../src'
import { createHashQueue } from '../../src/passwords/hash-queue'
import { client, countingHasher, manyClients, password, statuses, times, wrongPassword } from './many-clients'

const open = manyClients()
const owner = 'ana@example.test'
const soon = { timeout: 60_000, interval: 5 }

/** A hasher with a queue of 64 places. From `hold` on, a hash ends only when the test ends it. */
function heldHasher() {
  const run = createHashQueue({ concurrency: 2, queue: 64 })
  const inner = countingHasher()
  const [asked, begun, ends]: [string[], string[], (() => void)[]] = [[], [], []]
  let isHeld = false
  const hasher = Object.assign(countingHasher(), {
    verify(hash: string, text: string, options: HashOptions = {}) {
      asked.push(text)
      return run(async () => {
        begun.push(text)
        if (isHeld) await new Promise<void>((resolve) => ends.push(resolve))
        return inner.verify(hash, text)
      }, options)
    },
  })
  return {
    hasher,
    asked,
    begun,
    hold() {
      isHeld = true
      begun.length = 0
      asked.length = 0
    },
    endNext: () => ends.shift()?.(),
    endAll() {
      isHeld = false
      for (const end of ends.splice(0)) end()
    },
  }
}

test.each([
  ['at a known device after two other hashes at most', true, 2],
  ['at any other client after one hash of each network at most', false, 42],
])(
  'a flood of wrong logins from 40 networks, below every limit, fills the hash queue: the owner logs in %s',
  async (_where, isKnown, most) => {
    const { hasher, asked, begun, hold, endNext, endAll } = heldHasher()
    const host = await open({ options: { passwordHasher: hasher } })
    await host.signUp(owner)
    const { body } = await host.logIn(owner, password, client(200))
    hold()
    const flood = (round: number, count: number) =>
      times(count, (number) => host.logIn(`victim${round}-${number}@example.test`, wrongPassword, client(number % 40)))
    const first = flood(1, 80)
    await expect.poll(() => asked.length, soon).toBe(80)

    const presented = isKnown ? { previous_token: body.refresh_token } : {}
    const login = host.post('/auth/login', { email: owner, password, ...presented }, client(201))
    await expect.poll(() => asked, soon).toContain(password)
    const second = flood(2, 40)
    await expect.poll(() => asked.length, soon).toBe(121)

    const before = begun.length
    while (!begun.includes(password)) {
      endNext()
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(begun.length - before).toBeLessThanOrEqual(most)
    endAll()
    expect((await login).status).toBe(200)
    const refused = statuses([...(await first), ...(await second)])
    expect(new Set(refused), 'the flood meets no limit but the queue').toEqual(new Set([401, 503]))
  },
)
