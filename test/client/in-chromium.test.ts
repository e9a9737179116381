import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { member } from '../server-session/devices'
import { logIn, openClient, type Shop, shops, stateOf } from './tabs'

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Begins to ask the API all the time. What was not 200, and when, is the result of `stopTraffic`. */
const startTraffic = (page: Page) =>
  page.evaluate(() => {
    const traffic = { isOn: true, bad: [] as string[], good: 0, running: Promise.resolve() }
    Object.assign(window, { traffic })
    traffic.running = (async () => {
      while (traffic.isOn) {
        const method = traffic.good % 3 === 0 ? 'POST' : 'GET'
        const answer = await window.auth.fetch('/api/orders', { method }).catch((error: Error) => ({ status: error.name }))
        if (answer.status === 200) traffic.good += 1
        else traffic.bad.push(`${method} ${answer.status}`)
        await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 300))
      }
    })()
  })

const stopTraffic = (page: Page) =>
  page.evaluate(async () => {
    const { traffic } = window as unknown as { traffic: { isOn: boolean; bad: string[]; good: number; running: Promise<void> } }
    traffic.isOn = false
    await traffic.running
    return { bad: traffic.bad, good: traffic.good }
  })

const refreshesOf = ({ asked }: Shop) => asked.filter(({ route }) => route.endsWith('/refresh'))

function overlaps(shop: Shop): string[] {
  const sorted = refreshesOf(shop).sort((one, other) => one.begun - other.begun)
  return sorted.flatMap((one, place) => {
    const before = sorted[place - 1]
    return before && before.ended > one.begun ? [`${before.begun}–${before.ended} and ${one.begun}`] : []
  })
}

/** A browser whose login does not also tell the authenticators. */
async function withoutSignals(shop: Shop): Promise<BrowserContext> {
  const context = await shop.context()
  await context.addInitScript(() => Reflect.deleteProperty(PublicKeyCredential, 'signalCurrentUserDetails'))
  return context
}

