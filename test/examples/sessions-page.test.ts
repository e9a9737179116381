import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import * as doorward from 'doorward'
import type { Express } from 'express'
import knex, { type Knex } from 'knex'
import ts from 'typescript'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port'
import { navigate } from '../support/navigate'
import { makeKey } from '../support/signing-keys'

/** The examples of docs/sessions.md, run as they stand on the page. */

const page = readFileSync(join(import.meta.dirname, '../../docs/sessions.md'), 'utf8')
const require = createRequire(import.meta.url)
const person = { email: 'maya@example.com', password: 'three quiet green rivers' }
const mailer = { send: async () => {} }

interface Tokens {
  user_id: string
  access_token: string
  refresh_token: string
}

interface Example {
  createApp(knex: Knex, mailer: doorward.Mailer): Express
  createReports(): Express
  createSession(base: string, tokens: Tokens): { callApi(path: string): Promise<Response>; logOut(): Promise<Response> }
}

let database: Knex
let closers: (() => void)[]
beforeEach(async () => {
  closers = []
  database = knex({ client: 'better-sqlite3', connection: ':memory:', useNullAsDefault: true })
  await doorward.createAuthTables(database)
  vi.stubEnv('AUTH_JWT_SECRET', randomBytes(48).toString('base64'))
  vi.stubEnv('CSRF_SECRET', randomBytes(48).toString('base64'))
  vi.stubEnv('AUTH_PUBLIC_URL', 'https://app.example.com')
  vi.stubEnv('AUTH_AUTO_ACTIVATE', 'true')
  vi.stubEnv('GOOGLE_ID', 'id')
  vi.stubEnv('GOOGLE_SECRET', 'secret')
})
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const close of closers) close()
  await database.destroy()
})

const sameSite = 'A single-page app on the same site'

test('a single-page app on the same site: a session cookie, a CSRF token for changes, and a logout that counts at once', async () => {
  const browser = await browserOf(run(sameSite).createApp(database, mailer))
  const order = (csrf: string) => browser.send('POST', '/api/orders', { what: 'tea' }, { 'x-csrf-token': csrf })
  await browser.send('POST', '/auth/signup', person)
  await browser.send('POST', '/auth/logout')
  await browser.send('POST', '/auth/session/login', person)

  expect((await browser.send('GET', '/api/orders')).status).toBe(200)
  expect((await order('')).status).toBe(403)
  expect((await order(browser.cookies.get('csrf_token') ?? '')).status).toBe(201)

  expect((await browser.send('POST', '/auth/logout')).status).toBe(204)
  expect((await browser.send('GET', '/api/orders')).status).toBe(401)
})

test('the same with delivery cookie: a refresh, and a logout', async () => {
  const withCookies = run(sameSite, (code) => code.replace("tokenDelivery: 'session'", "tokenDelivery: 'cookie'"))
  const browser = await browserOf(withCookies.createApp(database, mailer))
  const order = (csrf: string) => browser.send('POST', '/api/orders', { what: 'tea' }, { 'x-csrf-token': csrf })
  await browser.send('POST', '/auth/signup', person)

  expect((await browser.send('GET', '/api/orders')).status).toBe(200)
  browser.cookies.delete('access_token')
  expect((await browser.send('GET', '/api/orders')).status).toBe(401)
  expect((await browser.send('POST', '/auth/refresh')).status).toBe(200)
  expect((await order(browser.cookies.get('csrf_token') ?? '')).status).toBe(201)

  expect((await browser.send('POST', '/auth/logout')).status).toBe(204)
  expect((await browser.send('GET', '/api/orders')).status).toBe(401)
})

test('the table says how many lines of browser code each way needs, as the scripts of the page have them', () => {
  const linesOf = (script: string) => script.split('\n').filter((line) => line.trim() !== '' && !/<\/?script/.test(line)).length
  const scripts = [...page.matchAll(/```html\n(.*?)```/gs)].map(([, script = '']) => linesOf(script))
  const [, session = ''] = /```ts\n(export interface Tokens.*?)```/s.exec(page) ?? []
  const told = [...page.matchAll(/^\|.*\| (\d+) lines \|/gm)].map(([, count]) => Number(count))
  const [bySession, byCookie] = scripts
  expect(told).toEqual([bySession, byCookie, linesOf(session), byCookie])
})

test('a single-page app on another site: one refresh for all requests that wait, and none after a logout', async () => {
  const { createApp, createSession } = run('A single-page app on another site')
  const { url, send } = await browserOf(createApp(database, mailer))
  const tokens = await tokensOf(send('POST', '/auth/signup', person))
  const session = createSession(url, { ...tokens, access_token: 'expired' })

  const answers = await Promise.all([session.callApi('/api/orders'), session.callApi('/api/orders'), session.callApi('/api/orders')])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(await database('auth_sessions').select('generation', 'revoked_at')).toEqual([{ generation: 1, revoked_at: null }])

  await session.logOut()
  expect((await createSession(url, { ...tokens, access_token: 'expired' }).callApi('/api/orders')).status).toBe(401)
})

