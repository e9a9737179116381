import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { hasChromium } from './chromium'
import { demoInChromium } from './demo-in-chromium'
import { type DemoRun, runDemo } from './demo-run'
import { type Visit, Visitor } from './visitor'

describe('linking in the demo, over HTTP against a provider without OpenID', () => {
  let demo: DemoRun
  let auth: string

  beforeEach(async () => {
    demo = await runDemo()
    auth = `${demo.url}/accounts/auth`
  })
  afterEach(() => demo.close())

  async function signedIn(person: string): Promise<Visitor> {
    const visitor = new Visitor()
    const choice = await visitor.open(`${auth}/oauth/acme/login`)
    const consent = await visitor.submit(choice, '/sign-in', { person })
    await visitor.submit(consent, '/consent')
    return visitor
  }

  async function atOcto(visitor: Visitor): Promise<Visit> {
    const { status, body } = await visitor.call('POST', `${auth}/oauth/octo/link`)
    expect(status).toBe(200)
    return visitor.open(Object(body).authorize_url)
  }

  /** The page's hidden fields and the button that is pressed. */
  async function choose(visitor: Visitor, page: Visit, account: string): Promise<Visit> {
    const hidden = [...page.body.matchAll(/type="hidden" name="([^"]+)" value="([^"]+)"/g)].map(([, name = '', value = '']) => [
      name,
      value,
    ])
    return visitor.submit(page, '/authorize', { ...Object.fromEntries(hidden), account })
  }

  test('an account at Octo ID is linked, signs in to the same account, and is unlinked', async () => {
    const maya = await signedIn('acme-4711')
    const page = await atOcto(maya)
    expect(page.url.origin).toBe(demo.octoUrl)

    const landing = await choose(maya, page, 'maya-codes')

    expect(landing.url.href).toBe(`${demo.url}/`)
    const identities = await maya.call('GET', `${auth}/oauth/accounts`)
    expect(identities.body).toMatchObject([{ provider: 'acme' }, { provider: 'octo', subject: '90210', email_verified: null }])
    const later = new Visitor()
    await choose(later, await later.open(`${auth}/oauth/octo/login`), 'maya-codes')
    expect(await later.call('GET', `${auth}/me`)).toMatchObject({ status: 200, body: { email: 'maya@example.com' } })
    expect((await maya.call('POST', `${auth}/oauth/accounts/unlink`, { provider: 'octo' })).status).toBe(204)
    expect(demo.rows('auth_identities')).toHaveLength(1)
  })

  test.each([
    ['a foreign application', { client_id: 'another' }],
    ['a foreign address', { redirect_uri: 'https://evil.example/' }],
    ['no PKCE', { code_challenge_method: 'plain' }],
  ])('Octo ID refuses %s', async (_what, change) => {
    const maya = await signedIn('acme-4711')
    const { body } = await maya.call('POST', `${auth}/oauth/octo/link`)
    const url = new URL(Object(body).authorize_url)
    for (const [name, value] of Object.entries(change)) url.searchParams.set(name, value)
    expect((await maya.open(url)).status).toBe(400)
  })
})

describe.skipIf(!hasChromium)('linking in the demo, in Chromium', () => {
  const inChromium = demoInChromium()
  const { open, signInWithAcme, signOut } = inChromium

  async function goToOcto(page: Page) {
    await page.getByRole('button', { name: 'Link Octo ID' }).click()
    await page.getByRole('heading', { name: 'Authorize Doorward demo' }).waitFor()
  }

  const choose = (page: Page, account: string) => page.getByRole('button', { name: account }).click()
  const identity = (page: Page, name: string) => page.getByRole('listitem').filter({ hasText: name })

  test('a person links Octo ID from the account page, and unlinks it', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')
    await goToOcto(page)
    expect(new URL(page.url()).origin).toBe(inChromium.demo.octoUrl)
    await choose(page, 'maya-codes')

    await identity(page, 'Octo ID').waitFor()
    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    expect(await page.getByRole('button', { name: 'Link Octo ID' }).count()).toBe(0)
    expect(inChromium.demo.rows('auth_identities').map(({ provider }) => provider)).toEqual(['acme', 'octo'])
    expect(inChromium.demo.rows('auth_users')).toHaveLength(1)

    await identity(page, 'Octo ID').getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('button', { name: 'Link Octo ID' }).waitFor()
    expect(inChromium.demo.rows('auth_identities').map(({ provider }) => provider)).toEqual(['acme'])
  })

  test('an Octo ID account of somebody else is a message, and the account page as before', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')
    await goToOcto(page)
    await choose(page, 'night-builds')
    await identity(page, 'Octo ID').waitFor()
    await signOut(page)
    await signInWithAcme(page, 'Jonas Lindqvist')
    await goToOcto(page)
    await choose(page, 'night-builds')

    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('That Octo ID account is linked to another account here.')
    expect(page.url()).toBe(`${inChromium.demo.url}/`)
    await page.getByRole('heading', { name: 'Jonas Lindqvist', exact: true }).waitFor()
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(3)
  })

  test('two tabs that link two Octo ID accounts: the second is told', async () => {
    const one = await open()
    await signInWithAcme(one, 'Maya Okafor')
    const two = await open()
    await goToOcto(one)
    await goToOcto(two)
    await choose(one, 'maya-codes')
    await identity(one, 'Octo ID').waitFor()
    await choose(two, 'night-builds')

    await two.getByRole('alert').waitFor()
    expect(await two.getByRole('alert').textContent()).toContain('You have already linked an Octo ID account.')
    expect(inChromium.demo.rows('auth_identities').map(({ subject }) => subject)).toEqual(['acme-4711', '90210'])
  })

  test('who comes by Octo ID with the address of an account is told how to link it; who says no, that nothing changed', async () => {
    const page = await open()
    await signInWithAcme(page, 'Maya Okafor')
    await signOut(page)
    await page.getByRole('link', { name: 'Continue with Octo ID' }).click()
    await choose(page, 'maya-codes')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('then link Octo ID')

    await page.getByRole('link', { name: 'Continue with Octo ID' }).click()
    await choose(page, 'Cancel')
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('You chose not to share your Octo ID account')
    expect(inChromium.demo.rows('auth_identities')).toHaveLength(1)
    expect(await page.evaluate('JSON.stringify({ ...localStorage, ...sessionStorage })')).toBe('{}')
  })
})
