import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { describe, expect, test } from 'vitest'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { password } from '../local/people'
import { member } from '../server-session/devices'
import { logIn, openClient, shops } from './tabs'

const root = join(import.meta.dirname, '../..')

const app = `
import { createElement as h } from 'react'
import { createRoot, hydrateRoot } from 'react-dom/client'
import { AuthProvider, RequireAuth, useUser } from '${root}/src/client/react.ts'
const Orders = () => h('p', null, 'orders of ' + useUser()?.email)
const page = (client, initialUser) =>
  h(AuthProvider, { client, initialUser }, h(RequireAuth, { fallback: h('form', null, 'sign in'), loading: h('i', null, 'wait') }, h(Orders)))
window.show = (client, initialUser) =>
  initialUser === undefined
    ? createRoot(document.querySelector('main')).render(page(client))
    : hydrateRoot(document.querySelector('main'), page(client, initialUser))
`

async function bundled(): Promise<string> {
  const folder = mkdtempSync(join(root, 'test/client/bundle-'))
  try {
    const input = join(folder, 'app.js')
    writeFileSync(input, app)
    const bundle = await rolldown({
      input,
      platform: 'browser',
      transform: { define: { 'process.env.NODE_ENV': '"production"' } },
      tsconfig: false,
    })
    return (await bundle.generate({ format: 'es' })).output[0].code
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.skipIf(!hasChromium)(`doorward/react in Chromium (${chromiumPath})`, () => {
  const { open } = shops()

  test('a page shows its form, then the data of the person, and follows a logout; hydration keeps what the server rendered', async () => {
    const code = await bundled()
    const shop = await open(
      { tokenDelivery: 'cookie' },
      {
        host(express) {
          express.get('/react.js', (_req, res) => void res.type('js').send(code))
        },
      },
    )
    const person = await member(shop.host)
    const context = await shop.context()
    const page = await shop.tab(context)
    const errors: string[] = []
    page.on('console', (message) => message.type() === 'error' && errors.push(message.text()))
    page.on('pageerror', (error) => errors.push(error.message))
    const show = async (html: string, initialUser?: object | null) => {
      await page.evaluate((text) => document.body.insertAdjacentHTML('beforeend', `<main>${text}</main>`), html)
      await page.addScriptTag({ url: '/react.js', type: 'module' })
      await page.evaluate((user) => (window as unknown as { show(...args: unknown[]): void }).show(window.auth, user), initialUser)
    }
    await show('')
    const text = () => page.locator('main').innerHTML()
    await expect.poll(text).toBe('<form>sign in</form>')
    await logIn(page, { email: person.email, password })
    await expect.poll(text).toBe(`<p>orders of ${person.email}</p>`)
    const user = await page.evaluate(() => window.auth.state.user)
    await page.reload()
    await openClient(page)
    await show(`<p>orders of ${person.email}</p>`, user)
    expect(await text()).toBe(`<p>orders of ${person.email}</p>`)
    await page.evaluate(() => window.auth.logOut())
    await expect.poll(text).toBe('<form>sign in</form>')
    expect(errors).toEqual([])
  })
})
