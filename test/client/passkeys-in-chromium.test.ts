import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { member } from '../server-session/devices'
import { plugIn } from '../support/virtual-authenticator'
import { logIn, type Shop, shops, stateOf } from './tabs'

const plain = (delivery: string) => (delivery === 'session' ? { refreshReuseGraceSeconds: 0 } : {})

describe.skipIf(!hasChromium)(`passkeys of the client in Chromium (${chromiumPath})`, () => {
  const { open } = shops()

  test.each(['cookie', 'both', 'bearer'] as const)(
    'delivery %s: registers a passkey, signs in with it, confirms the session with it; the part for passkeys comes at the first call',
    async (delivery) => {
      const shop = await open({ tokenDelivery: delivery, passkeysEnabled: true, webauthnRpName: 'Shop' })
      const person = await member(shop.host)
      const context = await shop.context()
      await context.addInitScript(() => Reflect.deleteProperty(PublicKeyCredential, 'signalCurrentUserDetails'))
      const page = await shop.tab(context, delivery && { delivery })
      const loaded: string[] = []
      page.on('request', (request) => loaded.push(new URL(request.url()).pathname))
      await plugIn(page)
      await logIn(page, { email: person.email, password })
      expect(loaded).not.toContain('/passkeys.js') // this browser cannot tell authenticators anything
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
  /** A browser whose signal methods write down what they are told. */
  async function listening(shop: Shop, delivery: 'cookie' | 'both' | 'session' | 'bearer' | undefined) {
    const context = await shop.context()
    await context.addInitScript(() => {
      const told: [string, unknown][] = []
      const methods = ['signalAllAcceptedCredentials', 'signalCurrentUserDetails', 'signalUnknownCredential'].map((name) => [
        name,
        async (details: unknown) => void told.push([name, details]),
      ])
      Object.assign(PublicKeyCredential, Object.fromEntries(methods))
      Object.assign(window, { told })
    })
    const page = await shop.tab(context, delivery && { delivery })
    return { page, told: () => page.evaluate(() => (window as unknown as { told: [string, unknown][] }).told.splice(0)) }
  }

  test.each(['cookie', 'both', 'session', 'bearer'] as const)(
    'delivery %s: after a login and after each change of passkeys or of the name the client tells the authenticators, with one request',
    async (delivery) => {
      const shop = await open({ tokenDelivery: delivery, passkeysEnabled: true, webauthnRpName: 'Shop', ...plain(delivery) })
      const person = await member(shop.host)
      const { page, told } = await listening(shop, delivery)
      await plugIn(page)
      shop.routes()
      const asked = () => shop.routes().filter((route) => route.endsWith('/passkeys/signal'))
      const both = (ids: unknown, displayName: string) => [
        ['signalAllAcceptedCredentials', { rpId: 'localhost', userId: expect.any(String), allAcceptedCredentialIds: ids }],
        ['signalCurrentUserDetails', { rpId: 'localhost', userId: expect.any(String), name: person.email, displayName }],
      ]
      const expectTold = async (ids: unknown, displayName = 'There Before') => {
        const all: unknown[] = []
        await expect.poll(async () => all.push(...(await told()))).toBe(2)
        expect([all, asked()]).toEqual([both(ids, displayName), ['GET /auth/passkeys/signal']])
      }
      await logIn(page, { email: person.email, password })
      await expectTold([])
      const { id } = await page.evaluate(() => window.auth.passkeys.register({ name: 'Laptop' }))
      await expectTold([expect.any(String)])
      await page.evaluate(() => window.auth.account.update({ name: 'Ada' }))
      await expectTold([expect.any(String)], 'Ada')
      await page.evaluate((passkey) => window.auth.passkeys.rename(passkey, { name: 'Desk' }), id)
      await page.evaluate((given) => window.auth.reauthenticate({ password: given }), password)
      await page.evaluate((passkey) => window.auth.passkeys.remove(passkey), id)
      await expectTold([], 'Ada')
      await page.evaluate(() => window.auth.logOut())
      expect([await told(), asked()]).toEqual([[], []])
    },
  )

  test.each([
    ['that it asked for its delivery is not asked', undefined, []],
    ['whose delivery the host named is asked once', 'cookie', ['GET /auth/passkeys/signal']],
  ] as const)('a router without passkeys %s, and a login, its errors and the state do not depend on it', async (_what, delivery, asked) => {
    const shop = await open({ tokenDelivery: 'cookie' })
    const person = await member(shop.host)
    const { page, told } = await listening(shop, delivery)
    const errors: string[] = []
    page.on('pageerror', ({ message }) => errors.push(message))
    for (const _round of [1, 2]) {
      await logIn(page, { email: person.email, password })
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 300)))
      await page.evaluate(() => window.auth.logOut())
    }
    expect(shop.routes().filter((route) => route.endsWith('/signal'))).toEqual(asked)
    expect([await told(), errors]).toEqual([[], []])
  })

  test('the list is not told if the router does not know every id', async () => {
    const shop = await open({ tokenDelivery: 'cookie', passkeysEnabled: true, webauthnRpName: 'Shop' })
    const person = await member(shop.host)
    const { page, told } = await listening(shop, 'cookie')
    const answer = { rp_id: 'localhost', user_id: 'AA', all_accepted_credential_ids: null, name: 'ada', display_name: 'Ada' }
    await page.route('**/passkeys/signal', (route) => route.fulfill({ json: answer }))
    await logIn(page, { email: person.email, password })
    const all: unknown[] = []
    await expect.poll(async () => all.push(...(await told()))).toBe(1)
    expect(all).toEqual([['signalCurrentUserDetails', { rpId: 'localhost', userId: 'AA', name: 'ada', displayName: 'Ada' }]])
  })
})
