import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium, launchChromium } from '../demo/chromium'
import { newAddress } from '../local/people'
import { onPages } from '../page-routes/people'
import { databases } from '../support/databases'
import { selfSigned } from '../support/self-signed'
import { plugIn } from '../support/virtual-authenticator'
import { signupSettings } from './newcomers'

const [database] = await databases()
if (!database) throw new Error('no database')

/** Three sites of this machine. Passkeys belong to the first, and the second may use them too. */
const sites = ['app.example.test', 'shop.example.org', 'foreign.example.net'] as const
const [app, shop, foreign] = sites.map((name) => `https://${name}`) as [string, string, string]

describe.skipIf(!hasChromium)('related origins, in Chromium: two routers over one database (30.4)', { timeout: 60_000 }, () => {
  const { start } = onPages(database)
  const servers: Server[] = []
  let chromium: Browser

  beforeAll(async () => {
    for (const _ of sites) servers.push(createServer(selfSigned()).listen(0, '127.0.0.1'))
    await Promise.all(servers.map((server) => once(server, 'listening')))
    // The browser fetches the list of origins from the RP id at port 443, and makes passkeys only at sites whose certificate it takes.
    const ports = servers.map((server) => (server.address() as AddressInfo).port) // TCP servers have this kind of address
    const rules = sites.map((name, index) => `MAP ${name}:443 127.0.0.1:${ports[index]}`)
    chromium = await launchChromium([`--host-resolver-rules=${rules.join(', ')}`, '--ignore-certificate-errors'])
  }, 90_000)
  afterAll(async () => {
    await chromium?.close()
    for (const server of servers) {
      server.closeAllConnections()
      server.close()
    }
  })

  /** The routers, and a person with an authenticator of their own. */
  async function scene() {
    const shared = { ...signupSettings, mailedCodes: 'both', cookieSecure: true, webauthnRpId: sites[0], webauthnOrigins: [shop] } as const
    const hosts = []
    /** Where the browser asked for the list of origins, and with which cookies. */
    const lists: [string, string | null][] = []
    for (const [index, publicUrl] of [app, shop].entries()) {
      const settings = { ...shared, oauthRedirectBaseUrl: publicUrl }
      const host = await start({ settings, host: (express, { wellKnown }) => void express.use(wellKnown) })
      servers[index]?.removeAllListeners('request').on('request', (req, res) => {
        if (req.url === '/.well-known/webauthn') lists.push([publicUrl, req.headers.cookie ?? null])
        host.app(req, res)
      })
      hosts.push(host)
    }
    servers[2]
      ?.removeAllListeners('request')
      .on('request', (_req, res) => void res.setHeader('Content-Type', 'text/html').end('<h1>Ours</h1>'))
    const context = await chromium.newContext()
    context.setDefaultTimeout(15_000)
    const page = await context.newPage()
    const { present } = await plugIn(page, { isPresent: false })
    return { hosts, lists, page, present }
  }

  type Scene = Awaited<ReturnType<typeof scene>>

  /** Signs up with a passkey at one of the two sites, by the code of the mail. */
  async function signUp({ hosts, page, present }: Scene, at: string): Promise<string> {
    const email = newAddress()
    await present(true)
    await page.goto(`${at}/auth/signup`)
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Sign up with a passkey' }).click()
    await page.waitForURL(`${at}/auth/check-mail`)
    const { code } = (await (at === app ? hosts[0] : hosts[1])?.mails.next({ kind: 'activation', to: email })) ?? {}
    await page.getByLabel('Code').fill(String(code))
    await page.getByRole('button', { name: 'Activate account' }).click()
    await page.waitForURL(`${at}/auth/account`)
    return email
  }

  /** By the button: the field of the address offers the passkey too. */
  async function signIn({ page, present }: Scene, at: string): Promise<void> {
    await present(false)
    await page.goto(`${at}/auth/login`)
    await page.waitForFunction('document.readyState === "complete"')
    await present(true)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL(`${at}/auth/account`)
  }

  test.each([
    ['the RP id’s site', app, shop],
    ['the related site', shop, app],
  ])('a passkey that was made at %s signs in at both', async (_name, here, there) => {
    const all = await scene()
    const email = await signUp(all, here)
    for (const at of [there, here]) {
      await all.page.context().clearCookies()
      await signIn(all, at)
      expect(await all.page.textContent('main')).toContain(email)
    }
    expect(new Set(all.lists.map(String))).toEqual(new Set([`${app},`]))
    await all.page.context().close()
  })

  test('a site that is not in the list: the browser itself asks nobody', async () => {
    const all = await scene()
    await signUp(all, app)
    await all.page.goto(foreign)
    expect(await refusalOf(all.page)).toBe('SecurityError')
    expect(all.lists).toEqual([[app, null]])
    await all.page.context().close()
  })
})

function refusalOf(page: Page): Promise<string> {
  return page.evaluate(`navigator.credentials
    .get({ publicKey: { challenge: new Uint8Array(32), rpId: '${sites[0]}', userVerification: 'required' } })
    .then(() => 'signed', ({ name }) => name)`)
}
