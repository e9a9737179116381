import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { newestLink } from './newest-link'

const ada = { email: 'ada@example.com', password: 'correct horse battery' }
const phone = { viewport: { width: 390, height: 844 } }

/** What the browser holds of a session. */
const held = {
  cookie: { cookies: ['access_token', 'refresh_token'], path: '/accounts/auth', kind: 'tokens' },
  session: { cookies: ['auth_session'], path: '/accounts/auth', kind: 'session' },
  both: { cookies: ['access_token', 'refresh_token'], path: '/accounts/auth/cookie', kind: 'tokens' },
  bearer: { cookies: [], path: '/accounts/auth', kind: 'tokens' },
} as const

describe.skipIf(!hasChromium)('the demo in each delivery, in Chromium', () => {
  const inChromium = demoInChromium()
  const { anotherBrowser, open } = inChromium
  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  const signedInByProvider = async (page: Page) => {
    await page.getByRole('link', { name: 'Continue with Acme ID' }).click()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await page.getByRole('button', { name: 'Share and continue' }).click()
  }

  test.each(Object.entries(held))(
    '%s: chosen by keyboard on a phone; a login by a provider leads back, a logout counts',
    async (delivery, { cookies, path, kind }) => {
      const page = await open(await anotherBrowser(phone))
      await page.getByRole('link', { name: delivery, exact: true }).focus()
      await page.keyboard.press('Enter')
      await page.waitForURL(`**/?delivery=${delivery}`)
      await heading(page, 'Sign in')
      expect(await page.getByRole('link', { name: delivery, exact: true }).getAttribute('aria-current')).toBe('true')
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)

      await page.goto(`${inChromium.demo.url}/devices`)
      await heading(page, 'Sign in')
      await page.getByText('You come back to where you were.').waitFor()
      await signedInByProvider(page)
      await heading(page, 'Your devices')
      expect(page.url()).toBe(`${inChromium.demo.url}/devices`)
      await page.locator('#device-list').getByText('(this device)').waitFor()
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)

      const kept = (await page.context().cookies(inChromium.demo.url + path)).map(({ name }) => name)
      expect(kept.filter((name) => /token|session/.test(name)).sort()).toEqual(cookies)
      expect(await page.evaluate("'tokens' in sessionStorage")).toBe(delivery === 'bearer')
      expect(inChromium.demo.rows('auth_sessions')).toMatchObject([{ kind, provider: 'acme' }])

      await page.goto(inChromium.demo.url)
      await heading(page, 'Maya Okafor')
      expect(await page.locator('#hello-status').textContent()).toBe('200 OK')
      await page.getByRole('button', { name: 'Sign out' }).click()
      await heading(page, 'Sign in')
      expect(await page.locator('#hello-status').textContent()).toBe('401 UNAUTHORIZED')
      expect(inChromium.demo.rows('auth_sessions')).toMatchObject([{ revoked_at: expect.anything() }])
    },
  )

  test.each(Object.keys(held))(
    '%s: an activation and a login by password, a session that goes on, a link of a provider',
    async (delivery) => {
      const page = await open()
      await page.goto(`${inChromium.demo.url}/?delivery=${delivery}`)
      await inChromium.context.request.post(`${inChromium.demo.url}/accounts/auth/signup`, { data: ada })
      await page.goto((await newestLink(inChromium.demo, 'activate')).url)
      await pressWhenLoaded(page, page.getByRole('button', { name: 'Activate and sign in' }))
      await heading(page, ada.email)

      inChromium.demo.clock.advance(61) // past the access token
      await page.reload()
      await heading(page, ada.email)
      expect(await page.locator('#hello-status').textContent()).toBe('200 OK')

      await page.getByRole('button', { name: 'Sign out' }).click()
      await heading(page, 'Sign in')
      await page.getByRole('textbox', { name: 'Email' }).fill(ada.email)
      await page.getByRole('textbox', { name: 'Password' }).fill(ada.password)
      await pressWhenLoaded(page, page.getByRole('button', { name: 'Sign in', exact: true }))
      await heading(page, ada.email)

      await page.getByRole('button', { name: 'Link Acme ID' }).click()
      await page.getByRole('button', { name: 'Maya Okafor' }).click()
      await page.getByRole('button', { name: 'Share and continue' }).click()
      await page.locator('#identity-list').getByText('Acme ID').waitFor()
      expect(page.url()).toBe(`${inChromium.demo.url}/`)

      // The other delivery knows nobody here.
      await page.getByRole('link', { name: delivery === 'session' ? 'cookie' : 'session', exact: true }).click()
      await heading(page, 'Sign in')
      expect(inChromium.demo.rows('auth_sessions').filter(({ revoked_at }) => revoked_at === null)).toEqual([])
    },
  )

  test.each([
    ['https://evil.example/', '/'],
    ['//evil.example/', '/'],
    ['/.//evil.example/', '//evil.example/'],
  ])('%s: a sign-in never leads to another site', async (elsewhere, path) => {
    const page = await open()
    await page.goto(`${inChromium.demo.url}/?${new URLSearchParams({ delivery: 'bearer', return_to: elsewhere })}`)
    await signedInByProvider(page)
    await page.waitForURL(inChromium.demo.url + path)
    if (path === '/') await heading(page, 'Maya Okafor')
  })
})
