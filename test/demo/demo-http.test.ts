import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startDemo } from '../../examples/demo/start-demo'
import { freePort } from '../support/free-port'
import { type DemoRun, runDemo } from './demo-run'
import { type Visit, Visitor } from './visitor'

const maya = 'acme-4711'
const jonas = 'acme-4712'

/** Of the demo; its provider has another host. */
const cookiesOf = (visitor: Visitor) => visitor.jar.kept().filter(({ domain }) => domain === 'localhost')

test('a request that arrives while the demo starts is answered as soon as the demo is ready', async () => {
  const port = await freePort()
  // In a thread of its own: the demo's thread is busy while it starts.
  const browser = new Worker(askAtOnce, { eval: true, workerData: `http://127.0.0.1:${port}/` })
  await once(browser, 'message')
  const answered = once(browser, 'message')
  const demo = await startDemo({ port })
  expect(await answered).toEqual([200])
  await browser.terminate()
  await demo.close()
})

/** Connects until something listens, then waits ten seconds for the answer. */
const askAtOnce = `
  const { get } = require('node:http')
  const { parentPort, workerData } = require('node:worker_threads')
  const ask = () =>
    get(workerData, { timeout: 10_000 }, (response) => parentPort.postMessage(response.statusCode))
      .on('timeout', () => parentPort.postMessage('no answer'))
      .on('error', () => setTimeout(ask, 5))
  ask()
  parentPort.postMessage('asking')
`

