import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { type LocalHost, newAddress, userOf } from '../local/people'
import { type PagesHost, pagesInChromium } from '../page-routes/pages-in-chromium'
import { onPages } from '../page-routes/people'
import { databases } from '../support/databases'
import { type Driven, hasFirefox, launchFirefox, type Tab } from '../support/firefox'
import { plugIn } from '../support/virtual-authenticator'
import { signupSettings } from './newcomers'
import { newAuthenticator } from './people'

/** Section 30: a person signs up, proves the address and is signed in without leaving the browser. */

const [database] = await databases()
if (!database) throw new Error('no database')

const codes = { ...signupSettings, mailedCodes: 'both', backendLinks: true, activationUrlTemplate: null } as const
const withoutPasswords = {
  ...codes,
  passwordLogin: false,
  emailLogin: 'both',
  emailLoginUrlTemplate: 'https://app.example.test/in/{token}',
} as const
const passkeyAlone = { ...withoutPasswords, signupWith: ['passkey'] } as const
const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }

const codeTo = async (host: LocalHost, to: string) => String((await host.mails.next({ kind: 'activation', to })).code)

/** What is left of the sign-up: an account that never had a password, and so many passkeys. */
async function keptOf(host: LocalHost, email: string) {
  const { id, isActive, emailVerifiedAt, passwordSetAt } = await userOf(host, email)
  const passkeys = await host.knex('auth_passkeys').where({ user_id: id })
  return { isActive, isVerified: emailVerifiedAt !== null, hadPassword: passwordSetAt !== null, passkeys: passkeys.length }
}
const done = { isActive: true, isVerified: true, hadPassword: false, passkeys: 1 }

describe.skipIf(!hasChromium)('sign-up in one sitting, in Chromium on a phone', { timeout: 90_000 }, () => {
  const { serve: serveAt, browse } = pagesInChromium(database)
  // An address of numbers has no passkeys.
  const serve = (settings: object) => serveAt({ settings }, 'localhost')

  /** Of the page that is shown: it is not wider than the phone, and this many fields take a password. */
  async function passwordsOn(page: Page): Promise<number> {
    expect([page.url(), Number(await page.evaluate('document.documentElement.scrollWidth')) <= 360]).toEqual([page.url(), true])
    return page.locator('input[type="password"]').count()
  }

  async function touchToSignUp(page: Page, email: string): Promise<void> {
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Sign up with a passkey' }).tap()
    await page.waitForURL('**/auth/check-mail')
  }

  async function typeCode({ host }: PagesHost, page: Page, email: string): Promise<void> {
    await page.getByLabel('Code').fill(await codeTo(host, email))
    await page.getByRole('button', { name: 'Activate account' }).tap()
    await page.waitForURL('**/auth/account')
  }

  /** The passkey is the way back in. */
  async function signInAgain(page: Page, email: string): Promise<void> {
    await page.context().clearCookies()
    await page.goto('/auth/login') // this device takes every offer of the field
    await page.waitForURL('**/auth/account')
    expect(await page.textContent('main')).toContain(email)
  }

  test.each([
    ['beside passwords', codes, 1],
    ['as the only way', passkeyAlone, 0],
  ])('a passkey %s: address, touch, the typed code, signed in, never a password', async (_name, settings, passwords) => {
    const served = await serve(settings)
    const page = await browse(served, phone)
    await plugIn(page)
    const email = newAddress()
    await page.goto('/auth/signup')
    expect(await passwordsOn(page)).toBe(passwords)
    await touchToSignUp(page, email)
    expect(await passwordsOn(page)).toBe(0)
    await typeCode(served, page, email)
    expect(await passwordsOn(page)).toBe(0)
    expect(await page.textContent('main')).toContain(email)
    expect(await keptOf(served.host, email)).toEqual(done)
    await signInAgain(page, email)
  })

  test('only the touch needs a script: the code after it is typed without one', async () => {
    const served = await serve(passkeyAlone)
    const page = await browse(served, phone)
    await plugIn(page)
    const email = newAddress()
    await page.goto('/auth/signup')
    await touchToSignUp(page, email)

    const plain = await browse(served, { ...phone, javaScriptEnabled: false })
    await plain.context().addCookies(await page.context().cookies())
    await plain.goto('/auth/check-mail')
    await typeCode(served, plain, email)
    expect(await keptOf(served.host, email)).toEqual(done)
  })

  test('without a script the page of a passkey says that it needs one, and has nothing to press', async () => {
    const page = await browse(await serve(passkeyAlone), { ...phone, javaScriptEnabled: false })
    await page.goto('/auth/signup')
    expect(await page.evaluate('document.querySelector("main").innerText')).toContain('Passkeys need JavaScript')
    expect(await page.locator('main button:visible').count()).toBe(0)
  })

  test('without passwords, address and code need no script; the touch comes once the person is signed in', async () => {
    const served = await serve(withoutPasswords)
    const page = await browse(served, { ...phone, javaScriptEnabled: false })
    const email = newAddress()
    await page.goto('/auth/signup')
    expect(await passwordsOn(page)).toBe(0)
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Create the account' }).tap()
    await page.waitForURL('**/auth/check-mail')
    expect(await passwordsOn(page)).toBe(0)
    await typeCode(served, page, email)
    expect(await keptOf(served.host, email)).toEqual({ ...done, passkeys: 0 })

    const scripted = await browse(served, phone)
    await plugIn(scripted)
    await scripted.context().addCookies(await page.context().cookies())
    await scripted.goto('/auth/account/security/passkeys/add')
    expect(await passwordsOn(scripted)).toBe(0)
    await scripted.getByRole('button', { name: 'Add the passkey' }).tap()
    await scripted.getByText('The passkey was added.').waitFor()
    expect(await keptOf(served.host, email)).toEqual(done)
  })
})