test('a single-page app on another site: a login by a provider may end at its address, and at no other', async () => {
  const { url } = await browserOf(run('A single-page app on another site').createApp(database, mailer))
  const begin = (redirect_to: string) =>
    navigate(new URL(`/auth/oauth/google/login?${new URLSearchParams({ redirect_to, code_challenge: 'c'.repeat(43) })}`, url))

  expect((await begin('https://spa.example.org/signed-in')).headers.get('location')).toMatch(/^https:\/\/accounts\.google\.com\//)
  expect((await begin('https://spa.example.org/elsewhere')).status).toBe(422)
})

test('a native app: the answer of a refresh that was lost comes again', async () => {
  const { send } = await browserOf(run('A native app').createApp(database, mailer))
  const { refresh_token } = await tokensOf(send('POST', '/auth/signup', person))
  const refresh = () => tokensOf(send('POST', '/auth/refresh', { refresh_token }))

  const lost = await refresh()
  expect(lost.refresh_token).toMatch(/.{100}/)
  expect((await refresh()).refresh_token).toBe(lost.refresh_token)
})

test('a server-rendered site: to the sign-in page and back, a form with its token, and a logout that counts at once', async () => {
  const browser = await browserOf(run('A server-rendered site').createApp(database, mailer))
  const orders = () => browser.send('GET', '/orders', undefined, { accept: 'text/html' })
  expect((await orders()).headers.get('location')).toBe('/login?return_to=%2Forders')

  await browser.send('POST', '/auth/signup', person)
  await browser.send('POST', '/auth/logout')
  expect((await browser.submit('/login', { ...person, password: 'wrong' })).status).toBe(401)
  expect((await browser.submit('/login', person)).headers.get('location')).toBe('/orders')
  const html = await (await orders()).text()
  expect(html).toContain('Orders of ')
  expect((await browser.submit('/orders', { _csrf: '' })).status).toBe(403)
  expect((await browser.submit('/orders', { _csrf: /value="(.+?)"/.exec(html)?.[1] ?? '' })).status).toBe(303)

  await browser.send('POST', '/auth/logout')
  expect((await orders()).status).toBe(302)
})

test('several services: the one beside the issuer needs its address and its own name', async () => {
  const port = await freePort()
  const issuer = `http://localhost:${port}/auth`
  vi.stubEnv('AUTH_PUBLIC_URL', `http://localhost:${port}`)
  vi.stubEnv('AUTH_JWT_KEYS', JSON.stringify([makeKey('2026-03', 'ES256')]))
  const example = run('Several services', (code) => code.replaceAll('https://id.example.com/auth', issuer))
  const { send } = await browserOf(example.createApp(database, mailer), port)
  const reports = await browserOf(example.createReports())
  const { access_token, user_id } = await tokensOf(send('POST', '/auth/signup', person))

  const answer = await reports.send('GET', '/reports', undefined, { authorization: `Bearer ${access_token}` })
  expect([answer.status, await answer.json()]).toEqual([200, { for: user_id }])
})

async function tokensOf(answer: Promise<Response>): Promise<Tokens> {
  return (await (await answer).json()) as Tokens // of a login
}

/** Runs every `ts` block below a heading of the page, and returns what they export. */
function run(heading: string, change = (code: string) => code): Example {
  const [, section = ''] = page.split(`\n### ${heading}\n`)
  const blocks = [...(section.split(/\n##/)[0] ?? '').matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => change(code))
  const options = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023, esModuleInterop: true }
  const exported = {}
  for (const code of blocks) {
    const { outputText } = ts.transpileModule(code, { compilerOptions: options })
    new Function('require', 'exports', outputText)((name: string) => (name === 'doorward' ? doorward : require(name)), exported)
  }
  return exported as Example // the tests call what they find
}

/** Serves an app, and keeps its cookies as a browser on https would. */
async function browserOf(app: Express, port = 0) {
  const server = createServer(app).listen(port, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : port}`
  const cookies = new Map<string, string>()

  async function request(method: string, path: string, body: string | null, headers: Record<string, string>) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
    const response = await fetch(url + path, { method, redirect: 'manual', body, headers: { ...headers, cookie } })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    return response
  }
  return {
    url,
    cookies,
    send: (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
      request(method, path, body ? JSON.stringify(body) : null, body ? { 'content-type': 'application/json', ...headers } : headers),
    submit: (path: string, fields: Record<string, string>) =>
      request('POST', path, String(new URLSearchParams(fields)), { 'content-type': 'application/x-www-form-urlencoded' }),
  }
}
