import type { RequestListener } from 'node:http'
import express, { type Express, type RequestHandler } from 'express'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { type AuthRouter, csrfGuard, csrfToken } from '../../src'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { onLocal, password } from '../local/people'
import { member } from '../server-session/devices'
import { chromiumHosts } from '../support/chromium-hosts'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const ownSecret = 'Zq8vR2nX5tLw0cJ7hYb3KdMf9sPg6aUe4iTo'

/** The CORS lines of the docs, as a host writes them. */
function cors(page: string): RequestHandler {
  return (req, res, next) => {
    if (req.headers.origin === page) {
      res.set({ 'Access-Control-Allow-Origin': page, 'Access-Control-Allow-Credentials': 'true' })
      res.set({ 'Access-Control-Allow-Headers': 'content-type, x-csrf-token', Vary: 'Origin' })
    }
    if (req.method === 'OPTIONS') res.status(204).end()
    else next()
  }
}

function hostRoutes(page: string) {
  return (app: Express, { guards }: AuthRouter): void => {
    const done: RequestHandler = (_req, res) => void res.json({ ordered: true })
    app.post('/before', guards.csrf(), guards.requireAuth(), done)
    app.post('/behind', guards.requireAuth(), guards.csrf(), done)
    const own = csrfGuard({ secret: ownSecret, trustedOrigins: [page] })
    app.get('/token', guards.requireAuth(), csrfToken({ secret: ownSecret }), (_req, res) => void res.json(res.locals['csrfToken']))
    app.post('/own', own, guards.requireAuth(), done)
  }
}

interface Sent {
  status: number
  body: Record<string, unknown>
}

/** What the page's script gets; -1: the browser does not let it read the answer. */
function send(tab: Page, method: string, url: string, body?: object, token?: string): Promise<Sent> {
  const headers = { ...(body && { 'Content-Type': 'application/json' }), ...(token && { 'X-CSRF-Token': token }) }
  const init = { method, headers, credentials: 'include', ...(body && { body: JSON.stringify(body) }) }
  return tab.evaluate<Sent>(
    `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)}).then(
      async (answer) => ({ status: answer.status, body: await answer.json().catch(() => ({})) }),
      () => ({ status: -1, body: {} }))`,
  )
}

const reasonOf = ({ status, body }: Sent) => (body['details'] as { reason?: string } | undefined)?.reason ?? status

