import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { password, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { pagesInChromium, sendInPage } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')

/** What has the focus, as a person calls it, and whether it is seen to have it. */
const focused = (page: Page) =>
  page.evaluate(`(() => {
    const { id, textContent, labels } = document.activeElement
    return { id, text: labels?.[0]?.textContent ?? textContent.trim() }
  })()`) as Promise<{ id: string; text: string }>

/** Presses Tab until it is reached. */
async function reach(page: Page, name: string): Promise<void> {
  const passed: string[] = []
  for (let count = 0; count < 40; count += 1) {
    const { text } = await focused(page)
    if (text === name) {
      expect([name, await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')]).toEqual([name, 'solid'])
      return
    }
    passed.push(text)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab does not reach ${name}; it passed ${passed.join(', ')}`)
}

async function pressEnter(page: Page): Promise<void> {
  await Promise.all([page.waitForEvent('domcontentloaded'), page.keyboard.press('Enter')])
}

describe.skipIf(!hasChromium)('the pages by keyboard alone, in Chromium', { timeout: 60_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test('a person signs in, skips to the content, changes the name, and signs out', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host, { name: 'Ada' })
    const page = await browse(served)
    await page.goto('/auth/login')
    expect((await focused(page)).id).toBe('email')
    await page.keyboard.type(email)
    await page.keyboard.press('Tab')
    await page.keyboard.type(password)
    await pressEnter(page)
    await page.waitForURL('**/auth/account')

    await page.keyboard.press('Tab')
    expect((await focused(page)).text).toBe('Skip to the content')
    await page.keyboard.press('Enter')
    expect((await focused(page)).id).toBe('content')
    await reach(page, 'Profile')
    await pressEnter(page)
    await reach(page, 'Name (optional)')
    await page.keyboard.press('Control+A')
    await page.keyboard.type('Augusta Ada King')
    await pressEnter(page)
    await page.getByText('Your name was saved.').waitFor()
    await reach(page, 'Sign out')
    await pressEnter(page)
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor()
    expect((await served.host.knex('auth_users').where({ email }))[0].name).toBe('Augusta Ada King')
  })

  test('the focus moves to the first field that is wrong, and to the sentence where the whole form is', async () => {
    const served = await serve()
    const page = await browse(served)
    await page.goto('/auth/signup')
    await sendInPage(page, { email: '', password: '' })
    expect((await focused(page)).id).toBe('email')
    expect(await page.locator('#email').getAttribute('aria-describedby')).toBe('email-fault')
    await sendInPage(page, { email: 'ada@example.test', password: 'short' })
    expect((await focused(page)).id).toBe('password')
    await page.goto('/auth/login')
    await sendInPage(page, { email: 'ada@example.test', password: 'not this one' })
    expect((await focused(page)).text).toBe('The email address or the password is not right.')
  })
})
