import { describe, expect, test } from 'vitest'
import { plugIn } from '../support/virtual-authenticator'
import { chromiumPath, hasChromium } from './chromium'
import { demoInChromium } from './demo-in-chromium'
import { newestLink } from './newest-link'

if (!hasChromium) {
  console.warn(
    `\n*** SKIPPED: the demo's browser test. There is no Chromium at ${chromiumPath}; install it or set CHROMIUM to its path. ***\n`,
  )
}

// Not `runIf`: elsewhere it would count as a test that was skipped.
if (process.env.CI === 'true') {
  test('CI drives the demo in a real Chromium', () => {
    expect(hasChromium, `no Chromium at ${chromiumPath}`).toBe(true)
  })
}

describe.skipIf(!hasChromium)('the demo in Chromium', { timeout: 60_000 }, () => {
  const inChromium = demoInChromium()
  const press = (page: Awaited<ReturnType<typeof inChromium.open>>, name: string) => page.getByRole('button', { name, exact: true }).click()

  test('who wants to see their notes signs in with Acme ID first, comes back to them, and signs out', async () => {
    const page = await inChromium.open()
    await page.getByText('Nobody is signed in.').waitFor()
    await page.getByRole('link', { name: 'Your notes' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.getByRole('link', { name: 'Continue with Acme' }).click()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await press(page, 'Share and continue')
    await page.getByRole('heading', { name: 'Your notes' }).waitFor()
    expect(page.url()).toBe(`${inChromium.demo.url}/notes`)
    expect((await page.request.get(`${inChromium.demo.url}/api/hello`)).status()).toBe(200)

    await page.getByRole('link', { name: 'Back to the first page' }).click()
    await page.getByText('You are signed in as Maya Okafor.').waitFor()
    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByText('maya@example.com').first().waitFor()
    await page.goto(inChromium.demo.url)
    await press(page, 'Sign out')
    await page.getByText('Nobody is signed in.').waitFor()
    expect(inChromium.demo.rows('auth_users')).toHaveLength(1)
  })

  test('a person signs up, opens the link from the outbox, adds a passkey, and comes back by it without typing anything', async () => {
    const page = await inChromium.open()
    await plugIn(page)

    await page.getByRole('link', { name: 'Create an account' }).click()
    await page.getByLabel('Email address').fill('ines@example.com')
    await page.getByLabel('Password', { exact: true }).fill('nine green bicycles uphill')
    await press(page, 'Create the account')
    await page.getByRole('heading', { name: 'Check your email' }).waitFor()
    const { url } = await newestLink(inChromium.demo, 'activate')
    await page.goto(url)
    await press(page, 'Activate account')
    await page.getByText('You are signed in as ines@example.com.').waitFor()

    await page.getByRole('link', { name: 'Your account' }).click()
    await page.getByRole('link', { name: 'Security' }).click()
    await page.getByRole('link', { name: 'Add a passkey' }).click()
    await page.getByLabel('Name of the passkey').fill('Laptop')
    await press(page, 'Add the passkey')
    await page.getByText('The passkey was added.').waitFor()

    await page.goto(inChromium.demo.url)
    await press(page, 'Sign out')
    await page.getByText('Nobody is signed in.').waitFor()
    await page.getByRole('link', { name: 'Sign in' }).click() // the field of the address offers the passkey, and this device takes it
    await page.getByText('You are signed in as ines@example.com.').waitFor()
    expect(inChromium.demo.rows('auth_passkeys')).toEqual([expect.objectContaining({ name: 'Laptop' })])
  })
})
