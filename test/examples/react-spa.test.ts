import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { start } from '../../examples/react-spa/server'
import { chromiumPath, hasChromium } from '../demo/chromium'
import { chromiumHosts } from '../support/chromium-hosts'
import { freePort } from '../support/free-port'
import { mailbox } from '../support/mailbox'

const root = join(import.meta.dirname, '../..')
const example = join(root, 'examples/react-spa')

test('the sign-in form, the data, the refresh, the sign-out and two tabs are at most 20 lines of the app', () => {
  const lines = readFileSync(join(example, 'src/session.tsx'), 'utf8').split('\n')
  expect(lines.filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(20)
})

test('its packages have the versions that these tests run with', () => {
  const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string>>
  const { dependencies = {}, devDependencies = {} } = read(join(example, 'package.json'))
  const versions = Object.entries({ ...dependencies, ...devDependencies }).filter(([name]) => name !== 'doorward')
  expect(versions).toEqual(versions.map(([name]) => [name, read(join(root, 'node_modules', name, 'package.json'))['version']]))
  expect(dependencies['doorward']).toBe('file:../..')
})

describe.skipIf(!hasChromium)(`examples/react-spa in Chromium (${chromiumPath})`, () => {
  const { newContext } = chromiumHosts()
  const folder = mkdtempSync(join(tmpdir(), 'react-spa-'))
  const mails = mailbox()
  let server: Server
  let url: string

  beforeAll(async () => {
    const client = (name: string) => join(root, `src/client/${name}.ts`)
    const port = await freePort()
    server = await start(port, join(folder, 'app.sqlite'), mails, {
      cacheDir: join(folder, 'vite'),
      logLevel: 'error',
      resolve: { alias: { 'doorward/client': client('client'), 'doorward/react': client('react') } },
      server: { middlewareMode: true, ws: false, hmr: false, fs: { strict: false } },
    })
    url = `http://localhost:${(server.address() as AddressInfo).port}`
  }, 60_000)
  afterAll(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  })

  test('a person signs up, orders in one tab, and signs out of both', async () => {
    const context = await newContext({ baseURL: url })
    const page = await context.newPage()
    await page.goto('/')
    await page.getByLabel('Your email').fill('ada@example.test')
    await page.getByLabel('New password').fill('a quiet harbour in winter')
    await page.getByRole('button', { name: 'Sign up' }).click()
    await page.getByText('Open the link in the mail to finish.').waitFor()
    const { text } = await mails.next()
    await page.goto(/http:\S+/.exec(text)?.[0] ?? '')
    await Promise.all([page.waitForEvent('domcontentloaded'), page.locator('main button[type="submit"]').first().click()])

    await page.goto('/')
    const signIn = async (tab: Page, password: string) => {
      await tab.getByLabel('Email', { exact: true }).fill('ada@example.test')
      await tab.getByLabel('Password', { exact: true }).fill(password)
      await tab.getByRole('button', { name: 'Sign in', exact: true }).click()
    }
    await signIn(page, 'a quiet harbour in winter')
    await page.getByText('Orders of ada@example.test').waitFor()
    await page.getByLabel('What').fill('tea')
    await page.getByRole('button', { name: 'Order' }).click()
    const other = await context.newPage()
    await other.goto('/')
    await other.getByText('tea').waitFor()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()

    await signIn(other, 'wrong wrong wrong')
    await expect.poll(() => other.getByRole('alert').textContent()).not.toBe('')
    await signIn(other, 'a quiet harbour in winter')
    await page.getByText('Orders of ada@example.test').waitFor()
  })
})