describe.skipIf(!hasFirefox)('sign-up in one sitting, in Firefox', { timeout: 120_000 }, () => {
  const { start } = onPages(database)
  let firefox: Driven
  let server: Server

  beforeAll(async () => {
    firefox = await launchFirefox()
    server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
  }, 90_000)
  afterAll(async () => {
    server?.closeAllConnections()
    server?.close()
    await firefox?.close()
  })

  const fill = (tab: Tab, fields: Readonly<Record<string, string>>) =>
    tab.evaluate(`Object.entries(${JSON.stringify(fields)}).map(([name, value]) => {
      document.querySelector('main form:not([hidden]) [name="' + name + '"]').value = value
      return name
    })`)

  /** Firefox can be given no authenticator, so the one of the tests answers in its place to what the page asks the browser for. */
  const answeredByTest = `(() => {
    const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (letter) => letter.charCodeAt(0)).buffer
    const written = (view) => btoa(String.fromCharCode(...view)).replace(/[+]/g, '-').replace(/[/]/g, '_').replace(/=+$/, '')
    navigator.credentials.create = ({ publicKey }) => {
      window.asked = { ...publicKey, challenge: written(publicKey.challenge), user: { ...publicKey.user, id: written(publicKey.user.id) } }
      return new Promise((resolve) => {
        window.touch = ({ response: { clientDataJSON, attestationObject, transports }, ...made }) => resolve({
          ...made,
          rawId: bytes(made.rawId),
          response: { clientDataJSON: bytes(clientDataJSON), attestationObject: bytes(attestationObject), getTransports: () => transports },
        })
      })
    }
    return true
  })()`

  test.each([
    ['beside passwords', codes],
    ['as the only way', passkeyAlone],
  ])('a passkey %s: address, the ceremony with our options, the typed code, signed in', async (_name, settings) => {
    const url = `http://localhost:${(server.address() as AddressInfo).port}` // a TCP server has this kind of address
    const host = await start({ settings: { ...settings, oauthRedirectBaseUrl: url } })
    server.removeAllListeners('request').on('request', host.app)
    const tab = await (await firefox.person()).tab()
    const email = newAddress()
    await tab.goto(`${url}/auth/signup`)
    await tab.evaluate(answeredByTest)
    await fill(tab, { email })
    await tab.evaluate(`document.querySelector('form[data-passkey="create"] button[type="submit"]').click() ?? null`)
    await expect.poll(() => tab.evaluate('window.asked ?? null')).not.toBeNull()
    const asked = await tab.evaluate<{ rp: object; user: object }>('window.asked')
    expect([asked.rp, asked.user]).toMatchObject([{ id: 'localhost' }, { name: email }])
    const credential = newAuthenticator({ origin: url }).create(asked as never)
    await tab.evaluate(`window.touch(${JSON.stringify(credential)}) ?? null`)
    await expect.poll(() => tab.evaluate('document.readyState === "complete" && location.pathname')).toBe('/auth/check-mail')
    await fill(tab, { code: await codeTo(host, email) })
    await tab.click('main form button[type="submit"]')
    expect(await tab.evaluate('location.pathname')).toBe('/auth/account')
    expect(await keptOf(host, email)).toEqual(done)
  })
})
