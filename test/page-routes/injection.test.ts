import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { newAddress, password, signedIn } from '../local/people'
import { databases } from '../support/databases'
import { pagesInChromium, sendInPage } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
const image = '<img src=x onerror="document.title=1">'
const markup = `<script>document.title=1</script>"'>${image}`

/** What came of the markup: elements, or a script that ran. */
const traces = async (page: Page) => [await page.locator('main img, main script').count(), (await page.title()) === '1']

describe.skipIf(!hasChromium)('markup that somebody types, in Chromium', { timeout: 60_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test('stays text: a name on the pages of the account, and what a refused form shows again', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    await page.goto('/auth/login')
    await sendInPage(page, { email: `${markup}@example.test`, password: 'not this one' })
    expect([await page.locator('[name="email"]').inputValue(), ...(await traces(page))]).toEqual([`${markup}@example.test`, 0, false])

    await sendInPage(page, { email, password })
    await page.goto('/auth/account/profile')
    await sendInPage(page, { name: markup })
    expect([await page.locator('[name="name"]').inputValue(), ...(await traces(page))]).toEqual([markup, 0, false])
    await page.goto('/auth/account')
    expect([await page.getByText(markup).count(), ...(await traces(page))]).toEqual([1, 0, false])

    await page.goto('/auth/account/email')
    const form = 'form:has([name="new_email"])'
    await sendInPage(page, { new_email: `${markup}@example.test` }, form)
    expect(await traces(page)).toEqual([0, false])
    await sendInPage(page, { new_email: newAddress() }, form)
    expect(await traces(page)).toEqual([0, false])
  })

  test('would not run if it were markup: the policy of the pages allows no handler and no script of the page itself', async () => {
    const served = await serve()
    const page = await browse(served, {}, [/Content Security Policy/])
    await page.goto('/auth/login')
    await page.evaluate(`new Promise((resolve) => {
      let refused = 0
      document.addEventListener('securitypolicyviolation', () => { refused += 1; if (refused === 2) resolve() })
      document.querySelector('main').innerHTML = ${JSON.stringify(image)}
      const script = document.createElement('script')
      script.textContent = 'document.title=1'
      document.body.append(script)
    })`)
    expect(await page.title()).not.toBe('1')
  })
})
