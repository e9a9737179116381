import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { launchChromium } from '../demo/chromium'

/** To be called in a `describe`: one Chromium for all of its tests. What a test opens is closed after it. */
export function chromiumHosts({ keepsPages = false } = {}) {
  const servers: Server[] = []
  const contexts: BrowserContext[] = []
  let chromium: Browser

  beforeAll(async () => {
    chromium = await launchChromium([], keepsPages ? ['--disable-back-forward-cache'] : [])
  })
  afterEach(async () => {
    for (const context of contexts.splice(0)) await context.close()
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      server.close()
    }
  })
  afterAll(() => chromium?.close())

  return {
    /** A server at a port of this machine, which answers nothing yet. `url` ends without a slash. */
    async listen(name: string): Promise<{ server: Server; url: string }> {
      const server = createServer().listen(0, '127.0.0.1')
      servers.push(server)
      await new Promise((resolve) => server.once('listening', resolve))
      return { server, url: `http://${name}:${(server.address() as AddressInfo).port}` }
    },
    /** A person's browser, with cookies of its own. */
    async newContext(options: BrowserContextOptions): Promise<BrowserContext> {
      const context = await chromium.newContext(options)
      contexts.push(context)
      context.setDefaultTimeout(15_000)
      return context
    },
  }
}
