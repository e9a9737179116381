import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { isQuick } from '../support/quick'

/** The system's browser: playwright-core brings none. */
export const chromiumPath = process.env.CHROMIUM || '/usr/bin/chromium'
export const hasChromium = !isQuick && existsSync(chromiumPath)

/** @param more of Chromium's switches @param without switches that Playwright would add */
export function launchChromium(more: readonly string[] = [], without: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    ignoreDefaultArgs: [...without],
    // Chromium's own sandbox refuses to run as root, as containers do; the rest keeps it from looking up hosts of its own.
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  })
}
