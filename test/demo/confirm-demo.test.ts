import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { authenticator } from '../mfa/authenticator'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { newestLink } from './newest-link'

const ada = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada Lovelace' }

describe.skipIf(!hasChromium)('"Confirm it is you" in the demo, in Chromium', () => {
  const inChromium = demoInChromium()
  const press = (page: Page, name: string) => pressWhenLoaded(page, page.getByRole('button', { name, exact: true }))
  const question = (page: Page) => page.getByRole('dialog', { name: 'Confirm it is you' })

  /** Ada, signed in two minutes ago, on a page that fits a phone. */
  async function someTimeLater(): Promise<Page> {
    const context = await inChromium.anotherBrowser({ viewport: { width: 390, height: 844 } })
    const auth = `${inChromium.demo.url}/accounts/auth`
    await context.request.post(`${auth}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    expect((await context.request.post(`${auth}/activate`, { data: { token } })).status()).toBe(200)
    inChromium.demo.clock.advance(121)
    return inChromium.open(context)
  }

  test('asks for the password before a factor is set up, says what was wrong, and goes on by itself', async () => {
    const page = await someTimeLater()
    await press(page, 'Set it up')
    await question(page).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('confirm-it-password')
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)

    await page.locator('#confirm-it-password').fill('not this one')
    await page.keyboard.press('Enter')
    await question(page).getByText('This is not your current password.').waitFor()
    await page.locator('#confirm-it-password').fill(ada.password)
    await page.keyboard.press('Enter')
    await page.locator('#qr svg').waitFor()
    expect(await question(page).isVisible()).toBe(false)
    expect(await page.locator('#confirm-it-password').inputValue()).toBe('')
  })

  test('changes nothing for somebody who closes it, and asks again', async () => {
    const page = await someTimeLater()
    await press(page, 'Set it up')
    await question(page).waitFor()
    await page.locator('#confirm-it-password').fill('not this one')
    await page.keyboard.press('Enter')
    await question(page).getByText('This is not your current password.').waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('Nothing has changed: you did not confirm that it is you.').waitFor()
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('enrol')
    expect(await page.locator('#protection-scan').isVisible()).toBe(false)
    await page.keyboard.press('Enter')
    await question(page).waitFor()
    expect(await question(page).getByText('This is not your current password.').isVisible()).toBe(false)
    await press(page, 'Not now')
    await question(page).waitFor({ state: 'hidden' })
  })

  test('asks for a code, and for nothing else, where the account has had a second factor for a day', async () => {
    const { request } = inChromium.context
    const auth = `${inChromium.demo.url}/accounts/auth`
    await request.post(`${auth}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    await request.post(`${auth}/activate`, { data: { token } })
    inChromium.demo.clock.advance(2)
    const { secret } = await (await request.post(`${auth}/mfa/enroll`, { data: {} })).json()
    const app = authenticator(secret, inChromium.demo.clock)
    expect((await request.post(`${auth}/mfa/confirm`, { data: { code: app.code() } })).status()).toBe(200)
    inChromium.demo.clock.advance(86_401)

    const page = await inChromium.open()
    await press(page, 'Link Octo ID')
    await question(page).waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('confirm-it-code')
    expect(await page.locator('#confirm-it-password').isVisible()).toBe(false)
    await page.keyboard.type(app.code(-9))
    await page.keyboard.press('Enter')
    await question(page).getByText('This code is not right').waitFor()
    await page.locator('#confirm-it-code').fill(app.code())
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Authorize Doorward demo' }).waitFor()
  })

  test('says that it needs a new sign-in where nothing else can confirm, and that an unverified address comes first', async () => {
    const page = await inChromium.open()
    await page.getByRole('link', { name: 'Continue with Octo ID' }).click()
    await page.getByRole('button', { name: 'maya-codes' }).click()
    await page.getByRole('heading', { name: 'Maya Okafor', exact: true }).waitFor()
    for (const [button, card] of [
      ['Set it up', 'protection'],
      ['Link Acme ID', 'identities'],
    ] as const) {
      await press(page, button)
      await page.locator(`#${card}`).getByText('Please confirm your email address first.').waitFor()
    }
    await page.locator('#protection').getByRole('button', { name: 'Verify this address' }).click()
    await page.locator('#address-mailed').getByText('maya@example.com').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('address-title')

    inChromium.demo.clock.advance(121)
    await page.locator('#new-password').fill(ada.password)
    await press(page, 'Set password')
    await question(page).getByText('Please sign out and sign in again.').waitFor()
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Not now')
    await press(page, 'Not now')
    await page.locator('#password').getByText('Nothing has changed').waitFor()
  })

  test('lets somebody who came by a provider choose a first password, and sign in with it', async () => {
    const page = await inChromium.open()
    await inChromium.signInWithAcme(page, 'Maya Okafor')
    expect(await page.locator('#current-password').isVisible()).toBe(false)
    await page.locator('#new-password').fill('short')
    await press(page, 'Set password')
    await page.getByText('use at least 12 characters').waitFor()
    await page.locator('#new-password').fill(ada.password)
    await press(page, 'Set password')
    await page.getByText('Your password is set.').waitFor()
    await page.locator('#current-password').waitFor()

    await inChromium.signOut(page)
    await page.locator('#login-email').fill('maya@example.com')
    await page.locator('#login-password').fill(ada.password)
    await press(page, 'Sign in')
    await page.getByRole('heading', { name: 'Maya Okafor', exact: true }).waitFor()
  })

  test('links nothing for somebody who has signed out meanwhile, and says so', async () => {
    const page = await someTimeLater()
    await press(page, 'Link Octo ID')
    await page.locator('#confirm-it-password').fill(ada.password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Authorize Doorward demo' }).waitFor()
    await page.request.post(`${inChromium.demo.url}/accounts/auth/logout`)
    await page.getByRole('button', { name: 'maya-codes' }).click()
    await page.getByText('That took too long or was started somewhere else.').waitFor()
    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    expect(inChromium.demo.rows('auth_identities')).toEqual([])
  })

  test('undoes a change by the link of its notice', async () => {
    const page = await someTimeLater()
    await page.locator('#current-password').fill(ada.password)
    await page.locator('#new-password').fill('nine green bottles')
    await press(page, 'Change password')
    await page.getByText('Your password is changed.').waitFor()

    await page.goto((await newestLink(inChromium.demo, 'undo')).url)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    await press(page, 'Undo the changes')
    await page.getByRole('heading', { name: 'Your account is back as it was' }).waitFor()
    await page.goto((await newestLink(inChromium.demo, 'reset')).url)
    await page.locator('#new-password').fill('a harbour in the spring')
    await press(page, 'Save and sign in')
    await page.getByRole('heading', { name: ada.name, exact: true }).waitFor()
  })
})
