import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { launchChromium } from './chromium'
import { type DemoRun, runDemo } from './demo-run'

export interface DemoInChromium {
  /** The running test's own demo. */
  readonly demo: DemoRun
  /** The first page. */
  open(): Promise<Page>
}

/**
 * To be called in a `describe`: one Chromium for all of its tests, and for each a demo and a person of its own. Whatever a
 * test does, no script may break, nothing but refusals may be on the console, and no request may leave the demo.
 */
export function demoInChromium(): DemoInChromium {
  let browser: Browser
  let demo: DemoRun
  let context: BrowserContext
  let complaints: string[]

  beforeAll(async () => {
    browser = await launchChromium()
  })
  afterAll(() => browser?.close())

  beforeEach(async () => {
    demo = await runDemo()
    complaints = []
    context = await browser.newContext({ locale: 'en-US' })
    context.setDefaultTimeout(15_000)
    context.on('weberror', (error) => complaints.push(error.error().message))
    context.on('console', (message) => {
      // Chromium logs every answer from 400 up; the pages show those that matter.
      const isRefusal = /^Failed to load resource: the server responded with a status of 4\d\d/.test(message.text())
      if (['error', 'warning'].includes(message.type()) && !isRefusal) complaints.push(message.text())
    })
    context.on('request', (request) => {
      const { origin, protocol } = new URL(request.url())
      const isOurs = protocol === 'data:' || [demo.url, demo.providerUrl, demo.octoUrl].includes(origin)
      if (!isOurs) complaints.push(`a request to ${origin}`)
    })
  })
  afterEach(async () => {
    await context.close()
    await demo.close()
    expect(complaints).toEqual([])
  })

  return {
    get demo() {
      return demo
    },
    async open() {
      const page = await context.newPage()
      await page.goto(demo.url)
      return page
    },
  }
}
