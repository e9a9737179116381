import type { BrowserContext, Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { authenticator } from '../mfa/authenticator'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { newestLink, subjectsIn } from './newest-link'

const ada = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada Lovelace' }
const phone = { width: 390, height: 844 }

describe.skipIf(!hasChromium)('the second factor in the demo, in Chromium', () => {
  const inChromium = demoInChromium()
  const { open, signOut } = inChromium

  const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
  const press = (page: Page, name: string) => pressWhenLoaded(page, page.getByRole('button', { name, exact: true }))
  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  const hello = async (page: Page) => JSON.parse((await page.locator('#hello-body').textContent()) ?? '')
  const overflow = (page: Page) => page.evaluate('document.documentElement.scrollWidth - innerWidth')
  const auth = () => `${inChromium.demo.url}/accounts/auth`

  /** Ada's account, active; and whoever asked is signed in. Seconds later, since one of that very second enrols nobody. */
  async function createAccount({ request }: BrowserContext) {
    await request.post(`${auth()}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    expect((await request.post(`${auth()}/activate`, { data: { token } })).status()).toBe(200)
    inChromium.demo.clock.advance(2)
  }

  async function logIn(page: Page) {
    await field(page, 'Email').fill(ada.email)
    await field(page, 'Password').fill(ada.password)
    await press(page, 'Sign in')
  }

  async function enterCode(page: Page, code: string, label = 'Code', button = 'Sign in') {
    await field(page, label).fill(code)
    await press(page, button)
  }

  /** What an authenticator app makes of the key that a person types. */
  async function appOf(page: Page) {
    await page.locator('#qr svg').waitFor()
    return authenticator(((await page.locator('#secret').textContent()) ?? '').replaceAll(' ', ''), inChromium.demo.clock)
  }

  /** A session that a factor of this very day opened is not fresh: the app asks who it is, and goes on by itself. */
  async function confirmBy(page: Page, password: string) {
    const question = page.getByRole('dialog', { name: 'Confirm it is you' })
    await question.getByRole('textbox', { name: 'Password', exact: true }).fill(password)
    await question.getByRole('button', { name: 'Confirm', exact: true }).click()
    await question.waitFor({ state: 'hidden' })
  }

  test('on a phone: set up in three steps, asked for at sign-in, a recovery code once, new codes, and off again', async () => {
    const context = await inChromium.anotherBrowser({ viewport: phone })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await createAccount(context)
    const page = await open(context)
    const otherTab = await open(context)
    await page.bringToFront()

    await press(page, 'Set it up')
    await heading(page, 'Scan this with your authenticator app')
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Scan this with your authenticator app')
    expect(await page.getByRole('img', { name: 'QR code' }).boundingBox()).toMatchObject({ width: expect.closeTo(214, -1) })
    const app = await appOf(page)
    expect(await page.getByRole('link', { name: 'Is the app on this device?' }).getAttribute('href')).toMatch(/^otpauth:\/\/totp\/Doorward/)
    expect(await overflow(page)).toBe(0)

    await press(page, 'Next')
    await heading(page, 'Keep your recovery codes')
    const recoveryCodes = await page.locator('#recovery-codes li').allTextContents()
    expect(recoveryCodes).toHaveLength(10)
    expect(await overflow(page)).toBe(0)
    await press(page, 'Copy')
    await page.getByText('Copied.').waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(recoveryCodes.join('\n'))
    await press(page, 'I have written them down')

    await enterCode(page, app.code(-9), 'Code', 'Turn it on')
    await page.getByText('This code is not right').waitFor()
    expect(await page.evaluate('document.activeElement.id')).toBe('confirm-code')
    const used = app.code()
    await page.keyboard.type(used)
    await page.keyboard.press('Enter')
    await page.getByText('Your account is protected.').waitFor()
    await page.getByText('It is on.').waitFor()
    await expect.poll(async () => (await hello(page)).amr).toEqual(['email', 'otp'])
    expect(await page.locator('#protection').innerHTML()).not.toContain(recoveryCodes[0])
    expect(await page.locator('#secret').textContent()).toBe('')
    await press(otherTab, 'Set it up')
    await otherTab.getByText('It is on.').waitFor()
    expect(await otherTab.getByRole('alert').textContent()).toBe('This was changed in another window meanwhile.')
    await otherTab.close()

    await signOut(page)
    await logIn(page)
    await heading(page, 'One more step')
    expect(await page.evaluate('document.activeElement.id')).toBe('challenge-code')
    expect(await overflow(page)).toBe(0)
    await enterCode(page, used)
    await page.getByText('This code is not right, or it was used already.').waitFor()
    await enterCode(page, app.nextCode())
    await heading(page, ada.name)
    expect((await hello(page)).amr).toEqual(['pwd', 'otp'])

    await signOut(page)
    await logIn(page)
    const [recoveryCode = '', another = ''] = recoveryCodes
    await enterCode(page, recoveryCode.toLowerCase())
    await heading(page, ada.name)
    await signOut(page)
    await logIn(page)
    await enterCode(page, recoveryCode)
    await page.getByText('This code is not right').waitFor()
    inChromium.demo.clock.advance(301)
    await enterCode(page, another)
    await heading(page, 'Sign in')
    expect(await page.getByRole('alert').textContent()).toBe('That took too long. Please sign in again.')
    await logIn(page)
    await enterCode(page, app.nextCode())
    await heading(page, ada.name)

    await page.getByText('New recovery codes').click()
    await enterCode(page, app.nextCode(), 'Code', 'Show new codes')
    await confirmBy(page, ada.password)
    await heading(page, 'Keep your recovery codes')
    const [newCode = ''] = await page.locator('#recovery-codes li').allTextContents()
    expect(recoveryCodes).not.toContain(newCode)
    await press(page, 'I have written them down')
    await page.getByText('Only the new recovery codes work').waitFor()

    await page.getByText('Turn it off').click()
    expect(await overflow(page)).toBe(0)
    await page.locator('#disable-password').fill(ada.password)
    await enterCode(page, another, 'Code', 'Turn the protection off')
    await page.getByText('This code is not right').waitFor()
    await enterCode(page, newCode, 'Code', 'Turn the protection off')
    await page.getByText('The protection is off.').waitFor()
    await page.getByRole('button', { name: 'Set it up' }).waitFor()
    await signOut(page)
    await logIn(page)
    await heading(page, ada.name)
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')

    const mailsAbout = async (subject: string) => (await subjectsIn(inChromium.demo)).filter((known) => known === subject).length
    for (const subject of ['Two-step verification is on', 'Two-step verification is off', 'You have new recovery codes'])
      await expect.poll(() => mailsAbout(subject), { timeout: 5_000 }).toBe(1)
    await expect.poll(() => mailsAbout('A recovery code was used'), { timeout: 5_000 }).toBe(1)
  }, 60_000)

  test('in Portuguese: asked for by the library after a provider, by this page after a mailed link, and off without a password', async () => {
    const page = await open()
    await page.getByRole('link', { name: 'Português' }).click()
    const acme = () => page.getByRole('link', { name: 'Continuar com Acme ID' }).click()
    await acme()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await page.getByRole('button', { name: 'Share and continue' }).click()
    await heading(page, 'Maya Okafor')
    await press(page, 'Configurar')
    const app = await appOf(page)
    await press(page, 'Avançar')
    const [recoveryCode = '', another = ''] = await page.locator('#recovery-codes li').allTextContents()
    await press(page, 'Já anotei os códigos')
    const used = app.code()
    await enterCode(page, used, 'Código', 'Ativar')
    await page.getByText('Sua conta está protegida.').waitFor()

    await press(page, 'Sair')
    await acme()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await heading(page, 'Falta um passo')
    expect(new URL(page.url()).pathname).toBe('/accounts/auth/oauth/acme/callback')
    await enterCode(page, used, 'Código', 'Entrar')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('Este código não confere')
    // The clock stays: Acme ID goes by the real one, and its new sign-in must not seem older than the question.
    await enterCode(page, recoveryCode, 'Código', 'Entrar')
    await heading(page, 'Maya Okafor')
    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    expect((await hello(page)).amr).toEqual(['ext', 'otp'])

    await page.getByText('Desativar', { exact: true }).click()
    expect(await page.locator('#disable-password').isVisible()).toBe(false)
    await enterCode(page, another, 'Código', 'Desativar a proteção')
    const question = page.getByRole('dialog', { name: 'Confirme que é você' })
    await question.getByRole('button', { name: 'Confirmar com Acme ID' }).click()
    await page.getByRole('button', { name: 'Maya Okafor' }).click()
    await page.getByText('você confirmou que é você').waitFor()
    await page.getByText('Desativar', { exact: true }).click()
    await enterCode(page, another, 'Código', 'Desativar a proteção')
    await page.getByText('A proteção foi desativada.').waitFor()
    await press(page, 'Configurar')
    const newApp = await appOf(page)
    await press(page, 'Avançar')
    await press(page, 'Já anotei os códigos')
    await enterCode(page, newApp.nextCode(), 'Código', 'Ativar')
    await page.getByText('Sua conta está protegida.').waitFor()

    // Still signed in here: a mailed link alone ends that session, and does not begin another.
    await inChromium.context.request.post(`${auth()}/password-reset/request`, { data: { email: 'maya@example.com' } })
    await page.goto((await newestLink(inChromium.demo, 'reset')).url)
    await field(page, 'Nova senha').fill(ada.password)
    await press(page, 'Salvar e entrar')
    await heading(page, 'Falta um passo')
    expect(await page.getByRole('status').first().textContent()).toContain('Agora, o código.')
    expect((await hello(page)).code).toBe('UNAUTHORIZED')
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
    for (let attempt = 0; attempt < 5; attempt++) {
      await enterCode(page, newApp.code(-9), 'Código', 'Entrar')
      await page.locator('#challenge-code[aria-invalid]').waitFor()
    }
    await enterCode(page, newApp.nextCode(), 'Código', 'Entrar')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toMatch(/Aguarde (8\d\d|900) segundos/)
  }, 60_000)
})
