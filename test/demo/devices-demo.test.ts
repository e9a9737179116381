import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BrowserContext, Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { authenticator } from '../mfa/authenticator'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { type DemoRun, runDemo } from './demo-run'
import { newestLink } from './newest-link'
import { Visitor } from './visitor'

const ada = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada Lovelace' }
const laptop = { userAgent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0' }
const phone = {
  viewport: { width: 390, height: 844 },
  userAgent: 'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/604.1',
}

describe.skipIf(!hasChromium)('the devices of the demo, in Chromium', () => {
  const inChromium = demoInChromium()
  const press = (page: Page, name: string) => pressWhenLoaded(page, page.getByRole('button', { name, exact: true }))
  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth')
  const devices = (page: Page) => page.locator('#device-list .provider').allTextContents()
  const auth = () => `${inChromium.demo.url}/accounts/auth`
  const { anotherBrowser } = inChromium
  const livingSessions = () => inChromium.demo.rows('auth_sessions').filter(({ revoked_at }) => revoked_at === null)

  /** Ada's account, and nobody is signed in. */
  async function createAccount() {
    const { request } = inChromium.context
    await request.post(`${auth()}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    await request.post(`${auth()}/activate`, { data: { token } })
    inChromium.demo.clock.advance(2)
    return { request, logOut: () => request.post(`${auth()}/logout`) }
  }

  /** Sent from the page of the devices to sign in. */
  async function open(context: BrowserContext) {
    const page = await context.newPage()
    await page.goto(`${inChromium.demo.url}/devices`)
    await heading(page, 'Sign in')
    expect(page.url()).toBe(`${inChromium.demo.url}/?return_to=%2Fdevices`)
    return page
  }

  async function signIn(page: Page, password = ada.password) {
    await page.getByRole('textbox', { name: 'Email' }).fill(ada.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(password)
    await press(page, 'Sign in')
  }

  test('two browsers: each is in the list of the other, and the one that is ended is signed out', async () => {
    await (await createAccount()).logOut()
    const [atHome, onTheWay] = [await open(await anotherBrowser(laptop)), await open(await anotherBrowser(phone))]
    await signIn(atHome, 'something else')
    await atHome.getByText('That email and password do not open an account.').waitFor()
    await signIn(atHome)
    await heading(atHome, 'Your devices')
    expect(await devices(atHome)).toEqual(['Firefox on Linux (this device)'])
    inChromium.demo.clock.advance(1)
    await signIn(onTheWay)
    await heading(onTheWay, 'Your devices')
    expect(await devices(onTheWay)).toEqual(['Safari on iOS (this device)', 'Firefox on Linux'])
    expect(await overflow(onTheWay)).toBe(0)

    await press(onTheWay, 'Sign out Firefox on Linux')
    await onTheWay.getByText('Firefox on Linux is signed out.').waitFor()
    // The page says that it is done before it shows the list anew.
    await expect.poll(() => devices(onTheWay)).toEqual(['Safari on iOS (this device)'])
    await atHome.reload()
    await heading(atHome, 'Sign in')
    expect((await atHome.request.get(`${auth()}/sessions`)).status()).toBe(401)

    // What it held is worth nothing: signed in anew it is another session.
    inChromium.demo.clock.advance(1)
    await signIn(atHome)
    await heading(atHome, 'Your devices')
    expect(await devices(atHome)).toEqual(['Firefox on Linux (this device)', 'Safari on iOS'])
    await press(onTheWay, 'Sign out')
    await heading(onTheWay, 'Sign in')
    expect((await onTheWay.context().cookies()).map(({ name }) => name)).toEqual(['auth_device']) // the browser stays known
    // A list that is out of date: what was to be ended is over.
    await press(atHome, 'Sign out Safari on iOS')
    await atHome.getByText('Safari on iOS is signed out.').waitFor()
    await expect.poll(() => devices(atHome)).toEqual(['Firefox on Linux (this device)'])
    expect(livingSessions()).toHaveLength(1)
    expect(await atHome.evaluate('[document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage })].join()')).toBe(',{}')
  })

  test('with a second factor the code comes first; in Portuguese, by keyboard, on a phone', async () => {
    const { request, logOut } = await createAccount()
    const enrolment = await (await request.post(`${auth()}/mfa/enroll`, { data: {} })).json()
    const app = authenticator(enrolment.secret, inChromium.demo.clock)
    expect((await request.post(`${auth()}/mfa/confirm`, { data: { code: app.code() } })).status()).toBe(200)
    await logOut()

    const page = await open(await anotherBrowser(phone))
    await page.getByRole('link', { name: 'Português' }).click()
    await heading(page, 'Entrar')
    await page.goto(`${inChromium.demo.url}/devices`)
    await heading(page, 'Entrar')
    expect(await overflow(page)).toBe(0)
    await page.getByRole('textbox', { name: 'E-mail' }).focus()
    await page.keyboard.type(ada.email)
    await page.keyboard.press('Tab')
    await page.keyboard.type(ada.password)
    await page.keyboard.press('Enter')
    await heading(page, 'Falta um passo')
    expect([await page.context().cookies(`${auth()}/me`), livingSessions()]).toEqual([
      [expect.objectContaining({ name: 'demo_language' })],
      [],
    ])
    await page.keyboard.type('000000')
    await page.keyboard.press('Enter')
    await page.getByText('Este código não confere').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('challenge-code')
    await page.keyboard.type(app.nextCode())
    await page.keyboard.press('Enter')
    await heading(page, 'Seus aparelhos')
    expect(await devices(page)).toEqual(['Safari no iOS (este aparelho)'])
    expect(await overflow(page)).toBe(0)
  })
})

describe('the devices of the demo, over HTTP', () => {
  let demo: DemoRun
  beforeEach(async () => {
    demo = await runDemo()
  })
  afterEach(() => demo.close())

  test('two browsers of one person: one ends the other, whose cookie is worth nothing from then on', async () => {
    const auth = `${demo.url}/accounts/auth`
    const [one, other] = [new Visitor(), new Visitor()]
    await one.call('POST', `${auth}/signup`, ada)
    const { token } = await newestLink(demo, 'activate')
    await new Visitor().call('POST', `${auth}/activate`, { token })
    for (const visitor of [one, other]) expect((await visitor.call('POST', `${auth}/login`, ada)).status).toBe(200)

    const list = (await other.call('GET', `${auth}/sessions`)).body as { id: string; is_current: boolean }[]
    const ofTheOther = list.find(({ is_current }) => is_current)
    expect((await one.call('DELETE', `${auth}/sessions/${ofTheOther?.id}`)).status).toBe(204)
    expect((await other.call('GET', `${auth}/sessions`)).status).toBe(401)
    expect((await one.call('GET', `${auth}/me`)).body).toMatchObject({ email: ada.email })
  })

  test('the page has every part its script asks for, in both languages', async () => {
    const script = readFileSync(join(import.meta.dirname, '../../examples/demo/page/devices.mjs'), 'utf8')
    const visitor = new Visitor()
    await visitor.submit(
      await visitor.submit(await visitor.open(`${demo.url}/accounts/auth/oauth/acme/login`), '/sign-in', { person: 'acme-4711' }),
      '/consent',
    )
    const parts = [...script.matchAll(/\b(?:element|say)\('([\w-]+)'/g)].map(([, id]) => String(id))
    expect(parts.length).toBeGreaterThan(5)
    for (const language of ['en-US', 'pt-BR']) {
      const { status, body } = await visitor.open(`${demo.url}/devices?lang=${language}`)
      expect([status, body.includes(`lang="${language}"`), body.includes('{{')]).toEqual([200, true, false])
      expect(parts.filter((id) => !body.includes(`id="${id}"`))).toEqual([])
    }
  })
})
