import { describe, expect, test } from 'vitest'
import { hasChromium } from '../demo/chromium'
import { newAddress, password, signedIn } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import { focused, pressEnter, reach, type } from './by-keyboard'
import { pagesInChromium, sendInPage } from './pages-in-chromium'

const [database] = await databases()
if (!database) throw new Error('no database')

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

  test('a person signs up, and shows a recovery code as the second step', async () => {
    const served = await serve({ settings: mfaSettings })
    const { host } = served
    const page = await browse(served)
    await page.goto('/auth/login')
    await reach(page, 'Create an account')
    await pressEnter(page)
    const email = newAddress()
    expect((await focused(page)).id).toBe('email')
    await page.keyboard.press('Shift+Tab')
    expect((await focused(page)).text).toBe('Name (optional)')
    await page.keyboard.type('Ada')
    await type(page, 'Email address', email)
    await type(page, 'Password', password)
    await reach(page, 'Show')
    await page.keyboard.press('Space')
    expect(await page.getByLabel('Password', { exact: true }).getAttribute('type')).toBe('text')
    await reach(page, 'Create the account')
    await pressEnter(page)
    await page.getByText(email).waitFor()
    expect((await host.knex('auth_users').where({ email }))[0].name).toBe('Ada')

    const { email: owner, recoveryCodes } = await enrolled(host)
    await page.goto('/auth/login')
    await type(page, 'Email address', owner)
    await type(page, 'Password', password)
    await reach(page, 'Keep me signed in on this device')
    await page.keyboard.press('Space')
    await pressEnter(page)
    await page.waitForURL('**/auth/mfa')
    expect((await focused(page)).id).toBe('code')
    await page.keyboard.type(recoveryCodes[0] ?? '')
    await pressEnter(page)
    await page.waitForURL('**/auth/account')
  })

  test('a person goes through the menu of the account, ends a device and is told so, and turns the factor off after a page that asks', async () => {
    const served = await serve({ settings: mfaSettings })
    const { host } = served
    const { email, app, userId } = await enrolled(host)
    const page = await browse(served)
    await page.request.post('/auth/login', { form: { email, password }, headers: { Origin: served.url } })
    await page.request.post('/auth/mfa', { form: { code: app.nextCode() }, headers: { Origin: served.url } })
    await page.goto('/auth/account')
    for (const name of ['Profile', 'Email', 'Password', 'Security', 'Connections', 'Devices']) {
      await reach(page, name)
      await pressEnter(page)
      expect(await page.locator('nav [aria-current="page"]').textContent()).toBe(name)
    }
    const alive = () => host.knex('auth_sessions').where({ user_id: userId, revoked_at: null })
    const before = (await alive()).length
    expect(before).toBeGreaterThan(1)
    await reach(page, 'Sign out of Unknown device')
    await pressEnter(page)
    await page.getByText('That device was signed out.').waitFor()
    expect(await alive()).toHaveLength(before - 1)

    await reach(page, 'Security')
    await pressEnter(page)
    await reach(page, 'Turn it off')
    await pressEnter(page)
    await page.waitForURL('**/turn-off')
    await page.keyboard.type(password)
    await type(page, 'Code from your app, or a recovery code', app.nextCode())
    await pressEnter(page)
    await page.waitForURL('**/auth/account/security')
    expect((await host.knex('auth_users').where({ email }))[0].totp_enabled_at).toBeNull()
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
    expect((await focused(page)).text).toBe('The email address or the password is not correct.')
  })
})
