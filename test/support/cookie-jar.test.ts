import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { browserOf } from './browser'
import { testClock } from './clock'
import { checkCookies, cookiesSet, impossibleCookies, oldBrowser, sentAnyway } from './cookie-check'
import { type Asked, cookieJar, type Sender } from './cookie-jar'
import { sendRaw } from './send-raw'

const host = 'app.example.test'

/** What a browser sends with a request after an answer that set this. */
function sent(lines: string | string[], asked: Partial<Asked>, setBy: Partial<Asked> = {}): string | undefined {
  const jar = cookieJar()
  jar.take({ 'set-cookie': [lines].flat() }, { host, path: '/auth/login', ...setBy })
  return jar.header({ host, path: '/', ...asked })
}

describe('the cookie jar of the tests sends a cookie', () => {
  test.each([
    ['/auth', '/auth', true],
    ['/auth', '/auth/', true],
    ['/auth', '/auth/refresh?x=/y', true],
    ['/auth', '/authority', false],
    ['/auth', '/', false],
    ['/auth', '/AUTH/refresh', false],
    ['/auth', '/%61uth/refresh', false],
    ['/auth/', '/auth', false],
    ['/auth/', '/auth/refresh', true],
    ['/auth/cookie', '/auth/refresh', false],
    ['/', '/orders', true],
    ['/%61uth', '/%61uth/refresh', true],
  ])('of Path=%s to %s: %s', (path, to, expected) => {
    expect(sent(`a=1; Path=${path}`, { path: to }) !== undefined).toBe(expected)
  })

  test('without Path only at and below the folder of the address that set it', () => {
    expect(sent('a=1', { path: '/auth/me' })).toBe('a=1')
    expect(sent('a=1', { path: '/orders' })).toBeUndefined()
  })

  test('without Domain only to the host that set it', () => {
    for (const other of ['example.test', 'shop.example.test', `x.${host}`]) expect(sent('a=1; Path=/', { host: other })).toBeUndefined()
  })

  test('with Domain to that host and those below it, and takes none for a foreign host or a public suffix', () => {
    const line = 'a=1; Path=/; Domain=example.test'
    for (const other of [host, 'example.test', 'shop.example.test']) expect(sent(line, { host: other })).toBe('a=1')
    expect(sent(line, { host: 'notexample.test' })).toBeUndefined()
    for (const domain of ['elsewhere.test', `x.${host}`, 'test']) expect(sent(`a=1; Path=/; Domain=${domain}`, {})).toBeUndefined()
  })

  test('with Secure, since every host of the tests speaks https', () => {
    expect(sent('a=1; Path=/; Secure', {})).toBe('a=1')
  })

  test.each<[string, Record<Sender, boolean>]>([
    ['SameSite=Strict', { page: true, link: false, form: false, script: false }],
    ['SameSite=Lax', { page: true, link: true, form: false, script: false }],
    ['SameSite=None; Secure', { page: true, link: true, form: true, script: true }],
  ])('of %s to requests of %o', (attributes, expected) => {
    for (const [by, isSent] of Object.entries(expected) as [Sender, boolean][])
      expect([by, sent(`a=1; Path=/; ${attributes}`, { by }) !== undefined]).toEqual([by, isSent])
  })

  test('of SameSite that another site’s form made an answer set, and none that its script did', () => {
    expect(sent('a=1; Path=/; SameSite=Lax', {}, { by: 'form' })).toBe('a=1')
    expect(sent('a=1; Path=/; SameSite=Lax', {}, { by: 'script' })).toBeUndefined()
  })

  test('never of SameSite=None without Secure', () => {
    expect(sent('a=1; Path=/; SameSite=None', {})).toBeUndefined()
  })

  test.each([
    ['__Host-a=1; Path=/; Secure', true],
    ['__Host-a=1; Path=/', false],
    ['__Host-a=1; Path=/auth; Secure', false],
    ['__Host-a=1; Secure', false],
    ['__Host-a=1; Path=/; Secure; Domain=app.example.test', false],
    ['__Secure-a=1; Path=/; Secure; Domain=example.test', true],
    ['__Secure-a=1; Path=/', false],
    ['=__Host-a=1; Path=/; Secure', false],
  ])('by the rules of its prefix: %s: %s', (line, expected) => {
    expect(sent(line, {}, { path: '/' }) !== undefined).toBe(expected)
  })

  test('until it ends, by the browser’s clock, however often it was sent', () => {
    const clock = testClock()
    const jar = cookieJar(clock)
    const lines = ['short=1; Path=/; Max-Age=60; Expires=Thu, 01 Jan 2099 00:00:00 GMT', 'session=1; Path=/']
    jar.take({ 'set-cookie': lines }, { host, path: '/' })
    clock.advance(59)
    expect(jar.header({ host, path: '/' })).toBe('short=1; session=1')
    clock.advance(1)
    expect(jar.header({ host, path: '/' })).toBe('session=1')
    expect(jar.names()).toEqual(['session'])
  })

  test('until another of the same name, Path and Domain replaces it or ends it, and those alone', () => {
    const set = ['a=1; Path=/', 'a=2; Path=/auth', 'a=3; Path=/; Domain=example.test']
    const end = 'Expires=Thu, 01 Jan 1970 00:00:00 GMT'
    expect(sent([...set, 'a=4; Path=/'], { path: '/auth' })).toBe('a=2; a=4; a=3')
    expect(sent([...set, `a=; Path=/; ${end}`], { path: '/auth' })).toBe('a=2; a=3')
    expect(sent([...set, `a=; Path=/; Domain=example.test; ${end}`], { path: '/auth' })).toBe('a=2; a=1')
  })

  test('that a sibling host planted, the longest path first, and one without a name as its value alone', () => {
    const jar = cookieJar()
    jar.take({ 'set-cookie': ['a=1; Path=/'] }, { host, path: '/' })
    jar.plant({ name: 'a', value: 'x', domain: 'example.test', path: '/orders' })
    jar.plant({ name: '', value: 'a=y', domain: 'example.test', path: '/orders/12' })
    jar.plant({ name: '__Host-a', value: 'x', domain: 'example.test', path: '/' })
    expect(jar.header({ host, path: '/orders/12' })).toBe('a=y; a=x; a=1')
    const end = '=none; Domain=example.test; Path=/orders/12; Expires=Thu, 01 Jan 1970 00:00:00 GMT'
    jar.take({ 'set-cookie': [end] }, { host, path: '/orders/12' })
    expect(jar.header({ host, path: '/orders/12' })).toBe('a=x; a=1')
  })
})

