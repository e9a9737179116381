import { join } from 'node:path'
import type { Express, Request, Response } from 'express'
import type { BrowserContext, Page } from 'playwright-core'
import { rolldown } from 'rolldown'
import type { AuthRouter } from '../../src'
import type { AuthClient, AuthClientOptions, createAuthClient } from '../../src/client/client'
import type { Mounted, MountOptions } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { chromiumHosts } from '../support/chromium-hosts'

declare global {
  interface Window {
    auth: AuthClient
    createAuthClient: typeof createAuthClient
    seen: string[]
  }
}

interface Asked {
  route: string
  status: number
  /** The header X-Call. */
  call: string | undefined
  begun: number
  ended: number
}

export interface Shop {
  host: Mounted
  url: string
  /** Every request to the router and the API, in the order of their ends. */
  asked: Asked[]
  /** Returns the routes since the last call. */
  routes(): string[]
  context(): Promise<BrowserContext>
  /** A page of the app, with a client. */
  tab(context: BrowserContext, options?: TabOptions & { path?: string }): Promise<Page>
}

type Settings = NonNullable<MountOptions['settings']>

const page =
  '<!doctype html><title>Shop</title><script type="module">import { createAuthClient } from "/client.js"; Object.assign(window, { createAuthClient })</script>'

let bundle: Promise<Record<string, string>> | undefined

/** The client as the package has it, for pages without a bundler. */
function browserFiles(): Promise<Record<string, string>> {
  bundle ??= (async () => {
    const files: Record<string, string> = {}
    for (const name of ['client', 'passkeys']) {
      const input = join(import.meta.dirname, `../../src/client/${name}.ts`)
      const bundled = await rolldown({
        input,
        platform: 'browser',
        external: [/\/passkeys\.js$/],
        transform: { target: 'es2020' },
        tsconfig: false,
      })
      const { output } = await bundled.generate({ format: 'es' })
      files[name] = output[0].code
    }
    return files
  })()
  return bundle
}

/** To be called in a `describe`. @param keepsPages the browser keeps pages for its button *Back*, which automation turns off */
export function shops({ keepsPages = false } = {}) {
  const start = appPerTest()
  const { listen, newContext } = chromiumHosts({ keepsPages })
  return {
    /** @param apiName the host name of router and API, which the page shares unless its path is a whole URL */
    async open(
      given: Settings | ((url: string) => Settings) = {},
      options: Partial<MountOptions> = {},
      apiName = 'localhost',
    ): Promise<Shop> {
      const files = await browserFiles()
      const { server, url } = await listen(apiName)
      const settings = typeof given === 'function' ? given(url) : given
      const asked: Asked[] = []
      const host = await start({
        ...options,
        settings: { publicUrl: url, oauthRedirectBaseUrl: url, refreshReuseGraceSeconds: 1, ...settings },
        options: { now: () => new Date(), ...options.options },
        before: [
          (req: Request, res: Response, next) => {
            const begun = performance.now()
            const route = `${req.method} ${req.path}`
            const call = req.get('x-call')
            if (/^\/(auth|api)\//.test(req.path))
              res.on('close', () =>
                asked.push({ route, call, status: res.writableEnded ? res.statusCode : 0, begun, ended: performance.now() }),
              )
            next()
          },
          ...(options.before ?? []),
        ],
        host(app: Express, auth: AuthRouter) {
          app.get('/api/orders', auth.guards.requireAuth(), (_req, res) => void res.json({}))
          app.post('/api/orders', auth.guards.requireAuth(), auth.guards.csrf(), (_req, res) => void res.json({}))
          for (const [name, code] of Object.entries(files)) app.get(`/${name}.js`, (_req, res) => void res.type('js').send(code))
          app.get(['/', '/app'], (_req, res) => void res.type('html').send(page))
          options.host?.(app, auth)
        },
      })
      server.on('request', host.app)
      return {
        host,
        url,
        asked,
        routes: () => asked.splice(0).map(({ route }) => route),
        context: () => newContext({ baseURL: url }),
        async tab(context, { path = '/', ...given } = {}) {
          const page = await context.newPage()
          await page.goto(path)
          await openClient(page, given)
          return page
        },
      }
    },
  }
}

/** With `storage`, tokens are in the `localStorage` that all tabs share. */
export type TabOptions = Partial<Omit<AuthClientOptions, 'storage'>> & { storage?: 'local' | undefined }

/** Also after a reload. */
export async function openClient(page: Page, options: TabOptions = {}): Promise<void> {
  await page.evaluate(({ storage, ...given }) => {
    const local = {
      get: (key: string) => localStorage.getItem(key),
      set: (key: string, value: string) => localStorage.setItem(key, value),
      remove: (key: string) => localStorage.removeItem(key),
    }
    window.auth = window.createAuthClient({ baseUrl: '/auth', ...given, ...(storage && { storage: local }) })
    window.seen = []
    window.auth.subscribe(({ status, user }) => window.seen.push(user ? user.email : status))
  }, options)
}

export const stateOf = (page: Page) => page.evaluate(() => window.auth.state.user?.email ?? window.auth.state.status)

export async function logIn(page: Page, credentials: { email: string; password: string }): Promise<void> {
  await page.evaluate((given) => window.auth.logIn(given), credentials)
}
