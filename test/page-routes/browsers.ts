import { chromiumPath, hasChromium, launchChromium } from '../demo/chromium'
import { type Driven, firefoxPath, hasFirefox, launchFirefox } from '../support/firefox'

/** The two browsers of this machine, driven alike. */
export const browsers = [
  { name: 'Firefox', path: firefoxPath, variable: 'FIREFOX', isThere: hasFirefox, launch: launchFirefox },
  { name: 'Chromium', path: chromiumPath, variable: 'CHROMIUM', isThere: hasChromium, launch: launchDriven },
] as const

async function launchDriven(): Promise<Driven> {
  const chromium = await launchChromium()
  return {
    async person() {
      const context = await chromium.newContext()
      context.setDefaultTimeout(15_000)
      return {
        async tab() {
          const page = await context.newPage()
          return {
            evaluate: (expression) => page.evaluate(expression),
            async goto(url) {
              await page.goto(url)
            },
            async click(selector) {
              await Promise.all([page.waitForEvent('load'), page.locator(selector).first().click({ noWaitAfter: true })])
            },
          }
        },
      }
    },
    close: () => chromium.close(),
  }
}
