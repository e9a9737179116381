import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startDemo } from '../../examples/demo/start-demo'
import { type LocalHost, otherPassword, password, signedIn } from '../local/people'
import { mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import type { Driven, Tab } from '../support/firefox'
import { browsers } from './browsers'
import { onPages } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPages(database)

for (const { name, path, variable, isThere } of browsers) {
  if (!isThere)
    console.warn(`\n*** SKIPPED: the pages in ${name}. There is no ${name} at ${path}; install it or set ${variable} to its path. ***\n`)
  // Not `runIf`: elsewhere it would count as a test that was skipped.
  if (process.env.CI === 'true') {
    test(`CI drives the pages in a real ${name}`, () => {
      expect(isThere, `no ${name} at ${path}`).toBe(true)
    })
  }
}

/** A POST that reached the server. */
interface Sent {
  readonly path: string
  readonly origin: string | undefined
  readonly site: string | undefined
  readonly status: number
}

/** Addresses whose forms are sent, one after the other; whether somebody is signed in. */
const pages: readonly (readonly [path: string, isSignedIn: boolean])[] = [
  ['/login', false],
  ['/signup', false],
  ['/forgot-password', false],
  ['/check-mail', false],
  ['/reauthenticate', true],
  ['/account/profile', true],
  ['/account/email', true],
  ['/account/security/authenticator', true],
  ['/account/devices', true],
  ['/account/password', true],
  ['/logout', true],
]

for (const { name, isThere, launch } of browsers) {
  describe.skipIf(!isThere)(`the pages in ${name}`, { timeout: 120_000 }, () => {
    let driven: Driven
    const servers: Server[] = []
    const closing: (() => Promise<void>)[] = []

    beforeAll(async () => {
      driven = await launch()
    }, 90_000)
    afterEach(async () => {
      for (const server of servers.splice(0)) {
        server.closeAllConnections()
        server.close()
      }
      for (const close of closing.splice(0)) await close()
    })
    afterAll(() => driven?.close())

    async function listening(name: string): Promise<{ server: Server; url: string }> {
      const server = createServer().listen(0, '127.0.0.1')
      servers.push(server)
      await once(server, 'listening')
      return { server, url: `http://${name}:${(server.address() as AddressInfo).port}` } // a TCP server has this kind of address
    }

    async function serve(settings: object = {}): Promise<{ host: LocalHost; url: string; sent: Sent[] }> {
      const { server, url } = await listening('127.0.0.1')
      const host = await start({ settings: { oauthRedirectBaseUrl: url, ...settings } })
      const sent: Sent[] = []
      server.on('request', (req, res) => {
        const { origin, 'sec-fetch-site': site } = req.headers
        const path = req.url?.split('?', 1)[0] ?? ''
        if (req.method === 'POST') res.once('finish', () => sent.push({ path, origin, site: String(site), status: res.statusCode }))
        host.app(req, res)
      })
      return { host, url, sent }
    }

    async function logIn(tab: Tab, url: string, email: string, query = ''): Promise<void> {
      await tab.goto(`${url}/auth/login${query}`)
      await fill(tab, 'form', { email, password })
      await tab.click('main form button[type="submit"]')
    }

    test('every form really posts, and says that it comes from here', async () => {
      const { host, url, sent } = await serve({ ...mfaSettings, emailLogin: 'code' })
      for (const [path, isSignedIn] of pages) {
        const tab = await (await driven.person()).tab()
        const { email } = await signedIn(host)
        if (isSignedIn) await logIn(tab, url, email)
        if (path === '/check-mail') {
          await tab.goto(`${url}/auth/forgot-password`)
          await fill(tab, 'main form', { email })
          await tab.click('main form button[type="submit"]')
        }
        await tab.goto(`${url}/auth${path}`)
        const forms = await tab.evaluate<number>('document.querySelectorAll("main form").length')
        expect([path, forms > 0]).toEqual([path, true])
        for (let index = 0; index < forms; index += 1) {
          await tab.goto(`${url}/auth${path}`)
          // Each form by a name of its own: a page may hold several.
          const isThere = await tab.evaluate<boolean>(
            `((form) => { if (form) { form.id = 'sent'; form.noValidate = true } return Boolean(form) })(document.querySelectorAll('main form')[${index}])`,
          )
          if (!isThere) continue // the one before has changed the page
          await fill(tab, '#sent', {
            email,
            password,
            new_password: otherPassword,
            confirm_password: otherPassword,
            current_password: password,
          })
          sent.length = 0
          await tab.click('#sent button[type="submit"]')
          const [post, ...more] = sent
          expect([path, post, more]).toEqual([
            path,
            { path: expect.any(String), origin: url, site: 'same-origin', status: expect.any(Number) },
            [],
          ])
          expect([path, [200, 303, 400].includes(post?.status ?? 0) ? 'fine' : post?.status]).toEqual([path, 'fine'])
        }
      }
    })

    test('a form is redirected to a trusted origin', async () => {
      const shop = await listening('localhost')
      shop.server.on('request', (_req, res) => res.setHeader('Content-Type', 'text/html').end('<h1>The shop</h1>'))
      const { host, url } = await serve({ trustedOrigins: [shop.url] })
      const { email } = await signedIn(host)
      const tab = await (await driven.person()).tab()
      await logIn(tab, url, email, `?return_to=${encodeURIComponent(`${shop.url}/cart`)}`)
      expect(await tab.evaluate('[location.href, document.body.innerText]')).toEqual([`${shop.url}/cart`, 'The shop'])
    })

    test('a form is redirected to a provider, and the person comes back', async () => {
      const demo = await startDemo()
      closing.push(demo.close)
      const tab = await (await driven.person()).tab()
      const auth = `${demo.url}/accounts/auth`
      await tab.goto(`${auth}/login`)
      await tab.click('a[href*="/oauth/acme/login"]')
      await tab.click('.people button')
      await tab.click('form[action$="/consent"] button')
      expect(await tab.evaluate('location.href')).toBe(`${auth}/account`)

      await tab.goto(`${auth}/account/connections`)
      await tab.click('form:has([value="octo"]) button')
      expect(new URL(await tab.evaluate<string>('location.href')).origin).toBe(demo.octoUrl)
      await tab.click('main button, form button')
      expect(await tab.evaluate('location.href')).toBe(`${auth}/account/connections`)
      expect(await tab.evaluate('document.body.innerText')).toContain('Disconnect Octo')
    })

    test('two tabs that are restored at once after the access token’s end keep their session', async () => {
      const { host, url } = await serve({ accessTokenTtlSeconds: 300 })
      const { email, userId } = await signedIn(host)
      const person = await driven.person()
      const [one, other] = [await person.tab(), await person.tab()]
      await logIn(one, url, email)
      for (let restored = 0; restored < 2; restored += 1) {
        host.clock.advance(600)
        await Promise.all([one.goto(`${url}/auth/account`), other.goto(`${url}/auth/account/devices`)])
        expect(await one.evaluate('document.querySelector("h1").innerText')).toBe('Your account')
        expect(await other.evaluate('document.querySelector("h1").innerText')).toBe('Devices')
      }
      expect(await host.knex('auth_sessions').where({ user_id: userId }).whereNotNull('revoked_at')).toEqual([])
    })
  })
}

/** Types into those of the fields that the form has. */
async function fill(tab: Tab, form: string, fields: Readonly<Record<string, string>>): Promise<void> {
  await tab.evaluate(
    `Object.entries(${JSON.stringify(fields)}).map(([name, value]) => { const field = document.querySelector(${JSON.stringify(form)}).elements[name]; if (field) field.value = value; return name })`,
  )
}
