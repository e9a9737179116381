import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { passkeySettings } from '../passkeys/people'
import { databases } from '../support/databases'
import { type Device, plugIn } from '../support/virtual-authenticator'
import { type PagesHost, pagesInChromium, sendInPage } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')
const dayMs = 86_400_000

async function logIn(page: Page, { email }: { email: string }): Promise<void> {
  await page.goto('/auth/login')
  await sendInPage(page, { email, password })
}

async function addPasskey(page: Page, name: string): Promise<void> {
  await page.goto('/auth/account/security/passkeys/add')
  await page.getByLabel('Name of the passkey').fill(name)
  await page.getByRole('button', { name: 'Add the passkey' }).click()
  await page.getByText('The passkey was added.').waitFor()
}

/** By the button: the field of the address offers the passkey too, and this device would take the first offer. */
async function signInByButton(page: Page, device: Device, path: string): Promise<void> {
  await device.present(false)
  await page.goto(path)
  await page.waitForFunction('document.readyState === "complete"')
  await device.present(true)
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
}

/** As if every passkey had been made the day before yesterday. */
async function age({ host }: PagesHost): Promise<void> {
  const rows = await host.knex('auth_passkeys')
  for (const { id, created_at } of rows)
    await host
      .knex('auth_passkeys')
      .where({ id })
      .update({ created_at: created_at - 2 * dayMs })
}

