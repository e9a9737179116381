import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hasChromium } from './chromium'
import { demoInChromium, pressWhenLoaded } from './demo-in-chromium'
import { type DemoRun, runDemo } from './demo-run'
import { mailArrives, newestLink } from './newest-link'
import { Visitor } from './visitor'

const ada = { email: 'ada@example.com', password: 'correct horse battery', name: 'Ada Lovelace' }
const newAddress = 'ada@new.example.com'

describe('the address in the demo, over HTTP', () => {
  let demo: DemoRun
  let auth: string

  beforeEach(async () => {
    demo = await runDemo()
    auth = `${demo.url}/accounts/auth`
  })
  afterEach(() => demo.close())

  test('GET and HEAD of every link in the outbox, as mail scanners send them, spend nothing', async () => {
    const visitor = new Visitor()
    const post = (path: string, body: object) => visitor.call('POST', `${auth}${path}`, body)
    await post('/signup', ada)
    const activation = await newestLink(demo, 'activate')
    await scan(activation.url)
    expect((await post('/activate', { token: activation.token })).status).toBe(200)

    await post('/password-reset/request', { email: ada.email })
    await post('/email-verify/request', {})
    await post('/email-change/request', { new_email: newAddress })
    const [reset, verify, change] = [await newestLink(demo, 'reset'), await newestLink(demo, 'verify'), await newestLink(demo, 'change')]
    for (const { url } of [reset, verify, change]) await scan(url)
    expect((await fetch(activation.url)).status).toBe(200)

    expect((await post('/email-verify/confirm', { token: verify.token })).status).toBe(200)
    const send = (fields: Record<string, string>) => fetch(change.url, { method: 'POST', body: new URLSearchParams(fields) })
    expect((await send({})).status).toBe(400)
    expect(demo.rows('auth_users')).toMatchObject([{ email: ada.email }])
    expect((await send({ password: ada.password })).status).toBe(200)
    expect(demo.rows('auth_users')).toMatchObject([{ email: newAddress }])
    expect((await send({ password: ada.password })).status).toBe(400)
  })

  async function scan(url: string) {
    const before = [demo.rows('auth_users'), demo.rows('auth_user_tokens')]
    for (const method of ['GET', 'HEAD', 'GET']) {
      const response = await fetch(url, { method })
      expect([response.status, response.headers.getSetCookie()]).toEqual([200, []])
    }
    expect([demo.rows('auth_users'), demo.rows('auth_user_tokens')]).toEqual(before)
  }

  test('a chosen language goes before that of the browser, in pages, messages and mails', async () => {
    const languageOf = async (headers: Record<string, string>) =>
      /<html lang="([^"]+)"/.exec(await (await fetch(`${demo.url}/signup`, { headers })).text())?.[1]
    expect(await languageOf({})).toBe('en-US')
    expect(await languageOf({ 'accept-language': 'de, en;q=0.5' })).toBe('en-US')
    expect(await languageOf({ 'accept-language': 'pt-BR, en;q=0.5' })).toBe('pt-BR')

    const chosen = await fetch(`${demo.url}/?lang=pt-BR`, { headers: { 'accept-language': 'en-US' } })
    const [cookie = ''] = chosen.headers.getSetCookie()
    expect(cookie).toContain('HttpOnly')
    const headers = { cookie: cookie.split(';')[0] ?? '', 'accept-language': 'en-US', 'content-type': 'application/json' }
    expect(await languageOf(headers)).toBe('pt-BR')
    const refused = await fetch(`${auth}/me`, { headers })
    expect(Object(await refused.json()).detail).toBe('É preciso se autenticar.')
    await fetch(`${auth}/signup`, { method: 'POST', headers, body: JSON.stringify(ada) })
    await mailArrives(demo, 'Ative sua conta')
    expect((await fetch(`${demo.url}/?lang=de`)).headers.getSetCookie()).toEqual([])
  })
})

const phone = { width: 390, height: 844 }
const desktop = { width: 1280, height: 800 }

const english = {
  signIn: 'Sign in',
  signUp: 'Create an account',
  name: 'Name',
  email: 'Email',
  password: 'Password',
  create: 'Create account',
  checkMail: 'Check your mail',
  activation: 'Activate your account',
  activate: 'Activate and sign in',
  verify: 'Verify this address',
  verification: 'Confirm your email address',
  verifyPage: 'Confirm your address',
  verifyButton: 'Confirm address',
  verified: 'Your address is confirmed',
  back: 'Go to sign-in',
  confirmed: 'is yours',
  outbox: 'outbox',
  changeRequested: 'A change of your email address was requested',
  change: 'Confirm your new email address',
  changePage: 'Use this address from now on',
  changeButton: 'Use this address',
  changed: 'Your address was changed',
  signOut: 'Sign out',
}