/** A host that sets one cookie and tells which ones came. */
function telling(line: string): Express {
  const app = express()
  app.use(checkCookies(host))
  app.post('/auth/login', (_req, res) => void res.setHeader('Set-Cookie', line).json({}))
  app.use((req, res) => void res.json({ cookie: req.headers.cookie ?? null, headers: Object.keys(req.headers) }))
  return app
}

describe('a test’s browser', () => {
  test('sends what the jar sends for the public origin, whichever port the request goes to', async () => {
    const browser = browserOf(telling('__Host-a=1; Path=/; Secure; HttpOnly; SameSite=Lax'), { host })
    await browser.post('/auth/login')
    expect((await browser.get('/orders')).body.cookie).toBe('__Host-a=1')
    expect((await browser.get('/orders').set({ Host: 'shop.example.test' })).body.cookie).toBeNull()
    const scoped = browserOf(telling('a=1; Path=/auth; Domain=example.test'), { host })
    await scoped.post('/auth/login')
    expect((await scoped.get('/orders')).body.cookie).toBeNull()
    expect((await scoped.get('/auth/me').set({ Host: 'shop.example.test' })).body.cookie).toBe('a=1')
  })

  test.each([
    ['POST', { Origin: 'https://elsewhere.example' }, null],
    ['POST', { 'Sec-Fetch-Site': 'cross-site' }, null],
    ['POST', { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }, null],
    ['GET', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'image' }, null],
    ['GET', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }, 'a=1'],
    ['POST', { Origin: 'https://shop.example.test', 'Sec-Fetch-Site': 'same-site' }, 'a=1'],
    ['POST', { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }, 'a=1'],
    ['POST', {}, 'a=1'],
  ])('attaches a Lax cookie by who asks: %s with %o gets %s', async (method, headers, expected) => {
    const browser = browserOf(telling('a=1; Path=/; SameSite=Lax'), { host })
    await browser.post('/auth/login')
    const asked = method === 'GET' ? browser.get('/orders') : browser.post('/orders')
    expect((await asked.set(headers as Record<string, string>)).body.cookie).toBe(expected)
  })
})

