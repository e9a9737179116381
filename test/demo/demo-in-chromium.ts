import type { Browser, BrowserContext, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { launchChromium } from './chromium'
import { type DemoRun, runDemo } from './demo-run'

export interface DemoInChromium {
  /** The running test's own demo. */
  readonly demo: DemoRun
  /** The running test's first person; `anotherBrowser` is a second one, with cookies of its own. */
  readonly context: BrowserContext
  anotherBrowser(options?: Pick<BrowserContextOptions, 'viewport' | 'userAgent'>): Promise<BrowserContext>
  /** The first page, after it has asked who is there. */
  open(context?: BrowserContext): Promise<Page>
  signInWithAcme(page: Page, name: string): Promise<void>
  signOut(page: Page): Promise<void>
}

/**
 * To be called in a `describe`: one Chromium for all of its tests, and for each a demo and a person of its own. Whatever a
 * test does, no script may break, nothing but refusals may be on the console, and no request may leave the demo.
 */
export function demoInChromium(): DemoInChromium {
  let browser: Browser
  let demo: DemoRun
  let contexts: BrowserContext[]
  let complaints: string[]

  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

  beforeEach(async () => {
    demo = await runDemo()
    contexts = []
    complaints = []
    await anotherBrowser()
  })
  afterEach(async () => {
    for (const context of contexts) await context.close()
    await demo.close()
    expect(complaints).toEqual([])
  })

  async function anotherBrowser(options = {}): Promise<BrowserContext> {
    const context = await browser.newContext({ locale: 'en-US', ...options })
    context.setDefaultTimeout(10_000)
    context.on('weberror', (error) => complaints.push(error.error().message))
    context.on('console', (message) => {
      // Chromium logs every answer from 400 up; the pages show those that matter.
      const isRefusal = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text())
      if (['error', 'warning'].includes(message.type()) && !isRefusal) complaints.push(message.text())
    })
    context.on('request', (request) => {
      const isOurs = [demo.url, demo.providerUrl, demo.octoUrl].includes(new URL(request.url()).origin)
      if (!isOurs) complaints.push(`a request to ${new URL(request.url()).origin}`)
    })
    contexts.push(context)
    return context
  }

  function firstContext(): BrowserContext {
    const [context] = contexts
    if (!context) throw new Error('no test is running')
    return context
  }

  return {
    get demo() {
      return demo
    },
    get context() {
      return firstContext()
    },
    anotherBrowser,
    async open(context = firstContext()) {
      const page = await context.newPage()
      await page.goto(demo.url)
      await page.locator('#signed-out, #account').filter({ visible: true }).waitFor()
      return page
    },
    async signInWithAcme(page, name) {
      await page.getByRole('link', { name: 'Continue with Acme ID' }).click()
      await page.getByRole('button', { name }).click()
      await page.getByRole('button', { name: 'Share and continue' }).click()
      await page.getByRole('heading', { name, exact: true }).waitFor()
    },
    async signOut(page) {
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    },
  }
}

/** A form is the script's once the page has loaded; a button that is pressed before would send it the browser's own way. */
export async function pressWhenLoaded(page: Page, button: Locator): Promise<void> {
  await button.waitFor()
  await page.waitForLoadState()
  await button.click()
}