describe.skipIf(!hasChromium)(`the client in Chromium (${chromiumPath})`, () => {
  const { open } = shops()

  test.each(['cookie', 'both', 'session'] as const)(
    'delivery %s: a signed-out page load sends no request, and a signed-in one sends one',
    async (tokenDelivery) => {
      const shop = await open({ tokenDelivery, ...(tokenDelivery === 'session' ? { refreshReuseGraceSeconds: 0 } : {}) })
      const person = await member(shop.host)
      const context = await withoutSignals(shop)
      for (const delivery of [tokenDelivery, undefined]) {
        const page = await shop.tab(context, delivery ? { delivery } : {})
        expect([await stateOf(page), shop.routes()]).toEqual(['signed-out', []])
        await logIn(page, { email: person.email, password })
        const seen = shop.routes()
        expect(seen.at(-1)).toBe(`GET /auth${tokenDelivery === 'both' ? '/cookie' : ''}/whoami`)
        expect(seen.filter((route) => route.endsWith('client-config'))).toHaveLength(delivery ? 0 : 1)

        await page.reload()
        await openClient(page, delivery ? { delivery } : {})
        await expect.poll(() => stateOf(page)).toBe(person.email)
        const load = shop.routes()
        if (delivery) expect(load).toEqual([seen.at(-1)])
        expect((await page.evaluate(() => window.auth.fetch('/api/orders', { method: 'POST' }))) !== null).toBe(true)
        await page.evaluate(() => window.auth.logOut())
        expect([await stateOf(page), (await context.cookies()).filter(({ name }) => name === 'auth_hint')]).toEqual(['signed-out', []])
        await page.close()
        shop.routes()
      }
    },
  )

  test('a login, a logout and another account in one tab reach the others, and a message of another app changes nothing', async () => {
    const shop = await open({ tokenDelivery: 'cookie' })
    const [ada, bob] = [await member(shop.host), await member(shop.host)]
    const context = await shop.context()
    const [one, other] = [await shop.tab(context, { delivery: 'cookie' }), await shop.tab(context, { delivery: 'cookie' })]
    await logIn(one, { email: ada.email, password })
    await expect.poll(() => stateOf(other)).toBe(ada.email)
    await logIn(other, { email: bob.email, password })
    await expect.poll(() => stateOf(one)).toBe(bob.email)
    await other.evaluate(() => new BroadcastChannel(`doorward ${location.origin}/auth`).postMessage({ user: { email: 'eve' }, token: 'x' }))
    await sleep(300)
    expect(await stateOf(one)).toBe(bob.email)
    await one.evaluate(() => window.auth.logOut())
    await expect.poll(() => stateOf(other)).toBe('signed-out')
    expect(await other.evaluate(() => window.seen)).toEqual(['signed-out', ada.email, bob.email, 'signed-out'])
  })

  test.each([
    ['with Web Locks', true],
    ['without Web Locks', false],
  ])('four tabs, access tokens of two seconds, %s: no request fails, and nobody is signed out', async (_name, hasLocks) => {
    const shop = await open({ tokenDelivery: 'cookie', accessTokenTtlSeconds: 2 })
    const person = await member(shop.host)
    const context = await shop.context()
    if (!hasLocks) await context.addInitScript(() => Object.defineProperty(Navigator.prototype, 'locks', { value: undefined }))
    const first = await shop.tab(context, { delivery: 'cookie' })
    await logIn(first, { email: person.email, password })
    const tabs = [first]
    while (tabs.length < 4) tabs.push(await shop.tab(context, { delivery: 'cookie' }))
    for (const tab of tabs) await expect.poll(() => stateOf(tab)).toBe(person.email)
    shop.routes()

    for (const tab of tabs) await startTraffic(tab)
    await sleep(20_000)
    const results = await Promise.all(tabs.map(stopTraffic))
    expect(results.flatMap(({ bad }) => bad)).toEqual([])
    expect(Math.min(...results.map(({ good }) => good))).toBeGreaterThan(20)
    const refreshes = refreshesOf(shop)
    expect(refreshes.filter(({ status }) => status !== 200)).toEqual([])
    if (hasLocks) {
      expect(overlaps(shop)).toEqual([])
      expect(refreshes.length).toBeLessThanOrEqual(14)
    }
    expect(await Promise.all(tabs.map(stateOf))).toEqual(tabs.map(() => person.email))
  })

  test('a tab that never lets go of the lock: the others continue after 10 seconds', async () => {
    const shop = await open({ tokenDelivery: 'cookie', accessTokenTtlSeconds: 2 })
    const person = await member(shop.host)
    const context = await shop.context()
    const page = await shop.tab(context, { delivery: 'cookie' })
    await logIn(page, { email: person.email, password })
    const greedy = await shop.tab(context)
    await greedy.evaluate(() => {
      void navigator.locks.request(`doorward ${location.origin}/auth`, () => new Promise(() => {}))
    })
    await sleep(2_500)
    const waited = await page.evaluate(async () => {
      const begun = performance.now()
      const { status } = await window.auth.fetch('/api/orders')
      return [status, Math.round((performance.now() - begun) / 1000)]
    })
    expect(waited).toEqual([200, 10])
    expect(await stateOf(page)).toBe(person.email)
  })

  test('storage in delivery bearer: tabs share one session, and a reload keeps it', async () => {
    const shop = await open({ tokenDelivery: 'bearer' })
    const person = await member(shop.host)
    const context = await shop.context()
    const options = { delivery: 'bearer', storage: 'local' } as const
    const pages: Page[] = []
    while (pages.length < 3) pages.push(await shop.tab(context, options))
    const [one, two, three] = pages as [Page, Page, Page]
    expect([await stateOf(two), shop.routes()]).toEqual(['signed-out', []])
    await logIn(one, { email: person.email, password })
    for (const page of pages) await expect.poll(() => stateOf(page)).toBe(person.email)
    await two.reload()
    await openClient(two, options)
    await expect.poll(() => stateOf(two)).toBe(person.email)
    await three.evaluate(() => window.auth.logOut())
    for (const page of pages) await expect.poll(() => stateOf(page)).toBe('signed-out')
    expect(await one.evaluate(() => localStorage.length)).toBe(0)
  })

  test.each([
    ['with hint, a signed-out page load at another subdomain sends no request', true, 0],
    ['without hint, it asks once', false, 1],
  ] as const)('%s, and a signed-in one sends one', async (_what, hint, signedOut) => {
    const pageOf = (url: string) => url.replace('api.', 'app.')
    const shop = await open(
      (url) => ({ tokenDelivery: 'cookie', cookieDomain: 'example.localhost', trustedOrigins: [pageOf(url)] }),
      {
        before: [
          (req, res, next) => {
            res.set({ 'Access-Control-Allow-Origin': req.get('origin') ?? 'null', 'Access-Control-Allow-Credentials': 'true' })
            res.set('Access-Control-Allow-Headers', 'content-type, x-csrf-token')
            if (req.method === 'OPTIONS') res.status(204).end()
            else next()
          },
        ],
      },
      'api.example.localhost',
    )
    const person = await member(shop.host)
    const options = { baseUrl: `${shop.url}/auth`, delivery: 'cookie', hint } as const
    const seen = () => shop.routes().filter((route) => !route.startsWith('OPTIONS'))
    const tab = await shop.tab(await withoutSignals(shop), { path: pageOf(shop.url), ...options })
    const load = async (state: string) => {
      seen()
      await tab.reload()
      await openClient(tab, options)
      await expect.poll(() => stateOf(tab)).toBe(state)
      return seen()
    }
    const whoami = (count: number) => Array.from({ length: count }, () => 'GET /auth/whoami')
    expect(await load('signed-out')).toEqual(whoami(signedOut))
    await logIn(tab, { email: person.email, password })
    expect(await load(person.email)).toEqual(whoami(1))
    await tab.evaluate(() => window.auth.logOut())
    expect(await load('signed-out')).toEqual(whoami(signedOut))
  })

  test('storage in delivery bearer: a tab refreshes only after the new tokens of another tab are stored', async () => {
    const shop = await open({ tokenDelivery: 'bearer', accessTokenTtlSeconds: 9 })
    const person = await member(shop.host)
    const context = await shop.context()
    const pages: Page[] = []
    for (const delay of [2_500, 0]) {
      const page = await context.newPage()
      await page.goto('/')
      await page.evaluate((ms) => {
        const storage = {
          get: (key: string) => localStorage.getItem(key),
          async set(key: string, value: string) {
            if (localStorage.length > 0) await new Promise((resolve) => setTimeout(resolve, ms))
            localStorage.setItem(key, value)
          },
          remove: (key: string) => localStorage.removeItem(key),
        }
        window.auth = window.createAuthClient({ baseUrl: '/auth', delivery: 'bearer', storage })
        window.auth.subscribe(() => {})
      }, delay)
      pages.push(page)
    }
    const [slow, other] = pages as [Page, Page]
    await logIn(slow, { email: person.email, password })
    await expect.poll(() => stateOf(other)).toBe(person.email)
    await sleep(7_000) // the common access token ends while the new one is being stored, which is still good afterwards
    const confirmed = slow.evaluate((given) => window.auth.reauthenticate({ password: given }), password)
    await sleep(2_200)
    expect(await other.evaluate(async () => (await window.auth.fetch('/api/orders')).status)).toBe(200)
    await confirmed
    expect(await slow.evaluate(async () => (await window.auth.fetch('/api/orders')).status)).toBe(200)
    expect([await stateOf(slow), await stateOf(other)]).toEqual([person.email, person.email])
    expect(shop.asked.filter(({ route, status }) => route.endsWith('/refresh') && status !== 200)).toEqual([])
  })

  test('a logout in another tab is asked for again if the first answer is lost', async () => {
    const shop = await open({ tokenDelivery: 'cookie' })
    const person = await member(shop.host)
    const context = await shop.context()
    const [one, other] = [await shop.tab(context, { delivery: 'cookie' }), await shop.tab(context, { delivery: 'cookie' })]
    await logIn(one, { email: person.email, password })
    await expect.poll(() => stateOf(other)).toBe(person.email)
    await other.route('**/whoami', (route) => route.abort(), { times: 1 })
    await one.evaluate(() => window.auth.logOut())
    await expect.poll(() => stateOf(other), { timeout: 4_000 }).toBe('signed-out')
  })

  test('passkeys.js does not load: a login goes through, and the first method that needs it sends nothing', async () => {
    const shop = await open({ tokenDelivery: 'cookie' })
    const person = await member(shop.host)
    const context = await shop.context()
    const page = await shop.tab(context, { delivery: 'cookie' })
    await page.route('**/passkeys.js', (route) => route.abort())
    await logIn(page, { email: person.email, password })
    shop.routes()
    const listed = () =>
      page.evaluate(() =>
        window.auth.sessions.list().then(
          ({ length }) => length,
          ({ code }) => code,
        ),
      )
    expect([await listed(), shop.routes(), await stateOf(page)]).toEqual(['NETWORK_ERROR', [], person.email])
    await page.unroute('**/passkeys.js')
    expect(await listed()).toBe(1)
  })

  test('a browser without BroadcastChannel signs in and out', async () => {
    const shop = await open({ tokenDelivery: 'cookie' })
    const person = await member(shop.host)
    const context = await shop.context()
    await context.addInitScript(() => Reflect.deleteProperty(window, 'BroadcastChannel'))
    const page = await shop.tab(context, { delivery: 'cookie' })
    await logIn(page, { email: person.email, password })
    expect(await stateOf(page)).toBe(person.email)
    await page.evaluate(() => window.auth.logOut())
    expect(await page.evaluate(() => window.seen)).toEqual(['signed-out', person.email, 'signed-out'])
  })

  test.each(['cookie', 'bearer'] as const)('delivery %s: what is sent goes to the URL that was checked', async (delivery) => {
    const taken: string[] = []
    const stranger = createServer((req, res) => {
      const { origin = '*', authorization, 'x-csrf-token': csrf } = req.headers
      if (req.method !== 'OPTIONS') taken.push(`${req.url} ${authorization ?? csrf ?? 'nothing'}`)
      res.setHeader('Access-Control-Allow-Origin', origin).setHeader('Access-Control-Allow-Credentials', 'true')
      res.setHeader('Access-Control-Allow-Headers', 'authorization, x-csrf-token').end('{}')
    }).listen(0, '127.0.0.1')
    await once(stranger, 'listening')
    const evil = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`
    const shop = await open({ tokenDelivery: delivery })
    const person = await member(shop.host)
    const page = await shop.tab(await shop.context(), { delivery })
    await logIn(page, { email: person.email, password })
    const statuses = await page.evaluate(async (foreign) => {
      const frame = document.body.appendChild(document.createElement('iframe'))
      const { Request: OtherRequest } = frame.contentWindow as Window & typeof globalThis
      const post = { method: 'POST' }
      await window.auth.fetch(new OtherRequest(`${foreign}/realm`, post))
      const url = new URL('/api/orders', location.href)
      const changed = window.auth.fetch(url, post)
      url.href = `${foreign}/changed`
      const { status } = await changed
      const own = await window.auth.fetch(new OtherRequest(`${location.origin}/api/orders`, post))
      document.head.insertAdjacentHTML('beforeend', `<base href="${foreign}/">`)
      await window.auth.fetch('base', post)
      return [status, own.status]
    }, evil)
    stranger.close()
    expect([statuses, taken]).toEqual([
      [200, 200],
      ['/realm nothing', '/base nothing'],
    ])
  })

  test('a plain module script and a worker sign in without a bundler', async () => {
    const script = "import { createAuthClient } from '/client.js'; globalThis.makeClient = createAuthClient"
    const worker = `import { createAuthClient } from '/client.js'
      onmessage = async ({ data }) => {
        const auth = createAuthClient({ baseUrl: location.origin + '/auth', delivery: 'cookie' })
        const result = await auth.logIn(data)
        postMessage([result.kind, (await auth.fetch('/api/orders')).status])
      }`
    const shop = await open(
      { tokenDelivery: 'cookie' },
      {
        host(app) {
          app.get('/plain', (_req, res) => void res.type('html').send(`<!doctype html><script type="module">${script}</script>`))
          app.get('/worker.js', (_req, res) => void res.type('js').send(worker))
        },
      },
    )
    const person = await member(shop.host)
    const page = await (await shop.context()).newPage()
    await page.goto('/plain')
    await page.waitForFunction('globalThis.makeClient')
    const answer = await page.evaluate(
      (given) =>
        new Promise((resolve) => {
          const thread = new Worker('/worker.js', { type: 'module' })
          thread.onmessage = ({ data }) => resolve(data)
          thread.postMessage(given)
        }),
      { email: person.email, password },
    )
    expect(answer).toEqual(['session', 200])
  })
})
