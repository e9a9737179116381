import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { type HttpClient, OidcClient } from 'doorward'
import { startFakeProvider } from 'doorward/testing'
import supertest from 'supertest'
import { afterEach, beforeAll, expect, test } from 'vitest'
import * as captcha from '../../examples/captcha'
import * as cookiesCsrf from '../../examples/cookies-csrf'
import * as customProvider from '../../examples/custom-provider'
import * as existingTables from '../../examples/existing-tables'
import * as guardsJwks from '../../examples/guards-jwks'
import * as mobileToken from '../../examples/mobile-token'
import * as passwordless from '../../examples/passwordless'
import * as serverRendered from '../../examples/server-rendered'
import * as spaBearer from '../../examples/spa-bearer'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { browserOf } from '../support/browser'
import { mailbox } from '../support/mailbox'
import { makeKey } from '../support/signing-keys'

const root = join(import.meta.dirname, '../..')
const password = 'three quiet green rivers'
const memory = ':memory:'
const startIssuer = appPerTest()

let opened: { close(): unknown }[] = []
beforeAll(() => {
  process.env.AUTH_JWT_SECRET = randomBytes(48).toString('base64')
  process.env.CSRF_SECRET = randomBytes(48).toString('base64')
  process.env.AUTH_MFA_SECRET_KEY = randomBytes(32).toString('base64')
})
afterEach(async () => {
  for (const one of opened) await one.close()
  opened = []
})

async function serving(server: Server): Promise<string> {
  opened.push(server)
  if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
}

async function openProvider() {
  const provider = await startFakeProvider()
  opened.push(provider)
  return provider
}

/** Signs up and follows the link, which stands in the answer of an app without a mailer. */
async function signUp(url: string, email: string) {
  const { body } = await supertest(url).post('/auth/signup').send({ email, password })
  const token = new URL(body.activation_url).pathname.split('/').at(-1)
  return supertest(url).post('/auth/activate').send({ token })
}

test('every example is on docs/examples.md, begins with what it shows, and imports the package by its name', () => {
  const files = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts') && name !== 'minimal.ts')
  const page = readFileSync(join(root, 'docs/examples.md'), 'utf8')

  expect(files).toHaveLength(12)
  for (const file of files) {
    const source = readFileSync(join(root, 'examples', file), 'utf8')
    expect(page, file).toContain(`(../examples/${file})`)
    expect(source, file).toMatch(/^\/\*\*\n \* [A-Z]/)
    expect(source, file).toContain("from 'doorward'")
    expect(source.split('\n').length, file).toBeLessThan(120)
  }
})

test('existing tables: a person and a team together, or neither', async () => {
  const url = await serving(await existingTables.start(0, memory))
  const teams = supertest(url)
  const made = await teams.post('/teams').send({ email: 'ana@example.com', password, team: 'rivers' })
  const refused = await teams.post('/teams').send({ email: 'bea@example.com', password, team: 'rivers' })

  expect([made.status, refused.status]).toEqual([201, 409])
  expect((await teams.post('/teams').send({})).status).toBe(422)
  const activated = await teams.post('/auth/activate').send({ token: made.body.token })
  expect(activated.body).toMatchObject({ user_id: '1', access_token: expect.any(String) })
  expect((await teams.post('/auth/login').send({ email: 'bea@example.com', password })).status).toBe(401)
  expect((await teams.post('/teams').send({ email: 'bea@example.com', password, team: 'hills' })).status).toBe(201)
})

test('cookies and CSRF: no token in a body, and no change without the header', async () => {
  const url = await serving(await cookiesCsrf.start(0, memory))
  await signUp(url, 'ana@example.com')
  const browser = browserOf(url)
  expect((await browser.get('/')).text).toContain('<form method="post">')
  expect((await browser.post('/auth/login').send({ email: 'ana@example.com', password })).body.access_token).toBeNull()
  const { headers } = await browser.get('/api/notes')
  const token = /csrf_token=([^;]*)/.exec(String(headers['set-cookie']))?.[1] ?? ''

  expect((await browser.post('/api/notes').send({ text: 'Hello' })).status).toBe(403)
  expect((await browser.post('/api/notes').set('X-CSRF-Token', decodeURIComponent(token)).send({ text: 'Hello' })).status).toBe(201)
})

