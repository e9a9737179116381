import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { keysInFlight } from '../../src/rate-limits/local-fallback'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import { client, countingHasher, manyClients, password, statuses, times, wrongPassword } from './many-clients'

const open = manyClients()
const ana = 'ana@example.test'

interface Gate {
  /** Resolves when the first one stands before it. */
  readonly reached: Promise<void>
  pass(): Promise<void>
  open(): void
}

/** Keeps everybody until it is opened. */
function closedGate(): Gate {
  let [reach, open] = [() => {}, () => {}]
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return {
    reached,
    open: () => open(),
    pass() {
      reach()
      return opened
    },
  }
}

/** As argon2 takes a while, and so many at once are under way. */
const shortWait: Pick<Gate, 'pass'> = { pass: () => delay(20) }

function slowHasher(gate: Pick<Gate, 'pass'>) {
  const hasher = countingHasher()
  const verify = hasher.verify.bind(hasher)
  hasher.verify = async (hash, text) => {
    await gate.pass()
    return verify(hash, text)
  }
  return hasher
}

async function start({ gate = shortWait, throttle = {} }: { gate?: Pick<Gate, 'pass'>; throttle?: object } = {}) {
  const counters = memoryCounters()
  const host = await open({ options: { passwordHasher: slowHasher(gate), throttle: { counters, signup: false, ...throttle } } })
  return { ...host, counters }
}

const twenty = Array(20).fill(200)

/** The two seconds that a login waits at most become a minute: how fast this machine is decides nothing. */
function waitWithPatience(): void {
  const { setTimeout } = globalThis
  const begun = performance.now()
  vi.spyOn(performance, 'now').mockReturnValue(begun)
  const patient = (call: () => void, ms?: number) => setTimeout(call, ms === 2_000 ? 60_000 : ms)
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(patient as typeof setTimeout)
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe('what is in flight is no failure', () => {
  test('twenty right logins at once of one address from one client all succeed', async () => {
    waitWithPatience()
    const host = await start()
    await host.signUp(ana)
    expect(statuses(await times(20, () => host.logIn(ana, password, client(0))))).toEqual(twenty)
    expect(keysInFlight(host.counters)).toBe(0)
  })

  test('twenty right logins at once from one office, also where its limit is nearly reached', async () => {
    waitWithPatience()
    const host = await start({ throttle: { login: { client: { attempts: 4, windowSeconds: 900 } } } })
    const people = Array.from({ length: 20 }, (_, index) => `person-${index}@example.test`)
    for (const email of people) await host.signUp(email)
    expect((await host.logIn('nobody@example.test', wrongPassword, client(0))).status).toBe(401)
    expect(statuses(await times(20, (index) => host.logIn(people[index] ?? '', password, client(0))))).toEqual(twenty)
  })

  test('of fifty wrong passwords at once five are looked at, and the next is refused at once', async () => {
    waitWithPatience()
    const gate = closedGate()
    const host = await start({ gate })
    await host.signUp(ana)
    let turnedAway = 0
    const answers = await times(50, async () => {
      const answer = await host.logIn(ana, wrongPassword, client(0))
      if (answer.status === 503 && ++turnedAway === 25) gate.open()
      return answer
    })
    expect(statuses(answers).filter((status) => status === 401)).toHaveLength(5)
    expect(statuses(answers).filter((status) => status === 429)).toHaveLength(20) // they waited, and the five in flight had failed
    expect(statuses(answers).filter((status) => status === 503)).toHaveLength(25)
    expect((await host.logIn(ana, password, client(0))).status).toBe(429)
    expect(keysInFlight(host.counters)).toBe(0)
  })

  test('a right login among wrong ones forgets failures, and nothing that is still in flight', async () => {
    waitWithPatience()
    const host = await start()
    await host.signUp(ana)
    const verified = host.hasher.verified
    const answers = await times(25, (index) => host.logIn(ana, index === 2 ? password : wrongPassword, client(0)))
    expect(statuses(answers).filter((status) => status === 200)).toHaveLength(1)
    // Five before the right one ended, and five in all afterwards: with what was in flight then.
    expect(host.hasher.verified - verified).toBeLessThanOrEqual(1 + 4 + 5)
    expect((await host.logIn(ana, password, client(0))).status).toBe(429)
  })

  test('who has waited for two seconds, and the 21st who would wait, gets 503 with Retry-After 1', async () => {
    const gate = closedGate()
    const host = await start({ gate, throttle: { login: { pair: { attempts: 1, windowSeconds: 900 } } } })
    await host.signUp(ana)
    const first = host.logIn(ana, password, client(0))
    await gate.reached
    const ended: number[] = []
    const others = await times(21, async () => {
      const response = await host.logIn(ana, password, client(0))
      ended.push(performance.now())
      return response
    })
    for (const { status, body, headers } of others)
      expect([status, body.code, headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '1'])
    // Only one did not wait, and so was answered before all others.
    const [atOnce = 0, afterWaiting = 0] = ended
    expect(afterWaiting - atOnce).toBeGreaterThan(500)
    gate.open()
    expect((await first).status).toBe(200)
    expect(keysInFlight(host.counters)).toBe(0)
  })
})
