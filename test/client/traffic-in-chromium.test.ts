import type { RequestHandler } from 'express'
import type { CDPSession, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { member } from '../server-session/devices'
import { trafficSeconds } from '../support/torture'
import { logIn, openClient, type Shop, shops, stateOf, type TabOptions } from './tabs'

/** One call of `auth.fetch`. The server sees its name with each request of it. */
interface Called {
  name: string
  status: number | string
  begun: number
  ended: number
}

declare global {
  interface Window {
    traffic: { isOn: boolean; calls: Called[]; running: Promise<void> }
  }
}

/** One row of the report. */
interface Counts {
  calls: number
  /** Calls that the server or the client refused although the network was there. */
  failed: string[]
  refreshes: number
  refused: string[]
  overlapping: string[]
  returned: number
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Begins to ask the API all the time. */
const begin = (page: Page, name: string) =>
  page.evaluate((tab) => {
    const traffic = { isOn: true, calls: [] as Called[], running: Promise.resolve() }
    window.traffic = traffic
    traffic.running = (async () => {
      for (let count = 0; traffic.isOn; count += 1) {
        const method = count % 3 === 0 ? 'POST' : 'GET'
        const call = { name: `${tab}-${Date.now()}`, begun: Date.now() }
        const { status } = await window.auth
          .fetch('/api/orders', { method, headers: { 'X-Call': call.name } })
          .catch((error: Error) => ({ status: error.name }))
        traffic.calls.push({ ...call, status, ended: Date.now() })
        await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 300))
      }
    })()
  }, name)

/**
 * Lets no cut swallow the answer of a refresh: past the grace period, the server cannot tell a lost answer from a stolen token, and ends
 * the session.
 */
function refreshGate() {
  let closed: Promise<unknown> = Promise.resolve()
  let running = 0
  const before: RequestHandler = async (req, res, next) => {
    if (!req.path.endsWith('/refresh')) return next()
    await closed
    if (res.closed) return // the cut came before
    running += 1
    res.on('close', () => {
      running -= 1
    })
    next()
  }
  return {
    before,
    /** Runs `cut` while no refresh is under way. */
    async closedDuring(cut: () => Promise<unknown>): Promise<void> {
      let open = () => {}
      closed = new Promise<void>((resolve) => {
        open = resolve
      })
      await expect.poll(() => running).toBe(0)
      await sleep(50) // until the browser has the answers
      await cut().finally(open)
    },
  }
}

const callsOf = (page: Page) => page.evaluate(() => window.traffic.calls)
const end = (page: Page) =>
  page.evaluate(async () => {
    window.traffic.isOn = false
    await window.traffic.running
    return window.traffic.calls
  })

function overlaps(refreshes: Shop['asked']): string[] {
  const sorted = [...refreshes].sort((one, other) => one.begun - other.begun)
  return sorted.flatMap((one, place) => {
    const before = sorted[place - 1]
    return before && before.ended > one.begun ? [`${before.begun} to ${before.ended}, and ${one.begun}`] : []
  })
}

const locks = [
  ['with Web Locks', true],
  ['without Web Locks', false],
] as const
const combinations = (['cookie', 'both', 'session', 'bearer'] as const).flatMap((delivery) =>
  locks.map(([name, has]) => [delivery, name, has] as const),
)

/** `npm run torture -- client` asks for a minute of each. */
const ms = trafficSeconds(8) * 1000