test('server-rendered: the private page leads to sign up and sign in, and knows who came', async () => {
  const mails = mailbox()
  const url = await serving(await serverRendered.start(0, { filename: memory, mailer: mails }))
  const browser = browserOf(url)
  const send = (path: string, fields: object) =>
    browser.post(path).set({ Origin: 'http://localhost:3000', 'Sec-Fetch-Site': 'same-origin' }).type('form').send(fields)
  expect((await browser.get('/')).text).toContain('<a href="/boats">')

  const asked = await browser.get('/boats').set({ 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Dest': 'document', Accept: 'text/html' })
  expect([asked.status, String(asked.headers['location'])]).toEqual([302, expect.stringContaining('/auth/')])
  expect((await send('/auth/signup', { email: 'ana@example.com', password })).status).toBe(303)
  const { url: link } = await mails.next({ kind: 'activation', to: 'ana@example.com' })
  const activated = await send(new URL(String(link)).pathname, {})
  expect([activated.status, activated.headers['location']]).toEqual([303, '/auth/account'])
  await send('/auth/logout', {})
  const login = await send('/auth/login', { email: 'ana@example.com', password, return_to: '/boats' })
  expect([login.status, login.headers['location']]).toEqual([303, '/boats'])
  expect((await browser.get('/boats')).text).toContain('<h1>Boats of ana@example.com</h1>')
  expect((await browser.get('/auth/account')).text).toContain('Harbour')
})

test('single-page app: bearer, refresh, and CORS for its one origin', async () => {
  const url = await serving(await spaBearer.start(0, memory))
  await signUp(url, 'ana@example.com')
  const api = supertest(url)
  const { body } = await api.post('/auth/login').send({ email: 'ana@example.com', password })
  const next = await api.post('/auth/refresh').send({ refresh_token: body.refresh_token })
  const hello = await api.get('/api/hello').set('Authorization', `Bearer ${next.body.access_token}`).set('Origin', 'http://localhost:5173')

  expect(hello.body).toEqual({ message: 'Hello, ana@example.com' })
  expect(hello.headers['access-control-allow-origin']).toBe('http://localhost:5173')
  const preflight = await api.options('/auth/login').set('Origin', 'https://elsewhere.example')
  expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, undefined])
})

test('mobile: a token of this application signs in, one of another does not', async () => {
  const provider = await openProvider()
  const { tokeninfoUrl } = provider
  const google = new OidcClient(provider.oidcOptions({ providerName: 'google', extraAudiences: ['ios'], tokeninfoUrl }))
  const url = await serving(await mobileToken.start(0, memory, google))
  const send = (issuedTo: string) =>
    supertest(url)
      .post('/auth/oauth/google/token')
      .send({ access_token: provider.issueAccessToken({ issuedTo }) })

  const { body } = await send('ios')
  expect((await supertest(url).get('/api/hello').set('Authorization', `Bearer ${body.access_token}`)).status).toBe(200)
  expect((await send('another app')).body.code).toBe('OAUTH_TOKEN_AUDIENCE_MISMATCH')
})