describe.skipIf(!hasChromium)(`an app and its API on two subdomains, in Chromium (${chromiumPath})`, () => {
  const { start } = onLocal(sqlite)
  const { listen, newContext } = chromiumHosts()

  const served = async (
    name: string,
    answer: RequestListener = express().use((_req, res) => void res.send('<!doctype html><title>App</title>')),
  ) => {
    const { server, url } = await listen(name)
    server.on('request', answer)
    return { server, url }
  }

  /** Names below `localhost` are on the loopback in every browser. `example.localhost` is the site, as `example.com` is on the internet. */
  async function serve(settings: { tokenDelivery: 'cookie' | 'both' | 'session'; cookieSecure: boolean }) {
    const app = await served('app.example.localhost')
    const api = await listen('api.example.localhost')
    const host = await start({
      settings: { oauthRedirectBaseUrl: api.url, trustedOrigins: [app.url], ...settings },
      before: [cors(app.url)],
      host: hostRoutes(app.url),
    })
    api.server.on('request', host.app)
    const auth = `${api.url}/auth${settings.tokenDelivery === 'both' ? '/cookie' : ''}`
    const tab = await (await newContext({})).newPage()
    await tab.goto(app.url)
    return { app, api, auth, host, tab }
  }

  describe.each(['cookie', 'both', 'session'] as const)('delivery %s', (tokenDelivery) => {
    test.each([true, false])('login, guarded POST, refresh and logout, with cookieSecure %s', async (cookieSecure) => {
      const { api, auth, host, tab } = await serve({ tokenDelivery, cookieSecure })
      const { email } = await member(host)
      const whoami = async () => (await send(tab, 'GET', `${auth}/whoami`)).body
      const order = (place: string, token: unknown) => send(tab, 'POST', `${api.url}/${place}`, {}, String(token))

      const { csrf_token: early, ...nobody } = await whoami()
      expect(nobody).toEqual({ user: null, fresh_until: null, can_refresh: false, delivery: tokenDelivery })
      expect((await send(tab, 'POST', `${auth}/login`, { email, password })).status).toBe(200)
      for (const place of ['before', 'behind']) expect(reasonOf(await order(place, early)), 'from before the login').toBe('signature')

      const { csrf_token: token, user } = await whoami()
      expect(user).toMatchObject({ email })
      expect(await tab.evaluate('document.cookie'), 'a page of another host reads no cookie of ours').toBe('')
      for (const place of ['before', 'behind']) expect(await order(place, token)).toEqual({ status: 200, body: { ordered: true } })
      expect(reasonOf(await order('before', 'x'))).toBe('mismatch')

      const names = (await tab.context().cookies(api.url)).map(({ name, domain }) => [name, domain])
      expect(names).toContainEqual(['csrf_token', 'api.example.localhost'])
      expect(names).toContainEqual([cookieSecure ? '__Host-csrf_binding' : 'csrf_binding', 'api.example.localhost'])

      if (tokenDelivery !== 'session') {
        expect((await send(tab, 'POST', `${auth}/refresh`, {})).status).toBe(200)
        for (const place of ['before', 'behind']) expect((await order(place, token)).status, 'after the refresh').toBe(200)
      }
      expect((await send(tab, 'POST', `${auth}/logout`, {})).status).toBe(204)
      for (const place of ['before', 'behind']) expect((await order(place, token)).status).toBe(401)
      expect((await whoami())['user']).toBeNull()
    })

    test('csrfGuard() of the host with a secret of its own works from the other subdomain too', async () => {
      const { api, auth, host, tab } = await serve({ tokenDelivery, cookieSecure: true })
      const { email } = await member(host)
      expect((await send(tab, 'POST', `${auth}/login`, { email, password })).status).toBe(200)
      const { body: token } = await send(tab, 'GET', `${api.url}/token`)
      expect(await send(tab, 'POST', `${api.url}/own`, {}, String(token))).toEqual({ status: 200, body: { ordered: true } })
      const { csrf_token: ofWhoami } = (await send(tab, 'GET', `${auth}/whoami`)).body
      expect(reasonOf(await send(tab, 'POST', `${api.url}/own`, {}, String(ofWhoami)))).toBe('signature')
    })

    test.each([
      ['a sibling subdomain', 'blog.example.localhost'],
      ['another site', 'evil.localhost'],
    ])('%s reads no token, and its form changes nothing', async (_name, attackerHost) => {
      const { api, auth, host, tab } = await serve({ tokenDelivery, cookieSecure: true })
      const { email } = await member(host)
      await send(tab, 'POST', `${auth}/login`, { email, password })
      await send(tab, 'GET', `${auth}/whoami`)
      const orders: (string | undefined)[] = []
      api.server.on('request', (req, res) => {
        if (req.method === 'POST') res.once('finish', () => orders.push(`${req.url} ${res.statusCode}`))
      })
      const attacker = await served(attackerHost)

      await tab.goto(attacker.url)
      expect((await send(tab, 'GET', `${auth}/whoami`)).status, 'no CORS line is for this page').toBe(-1)
      expect((await send(tab, 'POST', `${api.url}/before`, {}, 'x')).status).toBe(-1)
      expect(orders, 'the browser asked first').toEqual([])
      await tab.setContent(`<form method="post" action="${api.url}/before"><button>Win</button></form>`)
      await Promise.all([tab.waitForEvent('domcontentloaded'), tab.click('button')])
      expect(orders).toEqual(['/before 403'])
    })

    test('a sibling subdomain plants its own token and binding: refused, and the token of whoami works beside them', async () => {
      const { app, api, auth, host, tab } = await serve({ tokenDelivery, cookieSecure: true })
      const { email } = await member(host)
      await send(tab, 'POST', `${auth}/login`, { email, password })
      await send(tab, 'GET', `${auth}/whoami`)

      const attacker = await newContext({})
      const theirs = await attacker.newPage()
      await theirs.goto(app.url)
      const planted = String((await send(theirs, 'GET', `${auth}/whoami`)).body['csrf_token'])
      const binding = (await attacker.cookies(api.url)).find(({ name }) => name === '__Host-csrf_binding')?.value ?? ''
      expect(binding).not.toBe('')
      const sibling = await served('blog.example.localhost')
      await tab.goto(sibling.url)
      for (const [name, value] of Object.entries({ csrf_token: planted, csrf_binding: binding, '__Host-csrf_binding': binding }))
        await tab.evaluate(`document.cookie = ${JSON.stringify(`${name}=${value}; Domain=example.localhost; Path=/; Secure`)}`)

      await tab.goto(app.url)
      const names = (await tab.context().cookies(api.url)).map(({ name }) => name)
      expect(names.filter((name) => name === 'csrf_token')).toHaveLength(2)
      expect(names.filter((name) => name === '__Host-csrf_binding')).toHaveLength(1)
      expect(reasonOf(await send(tab, 'POST', `${api.url}/before`, {}, planted))).toBe('mismatch')
      const token = String((await send(tab, 'GET', `${auth}/whoami`)).body['csrf_token'])
      expect((await send(tab, 'POST', `${api.url}/before`, {}, token)).status).toBe(200)
    })
  })
})
