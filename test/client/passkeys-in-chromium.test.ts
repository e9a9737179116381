import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { member } from '../server-session/devices'
import { logIn, shops, stateOf } from './tabs'

async function withAuthenticator(page: Page): Promise<void> {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const options = {
    protocol: 'ctap2',
    transport: 'internal',
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
  } as const
  await cdp.send('WebAuthn.addVirtualAuthenticator', { options: { ...options, automaticPresenceSimulation: true } })
}

describe.skipIf(!hasChromium)(`passkeys of the client in Chromium (${chromiumPath})`, () => {
  const { open } = shops()

  test.each(['cookie', 'both', 'bearer'] as const)(
    'delivery %s: registers a passkey, signs in with it, confirms the session with it; the part for passkeys comes at the first call',
    async (delivery) => {
      const shop = await open({ tokenDelivery: delivery, passkeysEnabled: true, webauthnRpName: 'Shop' })
      const person = await member(shop.host)
      const page = await shop.tab(await shop.context(), { delivery })
      const loaded: string[] = []
      page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
      await withAuthenticator(page)
      await logIn(page, { email: person.email, password })
      expect(loaded).not.toContain('/passkeys.js')
      expect(await page.evaluate(() => window.auth.passkeys.register({ name: 'Laptop' }))).toMatchObject({ name: 'Laptop' })
      expect(loaded).toContain('/passkeys.js')
      await page.evaluate(() => window.auth.logOut())
      expect(await stateOf(page)).toBe('signed-out')
      expect(await page.evaluate(() => window.auth.passkeys.logIn())).toMatchObject({ kind: 'session', user: { email: person.email } })
      expect((await page.evaluate(() => window.auth.passkeys.list())).map(({ name }) => name)).toEqual(['Laptop'])
      // A young passkey confirms nothing.
      await shop.host.knex('auth_passkeys').update({ created_at: Date.now() - 90 * 86_400_000 })
      expect(await page.evaluate(() => window.auth.reauthenticate({ passkey: true }))).toMatchObject({ kind: 'session' })
      expect(await page.evaluate(() => window.auth.fetch('/api/orders').then(({ status }) => status))).toBe(200)
    },
  )

  test('a person who closes the dialog gets the error of the browser, and nothing is sent', async () => {
    const shop = await open({ tokenDelivery: 'cookie', passkeysEnabled: true, webauthnRpName: 'Shop' })
    const page = await shop.tab(await shop.context(), { delivery: 'cookie' })
    await page.evaluate(() => {
      navigator.credentials.get = () => Promise.reject(new DOMException('closed', 'NotAllowedError'))
    })
    const failed = await page.evaluate(() => window.auth.passkeys.logIn().catch((error: Error) => error.name))
    expect(failed).toBe('NotAllowedError')
    expect(shop.routes().filter((route) => route === 'POST /auth/passkeys/login')).toEqual([])
  })
})
