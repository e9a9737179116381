import type { Server } from 'node:http'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterEach, expect } from 'vitest'
import type { LocalHost, LocalOptions } from '../local/people'
import { chromiumHosts } from '../support/chromium-hosts'
import type { Database } from '../support/databases'
import { onPages } from './people'

/** A host with the pages on, where a browser reaches it. */
export interface PagesHost {
  readonly host: LocalHost
  /** Without a slash at its end. */
  readonly url: string
  readonly server: Server
}

/** To be called in a `describe`: one Chromium for all of its tests. No page may break its policy or ask for anything elsewhere. */
export function pagesInChromium(database: Database) {
  const { start } = onPages(database)
  const { listen, newContext } = chromiumHosts()
  const complaints: string[] = []
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  async function replace({ server, url }: Pick<PagesHost, 'server' | 'url'>, { settings, ...options }: LocalOptions): Promise<PagesHost> {
    const host = await start({ ...options, settings: { oauthRedirectBaseUrl: url, ...settings } })
    server.removeAllListeners('request').on('request', host.app)
    return { host, url, server }
  }

  return {
    serve: async (options: LocalOptions = {}, name = '127.0.0.1'): Promise<PagesHost> => replace(await listen(name), options),
    /** Puts another host at the same address, so that a browser's window can stay. */
    replace,
    /** A person's browser, with cookies of its own. `expected`: what may stand on its console. It may also go to the host's fake provider. */
    async browse({ host, url }: PagesHost, options: BrowserContextOptions = {}, expected: readonly RegExp[] = []): Promise<Page> {
      const context = await newContext({ baseURL: url, ...options })
      context.on('console', (message) => {
        // Chromium logs every answer from 400 up; that a form is refused is what some tests are about.
        const fine = [/the server responded with a status of 4\d\d/, ...expected]
        if (message.type() === 'error' && !fine.some((pattern) => pattern.test(message.text()))) complaints.push(message.text())
      })
      context.on('request', (request) => {
        const address = new URL(request.url())
        if (![url, host.provider.issuer].includes(address.origin) && address.protocol !== 'data:')
          complaints.push(`a request to ${address.origin}`)
      })
      return context.newPage()
    },
  }
}

/** Fills a page's form as a person does, and sends it. What the browser itself would refuse goes through too. */
export async function sendInPage(
  page: Page,
  fields: Readonly<Record<string, string>> = {},
  form = 'main form',
  button = 'button[type="submit"]',
): Promise<void> {
  const target = page.locator(form).first()
  for (const [name, value] of Object.entries(fields)) await target.locator(`[name="${name}"]`).fill(value)
  await page.evaluate('for (const form of document.forms) form.noValidate = true')
  await Promise.all([page.waitForEvent('domcontentloaded'), target.locator(button).first().click()])
}
