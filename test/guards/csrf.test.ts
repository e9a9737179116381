import { randomBytes } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Request, type RequestHandler, type Response } from 'express'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { ConfigurationError, type CsrfGuardOptions, createGuards, csrfGuard, csrfToken } from '../../src'
import { deriveKeys, secretAccessKey } from '../../src/core/keys'
import { signAccessToken } from '../../src/sessions/access-token'
import { type RawAnswer, type RawRequest, sendRaw } from '../support/send-raw'

const secret = randomBytes(32).toString('base64url')
const host = 'app.example.test'
const token = randomBytes(32).toString('base64url')

/** A host whose every route is behind the guard; `before` is what it mounts earlier. */
function hostWith(options: CsrfGuardOptions = {}, before: RequestHandler[] = []) {
  const app = express()
  for (const middleware of before) app.use(middleware)
  app.use(
    csrfToken({ secure: false, ...(options.secret && { secret: options.secret }), ...(options.session && { session: options.session }) }),
  )
  app.use(csrfGuard(options))
  app.use((req, res) => void res.json({ method: req.method, token: res.locals['csrfToken'] }))
  return app
}

const pair = (value: string): RawRequest['headers'] => ({ Cookie: `csrf_token=${value}`, 'X-CSRF-Token': value })

function post(options: CsrfGuardOptions, headers: RawRequest['headers'], more: Partial<RawRequest> = {}) {
  return sendRaw(hostWith(options), { path: '/orders', ...more, headers: { Host: host, ...headers } })
}

/** A token as a browser with these cookies gets it. */
async function tokenFor(options: CsrfGuardOptions, cookie?: string): Promise<string> {
  const answer = await sendRaw(hostWith(options), { method: 'GET', path: '/', headers: { Host: host, ...(cookie && { Cookie: cookie }) } })
  return String(answer.body['token'])
}

function expectRefused(answer: RawAnswer, reason: string, what?: string): void {
  expect([answer.status, answer.body['code'], answer.body['details']], what).toEqual([403, 'CSRF_VALIDATION_FAILED', { reason }])
}

