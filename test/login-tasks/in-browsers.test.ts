import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { task } from '../../src'
import { type TextKey, texts } from '../../src/core/texts/phrase-book'
import { hasChromium } from '../demo/chromium'
import { otherPassword, password } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings } from '../mfa/people'
import { focused, pressEnter, reach, type } from '../page-routes/by-keyboard'
import { type PagesHost, pagesInChromium } from '../page-routes/pages-in-chromium'
import { onPages } from '../page-routes/people'
import { databases } from '../support/databases'
import { type Driven, hasFirefox, launchFirefox, type Tab } from '../support/firefox'
import { accepted, codeFor, everyTask, expired, person } from './people'

/** Section 29: each task by its page, as a person goes through it. */

const [database] = await databases()
if (!database) throw new Error('no database')
const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }

const question = task({
  key: 'question',
  when: (user) => user.name === 'asked' && !accepted.has(user.id),
  complete: (user, body) => {
    if (body['answer'] === '42') accepted.add(user.id)
  },
  page: {
    title: 'One question',
    html: () => '<div class="field"><label for="answer">Answer</label><input id="answer" name="answer" required></div>',
  },
})
const last = task({ key: 'nothing_to_say', when: (user) => user.name === 'asked', complete: () => undefined })
const loginTasks = [...everyTask.filter((one) => one.kind !== 'host'), question, last]
const options = { settings: mfaSettings, options: { loginTasks } }
const owesEverything = { ...expired, isAdmin: true, name: 'asked' }

describe.skipIf(!hasChromium)('the pages of the tasks in Chromium, on a phone', { timeout: 120_000 }, () => {
  const { serve, browse } = pagesInChromium(database)

  describe.each(['en-US', 'pt-BR'] as const)('in %s', (locale) => {
    const say = (key: TextKey) => texts[locale][key]

    /** Is about the person, no wider than the phone, and in the language. */
    async function showsTask(page: Page, email: string, title: string): Promise<void> {
      await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
      expect(await page.locator('html').getAttribute('lang')).toBe(locale)
      expect(await page.locator('main').textContent()).toContain(say('tasks.account').replace('{email}', email))
      expect(Number(await page.evaluate('document.documentElement.scrollWidth'))).toBeLessThanOrEqual(360)
    }

    async function secretOf(page: Page): Promise<string> {
      return String(await page.locator('.key').textContent()).replaceAll(' ', '')
    }

    async function isSignedIn(page: Page, { host }: PagesHost, userId: string): Promise<void> {
      await page.waitForURL('**/auth/account')
      const sessions = await host.knex('auth_sessions').where({ user_id: userId, revoked_at: null })
      expect(sessions.map(({ amr }) => amr)).toEqual(['pwd email otp'])
    }

    test.each([true, false])('script on: %s; by keyboard alone, a person does every task, also after a wrong entry', async (hasScript) => {
      const served = await serve(options)
      const who = await person(served.host, owesEverything)
      const { email } = who
      const page = await browse(served, { ...phone, locale, javaScriptEnabled: hasScript })
      await page.goto('/auth/login')
      await type(page, say('field.email'), email)
      await type(page, say('field.password'), password)
      await pressEnter(page)

      await showsTask(page, email, say('tasks.device'))
      expect((await focused(page)).id).toBe('code')
      await page.keyboard.type('12345678')
      await pressEnter(page)
      await showsTask(page, email, say('tasks.device'))
      expect([(await focused(page)).id, await page.locator('#code').getAttribute('aria-invalid')]).toEqual(['code', 'true'])
      await codeFor(served.host, who)
      await reach(page, say('tasks.resend'))
      await pressEnter(page)
      await page.getByText(say('notice.sent_again')).waitFor()
      await type(page, say('field.code'), await codeFor(served.host, who))
      await pressEnter(page)

      await showsTask(page, email, say('tasks.new_password'))
      expect((await focused(page)).id).toBe('new_password')
      await page.keyboard.type(password)
      await type(page, say('password.confirm'), password)
      await pressEnter(page)
      await showsTask(page, email, say('tasks.new_password'))
      expect((await focused(page)).id).toBe('new_password')
      await page.keyboard.type(otherPassword)
      await type(page, say('password.confirm'), otherPassword)
      await pressEnter(page)

      await showsTask(page, email, say('tasks.second_factor'))
      await reach(page, say('security.begin_button'))
      await pressEnter(page)
      await showsTask(page, email, say('security.scan_title'))
      await type(page, say('security.first_code'), authenticator(await secretOf(page), served.host.clock).code())
      await pressEnter(page)
      await showsTask(page, email, say('security.codes'))
      expect(await page.locator('.codes li').count()).toBe(10)
      await reach(page, say('security.kept'))
      await pressEnter(page)

      await showsTask(page, email, 'One question')
      await type(page, 'Answer', '42')
      await pressEnter(page)
      await showsTask(page, email, say('tasks.continue'))
      await reach(page, say('tasks.continue'))
      await pressEnter(page)
      await isSignedIn(page, served, who.userId)
    })

    test('the person who is not the one of the page gets to the sign-in page by keyboard', async () => {
      const served = await serve(options)
      const { email } = await person(served.host, owesEverything)
      const page = await browse(served, { ...phone, locale })
      await page.goto('/auth/login')
      await type(page, say('field.email'), email)
      await type(page, say('field.password'), password)
      await pressEnter(page)
      await showsTask(page, email, say('tasks.device'))
      await reach(page, say('tasks.not_you'))
      await pressEnter(page)
      await page.getByRole('heading', { level: 1, name: say('login.title'), exact: true }).waitFor()
    })
  })
})

