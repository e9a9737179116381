import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from './chromium'
import { demoInChromium } from './demo-in-chromium'

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

describe.skipIf(!hasChromium)('the demo in Chromium', () => {
  const inChromium = demoInChromium()
  const { open, signInWithAcme, signOut } = inChromium

  async function choosePerson(page: Page, name: string) {
    await page.getByRole('link', { name: 'Continue with Acme ID' }).click()
    await page.getByRole('button', { name }).click()
    await page.getByRole('heading', { name: 'Share your account?' }).waitFor()
  }

  async function agree(page: Page, name: string) {
    await page.getByRole('button', { name: 'Share and continue' }).click()
    await page.getByRole('heading', { name, exact: true }).waitFor()
  }

  const accountId = (page: Page) => page.locator('#account-id').textContent()
  const guardedAnswer = (page: Page) => page.evaluate(async () => (await fetch('/api/hello')).status)

  test('a person signs in with Acme ID, sees the account, is answered by the guarded API, and signs out', async () => {
    const page = await open()
    expect(await page.locator('#hello-status').textContent()).toBe('401 UNAUTHORIZED')

    await choosePerson(page, 'Maya Okafor')
    expect(new URL(page.url()).origin).toBe(inChromium.demo.providerUrl)
    expect(await page.locator('.shared').textContent()).toContain('maya@example.com')
    await agree(page, 'Maya Okafor')

    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    expect(await page.locator('#account-email').textContent()).toBe('maya@example.com')
    expect(await page.locator('#identity-list').textContent()).toContain('Acme ID')
    expect(await page.locator('#hello-status').textContent()).toBe('200 OK')
    expect(await page.locator('#hello-body').textContent()).toContain('Hello, maya@example.com')

    const [user, ...otherUsers] = inChromium.demo.rows('auth_users')
    const [identity, ...otherIdentities] = inChromium.demo.rows('auth_identities')
    expect([otherUsers, otherIdentities]).toEqual([[], []])
    expect(user).toMatchObject({ id: await accountId(page), email: 'maya@example.com' })
    expect(identity).toMatchObject({ user_id: user?.id, provider: 'acme', subject: 'acme-4711' })

    await signOut(page)
    expect(await page.locator('#hello-status').textContent()).toBe('401 UNAUTHORIZED')
    expect(await guardedAnswer(page)).toBe(401)
    const left = await inChromium.context.cookies(`${inChromium.demo.url}/accounts/auth`)
    expect(
      left.map(({ name }) => name),
      'the browser stays known; the cookie opens nothing',
    ).toEqual(['auth_device'])
  })

  test('the session cookies are HttpOnly: no script on the page can read them', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')

    const cookies = await inChromium.context.cookies(`${inChromium.demo.url}/accounts/auth`)
    expect(cookies.map(({ name }) => name).sort()).toEqual(['access_token', 'auth_device', 'refresh_token'])
    expect(cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === 'Lax')).toBe(true)
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
  })

  test('declining consent brings the person back to a friendly message and leaves no account', async () => {
    const page = await open()
    await choosePerson(page, 'Maya Okafor')
    await page.getByRole('button', { name: 'Cancel' }).click()

    await page.getByRole('link', { name: 'Continue with Acme ID' }).waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('You chose not to share your Acme ID account')
    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    expect(inChromium.demo.rows('auth_users')).toEqual([])

    await signInWithAcme(page, 'Maya Okafor')
  })

  test('the second login of a person is the same account, another person is another account', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')
    const first = await accountId(page)
    await signOut(page)

    // Acme ID remembers what Maya agreed to and does not ask again.
    await page.getByRole('link', { name: 'Continue with Acme ID' }).click()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await page.getByRole('heading', { name: 'Maya Okafor', exact: true }).waitFor()
    expect(await accountId(page)).toBe(first)
    await signOut(page)

    await signInWithAcme(page, 'Lúcia Ferreira')
    expect(await accountId(page)).not.toBe(first)
    expect(inChromium.demo.rows('auth_users').map(({ name }) => name)).toEqual(expect.arrayContaining(['Maya Okafor', 'Lúcia Ferreira']))
    expect(inChromium.demo.rows('auth_users')).toHaveLength(2)
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(2)
  })

  test('two tabs that sign in at the same time both complete', async () => {
    const [one, two] = [await open(), await open()]
    await choosePerson(one, 'Maya Okafor')
    await choosePerson(two, 'Maya Okafor')
    await agree(one, 'Maya Okafor')
    await agree(two, 'Maya Okafor')

    expect(await accountId(two)).toBe(await accountId(one))
    expect([await guardedAnswer(one), await guardedAnswer(two)]).toEqual([200, 200])
    expect(inChromium.demo.rows('auth_users')).toHaveLength(1)
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(1)
  })

  test('when the access cookie is gone the page renews the session without asking', async () => {
    const page = await open()
    await signInWithAcme(page, 'Jonas Lindqvist')
    await inChromium.context.clearCookies({ name: 'access_token' })

    await page.reload()
    await page.getByRole('heading', { name: 'Jonas Lindqvist', exact: true }).waitFor()
    expect(await page.locator('#hello-status').textContent()).toBe('200 OK')
  })

  test('an identity can be unlinked, and signing in again links it to the same account', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')
    const first = await accountId(page)

    await page.getByRole('button', { name: 'Unlink' }).click()
    await page.locator('#no-identities').waitFor()
    expect(inChromium.demo.rows('auth_identities')).toEqual([])
    await signOut(page)

    await page.getByRole('link', { name: 'Continue with Acme ID' }).click()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await page.getByRole('heading', { name: 'Maya Okafor', exact: true }).waitFor()
    expect(await accountId(page)).toBe(first)
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(1)
  })
})
