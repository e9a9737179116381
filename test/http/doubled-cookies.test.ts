import express, { type RequestHandler } from 'express'
import { beforeAll, describe, expect, test } from 'vitest'
import { createGuards, type GuardsOptions } from '../../src'
import { type Mounted, setCookieOf, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { sentAnyway } from '../support/cookie-check'
import { type CookieJar, cookieJar } from '../support/cookie-jar'
import { sendRaw } from '../support/send-raw'

const start = appPerTest()
const host = 'app.example.test'
const password = 'correct horse battery'
const account = { email: 'ana@example.test', password, name: 'Ana' }

const settings = { jwtSecret: testSecret, tokenDelivery: 'cookie', localAccountsEnabled: true, autoActivate: true } as const

/** A host whose orders only signed-in people see. */
async function shop(more: object = {}): Promise<Mounted> {
  return start({
    settings: { ...settings, ...more },
    host: (app, auth) => {
      const sees: RequestHandler = (_req, res) => void res.json({ seen: true })
      app.get('/orders', auth.guards.requireAuth(), sees)
      app.get('/orders/:id', auth.guards.requireAuth(), sees)
      app.get('/public', auth.guards.optionalAuth(), sees)
      app.get('/account', auth.guards.requireSession(), sees)
    },
  })
}

/** One request of a browser, which keeps what the answer sets. */
async function ask(
  mounted: Pick<Mounted, 'app'>,
  jar: CookieJar,
  path: string,
  { method = 'GET', body }: { method?: string; body?: object } = {},
) {
  const cookie = jar.header({ host, path })
  const answer = await sendRaw(mounted.app, {
    method,
    path,
    headers: { Host: host, ...(cookie && { Cookie: cookie }), ...(body && { 'Content-Type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  jar.take(answer.headers, { host, path })
  return answer
}

async function signedUp(mounted: Mounted): Promise<CookieJar> {
  const jar = cookieJar()
  const answer = await ask(mounted, jar, '/auth/signup', { method: 'POST', body: account })
  expect(answer.status, answer.text).toBe(201)
  return jar
}

const logIn = (mounted: Mounted, jar: CookieJar, path = '/auth/login') =>
  ask(mounted, jar, path, { method: 'POST', body: { email: account.email, password } })

const linesOf = (answer: { headers: Record<string, unknown> }, name: string) =>
  ((answer.headers['set-cookie'] ?? []) as string[]).filter((line) => line.startsWith(`${name}=`))

describe('X21: a sibling subdomain plants a second cookie', () => {
  test.each(['/orders', '/orders/12', '/'])('a value that is not ours at %s does not count, and is not deleted (25.7.8)', async (path) => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    jar.plant({ name: 'access_token', value: 'x', domain: 'example.test', path })

    for (const asked of ['/orders/12', '/orders', '/public']) {
      const answer = await ask(mounted, jar, asked)
      expect([asked, answer.status, answer.headers['set-cookie']]).toEqual([asked, 200, undefined])
    }
    expect(jar.header({ host, path: '/orders/12' })).toContain('access_token=x')
  })

  test('two cookies with one name are one log line for each name, and a finding of doctor', async () => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    jar.plant({ name: 'access_token', value: 'x', domain: 'example.test', path: '/' })
    for (let times = 0; times < 3; times += 1) await ask(mounted, jar, '/orders')

    const lines = mounted.logs.entries.filter(({ message }) => message.includes('two cookies named access_token'))
    expect(lines.map(({ message }) => message)).toEqual([expect.stringMatching(/its own accessCookieName.*#two-cookies-with-one-name/)])
    const { findings } = await mounted.auth.doctor()
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'seen-in-requests', what: expect.stringContaining('two cookies named access_token') }),
    )
  })

  test.each(['/', '/orders', '/orders/12'])('a cookie without a name at %s that a browser sends as ours shuts nobody out', async (path) => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    jar.plant({ name: '', value: 'access_token=x', domain: 'example.test', path })

    expect((await ask(mounted, jar, '/orders/12')).status).toBe(200)
  })

  test('where a browser sends the sign before it, it is no second cookie of ours', async () => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    const Cookie = `=access_token=x; ${jar.header({ host, path: '/orders' })}; =access_token=y`
    const answer = await sendRaw(mounted.app, { method: 'GET', path: '/orders', headers: { Host: host, Cookie } })
    expect([answer.status, answer.headers['set-cookie']]).toEqual([200, undefined])
  })

  test('a login that finds foreign values first removes what this router can set, and the login counts', async () => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    for (const name of ['access_token', 'refresh_token', 'auth_session'])
      for (const path of ['/', '/auth', '/auth/', '/auth/login']) jar.plant({ name, value: 'x', domain: 'example.test', path })

    const answer = await logIn(mounted, jar)

    expect(answer.status, answer.text).toBe(200)
    for (const name of ['access_token', 'refresh_token']) {
      const lines = linesOf(answer, name)
      expect(lines.slice(0, -1).every((line) => line.includes('Expires=Thu, 01 Jan 1970'))).toBe(true)
      expect(lines.at(-1)).toContain('HttpOnly')
      expect(lines.some((line) => line.includes('Domain='))).toBe(false)
    }
    expect((await ask(mounted, jar, '/orders')).status).toBe(200)
    expect((await ask(mounted, jar, '/auth/refresh', { method: 'POST' })).status).toBe(200)
  })

  test('guards without a router do the same, and without the keys they accept none of the two', async () => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    jar.plant({ name: 'access_token', value: 'x', domain: 'example.test', path: '/orders' })
    const tokenDelivery = 'cookie'
    const statusWith = async (more: object) => {
      const guards = createGuards({ settings: { tokenDelivery, ...more }, now: mounted.clock.now, logger: silent } as GuardsOptions)
      const api = express().get('/orders', guards.requireAuth(), (_req, res) => void res.json({}))
      return (await ask({ app: api }, jar, '/orders')).status
    }
    expect(await statusWith({ jwtSecret: testSecret })).toBe(200)
    expect(await statusWith({ jwksUri: 'http://127.0.0.1:1/', algorithms: ['ES256'] })).toBe(401)
  })
})