describe.skipIf(!hasChromium)(`four tabs under traffic, access tokens of two seconds, in Chromium (${chromiumPath})`, () => {
  const { open } = shops({ keepsPages: true })

  test.each(combinations)(
    'delivery %s, %s: a reload, a lost network, a frozen tab and a page that comes back make no request fail, and end no session',
    { timeout: 60_000 + 2 * ms },
    async (delivery, name, hasLocks) => {
      const settings = delivery === 'session' ? { refreshReuseGraceSeconds: 0 } : { accessTokenTtlSeconds: 2 }
      const client: TabOptions = { delivery, ...(delivery === 'bearer' && { storage: 'local' }) }
      const gate = refreshGate()
      const shop = await open({ tokenDelivery: delivery, ...settings }, { before: [gate.before] })
      const person = await member(shop.host)
      const context = await shop.context()
      if (!hasLocks) await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { value: undefined }))
      const tabs: Page[] = []
      while (tabs.length < 4) tabs.push(await shop.tab(context, client))
      const [one, , away, frozen] = tabs as [Page, Page, Page, Page]
      await logIn(one, { email: person.email, password })
      for (const tab of tabs) await expect.poll(() => stateOf(tab)).toBe(person.email)
      shop.routes()
      for (const [place, tab] of tabs.entries()) await begin(tab, `tab${place}`)

      const calls: Called[] = []
      const cuts: [from: number, to: number][] = []
      const lifecycle = async (cdp: CDPSession, state: 'frozen' | 'active') => cdp.send('Page.setWebLifecycleState', { state })
      const cdp = await context.newCDPSession(frozen)
      const returned = { count: 0 }
      const deeds: Record<string, () => Promise<unknown>> = {
        freeze: () => lifecycle(cdp, 'frozen'),
        async reload() {
          const place = Math.floor(Math.random() * 2) // not the tab that is frozen or away
          const tab = tabs[place] as Page
          calls.push(...(await callsOf(tab)))
          await tab.reload()
          await openClient(tab, client)
          await begin(tab, `tab${place}`)
        },
        async cut() {
          await gate.closedDuring(async () => {
            const from = Date.now()
            await context.setOffline(true)
            await sleep(Math.min(4_000, ms / 5))
            await context.setOffline(false)
            cuts.push([from, Date.now()])
          })
        },
        async leave() {
          calls.push(...(await callsOf(away)))
          await away.goto('/app?away')
          await sleep(Math.min(2_500, ms / 8))
          await away.goBack({ waitUntil: 'commit' }) // a page that was kept is not loaded again
          await away.waitForFunction(() => 'createAuthClient' in window)
          if (await away.evaluate(() => 'traffic' in window)) returned.count += 1
          else {
            await openClient(away, client)
            await begin(away, 'tab2')
          }
        },
        thaw: () => lifecycle(cdp, 'active'),
      }
      const rounds = Math.max(1, Math.floor(ms / 20_000))
      for (let round = 0; round < rounds; round += 1)
        for (const deed of Object.values(deeds)) {
          await sleep(Math.random() * 2 * (ms / rounds / 8))
          await deed()
        }
      await sleep(ms / 8)
      for (const tab of tabs) calls.push(...(await end(tab)))

      const refreshes = shop.asked.filter(({ route }) => route.endsWith('/refresh'))
      const lastOf = new Map([...shop.asked].sort((a, b) => a.ended - b.ended).map(({ call, status }) => [call, status]))
      const answered = (call: string) => [200, 304].includes(lastOf.get(call) ?? 0) // the cache of the browser makes a 200 of a 304
      const outside = calls.filter(({ begun, ended }) => !cuts.some(([from, to]) => begun <= to && ended >= from))
      const counts: Counts = {
        calls: outside.length,
        failed: outside.filter(({ name, status }) => status !== 200 || !answered(name)).map((one) => `${one.name} ${one.status}`),
        refreshes: refreshes.length,
        refused: refreshes.filter(({ status }) => status >= 400).map(({ status }) => String(status)),
        overlapping: hasLocks ? overlaps(refreshes) : [],
        returned: returned.count,
      }
      console.log(`${delivery} ${name}: ${JSON.stringify(counts)}`)
      expect([counts.failed, counts.refused, counts.overlapping]).toEqual([[], [], []])
      expect(counts.calls).toBeGreaterThan(ms / 200)
      expect(counts.refreshes > 0).toBe(delivery !== 'session')
      expect(await Promise.all(tabs.map(stateOf))).toEqual(tabs.map(() => person.email))
      const sessions = await shop.host.knex('auth_sessions').select('revoked_at')
      expect(sessions).toEqual([{ revoked_at: null }])
    },
  )
})