describe('the double submit', () => {
  test('R-121 cookie and header with one value let POST, PUT, PATCH and DELETE through; GET, HEAD and OPTIONS need neither', async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      expect((await post({}, pair(token), { method })).status, method).toBe(200)
      expectRefused(await post({}, {}, { method }), 'no_cookie', method)
    }
    for (const method of ['GET', 'HEAD', 'OPTIONS']) expect((await post({}, {}, { method })).status, method).toBe(200)
  })

  test('R-121 D15 either side missing, empty, an object, sent twice or another is refused', async () => {
    const other = randomBytes(32).toString('base64url')
    const noToken: RawRequest['headers'][] = [
      { Cookie: `csrf_token=${token}` },
      { Cookie: `csrf_token=${token}`, 'X-CSRF-Token': [token, token] },
    ]
    const noCookie: RawRequest['headers'][] = [
      { 'X-CSRF-Token': token },
      { Cookie: 'csrf_token=', 'X-CSRF-Token': '' },
      { Cookie: 'csrf_token=""', 'X-CSRF-Token': '' },
      { Cookie: 'csrf_token', 'X-CSRF-Token': 'csrf_token' },
      { Cookie: 'csrf_token=j:{"a":1}', 'X-CSRF-Token': 'j:{"a":1}' },
      { Cookie: 'csrf_token=j%3A%7B%22a%22%3A1%7D', 'X-CSRF-Token': '[object Object]' },
      { Cookie: `csrf_token=${token}; csrf_token=${token}`, 'X-CSRF-Token': token },
      { Cookie: [`csrf_token=${token}`, `csrf_token=${other}`], 'X-CSRF-Token': token },
      { Cookie: `CSRF_TOKEN=${token}`, 'X-CSRF-Token': token },
    ]
    for (const headers of noCookie) expectRefused(await post({}, headers), 'no_cookie', JSON.stringify(headers))
    for (const headers of noToken) expectRefused(await post({}, headers), 'no_token', JSON.stringify(headers))
    const unequal = [other, token.slice(1), `${token}x`, token.toLowerCase()]
    for (const value of unequal) expectRefused(await post({}, { Cookie: `csrf_token=${token}`, 'X-CSRF-Token': value }), 'mismatch', value)
  })

  test('T05 values of unequal length are a refusal, not a failure', async () => {
    expect((await post({}, { Cookie: 'csrf_token=a', 'X-CSRF-Token': 'x'.repeat(4000) })).status).toBe(403)
  })

  test('R-121 the method is the one Express routes by, and a header alone changes none', async () => {
    const override: RequestHandler = (req, _res, next) => {
      req.method = String(req.headers['x-http-method-override'] ?? req.method)
      next()
    }
    const overridden = await sendRaw(hostWith({}, [override]), {
      method: 'GET',
      path: '/',
      headers: { 'X-HTTP-Method-Override': 'DELETE' },
    })
    expectRefused(overridden, 'no_cookie')
    expectRefused(await post({}, { 'X-HTTP-Method-Override': 'GET' }), 'no_cookie')
    expectRefused(await post({}, {}, { method: 'PROPFIND' }), 'no_cookie')
  })

  test('csrfToken mints a cookie that script can read, keeps it, and keeps nothing else', async () => {
    const app = express().use(csrfToken(), (_req, res) => void res.json({ token: res.locals['csrfToken'] }))
    const first = await sendRaw(app, { method: 'GET', path: '/' })
    const minted = String(first.body['token'])
    expect(minted).toMatch(/^[\w-]{43}$/)
    expect(first.headers['set-cookie']).toEqual([`csrf_token=${minted}; Path=/; Secure; SameSite=Lax`])
    expect([first.headers['vary'], first.headers['cache-control']]).toEqual(['Cookie', 'private, no-store'])

    const again = await sendRaw(app, { method: 'GET', path: '/', headers: { Cookie: `csrf_token=${minted}` } })
    expect([again.body['token'], again.headers['set-cookie']]).toEqual([minted, undefined])
    for (const planted of ['"><script>', 'j:{"a":1}', `${minted}; csrf_token=${token}`]) {
      const answer = await sendRaw(app, { method: 'GET', path: '/', headers: { Cookie: `csrf_token=${planted}` } })
      expect(answer.body['token'], planted).toMatch(/^[\w-]{43}$/)
      expect([minted, token]).not.toContain(answer.body['token'])
    }
  })
})