const silent = { info() {}, warn() {}, error() {} }

/** A session of an attacker's own, in the same app. */
async function attackersCookies(mounted: Mounted): Promise<CookieJar> {
  const jar = cookieJar()
  const body = { ...account, email: 'mallory@example.test' }
  expect((await ask(mounted, jar, '/auth/signup', { method: 'POST', body })).status).toBe(201)
  await ask(mounted, jar, '/auth/session/login', { method: 'POST', body: { email: body.email, password } })
  await ask(mounted, jar, '/auth/oauth/corp/login')
  return jar
}

describe('X20: a sibling subdomain plants a session of its own', () => {
  test.each(['access_token', 'refresh_token', 'auth_session', 'oauth_state'])(
    '%s of two own values is none, and both are deleted everywhere',
    async (name) => {
      const mounted = await shop()
      const jar = await signedUp(mounted)
      await logIn(mounted, jar, '/auth/session/login')
      await ask(mounted, jar, '/auth/oauth/corp/login')
      const paths = {
        access_token: '/orders',
        refresh_token: '/auth/refresh',
        auth_session: '/account',
        oauth_state: '/auth/oauth/corp/callback?state=x&code=y',
      }
      const path = paths[name as keyof typeof paths]
      const planted = (await attackersCookies(mounted)).header({ host, path }) ?? ''
      const value = new RegExp(`${name}=([^;]+)`).exec(planted)?.[1] ?? ''
      expect(value).not.toBe('')
      jar.plant({ name, value, domain: 'example.test', path: '/' })

      const answer = await ask(mounted, jar, path, name === 'refresh_token' ? { method: 'POST' } : {})

      expect(answer.status, answer.text).toBe(401)
      expect(linesOf(answer, name).some((line) => line.includes('Domain=example.test; Path=/;'))).toBe(true)
      expect(jar.names()).not.toContain(name)
    },
  )
})

