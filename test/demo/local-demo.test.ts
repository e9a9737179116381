import type { BrowserContext, Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { type DemoRun, runDemo } from './demo-run'
import { mailArrives, newestLink } from './newest-link'
import { Visitor } from './visitor'

const ada = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada Lovelace' }
const newPassword = 'nine green bottles'

describe('local accounts in the demo, over HTTP', () => {
  let demo: DemoRun
  let auth: string

  beforeEach(async () => {
    demo = await runDemo()
    auth = `${demo.url}/accounts/auth`
  })
  afterEach(() => demo.close())

  const post = (visitor: Visitor, path: string, body: object) => visitor.call('POST', `${auth}${path}`, body)
  const me = async (visitor: Visitor) => (await visitor.call('GET', `${auth}/me`)).status

  test('a person signs up, activates by mail, forgets the password, sets a new one and changes it', async () => {
    const visitor = new Visitor()
    const signedUp = await post(visitor, '/signup', ada)
    expect(signedUp).toMatchObject({ status: 201, body: { activation_required: true, activation_url: null } })
    expect((await post(visitor, '/login', ada)).status).toBe(401)

    const activation = await newestLink(demo, 'activate')
    expect(await post(visitor, '/activate', { token: activation.token })).toMatchObject({ status: 200, body: { access_token: null } })
    expect(await me(visitor)).toBe(200)
    await post(visitor, '/logout', {})
    expect(await me(visitor)).toBe(401)
    expect((await post(visitor, '/login', { ...ada, password: 'something else' })).status).toBe(401)
    expect((await post(visitor, '/login', ada)).status).toBe(200)

    const requested = await post(visitor, '/password-reset/request', { email: ada.email })
    expect(requested).toMatchObject({ status: 202, body: { reset_url: null } })
    const reset = await newestLink(demo, 'reset')
    const returning = new Visitor()
    expect((await post(returning, '/password-reset/confirm', { token: reset.token, new_password: newPassword })).status).toBe(200)
    expect((await post(visitor, '/refresh', {})).status).toBe(401)
    expect((await post(new Visitor(), '/login', ada)).status).toBe(401)

    const elsewhere = new Visitor()
    expect((await post(elsewhere, '/login', { ...ada, password: newPassword })).status).toBe(200)
    const change = { current_password: newPassword, new_password: ada.password }
    expect((await post(returning, '/password-change', change)).status).toBe(204)
    expect((await post(returning, '/refresh', {})).status).toBe(200)
    expect((await post(elsewhere, '/refresh', {})).status).toBe(401)
  })

  test('opening a mailed link, as mail scanners do, changes nothing', async () => {
    await post(new Visitor(), '/signup', ada)
    const { url, token } = await newestLink(demo, 'activate')
    const before = [demo.rows('auth_users'), demo.rows('auth_user_tokens')]

    const scanner = new Visitor()
    const opened = await scanner.open(url)

    expect(opened.status).toBe(200)
    expect(opened.body).toContain('Activate and sign in')
    expect(opened.body).not.toContain(token)
    expect(scanner.jar.of('localhost')).toEqual([])
    expect([demo.rows('auth_users'), demo.rows('auth_user_tokens')]).toEqual(before)
    const head = await fetch(url)
    expect(head.headers.get('cache-control')).toBe('no-store')
    expect(head.headers.get('referrer-policy')).toBe('strict-origin')
  })

  test('a taken address answers like a new one, and its owner is told', async () => {
    await post(new Visitor(), '/signup', ada)
    const activation = await newestLink(demo, 'activate')
    expect((await post(new Visitor(), '/activate', { token: activation.token })).status).toBe(200)
    const again = await post(new Visitor(), '/signup', { ...ada, password: newPassword })

    expect(again).toMatchObject({ status: 201, body: { activation_required: true, user_id: expect.any(String) } })
    await mailArrives(demo, 'You already have an account')
    expect(demo.rows('auth_users')).toHaveLength(1)
    expect((await post(new Visitor(), '/login', ada)).status).toBe(200)
  })

  test('who signs up twice before opening the link has one account: the newest password and the newest link count', async () => {
    const visitor = new Visitor()
    await post(visitor, '/signup', ada)
    const first = await newestLink(demo, 'activate')
    expect((await post(visitor, '/signup', { ...ada, password: newPassword })).status).toBe(201)
    const second = await newestLink(demo, 'activate')

    expect((await post(visitor, '/activate', { token: first.token })).status).toBe(401)
    expect((await post(visitor, '/activate', { token: second.token })).status).toBe(200)
    expect(demo.rows('auth_users')).toHaveLength(1)
    expect((await post(new Visitor(), '/login', ada)).status).toBe(401)
    expect((await post(new Visitor(), '/login', { ...ada, password: newPassword })).status).toBe(200)
  })
})

describe.skipIf(!hasChromium)('local accounts in the demo, in Chromium', () => {
  const inChromium = demoInChromium()
  const { open, signOut } = inChromium

  const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
  const press = (page: Page, name: string) => pressWhenLoaded(page, page.getByRole('button', { name }))
  const isActive = () => inChromium.demo.rows('auth_users').map((user) => user.is_active)

  async function logIn(page: Page, { email, password }: { email: string; password: string }) {
    await field(page, 'Email').fill(email)
    await field(page, 'Password').fill(password)
    await press(page, 'Sign in')
  }

  /** Ada's account, active; and whoever asked is signed in. */
  async function createAccount({ request }: BrowserContext) {
    const auth = `${inChromium.demo.url}/accounts/auth`
    await request.post(`${auth}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    expect((await request.post(`${auth}/activate`, { data: { token } })).status()).toBe(200)
  }

  /** The outbox looks again by itself until the mail has come. */
  async function openNewestMail(page: Page, subject: string) {
    await page.goto(`${inChromium.demo.url}/outbox`)
    await page.getByRole('article').filter({ hasText: subject }).first().getByRole('link').click()
  }

  test('from signing up to a new password, every step by its link and its page', async () => {
    const page = await open()
    await page.getByRole('link', { name: 'Create an account' }).click()
    await field(page, 'Name').fill(ada.name)
    await field(page, 'Email').fill(ada.email)
    await field(page, 'Password').fill(ada.password)
    await press(page, 'Create account')
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor()

    await openNewestMail(page, 'Activate your account')
    await page.waitForLoadState('networkidle')
    expect(isActive()).toEqual([0])
    await press(page, 'Activate and sign in')
    await page.getByRole('heading', { name: ada.name }).waitFor()
    expect(await page.getByRole('status').first().textContent()).toContain('Your account is active')
    expect(isActive()).toEqual([1])
    expect(await page.locator('#account-email').textContent()).toBe(ada.email)
    expect(await page.locator('#hello-status').textContent()).toBe('200 OK')
    expect(await page.getByText('Two ways in').isVisible()).toBe(false)

    await signOut(page)
    await logIn(page, { ...ada, password: 'something else' })
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('That email and password do not open an account.')
    await logIn(page, ada)
    await page.getByRole('heading', { name: ada.name }).waitFor()

    await signOut(page)
    await page.getByRole('link', { name: 'Forgotten your password?' }).click()
    await field(page, 'Email').fill(ada.email)
    await press(page, 'Send the link')
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
    await openNewestMail(page, 'Choose a new password')
    const resetPage = page.url()
    await field(page, 'New password').fill(newPassword)
    await press(page, 'Save and sign in')
    await page.getByRole('heading', { name: ada.name }).waitFor()

    await signOut(page)
    await logIn(page, ada)
    await page.getByRole('alert').waitFor()
    await page.goto(resetPage)
    await field(page, 'New password').fill('another good phrase')
    await press(page, 'Save and sign in')
    await page.getByRole('link', { name: 'Ask for a new link' }).waitFor()
    expect(await page.getByRole('alert').textContent()).toBe('This link has been used already, or it is too old.')
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
  }, 60_000)

  test('where several people signed up with one address, its owner chooses a new password', async () => {
    for (const password of [ada.password, newPassword]) {
      const { request } = await inChromium.anotherBrowser()
      await request.post(`${inChromium.demo.url}/accounts/auth/signup`, { data: { ...ada, password } })
      await newestLink(inChromium.demo, 'activate')
    }
    const page = await open()
    await openNewestMail(page, 'Activate your account')
    await press(page, 'Activate and sign in')
    await page.getByText('please choose one below').waitFor()
    await field(page, 'New password').fill('a harbour in the spring')
    await press(page, 'Set password')
    await page.getByText('Your password is set.').waitFor()

    await signOut(page)
    await logIn(page, { ...ada, password: 'a harbour in the spring' })
    // The name may be somebody else's, too: it is gone.
    await page.getByRole('heading', { name: ada.email, exact: true }).waitFor()
  })

  test('a changed password keeps this browser and signs the others out', async () => {
    const elsewhere = await inChromium.anotherBrowser()
    await createAccount(elsewhere)
    const other = await open(elsewhere)
    const page = await open()
    await logIn(page, ada)

    await field(page, 'Current password').fill('not this one')
    await field(page, 'New password').fill(newPassword)
    await press(page, 'Change password')
    await page.getByText('This is not your current password.').waitFor()
    expect(await field(page, 'Current password').getAttribute('aria-invalid')).toBe('true')

    await field(page, 'Current password').fill(ada.password)
    await press(page, 'Change password')
    await page.getByText('every other one is signed out').waitFor()
    await page.reload()
    await page.getByRole('heading', { name: ada.name }).waitFor()

    // What the browser does by itself when the minute of the access token is over.
    await elsewhere.clearCookies({ name: 'access_token' })
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await other.getByRole('alert').textContent()).toContain('You are not signed in any more')
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(await other.getByRole('alert').count()).toBe(0)
  })

  test('a refusal is a sentence beside its field, or says how many seconds to wait', async () => {
    const page = await open()
    await page.goto(`${inChromium.demo.url}/signup`)
    const refusals = [
      { email: ada.email, password: 'short', says: 'use at least 12 characters' },
      { email: ada.email, password: 'password123456', says: 'easy to guess' },
      { email: ada.email, password: 'x'.repeat(1_025), says: 'use a shorter one' },
      { email: 'ada@nowhere', password: ada.password, says: 'does not look like an email address' },
    ]
    for (const { email, password, says } of refusals) {
      await field(page, 'Email').fill(email)
      await field(page, 'Password').fill(password)
      await press(page, 'Create account')
      await page.getByText(says).waitFor()
      const focused = page.locator('[aria-invalid]:focus')
      expect(await focused.getAttribute('aria-describedby')).toContain(await page.getByText(says).getAttribute('id'))
    }
    expect(inChromium.demo.rows('auth_users')).toEqual([])
    // A rule that a host may switch on.
    const rule = `{ rule: 'missing_classes', missing: ['upper', 'digit'] }`
    expect(await page.evaluate(`import('/messages.mjs').then(({ passwordRule }) => passwordRule(${rule}))`)).toBe(
      'Add a capital letter and a digit.',
    )

    const { request } = inChromium.context
    for (let attempt = 0; attempt < 5; attempt++) await request.post(`${inChromium.demo.url}/accounts/auth/login`, { data: ada })
    await page.goto(inChromium.demo.url)
    await logIn(page, ada)
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toMatch(/Please wait (8\d\d|900) seconds/)
  })

  test('at the width of a phone nothing scrolls sideways, and a keyboard alone signs up', async () => {
    const phone = await inChromium.anotherBrowser({ viewport: { width: 390, height: 844 } })
    const page = await open(phone)
    const overflow = () => page.evaluate('document.documentElement.scrollWidth - innerWidth')

    await page.goto(`${inChromium.demo.url}/signup`)
    const typed = ['Name', ada.name, 'Email', ada.email, 'Password', ada.password]
    // Past the brand, the outbox and the other language in the header.
    for (let stop = 0; stop < 3; stop++) await page.keyboard.press('Tab')
    for (let index = 0; index < typed.length; index += 2) {
      await page.keyboard.press('Tab')
      expect(await focusedLabel(page)).toBe(typed[index])
      await page.keyboard.type(typed[index + 1] ?? '')
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('check-mail-title')
    expect(await overflow()).toBe(0)

    const { url } = await newestLink(inChromium.demo, 'activate')
    await createAccount(phone)
    for (const address of ['/', '/signup', '/forgot', '/outbox?look=2', new URL(url).pathname, '/reset/none']) {
      await page.goto(`${inChromium.demo.url}${address}`)
      await page.locator('h1').filter({ visible: true }).waitFor()
      expect(await overflow(), address).toBe(0)
    }
  })
})

const focusedLabel = (page: Page) => page.evaluate('document.activeElement.labels[0].textContent')