describe('which page asks', () => {
  test('R-121 R-122 equal values do not help a page of another site; its own, and clients that say nothing, pass', async () => {
    const listed: CsrfGuardOptions = { trustedOrigins: ['https://admin.example.test'] }
    const refused: Record<string, string | string[]>[] = [
      { Origin: 'https://evil.example' },
      { Origin: `https://evil.${host}` },
      { Origin: `https://${host}.evil.example` },
      { Origin: `https://${host}:8443` },
      { Origin: 'https://admin.example.test.evil.example' },
      { Origin: 'null' },
      { Origin: '' },
      { Origin: `https://${host}/` },
      { Origin: `https://${host}, https://evil.example` },
      { Origin: [`https://${host}`, 'https://evil.example'] },
      { Origin: `http://${host}`, 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'anything' },
    ]
    for (const headers of refused) {
      const reason = 'Sec-Fetch-Site' in headers ? 'site' : 'origin'
      expectRefused(await post(listed, { ...pair(token), ...headers }), reason, JSON.stringify(headers))
    }
    const passing: RawRequest['headers'][] = [
      {},
      { Origin: `https://${host}` },
      { Origin: `https://${host}`, 'Sec-Fetch-Site': 'same-origin' },
      { Origin: 'https://admin.example.test', 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
      { Origin: `https://${host}`, Host: `${host.toUpperCase()}:443` },
      { Origin: 'http://localhost:3000', Host: 'localhost:3000' },
    ]
    for (const headers of passing) expect((await post(listed, { ...pair(token), ...headers })).status, JSON.stringify(headers)).toBe(200)
  })
})

describe('signed tokens', () => {
  const signed: CsrfGuardOptions = { secret }

  test('R-121 D15 equal but unsigned values, or values signed under another secret, are refused', async () => {
    const { token: own, cookies } = await page(hostWith(signed))
    expect((await post(signed, { Cookie: cookies, 'X-CSRF-Token': own })).status).toBe(200)
    expectRefused(await post(signed, pair(token)), 'signature')
    expectRefused(await post(signed, pair(await tokenFor({ secret: randomBytes(32).toString('base64url') }))), 'signature')
  })

  /** A host whose guard names the session by a header, as an access token does; the CSRF guard stands before it or behind it. */
  function sessions(order: 'guard first' | 'csrf first' | 'token behind, check before', more: CsrfGuardOptions = {}) {
    const guards = createGuards({ settings: { jwtSecret: secret, tokenDelivery: 'cookie' } })
    const csrf = { secret, ...more }
    const [token, check, guard] = [csrfToken({ ...csrf, secure: false }), csrfGuard(csrf), guards.optionalAuth()]
    const orders = {
      'guard first': [guard, token, check],
      'csrf first': [token, check, guard],
      'token behind, check before': [check, guard, token],
    }
    return express().use(orders[order], (_req: Request, res: Response) => void res.json({ token: res.locals['csrfToken'] }))
  }

  const sessionOf = (sid: string | null, sub = 'ana') =>
    `access_token=${signAccessToken(tokenContext, { id: sub, email: 'ana@example.test' }, { amr: ['pwd'], sessionId: sid, authenticatedAt: null, at: new Date(), claims: {} })}`
  const tokenContext = {
    settings: { accessTokenTtlSeconds: 900, accessTokenSessionClaims: true, accessTokenIssuer: null, accessTokenAudience: null },
    accessKeys: [secretAccessKey(deriveKeys(secret).access)],
  } as unknown as Parameters<typeof signAccessToken>[0]

  /** What one GET with these cookies gives: the token, and the cookies a browser then has beside its session. */
  async function page(app: express.Express, cookie = ''): Promise<{ token: string; cookies: string }> {
    const answer = await sendRaw(app, { method: 'GET', path: '/', headers: { Host: host, ...(cookie && { Cookie: cookie }) } })
    const set = (answer.headers['set-cookie'] ?? []).map((line) => line.split(';')[0])
    return { token: String(answer.body['token']), cookies: set.join('; ') }
  }

  const send = (app: express.Express, cookies: string[], value: string) =>
    sendRaw(app, {
      path: '/orders',
      headers: { Host: host, Cookie: cookies.filter((text) => text !== '').join('; '), 'X-CSRF-Token': value },
    })

  test('D15 behind a guard, a token is good in the session that the guard found, and in no other', async () => {
    const app = sessions('guard first')
    const [mine, theirs] = [sessionOf('session-a'), sessionOf('session-b')]
    const { token: ofMine, cookies } = await page(app, mine)

    expect((await send(app, [mine, cookies], ofMine)).status).toBe(200)
    expect((await send(app, [mine, `csrf_token=${ofMine}`], ofMine)).status, 'the session is enough').toBe(200)
    expectRefused(await send(app, [theirs, cookies], ofMine), 'signature')
    expect((await send(app, [cookies], ofMine)).status, 'a session that ran out is for the guard behind').toBe(200)
    expect((await send(app, [`csrf_token=${ofMine}`], ofMine)).status, 'without a session and a binding there is nothing to ride on').toBe(
      200,
    )
    expectRefused(await send(sessions('csrf first'), [mine, `csrf_token=${ofMine}`], ofMine), 'signature')
    expect((await page(app, `${mine}; ${cookies}`)).token, 'a good one is kept').toBe(ofMine)
    expect((await page(app, `${theirs}; ${cookies}`)).token).not.toBe(ofMine)
    const refreshed = sessionOf('session-a')
    expect((await send(app, [refreshed, cookies], ofMine)).status, 'a refreshed access token is the same session').toBe(200)
    const [stateless, other] = [sessionOf(null), sessionOf(null, 'bob')]
    const ofUser = await page(app, stateless)
    expect((await send(app, [stateless, ofUser.cookies], ofUser.token)).status).toBe(200)
    expectRefused(await send(app, [other, ofUser.cookies], ofUser.token), 'signature')
  })

  test('D15 before a guard, a token is good in the browser it was made for; an access token is never read', async () => {
    const app = sessions('csrf first')
    const [mine, planted] = [await page(app, sessionOf('session-a')), await page(app)]

    for (const session of [sessionOf('session-a'), sessionOf('session-b'), 'access_token=junk', ''])
      expect([200, 401], session).toContain((await send(app, [session, mine.cookies], mine.token)).status)
    const binding = String(mine.cookies.split('; ').find((text) => text.startsWith('csrf_binding')))
    const forged = `access_token=h.${Buffer.from(JSON.stringify({ sub: 'ana', sid: 'session-a' })).toString('base64url')}.s`
    for (const session of [sessionOf('session-a'), forged, ''])
      expectRefused(await send(app, [session, binding, `csrf_token=${planted.token}`], planted.token), 'signature')
    expect(mine.token.split('.')[1], 'bound to no session').toBe('')
  })

  test('D15 a token that was made behind a guard passes a check before it, in the same browser', async () => {
    const app = sessions('token behind, check before')
    const [mine, other] = [await page(app, sessionOf('session-a')), await page(app)]
    expect((await send(app, [sessionOf('session-a'), mine.cookies], mine.token)).status).toBe(200)
    expectRefused(await send(app, [sessionOf('session-a'), other.cookies.replace(other.token, mine.token)], mine.token), 'signature')
  })

  test('X20 with Secure cookies the browser is named by a __Host- cookie, and a plain one beside it counts for nothing', async () => {
    const secured = express().use(
      csrfToken({ secret }),
      csrfGuard({ secret }),
      (_req, res) => void res.json({ token: res.locals['csrfToken'] }),
    )
    const answer = await sendRaw(secured, { method: 'GET', path: '/', headers: { Host: host } })
    const [binding = '', csrf = ''] = answer.headers['set-cookie'] ?? []
    expect(binding).toMatch(/^__Host-csrf_binding=[\w.-]+; Max-Age=2592000; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$/)
    const [value, own] = [binding.split(/[=;]/)[1], csrf.split(/[=;]/)[1]]
    const token = String(own)
    expect((await send(secured, [`__Host-csrf_binding=${value}`, `csrf_token=${token}`], token)).status).toBe(200)
    expectRefused(await send(secured, [`csrf_binding=${value}`, `csrf_token=${token}`], token), 'signature')
    const plain = await page(
      express().use(csrfToken({ secret, secure: false }), (_req, res) => void res.json({ token: res.locals['csrfToken'] })),
    )
    expectRefused(
      await send(secured, [`__Host-csrf_binding=${plain.cookies.split(/[=;]/)[1]}`, `csrf_token=${plain.token}`], plain.token),
      'signature',
    )
  })

  test('X20 a binding that came twice is none, and the next page gets a new one', async () => {
    const app = sessions('csrf first')
    const [mine, planted] = [await page(app), await page(app)]
    const both = `${mine.cookies}; ${planted.cookies.split('; ').find((text) => text.startsWith('csrf_binding'))}`
    expectRefused(await send(app, [both], mine.token), 'signature')
    const next = await page(app, both)
    expect(next.token).not.toBe(mine.token)
    expect((await send(app, [next.cookies.split('; ').slice(-2).join('; ')], next.token)).status).toBe(200)
  })

  test('D15 the session may be what the host says, at once', async () => {
    const own: CsrfGuardOptions = { secret, session: (req) => req.get('x-session') }
    const bound = (await sendRaw(hostWith(own), { method: 'GET', path: '/', headers: { 'X-Session': 'a' } })).body['token'] as string
    expect((await post(own, { ...pair(bound), 'X-Session': 'a' })).status).toBe(200)
    expectRefused(await post(own, { ...pair(bound), 'X-Session': 'b' }), 'signature')
    const late = { secret, session: async () => 'anybody' } as unknown as CsrfGuardOptions // JavaScript
    expect((await post(late, pair(bound))).status).toBe(500)
    expect(() => csrfGuard({ secret, accessCookieName: 'at', sessionCookieName: 'sid' }), 'names of cookies are taken').not.toThrow()
  })

  test('D15 no change of a token is a token (property)', async () => {
    const app = hostWith(signed)
    const { token: value, cookies } = await page(app)
    const binding = String(cookies.split('; ').find((text) => text.startsWith('csrf_binding')))
    expect((await send(app, [cookies], value)).status).toBe(200)
    await withServer(app, async (ask) => {
      const forged = fc.oneof(
        fc
          .tuple(fc.nat(value.length - 1), fc.constantFrom(...'AZaz09-_.'))
          .map(([at, letter]) => value.slice(0, at) + letter + value.slice(at + 1)),
        fc.nat(value.length - 1).map((length) => value.slice(0, length)),
        fc.string({ unit: fc.constantFrom(...'AZaz09-_.'), minLength: 1, maxLength: 120 }),
        fc.constantFrom(`${value}.`, `.${value}`, `${value}.x`, '..', value.replace(/\..*\./, '..')),
      )
      await fc.assert(
        fc.asyncProperty(forged, async (text) => {
          fc.pre(text !== value)
          expect(await ask('POST', '/', { Cookie: `${binding}; csrf_token=${text}`, 'X-CSRF-Token': text }), text).toBe(403)
        }),
        { numRuns: 200 },
      )
    })
  })
})

describe('exclusions', () => {
  const exclude = ['/webhook', '/api/hooks/']

  test('R-121 whole segments are excluded, in any letter case as Express has it, and nothing that could be read as another path', async () => {
    const app = hostWith({ exclude })
    await withServer(app, async (send) => {
      for (const path of [
        '/webhook',
        '/webhook/',
        '/webhook/stripe?x=/../',
        '/WEBHOOK',
        '/WebHook/a%20b',
        '/api/hooks',
        '/API/hooks/a.b/..c',
      ])
        expect(await send('POST', path), path).toBe(200)
      const checked = [
        '/',
        '/webhooks',
        '/webhook-admin',
        '/webhook%2fx',
        '/webhoo',
        '/a/webhook',
        '//webhook',
        '/webhook//login',
        '//evil/webhook',
        '/api',
        '/api/hook',
        '/webhook/../login',
        '/webhook/..',
        '/webhook/./x',
        '/webhook/%2e%2e/login',
        '/webhook/%2E./login',
        '/webhook/.%2e',
        '/webhook/..%2flogin',
        '/webhook/..%5clogin',
        '/webhook/..\\login',
        '/webhook/%252e%252e/login',
        '/webhook/..;/login',
        '/webhook/..%3bx/login',
        '/webhook/%00',
        '/%77ebhook',
        '/webhook%',
        '/webhook;x',
        '/webhook%3f',
        '/webhook%20',
      ]
      for (const path of checked) expect(await send('POST', path), path).toBe(403)
    })
  })

  test('R-121 paths are from the root wherever the guard is mounted; an app that minds letter case is followed', async () => {
    const router = express.Router().use(csrfGuard({ exclude: ['/api/webhook'] }), (_req, res) => void res.json({}))
    const strict = express()
      .enable('case sensitive routing')
      .use(csrfGuard({ exclude: ['/webhook', '/café'] }), (_req, res) => void res.json({}))
    await withServer(express().use('/api', router), async (send) => {
      expect([await send('POST', '/api/webhook'), await send('POST', '/API/Webhook/x'), await send('POST', '/api/api/webhook')]).toEqual([
        200, 200, 403,
      ])
    })
    await withServer(strict, async (send) => {
      expect([await send('POST', '/webhook'), await send('POST', '/Webhook')]).toEqual([200, 403])
      expect([await send('POST', '/caf%C3%A9/x'), await send('POST', '/caf%c3%a9')]).toEqual([200, 403])
    })
  })

  test('R-121 no path reaches a handler outside of the exclusion without a token (property)', async () => {
    const app = express()
    app.use(csrfGuard({ exclude }))
    for (const open of exclude) app.use(open, (_req, res) => void res.status(204).end())
    app.use((_req, res) => void res.status(200).end()) // every other handler, which the guard is to protect
    const piece = fc.constantFrom(
      ...[
        'webhook',
        'WEBHOOK',
        'Webhook',
        'webhooks',
        'api',
        'API',
        'hooks',
        'login',
        '',
        '.',
        '..',
        '%2e',
        '%2E%2e',
        '%2f',
        '%5c',
        '\\',
        ';',
        '%77ebhook',
      ],
      ...['%', '%zz', '%00', 'a:b', '*', '%C3%A9', 'é', '?', '?a=/webhook', '#', '@', ':80', '%61pi', 'hook%73', '%E2%84%AA', 'webhoo%4b'],
    )
    const anywhere = fc.array(
      fc.array(piece, { minLength: 1, maxLength: 2 }).map((pieces) => pieces.join('')),
      { minLength: 1, maxLength: 4 },
    )
    const nearby = fc.tuple(fc.constantFrom(...exclude), anywhere).map(([open, rest]) => [open.slice(1), ...rest])
    const path = fc.oneof({ weight: 2, arbitrary: anywhere }, { weight: 1, arbitrary: nearby })
    let excluded = 0
    await withServer(app, async (send) => {
      await fc.assert(
        fc.asyncProperty(fc.constantFrom('/', '//', 'http://other.example/'), path, async (start, segments) => {
          const status = await send('POST', start + segments.join('/').replace('é', '\u00e9'))
          if (status === 204) excluded++
          expect([204, 400, 403]).toContain(status)
        }),
        { numRuns: 600 },
      )
    })
    expect(excluded).toBeGreaterThan(5)
  })
})

test('R-123 a refusal names no other origin, and speaks the caller’s language', async () => {
  const answer = await post({}, { Origin: 'https://evil.example', 'Accept-Language': 'pt-BR' })

  expect(answer.body['detail']).toBe('A requisição veio de outro site.')
  expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
})

test('options that protect nothing, or that nobody would notice, are refused when the guard is made', () => {
  const wrong: [make: () => unknown, sentence: RegExp][] = [
    ...['short', '', 'changeme'.repeat(5)].map((weak): [() => unknown, RegExp] => [
      () => csrfGuard({ secret: weak }),
      /^csrfGuard: secret must/,
    ]),
    [() => csrfToken({ secret: 'short' }), /^csrfToken: secret must/],
    [() => csrfToken({ secret: [secret, 'short'] }), /^csrfToken: secret 2 must be a random secret/],
    ...[[], [secret, secret]].map((list): [() => unknown, RegExp] => [() => csrfGuard({ secret: list }), /^csrfGuard: secret must be one/]),
    [() => csrfToken({ secure: 'no' } as never), /secure must be true or false/],
    [() => csrfToken({ session: () => 'x' }), /pass `secret` too/],
    [() => csrfGuard({ secret, session: 'id' } as never), /session must be a function/],
    [() => csrfGuard({ excludes: [] } as never), /the nearest known one is exclude/],
    [() => csrfGuard({ exclude: '/webhook' } as never), /exclude must be a list/],
    ...['', '/', '//', 'webhook', '/a/../b', '/a//b', '/a*', '/:id', '/a%2fb', '/a?b', '/.', 7, '/\ud800'].map(
      (path): [() => unknown, RegExp] => [() => csrfGuard({ exclude: [path as string] }), /exclude needs full paths such as/],
    ),
    ...['app.example.com', 'https://app.example.com/', 'http://app.example.com', '*', 'null', 7].map((origin): [() => unknown, RegExp] => [
      () => csrfGuard({ trustedOrigins: [origin as string] }),
      /trustedOrigins must be a list of origins/,
    ]),
    [() => csrfGuard(null as never), /takes an object/],
    [() => csrfToken([] as never), /takes an object/],
  ]
  for (const [make, sentence] of wrong) {
    expect(make, String(sentence)).toThrow(ConfigurationError)
    expect(make).toThrow(sentence)
  }
})

/** One server for many requests; `send` tells the status, 400 for what Node itself refuses. */
async function withServer(
  app: express.Express,
  work: (send: (method: string, path: string, headers?: RawRequest['headers']) => Promise<number>) => Promise<void>,
): Promise<void> {
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // a TCP server's address is never a string
  const send = (method: string, path: string, headers: RawRequest['headers'] = {}) =>
    new Promise<number>((resolve, reject) => {
      let outgoing: ReturnType<typeof request>
      try {
        outgoing = request({ host: '127.0.0.1', port, method, path, headers: { Host: host, ...headers } }, (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0))
        })
      } catch {
        return resolve(400) // a path that no client of Node's can send
      }
      outgoing.on('error', reject)
      outgoing.end()
    })
  try {
    await work(send)
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

describe('a page that hides its origin, as with the defaults of helmet', () => {
  const hidden = { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' }
  const guards = createGuards({ settings: { jwtSecret: secret }, logger: { info() {}, warn() {}, error() {} } })

  test.each([
    ['csrfGuard({ secret })', () => csrfGuard({ secret })],
    ['guards.csrf({ secret })', () => guards.csrf({ secret })],
  ])('%s lets its form through, and refuses the form of a sandboxed frame', async (_name, guard) => {
    const app = express()
    app.use(guard(), (_req, res) => void res.json({}))
    const signed = pair(await tokenFor({ secret }))
    const statusOf = async (headers: RawRequest['headers']) =>
      (await sendRaw(app, { path: '/orders', headers: { Host: host, ...signed, ...headers } })).status

    expect(await statusOf(hidden)).toBe(200)
    for (const site of ['cross-site', 'same-site', 'none', 'same-origin, same-origin'])
      expect(await statusOf({ ...hidden, 'Sec-Fetch-Site': site }), site).toBe(403)
    expect(await statusOf({ Origin: 'null' })).toBe(403)
  })

  test('csrfGuard() without a router tells a refused origin once on the console, with the fix', async () => {
    const told = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const app = hostWith({})
    for (let time = 0; time < 2; time++) await sendRaw(app, { path: '/orders', headers: { Host: host, ...pair(token), Origin: 'null' } })

    expect(told.mock.calls).toEqual([[expect.stringMatching(/Referrer-Policy.*#origin-null$/), { site: null }]])
    told.mockRestore()
  })
})

test('the sentence of a refusal speaks of another site only where the request came from one', async () => {
  const detailOf = async (headers: RawRequest['headers'], options: CsrfGuardOptions = {}) =>
    String((await post(options, headers)).body['detail'])
  const [foreign, site, ...others] = [
    await detailOf({ ...pair(token), Origin: 'https://evil.example' }),
    await detailOf({ ...pair(token), 'Sec-Fetch-Site': 'cross-site' }),
    await detailOf({}),
    await detailOf({ Cookie: `csrf_token=${token}` }),
    await detailOf({ Cookie: `csrf_token=${token}`, 'X-CSRF-Token': 'another' }),
    await detailOf(pair(token), { secret }),
  ]

  expect([foreign, site]).toEqual(Array(2).fill('The request came from another site.'))
  expect(new Set(others).size).toBe(4)
  for (const detail of others) expect(detail).not.toMatch(/site/)
  expect((await post({}, { 'Accept-Language': 'pt-BR' })).body['detail']).toMatch(/^O navegador não enviou/)
})