const portuguese: typeof english = {
  signIn: 'Entrar',
  signUp: 'Crie uma conta',
  name: 'Nome',
  email: 'E-mail',
  password: 'Senha',
  create: 'Criar conta',
  checkMail: 'Confira seu e-mail',
  activation: 'Ative sua conta',
  activate: 'Ativar e entrar',
  verify: 'Confirmar este endereço',
  verification: 'Confirme seu endereço de e-mail',
  verifyPage: 'Confirme seu e-mail',
  verifyButton: 'Confirmar e-mail',
  verified: 'Seu e-mail está confirmado',
  back: 'Ir para o login',
  confirmed: 'é seu',
  outbox: 'caixa de saída',
  changeRequested: 'Pedido de alteração do seu e-mail',
  change: 'Confirme seu novo endereço de e-mail',
  changePage: 'Use este e-mail a partir de agora',
  changeButton: 'Usar este e-mail',
  changed: 'Seu e-mail foi alterado',
  signOut: 'Sair',
}

describe.skipIf(!hasChromium)('the address in the demo, in Chromium', () => {
  const inChromium = demoInChromium()

  const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true }).waitFor()
  const press = (page: Page, name: string) => pressWhenLoaded(page, page.getByRole('button', { name, exact: true }))
  const field = (page: Page, name: string) => page.getByRole('textbox', { name, exact: true })
  const text = (page: Page, id: string) => page.locator(`#${id}`).textContent()

  /** The page as it stands, at both widths. */
  async function fits(page: Page) {
    const own = page.viewportSize()
    for (const size of [phone, desktop]) {
      await page.setViewportSize(size)
      expect(
        await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
        `${page.url()} at ${size.width}`,
      ).toBeLessThanOrEqual(0)
    }
    if (own) await page.setViewportSize(own)
  }

  /** Once there is a mail about it: they travel after the answer. */
  async function openOutbox(page: Page, subject: string) {
    await mailArrives(inChromium.demo, subject)
    await page.goto(`${inChromium.demo.url}/outbox?look=2`)
  }

  /** By way of the outbox, to where the newest mail about it leads. */
  async function openMail(page: Page, subject: string, to: string) {
    await openOutbox(page, subject)
    const mail = page.getByRole('article').filter({ hasText: subject }).filter({ hasText: to }).first()
    await fits(page)
    await mail.getByRole('link').click()
  }

  /** One of the library's pages, without a mouse: the button is the first thing there is. */
  async function confirm(page: Page, language: string, { title, button, done }: Record<'title' | 'button' | 'done', string>) {
    await heading(page, title)
    expect(await page.locator('html').getAttribute('lang')).toBe(language)
    await fits(page)
    await page.keyboard.press('Tab')
    expect(await page.evaluate('document.activeElement.textContent')).toBe(button)
    await page.keyboard.press('Enter')
    await heading(page, done)
    await fits(page)
  }

  test.each([
    { language: 'en-US', viewport: desktop, words: english },
    { language: 'pt-BR', viewport: phone, words: portuguese },
  ])(
    'in $language a person signs up, verifies the address and changes it, every step by its link and its page',
    async (walk) => {
      const { language, viewport, words } = walk
      const context = await inChromium.anotherBrowser({ viewport })
      const page = await inChromium.open(context)
      // The browser asks for English: Portuguese is the person's own choice.
      if (language === 'pt-BR') await page.getByRole('link', { name: 'Português' }).click()
      await heading(page, words.signIn)
      await fits(page)

      await page.getByRole('link', { name: words.signUp }).click()
      await fits(page)
      for (const [name, value] of [
        [words.name, ada.name],
        [words.email, ada.email],
        [words.password, ada.password],
      ] as const)
        await field(page, name).fill(value)
      await press(page, words.create)
      await heading(page, words.checkMail)
      await openMail(page, words.activation, ada.email)
      await fits(page)
      await press(page, words.activate)
      await heading(page, ada.name)
      await fits(page)

      const [before] = inChromium.demo.rows('auth_users')
      await press(page, words.verify)
      await mailArrives(inChromium.demo, words.verification)
      await page.locator('#address-mailed').getByRole('link', { name: words.outbox }).click()
      await openMail(page, words.verification, ada.email)
      await confirm(page, language, { title: words.verifyPage, button: words.verifyButton, done: words.verified })
      const [after] = inChromium.demo.rows('auth_users')
      expect(after?.email_verified_at).not.toBe(before?.email_verified_at)
      await page.getByRole('link', { name: words.back }).click()
      await heading(page, ada.name)
      expect(await text(page, 'address-state')).toContain(words.confirmed)

      await page.locator('#address summary').focus()
      for (const key of ['Enter', 'Tab']) await page.keyboard.press(key)
      await page.keyboard.type(newAddress)
      await page.keyboard.press('Tab')
      await page.keyboard.type(ada.password)
      await fits(page)
      await page.keyboard.press('Enter')
      await page.locator('#address-mailed').getByText(newAddress).waitFor()
      await openOutbox(page, words.changeRequested)
      const notice = page.getByRole('article').filter({ hasText: words.changeRequested })
      expect(await notice.getByText(`${ada.email},`).count()).toBe(1)
      expect(await notice.getByRole('link').count()).toBe(0)
      await openMail(page, words.change, newAddress)
      await confirm(page, language, { title: words.changePage, button: words.changeButton, done: words.changed })
      await page.getByRole('link', { name: words.back }).click()
      await heading(page, ada.name)
      expect([await text(page, 'account-email'), await text(page, 'address-email')]).toEqual([newAddress, newAddress])
      expect(await text(page, 'hello-body')).toContain(`Hello, ${newAddress}`)

      await press(page, words.signOut)
      await heading(page, words.signIn)
      await field(page, words.email).fill(newAddress)
      await field(page, words.password).fill(ada.password)
      await press(page, words.signIn)
      await heading(page, ada.name)
      expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
    },
    60_000,
  )

  test('who came by a provider that does not verify the address confirms it, and keeps the provider', async () => {
    const page = await inChromium.open()
    await page.getByRole('link', { name: 'Continue with Octo ID' }).click()
    await page.getByRole('button', { name: 'maya-codes' }).click()
    await heading(page, 'Maya Okafor')
    expect(await text(page, 'address-state')).toBe('is not confirmed yet.')
    expect(await page.locator('#address-advice').isVisible()).toBe(true)

    await press(page, 'Verify this address')
    await openMail(page, 'Confirm your email address', 'maya@example.com')
    await confirm(page, 'en-US', { title: 'Confirm your address', button: 'Confirm address', done: 'Your address is confirmed' })
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(1)
    await page.getByRole('link', { name: 'Go to sign-in' }).click()
    await heading(page, 'Maya Okafor')
    expect(await text(page, 'address-state')).toContain('is yours: confirmed')
    await page.getByRole('listitem').filter({ hasText: 'Octo ID' }).waitFor()
    expect(await page.locator('#address-advice').isVisible()).toBe(false)
  })

  test('a refused change of address is said beside its field, and the scripts have every sentence in both languages', async () => {
    const page = await inChromium.open()
    const { request } = inChromium.context
    const auth = `${inChromium.demo.url}/accounts/auth`
    await request.post(`${auth}/signup`, { data: ada })
    const { token } = await newestLink(inChromium.demo, 'activate')
    await request.post(`${auth}/activate`, { data: { token } })
    await page.reload()
    await page.locator('#address summary').click()
    for (const { address, says } of [
      { address: ada.email, says: 'This is your address already.' },
      { address: 'ada@nowhere', says: 'does not look like an email address' },
    ]) {
      await page.locator('#new-email').fill(address)
      await press(page, 'Send the link')
      await page.locator('#new-email-problem').getByText(says).waitFor()
      expect(await page.locator('[aria-invalid]:focus').getAttribute('id')).toBe('new-email')
    }
    expect(await page.locator('#address-mailed').isVisible()).toBe(false)

    const shapes = await page.evaluate(`import('/texts.mjs').then(({ english, portuguese }) => {
      const shape = (value) => {
        if (typeof value === 'function') return shape(value(['x']))
        return typeof value === 'object' ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, shape(value[key])])) : typeof value
      }
      return [shape(english), shape(portuguese)]
    })`)
    const [inEnglish, inPortuguese] = shapes as [object, object]
    expect(inPortuguese).toEqual(inEnglish)
  })
})