describe('the demo, over HTTP against a real OpenID provider', () => {
  let demo: DemoRun
  let auth: string

  beforeEach(async () => {
    demo = await runDemo()
    auth = `${demo.url}/accounts/auth`
  })
  afterEach(() => demo.close())

  async function signIn(visitor: Visitor, person: string): Promise<Visit> {
    const choice = await visitor.open(`${auth}/oauth/acme/login`)
    const consent = await visitor.submit(choice, '/sign-in', { person })
    return visitor.submit(consent, '/consent')
  }

  test('a person signs in, is answered by the guarded API, and signs out', async () => {
    const visitor = new Visitor()
    expect((await visitor.call('GET', `${demo.url}/api/hello`)).status).toBe(401)

    const choice = await visitor.open(`${auth}/oauth/acme/login`)
    expect(choice.url.origin).toBe(demo.providerUrl)
    expect(choice.body).toContain('Doorward demo')

    const consent = await visitor.submit(choice, '/sign-in', { person: maya })
    expect(consent.body).toContain('maya@example.com')
    expect(demo.rows('auth_users')).toEqual([])

    const landing = await visitor.submit(consent, '/consent')
    expect(landing.status).toBe(200)
    expect(landing.url.href).toBe(`${auth}/account`)

    const me = await visitor.call('GET', `${auth}/me`)
    expect(me).toMatchObject({ status: 200, body: { email: 'maya@example.com', name: 'Maya Okafor', is_active: true } })
    const identities = await visitor.call('GET', `${auth}/oauth/accounts`)
    expect(identities).toMatchObject({ status: 200, body: [{ provider: 'acme', subject: maya, email_verified: true }] })
    const hello = await visitor.call('GET', `${demo.url}/api/hello`)
    expect(hello).toMatchObject({ status: 200, body: { message: 'Hello, maya@example.com', amr: ['ext'] } })

    const [user, ...otherUsers] = demo.rows('auth_users')
    expect(otherUsers).toEqual([])
    expect(user).toMatchObject({ email: 'maya@example.com', name: 'Maya Okafor' })
    const [identity, ...otherIdentities] = demo.rows('auth_identities')
    expect(otherIdentities).toEqual([])
    expect(identity).toMatchObject({ provider: 'acme', subject: maya, user_id: user?.id })

    expect((await visitor.call('POST', `${auth}/logout`)).status).toBe(204)
    expect(
      cookiesOf(visitor).map(({ key }) => key),
      'the browser stays known; the cookie opens nothing',
    ).toEqual(['auth_device'])
    expect((await visitor.call('GET', `${demo.url}/api/hello`)).status).toBe(401)
  })

  test('the authorization request asks for PKCE S256, a nonce and exactly the registered redirect URI', async () => {
    const { path } = await new Visitor().open(`${auth}/oauth/acme/login`)
    const request = path[1]?.searchParams
    expect(request?.get('code_challenge_method')).toBe('S256')
    expect(request?.get('code_challenge')).toMatch(/^[\w-]{43}$/)
    expect(request?.get('nonce')).toMatch(/^[\w-]{20,}$/)
    expect(request?.get('state')).toMatch(/^[\w-]{20,}$/)
    expect(request?.get('redirect_uri')).toBe(`${auth}/oauth/acme/callback`)
  })

  test('the session is an HttpOnly cookie beside that of the known device, and neither appears in an address or a page', async () => {
    const visitor = new Visitor()
    const landing = await signIn(visitor, maya)

    const cookies = cookiesOf(visitor)
    expect(cookies.map(({ key, path }) => `${key} ${path}`).sort()).toEqual(['auth_device /', 'auth_hint /', 'auth_session /'])
    for (const cookie of cookies.filter(({ key }) => key !== 'auth_hint')) {
      expect(cookie.httpOnly).toBe(true)
      expect(landing.body).not.toContain(cookie.value)
      for (const url of landing.path) expect(url.href).not.toContain(cookie.value)
    }
  })

  test('declining consent leads back with an error code and leaves no account', async () => {
    const visitor = new Visitor()
    const choice = await visitor.open(`${auth}/oauth/acme/login`)
    const consent = await visitor.submit(choice, '/sign-in', { person: maya })

    const landing = await visitor.submit(consent, '/cancel')

    expect(landing.url.href).toBe(`${auth}/login?error=OAUTH_PROVIDER_DENIED`)
    expect(landing.status).toBe(200)
    expect(demo.rows('auth_users')).toEqual([])
    expect(cookiesOf(visitor)).toEqual([])
  })

  test('the same person comes back to the same account, another person to another', async () => {
    const idOf = async (person: string) => {
      const visitor = new Visitor()
      await signIn(visitor, person)
      return (await visitor.call('GET', `${auth}/me`)).body
    }
    const first = await idOf(maya)
    const again = await idOf(maya)
    const other = await idOf(jonas)

    expect(first).toMatchObject({ id: expect.any(String), email: 'maya@example.com' })
    expect(again).toMatchObject({ id: Object(first).id, email: 'maya@example.com' })
    expect(other).toMatchObject({ id: expect.not.stringMatching(Object(first).id), email: 'jonas@example.com' })
    expect(demo.rows('auth_users')).toHaveLength(2)
    expect(demo.rows('auth_identities')).toHaveLength(2)
  })

  test('who unlinks Acme ID and comes back reaches the same account by its verified email', async () => {
    const visitor = new Visitor()
    await signIn(visitor, maya)
    const before = (await visitor.call('GET', `${auth}/me`)).body
    expect((await visitor.call('POST', `${auth}/oauth/accounts/unlink`, { provider: 'acme' })).status).toBe(204)
    expect(demo.rows('auth_identities')).toEqual([])

    const returning = new Visitor()
    await signIn(returning, maya)

    expect((await returning.call('GET', `${auth}/me`)).body).toMatchObject({ id: Object(before).id })
    expect(demo.rows('auth_users')).toHaveLength(1)
    expect(demo.rows('auth_identities')).toHaveLength(1)
  })

  test('the pages of the app and their files load nothing from elsewhere', async () => {
    for (const file of ['/', '/outbox', '/style.css', '/mark.svg', '/accounts/auth/login', '/accounts/auth/signup']) {
      const response = await fetch(`${demo.url}${file}`)
      expect(response.status, file).toBe(200)
      expect(response.headers.get('content-security-policy'), file).toContain("default-src 'none'")
      expect((await response.text()).replaceAll('http://www.w3.org/2000/svg', ''), file).not.toMatch(/https?:\/\//)
    }
    expect((await fetch(`${demo.url}/?lang=pt-BR`, { redirect: 'manual' })).headers.get('set-cookie')).toContain('demo_language=pt-BR')
    expect(await (await fetch(`${demo.url}/?lang=pt-BR`)).text()).toContain('Ninguém entrou ainda.')
    const changePassword = await fetch(`${demo.url}/.well-known/change-password`, { redirect: 'manual' })
    expect(changePassword.headers.get('location')).toBe(`${auth}/account/password`)
  })
})