describe.skipIf(!hasFirefox)('the pages of the tasks in Firefox', { timeout: 120_000 }, () => {
  const { start } = onPages(database)
  let firefox: Driven
  let server: Server

  beforeAll(async () => {
    firefox = await launchFirefox()
    server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
  }, 90_000)
  afterAll(async () => {
    server?.closeAllConnections()
    server?.close()
    await firefox?.close()
  })

  async function send(tab: Tab, fields: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const [name, value] of Object.entries(fields))
      await tab.evaluate(`document.querySelector('main form [name="${name}"]').value = ${JSON.stringify(value)}`)
    await tab.click('main form button[type="submit"]')
  }

  test('a person does every task and is signed in', async () => {
    const url = `http://localhost:${(server.address() as AddressInfo).port}` // a TCP server has this kind of address
    const host = await start({ ...options, settings: { ...mfaSettings, oauthRedirectBaseUrl: url } })
    server.removeAllListeners('request').on('request', host.app)
    const who = await person(host, owesEverything)
    const tab = await (await firefox.person()).tab()
    const heading = () => tab.evaluate('document.querySelector("h1").innerText')
    await tab.goto(`${url}/auth/login`)
    await send(tab, { email: who.email, password })
    expect(await heading()).toBe('Check your email')
    await send(tab, { code: await codeFor(host, who) })
    expect(await heading()).toBe('Choose a new password')
    await send(tab, { new_password: otherPassword, confirm_password: otherPassword })
    expect(await heading()).toBe('Turn on two-step verification')
    await send(tab)
    const secret = await tab.evaluate<string>('document.querySelector(".key").innerText')
    await send(tab, { code: authenticator(secret.replaceAll(' ', ''), host.clock).code() })
    expect(await heading()).toBe('Recovery codes')
    await tab.click('a.button')
    expect(await heading()).toBe('One question')
    await send(tab, { answer: '42' })
    expect(await heading()).toBe('Continue')
    await send(tab)
    expect(await tab.evaluate(`[location.pathname, document.body.innerText.includes("${who.email}")]`)).toEqual(['/auth/account', true])
  })
})