describe.skipIf(!hasChromium)('passkeys on the pages, in Chromium', { timeout: 60_000 }, () => {
  const { serve: serveAt, browse } = pagesInChromium(database)
  // An address of numbers has no passkeys.
  const serve = (settings: object = {}) => serveAt({ settings: { ...passkeySettings, ...settings } }, 'localhost')

  test('a person adds one, signs in by the button and goes to return_to, renames it and removes it', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    const device = await plugIn(page)
    await logIn(page, { email })
    await addPasskey(page, 'Laptop')
    await page.getByText('Not used yet').waitFor()
    await age(served) // a new one signs in, and opens no session that may change it

    await page.context().clearCookies()
    await signInByButton(page, device, '/auth/login?return_to=%2Fauth%2Faccount%2Fprofile')
    await page.waitForURL('**/auth/account/profile')

    await page.goto('/auth/account/security')
    await page.getByRole('link', { name: 'Rename Laptop' }).click()
    await page.getByLabel('Name of the passkey').fill('Old laptop')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The passkey was renamed.').waitFor()
    await page.getByRole('link', { name: 'Remove Old laptop' }).click()
    await page.getByRole('heading', { name: 'Remove Old laptop?' }).waitFor()
    await page.getByRole('button', { name: 'Remove Old laptop' }).click()
    await page.getByText('The passkey was removed.').waitFor()
    expect(await served.host.knex('auth_passkeys')).toEqual([])
  })

  test('autofill: the sign-in page offers the passkey by itself, and a person who takes the offer is in', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    await plugIn(page) // takes every offer
    await logIn(page, { email })
    await addPasskey(page, 'Laptop')
    await page.context().clearCookies()
    await page.goto('/auth/login')
    await page.waitForURL('**/auth/account')
  })

  test('takes the second step, and confirms a session that is not fresh any more', async () => {
    const served = await serve(mfaSettings)
    const { host } = served
    const person = await enrolled(host)
    const page = await browse(served)
    const device = await plugIn(page)
    await logIn(page, person)
    await sendInPage(page, { code: person.app.nextCode() })
    await addPasskey(page, 'Phone')
    await age(served)

    await page.context().clearCookies()
    await device.present(false)
    await logIn(page, person)
    await device.present(true)
    await page.getByRole('heading', { name: 'One more step' }).waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL('**/auth/account')

    host.clock.advance(3_600)
    await page.goto('/auth/account/security')
    await page.getByRole('button', { name: 'Confirm with a passkey' }).click()
    await page.waitForURL('**/auth/account/security')
    await page.getByText('Phone', { exact: true }).waitFor()
  })

  test('one that was removed here signs nobody in: the page says so, and keeps return_to', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    const device = await plugIn(page)
    await logIn(page, { email })
    await addPasskey(page, 'Laptop')
    await served.host.knex('auth_passkeys').delete()
    await page.context().clearCookies()
    await page.route('**/auth/passkeys/login', async (route) => {
      await device.present(false)
      await route.continue()
    })
    await signInByButton(page, device, '/auth/login?return_to=%2Forders')
    await page.getByText('This passkey did not work, or it took too long.').waitFor()
    expect(await page.locator('form[data-passkey] [name="return_to"]').getAttribute('value')).toBe('/orders')
  })

  test('one whose owner was not verified is not made, and signs nobody in', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    await plugIn(page, { isUserVerified: false })
    await logIn(page, { email })
    await page.goto('/auth/account/security/passkeys/add')
    await page.getByRole('button', { name: 'Add the passkey' }).click()
    await page.waitForFunction('document.activeElement.textContent === "Add the passkey"')
    expect(await served.host.knex('auth_passkeys')).toEqual([])
  })

  test('an authenticator that is registered already makes no second one, and the page says that none was made', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served)
    await plugIn(page)
    await logIn(page, { email })
    await addPasskey(page, 'Laptop')
    await page.goto('/auth/account/security/passkeys/add')
    await page.getByRole('button', { name: 'Add the passkey' }).click()
    await page.getByText('No passkey was created. Please try again.').waitFor()
    expect(await served.host.knex('auth_passkeys')).toHaveLength(1)
  })

  test('without script nothing of passkeys can be pressed, and everything else works', async () => {
    const served = await serve()
    const { email } = await signedIn(served.host)
    const page = await browse(served, { javaScriptEnabled: false })
    await page.goto('/auth/login')
    expect(await page.getByRole('button', { name: 'Sign in with a passkey' }).isVisible()).toBe(false)
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.goto('/auth/account/security/passkeys/add')
    await page.getByRole('heading', { name: 'Add a passkey' }).waitFor()
    expect(await page.getByRole('button', { name: 'Add the passkey' }).isVisible()).toBe(false)
  })

  test('the pages tell the browser which passkeys are left, and the present name', async () => {
    const served = await serve()
    const { email, userId: user_id } = await signedIn(served.host)
    const page = await browse(served)
    await page.addInitScript(`
      const tell = (kind) => async (told) => {
        const all = JSON.parse(localStorage.getItem('told') ?? '[]')
        localStorage.setItem('told', JSON.stringify([...all, { kind, ...told }]))
      }
      PublicKeyCredential.signalAllAcceptedCredentials = tell('accepted')
      PublicKeyCredential.signalCurrentUserDetails = tell('details')
      PublicKeyCredential.signalUnknownCredential = tell('unknown')`)
    const told = async () => {
      await page.waitForFunction("localStorage.getItem('told')?.includes('details')")
      const all = JSON.parse(await page.evaluate("localStorage.getItem('told')")) as Record<string, unknown>[]
      await page.evaluate('localStorage.clear()')
      return all
    }
    await plugIn(page)
    await logIn(page, { email })
    const [{ userId = '' } = {}] = await told()
    const who = { rpId: 'localhost', userId }
    await addPasskey(page, 'Laptop')
    const [{ credential_id }] = await served.host.knex('auth_passkeys').where({ user_id })
    expect(await told()).toEqual([
      { kind: 'accepted', ...who, allAcceptedCredentialIds: [credential_id] },
      { kind: 'details', ...who, name: email, displayName: expect.any(String) },
    ])
    await page.goto('/auth/account/security')
    await page.waitForFunction('document.readyState === "complete"')
    expect(await page.evaluate("localStorage.getItem('told')")).toBeNull() // nothing has changed

    await page.goto('/auth/account/profile')
    await sendInPage(page, { name: 'Ada of today' })
    expect(await told()).toContainEqual({ kind: 'details', ...who, name: email, displayName: 'Ada of today' })
  })
})