describe('the expiries', () => {
  let doubled = ''
  beforeAll(async () => {
    const mounted = await shop()
    const tokens: string[] = []
    for (const email of ['one@example.test', 'two@example.test']) {
      const answer = await ask(mounted, cookieJar(), '/auth/signup', { method: 'POST', body: { ...account, email } })
      tokens.push(String(linesOf(answer, 'access_token')[0]?.split(';')[0]))
    }
    doubled = tokens.join('; ')
    expect(new Set(tokens).size).toBe(2)
  })

  async function pathsAndDomains(path: string, { headers = {}, more = {} }: { headers?: Record<string, string>; more?: object } = {}) {
    const mounted = await shop(more)
    const answer = await sendRaw(mounted.app, {
      method: 'GET',
      path,
      headers: { Host: host, Cookie: doubled, ...headers, ...sentAnyway('the cookies of two apps') },
    })
    const lines = linesOf(answer, 'access_token')
    expect(new Set(lines).size).toBe(lines.length)
    return {
      lines,
      paths: [...new Set(lines.map((line) => /Path=([^;]*)/.exec(line)?.[1]))],
      domains: [...new Set(lines.map((line) => /Domain=([^;]*)/.exec(line)?.[1] ?? ''))],
    }
  }

  test('cover every parent path of the request with and without its last slash, and our own paths', async () => {
    const { paths, domains, lines } = await pathsAndDomains('/orders/12?x=/y/z')
    expect(paths.sort()).toEqual(['/', '/auth', '/orders', '/orders/', '/orders/12'])
    expect(domains).toEqual(['', 'example.test', 'app.example.test'])
    expect(lines).toHaveLength(15)
  })

  test('are at most 8 paths and 3 domains, however deep the page is, and each path has its turn', async () => {
    const seen = new Set<string>()
    const deep = express().use(
      createGuards({ settings: { jwtSecret: testSecret, tokenDelivery: 'cookie' } }).requireAuth(),
      (_req, res) => void res.end(),
    )
    for (let round = 0; round < 60; round += 1) {
      const answer = await sendRaw(deep, {
        method: 'GET',
        path: '/orders/1/2/3/4/5/6',
        headers: { Host: `a.b.c.${host}`, Cookie: doubled },
      })
      const lines = linesOf(answer, 'access_token')
      expect(lines).toHaveLength(24)
      for (const line of lines) seen.add(String(/Path=([^;]*)/.exec(line)?.[1]))
    }
    expect(seen).toContain('/orders/1/2/3/4/5/6')
    expect(seen).toContain('/orders/1/2/3/4/5/')
    expect(seen.size).toBe(14)
  })

  test('name cookieDomain first, and the public origin where a proxy changed Host', async () => {
    expect((await pathsAndDomains('/orders', { more: { cookieDomain: 'app.example.test' } })).domains).toEqual([
      '',
      'app.example.test',
      'example.test',
    ])
    const behind = { headers: { Host: 'upstream' }, more: { oauthRedirectBaseUrl: 'https://shop.example.test' } }
    expect((await pathsAndDomains('/orders', behind)).domains).toEqual(['', 'example.test', 'shop.example.test'])
  })

  test('have no domain for an address of numbers or a name without dots', async () => {
    for (const name of ['127.0.0.1:3000', 'localhost', '[::1]:80', 'a'.repeat(300)])
      expect(
        (await pathsAndDomains('/orders', { headers: { Host: name }, more: { oauthRedirectBaseUrl: 'http://localhost:3000' } })).domains,
      ).toEqual([''])
  })

  test('nothing of a strange path or host gets into a header', async () => {
    const guarded = express().use(
      createGuards({ settings: { jwtSecret: testSecret, tokenDelivery: 'cookie' } }).requireAuth(),
      (_req, res) => void res.end(),
    )
    for (const path of ['/a;Domain=evil.test', '//evil.test/x', `/${'x'.repeat(2000)}/y`, '/%0d%0aSet-Cookie:x=y']) {
      const answer = await sendRaw(guarded, { method: 'GET', path, headers: { Host: 'evil.test;x=y', Cookie: doubled } })
      expect(answer.status, path).toBe(401)
      for (const line of linesOf(answer, 'access_token'))
        expect(line).toMatch(/^access_token=; Path=\/[^; ]{0,254}; Expires=Thu, 01 Jan 1970 00:00:00 GMT$/)
    }
  })

  test('are sent once, and only where a name came twice', async () => {
    const mounted = await shop()
    const jar = await signedUp(mounted)
    for (const cookie of [
      String(jar.header({ host, path: '/orders' })),
      'access_token=x; my_access_token=y',
      'xaccess_token=a; access_token=b',
    ])
      expect(
        (await sendRaw(mounted.app, { method: 'GET', path: '/orders', headers: { Host: host, Cookie: cookie } })).headers['set-cookie'],
      ).toBeUndefined()
    expect(setCookieOf(await logIn(mounted, cookieJar()), 'access_token')?.value).toMatch(/^eyJ/)
  })

  test('a header with many doubled names stays below what proxies take', async () => {
    const mounted = await shop()
    const names = ['access_token', 'refresh_token', 'auth_session', 'oauth_state']
    const cookie = names.map((name) => `${name}=a; ${name}=b`).join('; ')
    const answer = await sendRaw(mounted.app, { method: 'POST', path: '/auth/logout', headers: { Host: host, Cookie: cookie } })
    expect(answer.status).toBe(204)
    expect(((answer.headers['set-cookie'] ?? []) as string[]).join('\r\nSet-Cookie: ').length).toBeLessThan(6_000)
  })
})
