import jsQR from 'jsqr'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { password, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { addIdentity } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { pagesInChromium } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
const laptop = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

describe.skipIf(!hasChromium)('the pages in Chromium without script', { timeout: 60_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test('a person signs in, turns the factor on by its QR code, comes back by a recovery code, ends a device and a connection', async () => {
    const served = await serve({ settings: mfaSettings })
    const { host } = served
    const { email, userId } = await signedIn(host, { name: 'Ada' })
    await addIdentity(host.knex, userId, { createdAt: new Date(host.clock.now().getTime() - 172_800_000) })
    const page = await browse(served, { javaScriptEnabled: false })
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const follow = (name: string) => page.getByRole('link', { name, exact: true }).click()
    const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
    const signIn = async () => {
      await page.getByLabel('Email address').fill(email)
      await page.getByLabel('Password').fill(password)
      await press('Sign in')
    }

    await page.goto('/auth/account')
    await signIn()
    await heading('Your account')

    await follow('Security')
    await follow('Turn on the authenticator app')
    await press('Show the QR code')
    const scanned = await scan(page, await browse(served))
    const secret = new URL(scanned).searchParams.get('secret') ?? ''
    expect(scanned).toMatch(/^otpauth:\/\/totp\//)
    await page.getByLabel('Code that the app shows').fill(authenticator(secret, host.clock).code())
    await press('Turn it on')
    await heading('Recovery codes')
    const codes = await page.locator('.codes li').allTextContents()
    expect(codes).toHaveLength(10)
    await follow('I have kept them')
    await page.getByText('On', { exact: true }).waitFor()

    await press('Sign out')
    await heading('You are signed out')
    host.clock.advance(172_800) // a factor of the same day proves little yet
    await follow('Sign in again')
    await signIn()
    await heading('One more step')
    await page.getByLabel('Code').fill(codes[0] ?? '')
    await press('Sign in')
    await heading('Your account')

    const other = host.browser()
    const { body } = await other.post('/auth/login').set('User-Agent', laptop).send({ email, password })
    await other.post('/auth/mfa/verify').set('User-Agent', laptop).send({ mfa_token: body.mfa_token, code: codes[1] })
    expect((await other.get('/auth/account')).status).toBe(200)
    await follow('Devices')
    await press('Sign out of Firefox on Linux')
    await page.getByText('That device was signed out.').waitFor()
    expect((await other.get('/auth/account')).status).toBe(302)

    await follow('Connections')
    await follow('Disconnect Corp')
    await press('Disconnect Corp')
    await page.getByText('The account was disconnected.').waitFor()
    expect(await host.knex('auth_identities').where({ user_id: userId })).toEqual([])
  })
})

/** The QR code as it stands on the screen, seen by a phone. */
async function scan(page: Page, phone: Page): Promise<string> {
  const picture = await page.locator('img.qr').screenshot()
  const seen = await phone.evaluate(`(async () => {
    const image = new Image()
    image.src = 'data:image/png;base64,${picture.toString('base64')}'
    await image.decode()
    const { width, height } = image
    const canvas = new OffscreenCanvas(width, height).getContext('2d')
    canvas.drawImage(image, 0, 0)
    return { width, height, data: [...canvas.getImageData(0, 0, width, height).data] }
  })()`)
  const { width, height, data } = seen as { width: number; height: number; data: number[] }
  return jsQR(new Uint8ClampedArray(data), width, height)?.data ?? ''
}
