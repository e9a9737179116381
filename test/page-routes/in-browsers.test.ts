import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startDemo } from '../../examples/demo/start-demo'
import { type LocalHost, password, signedIn } from '../local/people'
import type { MountOptions } from '../support/app'
import { databases } from '../support/databases'
import type { Driven, Tab } from '../support/firefox'
import { tokenOf } from '../support/mailbox'
import { browsers } from './browsers'
import { everySetting, formPages, nameOf, typedInto } from './every-page'
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

for (const { name, isThere, launch } of browsers) {
  describe.skipIf(!isThere)(`the pages in ${name}`, { timeout: 300_000 }, () => {
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

    async function serve(
      settings: object = {},
      { name = '127.0.0.1', ...more }: { name?: string } & Pick<MountOptions, 'providers'> = {},
    ): Promise<{ host: LocalHost; url: string; sent: Sent[] }> {
      const { server, url } = await listening(name)
      const host = await start({ settings: { oauthRedirectBaseUrl: url, ...settings }, ...more })
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
      const { host, url, sent } = await serve(everySetting, { name: 'localhost' }) // passkeys need a name
      const tab = await (await driven.person()).tab()
      await tab.goto(`${url}/auth/signed-out`)
      const visitor = { url, send: (path: string, fields: object) => sendHidden(tab, path, fields) }
      for (const page of formPages) {
        await visitor.send('/auth/logout', {})
        const arrival = await page.arrive(host, visitor)
        const open = async () => {
          await tab.goto(url + arrival.address)
          if (page.isAfterForm) await tab.click('main form button[type="submit"]')
        }
        await open()
        const forms = await tab.evaluate<number>('document.querySelectorAll("main form").length')
        expect([nameOf(page), forms > 0]).toEqual([nameOf(page), true])
        for (let index = 0; index < forms; index += 1) {
          if (index > 0) await open()
          const names = await tab.evaluate<string[]>(plainForm(index))
          if (names.length === 0) continue // the one before has changed the page
          await fill(tab, '#sent', Object.fromEntries(names.map((name) => [name, typedInto(name, arrival)])))
          sent.length = 0
          await tab.click('#sent button[type="submit"]')
          expect([nameOf(page), sent]).toEqual([
            nameOf(page),
            [{ path: expect.any(String), origin: url, site: 'same-origin', status: expect.any(Number) }],
          ])
          const [{ status } = { status: 0 }] = sent
          expect([nameOf(page), [200, 303, 400].includes(status) ? 'fine' : status]).toEqual([nameOf(page), 'fine'])
        }
      }
    })

    test('the form of a page with `no-referrer` has the origin null, and is taken; that of another site has it too, and is not', async () => {
      const settings = { pagesEnabled: false, backendLinks: true, tokenDelivery: 'cookie', emailLogin: 'link' }
      const { host, url, sent } = await serve({ ...everySetting, ...settings }, { name: 'localhost' })
      const { email, userId } = await signedIn(host)
      const sessions = () => host.knex('auth_sessions').where({ user_id: userId })
      const before = (await sessions()).length
      const tab = await (await driven.person()).tab()

      const foreign = await listening('127.0.0.1')
      foreign.server.on('request', (_req, res) => {
        res.setHeader('Content-Type', 'text/html').setHeader('Referrer-Policy', 'no-referrer')
        res.end(`<form method="post" action="${url}/auth/email-login/${link}"><button>Win</button></form>`)
      })
      await host.browser().post('/auth/email-login/request').send({ email })
      const link = tokenOf(await host.mails.next({ kind: 'email_login', to: email }))
      await tab.goto(foreign.url)
      await tab.click('button')
      expect(sent.splice(0)).toEqual([{ path: `/auth/email-login/${link}`, origin: 'null', site: 'cross-site', status: 403 }])
      expect(await sessions()).toHaveLength(before)

      await tab.goto(`${url}/auth/email-login/${link}`)
      await tab.click('main form button[type="submit"]')
      expect(sent).toEqual([{ path: `/auth/email-login/${link}`, origin: 'null', site: 'same-origin', status: 303 }])
      expect(await sessions()).toHaveLength(before + 1)
    })

    test('`form-action` stops a form that would go elsewhere', async () => {
      const elsewhere = await listening('127.0.0.1')
      const stolen: unknown[] = []
      elsewhere.server.on('request', (req, res) => {
        stolen.push(req.url)
        res.end()
      })
      const { host, url } = await serve(everySetting, { name: 'localhost' })
      const tab = await (await driven.person()).tab()
      const { address } = await pageOf('/password-reset/:token').arrive(host, { url, send: async () => undefined })
      for (const path of ['/auth/login', address]) {
        await tab.goto(url + path)
        await tab.evaluate(`(() => {
          document.addEventListener('securitypolicyviolation', ({ effectiveDirective }) => { window.stopped = effectiveDirective })
          const form = document.querySelector('main form')
          form.action = '${elsewhere.url}/'
          setTimeout(() => form.submit()) // Firefox throws
          return true
        })()`)
        await expect.poll(() => tab.evaluate('window.stopped ?? null')).toBe('form-action')
        expect([await tab.evaluate('location.href'), stolen]).toEqual([url + path, []])
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

    test.each(['lax', 'strict'] as const)(
      'a login at a provider of another site ends signed in, cookies %s (25.7.8)',
      async (cookieSamesite) => {
        const elsewhere = await listening('localhost')
        const { host, url } = await serve(
          { cookieSamesite, oauthEnabled: true, tokenDelivery: 'session' },
          { name: '127.0.0.1', providers: { corp: { authorizeUrl: `${elsewhere.url}/authorize` } } },
        )
        elsewhere.server.on('request', async (req, res) => {
          const asked = new URL(req.url ?? '', elsewhere.url)
          if (asked.pathname !== '/authorize') return void res.end() // the icon
          const { callbackQuery } = await host.provider.authorize(`${host.provider.authorizeUrl}${asked.search}`)
          const back = `${asked.searchParams.get('redirect_uri')}?${new URLSearchParams(callbackQuery)}`
          res.setHeader('Content-Type', 'text/html').end(`<a href="${back.replaceAll('&', '&amp;')}">Yes</a>`)
        })
        const tab = await (await driven.person()).tab()
        await tab.goto(`${url}/auth/login`)
        await tab.click('a[href*="/oauth/corp/login"]')
        await tab.click('a')
        await expect.poll(() => tab.evaluate('location.pathname')).toBe('/auth/account')
        // The address changes before the page is read.
        await expect.poll(() => tab.evaluate('document.querySelector("h1")?.innerText ?? null')).toBe('Your account')
        await tab.goto(`${url}/auth/account/devices`)
        expect(await tab.evaluate('document.querySelector("h1").innerText')).toBe('Devices')
      },
    )

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

function pageOf(route: string) {
  const page = formPages.find((one) => one.route === route)
  if (!page) throw new Error(`no page has the route ${route}`)
  return page
}

/** Sends a form from the tab without leaving its page. */
function sendHidden(tab: Tab, path: string, fields: object): Promise<unknown> {
  return tab.evaluate(`(() => {
    const request = new XMLHttpRequest()
    request.open('POST', ${JSON.stringify(path)}, false)
    request.send(new URLSearchParams(${JSON.stringify(fields)}))
    return request.status
  })()`)
}

/** Makes a form of the page one that the page's script does not know, so that also a passkey's form can be sent, and gives it the id `sent`. */
function plainForm(index: number): string {
  return `((form) => {
    if (!form) return []
    const plain = form.cloneNode(true)
    plain.id = 'sent'
    plain.noValidate = true
    plain.hidden = false
    form.replaceWith(plain)
    return ['', ...[...plain.elements].map(({ name }) => name)]
  })(document.querySelectorAll('main form')[${index}])`
}

/** Types into those of the fields that the form has. */
async function fill(tab: Tab, form: string, fields: Readonly<Record<string, string | null>>): Promise<void> {
  await tab.evaluate(
    `Object.entries(${JSON.stringify(fields)}).map(([name, value]) => { const field = document.querySelector(${JSON.stringify(form)}).elements[name]; if (field && value !== null) field.value = value; return name })`,
  )
}
