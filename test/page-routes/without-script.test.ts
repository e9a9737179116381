import jsQR from 'jsqr'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { AuthMail } from '../../src'
import { hasChromium } from '../demo/chromium'
import { newAddress, otherPassword, password } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import { pagesInChromium } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
const laptop = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** The links in the mails are those of the pages. */
const ownLinks = {
  activationUrlTemplate: null,
  passwordResetUrlTemplate: null,
  emailVerificationUrlTemplate: null,
  emailChangeUrlTemplate: null,
}

describe.skipIf(!hasChromium)('the pages in Chromium without script', { timeout: 120_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  test('a person signs up, turns the factor on, comes back by a recovery code and by another password, ends a device, links and unlinks a provider', async () => {
    const served = await serve({ settings: { ...mfaSettings, ...ownLinks } })
    const { host } = served
    const email = newAddress()
    const page = await browse(served, { javaScriptEnabled: false })
    const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
    const follow = (name: string) => page.getByRole('link', { name, exact: true }).click()
    const heading = (name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
    const openMail = async (kind: AuthMail['kind']) => page.goto(String((await host.mails.next({ kind, to: email })).url))
    const signIn = async (secret: string) => {
      await page.getByLabel('Email address').fill(email)
      await page.getByLabel('Password').fill(secret)
      await press('Sign in')
    }
    const signOut = async () => {
      await press('Sign out')
      await heading('You are signed out')
      await follow('Sign in again')
    }

    await page.goto('/auth/login')
    await follow('Create an account')
    await page.getByLabel('Name').fill('Ada')
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel('Password').fill(password)
    await press('Create the account')
    await page.getByText(email).waitFor()
    await openMail('activation')
    await press('Activate account')
    await heading('Your account')
    await signOut()
    await signIn(password)
    await heading('Your account')

    await follow('Security')
    await follow('Turn on two-step verification')
    await press('Show the QR code')
    const scanned = await scan(page, await browse(served))
    expect(scanned).toMatch(/^otpauth:\/\/totp\//)
    const app = authenticator(new URL(scanned).searchParams.get('secret') ?? '', host.clock)
    await page.getByLabel('Code that the app shows').fill(app.code())
    await press('Turn it on')
    await heading('Recovery codes')
    const codes = await page.locator('.codes li').allTextContents()
    expect(codes).toHaveLength(10)
    await follow('I have saved them')
    await page.getByText('On', { exact: true }).waitFor()
    host.clock.advance(172_800) // a factor of the same day proves little yet

    await signOut()
    await signIn(password)
    await heading('One more step')
    await page.getByLabel('Code').fill(codes[0] ?? '')
    await press('Sign in')
    await heading('Your account')

    await signOut()
    await follow('Forgot your password?')
    await page.getByLabel('Email address').fill(email)
    await press('Send the link')
    await page.getByText(email).waitFor()
    await openMail('password_reset')
    await page.getByLabel('New password').fill(otherPassword)
    await page.getByLabel('Repeat the password').fill(otherPassword)
    await press('Save password')
    await heading('One more step')
    await page.getByLabel('Code').fill(app.nextCode())
    await press('Sign in')
    await page.getByText('Your password was changed.').waitFor()
    expect((await host.browser().post('/auth/login').send({ email, password })).status).toBe(401)

    const other = host.browser()
    const { body } = await other.post('/auth/login').set('User-Agent', laptop).send({ email, password: otherPassword })
    await other.post('/auth/mfa/verify').set('User-Agent', laptop).send({ mfa_token: body.mfa_token, code: codes[1] })
    expect((await other.get('/auth/account')).status).toBe(200)
    await follow('Devices')
    await press('Sign out of Firefox on Linux')
    await page.getByText('That device was signed out.').waitFor()
    expect((await other.get('/auth/account')).status).toBe(302)

    host.provider.profile = { ...host.provider.profile, email, email_verified: true }
    const linked = () => host.knex('auth_identities').where({ email })
    await follow('Connections')
    await press('Connect Corp')
    await page.getByRole('link', { name: 'Disconnect Corp', exact: true }).waitFor()
    expect(await linked()).toHaveLength(1)
    await follow('Disconnect Corp')
    await press('Disconnect Corp')
    await page.getByText('The provider was disconnected.').waitFor()
    expect(await linked()).toEqual([])
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
