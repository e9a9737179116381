import { describe, expect, test } from 'vitest'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { Mounted, MountOptions } from '../support/app'
import { databases } from '../support/databases'
import { begin, callBack, cookiePair, type HttpResponse, newPerson, onDatabase } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

/** A host behind one proxy, so that a test can be any client. */
async function behindProxy(options: Omit<MountOptions, 'knex'> = {}): Promise<Mounted> {
  const host = await start(options)
  host.app.set('trust proxy', 1)
  return host
}

async function from(host: Mounted, address: string): Promise<HttpResponse> {
  return callBack(host, 'error=access_denied', { headers: { 'X-Forwarded-For': address } })
}

async function use(host: Mounted, address: string, times: number): Promise<void> {
  for (let call = 0; call < times; call += 1) expect((await from(host, address)).status).toBe(401)
}

function expectThrottled(response: HttpResponse, seconds: number): void {
  expect(response.status).toBe(429)
  expect(response.body).toEqual({ detail: expect.any(String), code: 'TOO_MANY_REQUESTS', details: { retry_after_seconds: seconds } })
  expect(response.headers['retry-after']).toBe(String(seconds))
}

describe('the budget of the callback', () => {
  test('by default the 61st call of a client within 60 seconds is 429 TOO_MANY_REQUESTS, others are served, and it ends', async () => {
    const host = await behindProxy()
    await use(host, '192.0.2.1', 60)
    host.clock.advance(17)

    expectThrottled(await from(host, '192.0.2.1'), 43)
    expectThrottled(await from(host, '::ffff:192.0.2.1'), 43)
    expect((await from(host, '192.0.2.2')).status).toBe(401)
    host.clock.advance(43)
    expect((await from(host, '192.0.2.1')).status).toBe(401)
  })

  test('throttle.routes says otherwise, or switches it off', async () => {
    const host = await behindProxy({ options: { throttle: { routes: { attempts: 2, windowSeconds: 10 } } } })
    await use(host, '192.0.2.1', 2)
    expectThrottled(await from(host, '192.0.2.1'), 10)
    const unlimited = await behindProxy({ options: { throttle: { routes: false } } })
    await use(unlimited, '192.0.2.1', 70)
  })

  test('an IPv6 client is its /64', async () => {
    const host = await behindProxy({ options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
    await use(host, '2001:db8:0:1::1', 1)
    await use(host, '2001:db8:0:1:ffff:ffff:ffff:ffff', 1)
    await use(host, '2001:DB8::1:0:0:0:2', 1)
    expectThrottled(await from(host, '2001:db8:0:1:abcd::'), 60)
    expect((await from(host, '2001:db8:0:2::1')).status).toBe(401)
  })

  test('24.7: a /48 has ten times the budget: its 31st call is refused whichever /64 it comes from, and takes no unit', async () => {
    const host = await behindProxy({ options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
    for (let network = 0; network < 10; network += 1) await use(host, `2001:db8:0:${network}::1`, 3)
    expectThrottled(await from(host, '2001:db8:0:5::1'), 60)
    expectThrottled(await from(host, '2001:db8:0:ffff::1'), 60)
    expect((await from(host, '2001:db8:1::1')).status).toBe(401)
    for (let index = 0; index < 40; index += 1) expectThrottled(await from(host, '2001:db8:0:ffff::1'), 60)
    host.clock.advance(60)
    expect((await from(host, '2001:db8:0:ffff::1')).status).toBe(401)
  })

  test('24.7: one /64 that is refused takes nothing from its neighbours in the /48', async () => {
    const host = await behindProxy({ options: { throttle: { routes: { attempts: 3, windowSeconds: 60 } } } })
    await use(host, '2001:db8:0:1::1', 3)
    for (let index = 0; index < 40; index += 1) expectThrottled(await from(host, '2001:db8:0:1::1'), 60)
    expect((await from(host, '2001:db8:0:2::1')).status).toBe(401)
  })

  test('without a trusted proxy X-Forwarded-For is nobody', async () => {
    const host = await start({ options: { throttle: { routes: { attempts: 2, windowSeconds: 60 } } } })
    await use(host, '192.0.2.1', 1)
    await use(host, '192.0.2.2', 1)
    expectThrottled(await from(host, '192.0.2.3'), 60)
  })

  test('a refused call spends no state: the attempt finishes once the window has passed', async () => {
    const host = await behindProxy({ options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
    const headers = { 'X-Forwarded-For': '192.0.2.1' }
    const { query, cookie } = await begin(host, { profile: newPerson() })
    await use(host, '192.0.2.1', 1)
    const throttled = await callBack(host, query, { cookie, headers })
    expectThrottled(throttled, 60)
    expect(cookiePair(throttled)).toBeNull()
    host.clock.advance(60)
    expect((await callBack(host, query, { cookie, headers })).status).toBe(200)
  })

  test('is one for all processes that share a counter store, and is told to observers', async () => {
    const throttle = { counters: memoryCounters(), routes: { attempts: 1, windowSeconds: 60 } }
    const [one, two] = [await behindProxy({ options: { throttle } }), await behindProxy({ options: { throttle } })]
    const told: unknown[] = []
    two.auth.events.on('throttled', (payload) => told.push(payload))
    await use(one, '192.0.2.1', 1)
    expect((await from(two, '192.0.2.1')).status).toBe(429)
    expect(told).toEqual([{ code: 'TOO_MANY_REQUESTS', route: 'oauth_callback', keyDigest: expect.any(String), retryAfterSeconds: 60 }])
  })

  test('with an error redirect the browser is sent there with the code', async () => {
    const settings = { tokenDelivery: 'cookie', oauthErrorRedirect: 'https://app.example.test/sorry' } as const
    const host = await start({ settings, options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
    await callBack(host, 'error=access_denied')
    const response = await callBack(host, 'error=access_denied')
    expect([response.status, response.headers['location']]).toEqual([302, 'https://app.example.test/sorry?error=TOO_MANY_REQUESTS'])
  })
})