test('captcha: nobody signs up, logs in or asks for a link without an answer that Cloudflare takes, once', async () => {
  const good = new Set(['signup:one', 'link:two', 'login:three'])
  const asked: URLSearchParams[] = []
  let isUp = true
  const httpClient: HttpClient = async (_url, { body } = {}) => {
    if (!isUp) throw new Error('no answer')
    const form = new URLSearchParams(body)
    asked.push(form)
    const answer = form.get('response') ?? ''
    const success = form.get('secret') === 'of-the-site' && good.delete(answer)
    return { status: 200, headers: {}, body: JSON.stringify({ success, ...(success && { action: answer.split(':')[0] }) }) }
  }
  Object.assign(process.env, { TURNSTILE_SITE_KEY: 'site', TURNSTILE_SECRET: 'of-the-site' })
  const site = supertest(await serving(await captcha.start(0, memory, httpClient)))
  const email = 'ana@example.com'
  const send = async (path: string, body: object) => (await site.post(`/auth${path}`).send({ email, ...body })).status

  const refused = [{}, { captcha: 'forged' }, { captcha: { toString: 'one' } }, { captcha: 'x'.repeat(4_097) }]
  for (const path of ['/signup', '/login', '/activation/request', '/password-reset/request'])
    for (const body of refused) expect([path, await send(path, { password, ...body })]).toEqual([path, 403])
  expect(asked).toHaveLength(4) // only what looked like an answer
  expect(asked[0]?.get('remoteip')).toBe('127.0.0.1')
  expect((await site.get('/auth/signup')).text).toContain('class="cf-turnstile"')

  expect(await send('/signup', { password, captcha: 'signup:one' })).toBe(201)
  expect(await send('/signup', { password, captcha: 'signup:one' })).toBe(403)
  expect(await send('/activation/request', { captcha: 'link:two' })).toBe(202)
  expect(await send('/login', { password, captcha: 'login:three' })).toBe(401) // not active yet
  isUp = false
  expect(await send('/login', { password, captcha: 'four' })).toBe(503)
})

test('passwordless: a mailed code signs up and in, in the browser that asked, and no page or route takes a password', async () => {
  const mails = mailbox()
  const url = await serving(await passwordless.start(0, memory, mails))
  const [browser, other] = [browserOf(url), browserOf(url)]
  expect((await browser.get('/')).text).toContain('autocomplete="one-time-code"')
  const asked = await browser.post('/auth/email-login/request').send({ email: 'ana@example.com' })
  expect([asked.status, asked.body.code]).toEqual([202, null])
  const { code } = await mails.next({ kind: 'email_login', to: 'ana@example.com' })

  expect((await other.post('/auth/email-login/confirm').send({ code })).status).toBe(401)
  expect((await browser.post('/auth/email-login/confirm').send({ code })).status).toBe(200)
  expect((await browser.get('/')).text).toContain('Signed in as ana@example.com.')
  expect((await other.post('/auth/login').send({ email: 'ana@example.com', password })).status).toBe(404)
  expect((await browser.post('/auth/logout').send({})).status).toBe(204)
  expect((await browser.get('/')).text).not.toContain('ana@example.com')
})

test('guards only: another app checks tokens with nothing but the address of the keys', async () => {
  const issuer = await startIssuer({ settings: { jwtKeys: [makeKey('2026-03', 'ES256')] }, options: { now: () => new Date() } })
  const { body } = await signIn(issuer)
  const keys = await serving(issuer.app.listen(0, '127.0.0.1'))
  const api = supertest(await serving(guardsJwks.start(0, `${keys}/auth/.well-known/jwks.json`)))
  const bearer = { Authorization: `Bearer ${body.access_token}` }

  expect((await api.get('/reports').set(bearer)).body).toEqual({ for: body.user_id })
  expect((await api.get('/reports')).status).toBe(401)
  expect((await api.delete('/reports').set(bearer)).status).toBe(403)
  expect((await api.get('/')).body).toEqual({ hello: 'stranger' })
})

test('custom provider: a person comes back from it and is signed in', async () => {
  const provider = await openProvider()
  const { issuer, clientId, clientSecret } = provider
  const chat = customProvider.chatClient({ url: issuer, id: clientId, secret: clientSecret })
  const url = await serving(await customProvider.start(0, memory, chat))
  const browser = browserOf(url)
  const { headers } = await browser.get('/auth/oauth/chat/login')
  const { callbackQuery } = provider.authorize(String(headers['location']))

  const callback = await browser.get('/auth/oauth/chat/callback').query(callbackQuery)
  expect(callback.body).toMatchObject({ mfa_required: false, access_token: expect.any(String) })
})