describe('a Cookie header that a test builds', () => {
  const line = 'refresh_token=abc; Path=/auth; HttpOnly; SameSite=Lax'

  async function send(path: string, Cookie: string, headers: Record<string, string> = {}, setting = line) {
    cookiesSet.clear()
    const app = telling(setting)
    await sendRaw(app, { path: '/auth/login' })
    const answer = await sendRaw(app, { path, headers: { Cookie, ...headers } })
    return { answer, told: impossibleCookies.splice(0) }
  }

  test('fails the test where it has a cookie of an answer that no browser sends to this path', async () => {
    const { answer, told } = await send('/orders?page=2', 'x=y; refresh_token=abc')
    expect(answer.status).toBe(500)
    expect(told).toEqual([
      'No browser sends the cookie refresh_token (Path=/auth; HttpOnly; SameSite=Lax) with this request: POST app.example.test/orders. See test/support/cookie-check.ts.',
    ])
  })

  test('fails the test where another site’s request has a Lax cookie, and where a browser had not taken the cookie', async () => {
    const foreign = await send('/auth/refresh', 'refresh_token=abc', { Origin: 'https://elsewhere.example' })
    expect(foreign.told).toEqual([
      expect.stringContaining('with this request of another site’s script: POST app.example.test/auth/refresh'),
    ])
    expect((await send('/auth/refresh', '__Host-a=1', {}, '__Host-a=1; Path=/auth; Secure')).told).toHaveLength(1)
  })

  test('passes where a browser sends it, encoded or not, and where no answer has set this value', async () => {
    for (const [path, cookie, setting] of [
      ['/auth/refresh', 'refresh_token=abc'],
      ['/orders', 'refresh_token=another'],
      ['/orders', 'other=abc'],
      ['/auth', 'a=%C3%A1', 'a=%C3%A1; Path=/auth'],
      ['/auth', 'a=b', 'a=b; Path=/auth; Max-Age=60'],
    ] as const) {
      const { answer, told } = await send(path, cookie, {}, setting)
      expect([answer.status, answer.body['cookie'], told]).toEqual([200, cookie, []])
    }
  })

  test('passes where the test states why, and the app does not see that statement', async () => {
    const { answer, told } = await send('/orders', 'refresh_token=abc', sentAnyway('a thief with curl'))
    expect([answer.status, answer.body['cookie'], told]).toEqual([200, 'refresh_token=abc', []])
    expect(answer.body['headers']).not.toContain(Object.keys(sentAnyway(''))[0])
  })

  test('passes from another site where the browser knows no SameSite, which does not lift the other rules', async () => {
    const foreign = { Origin: 'https://elsewhere.example', ...oldBrowser }
    const { answer, told } = await send('/auth/refresh', 'refresh_token=abc', foreign)
    expect([answer.status, answer.body['cookie'], told]).toEqual([200, 'refresh_token=abc', []])
    expect(answer.body['headers']).not.toContain(Object.keys(oldBrowser)[0])
    expect((await send('/orders', 'refresh_token=abc', foreign)).told).toHaveLength(1)
  })
})
