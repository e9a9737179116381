import { gzipSync } from 'node:zlib'
import type { Response as Answer } from 'supertest'
import { describe, expect, test } from 'vitest'
import { type Mounted, signIn, startLogin, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { type RawRequest, sendRaw } from '../support/send-raw'

const start = appPerTest()
const json = { 'Content-Type': 'application/json' }

/** Nothing else, nothing less, and nothing of the machine behind it. */
function expectEnvelope(answer: { status: number; text: string; headers: object }, status: number, code: string): Record<string, unknown> {
  expect(answer.status, answer.text).toBe(status)
  const body = JSON.parse(answer.text) as Record<string, unknown> // asserted below
  expect(Object.keys(body).sort()).toEqual(['code', 'detail', 'details'])
  expect(body).toEqual({ code, detail: expect.stringMatching(/\S/), details: expect.any(Object) })
  expect(answer.text).not.toMatch(/node_modules|\/src\/|\.ts\b|SQLITE|select |stack|joi|express|knex|body-parser/i)
  expectSecurityHeaders(answer.headers)
  return body
}

function expectSecurityHeaders(headers: object): void {
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  })
  expect(headers).not.toHaveProperty('etag')
  expect(headers).not.toHaveProperty('x-powered-by')
}

async function postRefresh(app: Mounted['app'], asked: Omit<RawRequest, 'path'>) {
  return sendRaw(app, { path: '/auth/refresh', ...asked })
}

describe('R-140 whatever is wrong with a body, the answer is the envelope', () => {
  const refused: [what: string, status: number, code: string, asked: Omit<RawRequest, 'path'>][] = [
    ['malformed JSON', 422, 'VALIDATION_ERROR', { headers: json, body: '{"refresh_token": "x' }],
    ['a JSON string', 422, 'VALIDATION_ERROR', { headers: json, body: '"x"' }],
    ['a JSON null', 422, 'VALIDATION_ERROR', { headers: json, body: 'null' }],
    ['a JSON array', 422, 'VALIDATION_ERROR', { headers: json, body: '["refresh_token"]' }],
    ['a JSON number', 422, 'VALIDATION_ERROR', { headers: json, body: '42' }],
    ['no body at all', 422, 'VALIDATION_ERROR', {}],
    ['an empty JSON body', 422, 'VALIDATION_ERROR', { headers: json }],
    ['an empty chunked JSON body', 422, 'VALIDATION_ERROR', { headers: { ...json, 'Transfer-Encoding': 'chunked' } }],
    ['invalid UTF-8', 422, 'VALIDATION_ERROR', { headers: json, body: Buffer.from([0x7b, 0xff, 0xfe, 0x7d]) }],
    ['text/plain', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'text/plain' }, body: '{"refresh_token":"x"}' }],
    [
      'a form',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      { headers: { 'Content-Type': 'application/x-www-form-urlencoded' }, body: 'refresh_token=x' },
    ],
    ['a multipart form', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'multipart/form-data; boundary=x' }, body: '--x--' }],
    ['a body without a type', 415, 'UNSUPPORTED_MEDIA_TYPE', { body: '{"refresh_token":"x"}' }],
    [
      'application/jsonx',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      { headers: { 'Content-Type': 'application/jsonx' }, body: '{"refresh_token":"x"}' },
    ],
    ['application/problem+json', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'application/problem+json' }, body: '{}' }],
    ['text/json', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'text/json' }, body: '{}' }],
    ['an empty type', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': '' }, body: '{"refresh_token":"x"}' }],
    ['text/plain without a body', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'text/plain' } }],
    ['a form without a body', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { 'Content-Type': 'application/x-www-form-urlencoded' } }],
    [
      'an unknown charset',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      { headers: { 'Content-Type': 'application/json; charset=x-klingon' }, body: '{}' },
    ],
    [
      'a gzip body',
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      { headers: { ...json, 'Content-Encoding': 'gzip' }, body: gzipSync('{"refresh_token":"x"}') },
    ],
    ['an unknown encoding', 415, 'UNSUPPORTED_MEDIA_TYPE', { headers: { ...json, 'Content-Encoding': 'x-secret' }, body: '{}' }],
    ['more than 16 KiB, declared', 413, 'PAYLOAD_TOO_LARGE', { headers: json, body: `{"refresh_token":"${'x'.repeat(16 * 1024)}"}` }],
    [
      'more than 16 KiB, chunked',
      413,
      'PAYLOAD_TOO_LARGE',
      { headers: json, body: `{"refresh_token":"${'x'.repeat(16 * 1024)}"}`, chunked: true },
    ],
  ]

  test.each(refused)('R-140 %s: %i %s', async (_what, status, code, asked) => {
    const { app, logs } = await start()

    const answer = await postRefresh(app, asked)

    expectEnvelope(answer, status, code)
    expect(logs.entries.filter((entry) => entry.level === 'error')).toEqual([])
  })

  test('R-140 a failed rule names the path and the rule, never the submitted value', async () => {
    const { app } = await start()

    for (const [body, errors] of [
      [{}, [{ path: 'refresh_token', rule: 'any.required' }]],
      [{ refresh_token: { secret: 'canary' } }, [{ path: 'refresh_token', rule: 'string.base' }]],
      [{ refresh_token: '' }, [{ path: 'refresh_token', rule: 'string.empty' }]],
      [{ refresh_token: 'canary'.repeat(1000) }, [{ path: 'refresh_token', rule: 'string.max' }]],
      [{ refresh_token: 'canary\0' }, [{ path: 'refresh_token', rule: 'string.malformed' }]],
    ] as const) {
      const answer = await postRefresh(app, { headers: json, body: JSON.stringify(body) })
      expect(expectEnvelope(answer, 422, 'VALIDATION_ERROR')['details']).toEqual({ errors })
      expect(answer.text).not.toContain('canary')
    }
  })

  test('R-140 NUL and lone surrogates in a string are refused, not handed to a database', async () => {
    const { app } = await start()

    for (const text of ['a\\u0000b', 'a\\ud800b', '\\udc00', 'a\\udfffz'])
      expectEnvelope(await postRefresh(app, { headers: json, body: `{"refresh_token":"${text}"}` }), 422, 'VALIDATION_ERROR')
    const paired = await postRefresh(app, { headers: json, body: '{"refresh_token":"\\ud83d\\ude00"}' })
    expectEnvelope(paired, 401, 'INVALID_TOKEN')
  })

  test('R-140 deep JSON and a great many unknown fields are ignored, not a crash', async () => {
    const { app } = await start()
    const deep = `{"refresh_token":"x","deep":${'['.repeat(8000)}${']'.repeat(8000)}}`
    const many = `{"refresh_token":"x",${Array.from({ length: 1500 }, (_, index) => `"k${index}":1`).join(',')}}`
    const tenThousand = `{"refresh_token":"x",${Array.from({ length: 10_000 }, (_, index) => `"k${index}":1`).join(',')}}`

    expectEnvelope(await postRefresh(app, { headers: json, body: deep }), 401, 'INVALID_TOKEN')
    expectEnvelope(await postRefresh(app, { headers: json, body: many }), 401, 'INVALID_TOKEN')
    expectEnvelope(await postRefresh(app, { headers: json, body: tenThousand }), 413, 'PAYLOAD_TOO_LARGE')
  })

  test('R-140 prototype keys in a body change nothing', async () => {
    const { app } = await start()
    const body = '{"__proto__":{"refresh_token":"x","polluted":true},"constructor":{"prototype":{"polluted":true}}}'

    const answer = await postRefresh(app, { headers: json, body })

    expect(expectEnvelope(answer, 422, 'VALIDATION_ERROR')['details']).toEqual({
      errors: [{ path: 'refresh_token', rule: 'any.required' }],
    })
    expect({}).not.toHaveProperty('polluted')
  })

  test('JSON with a charset, in any letter case, and with an unknown field is read', async () => {
    const mounted = await start()
    const tokens = (await signIn(mounted)).body as { refresh_token: string }

    const answer = await postRefresh(mounted.app, {
      headers: { 'Content-Type': 'Application/JSON ; Charset=UTF-8' },
      body: JSON.stringify({ refresh_token: tokens.refresh_token, is_admin: true }),
    })

    expect(answer.status, answer.text).toBe(200)
  })
})

describe('R-140 paths and methods', () => {
  test('R-140 bad percent-encoding in a path is a 422 in the envelope', async () => {
    const { app } = await start()

    for (const path of ['/auth/oauth/%zz/login', '/auth/oauth/%E0%A4%A/callback', '/auth/oauth/%/login']) {
      const answer = await sendRaw(app, { method: 'GET', path })
      expect(expectEnvelope(answer, 422, 'VALIDATION_ERROR')['details']).toEqual({ errors: [{ path: 'url', rule: 'percent_encoding' }] })
    }
  })

  test.each([
    ['GET', '/auth/refresh', 'POST'],
    ['HEAD', '/auth/refresh', 'POST'],
    ['PUT', '/auth/refresh', 'POST'],
    ['PATCH', '/auth/logout', 'POST'],
    ['OPTIONS', '/auth/refresh', 'POST'],
    ['POST', '/auth/me', 'GET, HEAD, PATCH'],
    ['DELETE', '/auth/me', 'GET, HEAD, PATCH'],
    ['OPTIONS', '/auth/me', 'GET, HEAD, PATCH'],
    ['POST', '/auth/oauth/accounts', 'GET, HEAD'],
    ['GET', '/auth/oauth/accounts/unlink', 'POST'],
    ['HEAD', '/auth/oauth/corp/login', 'GET'],
    ['POST', '/auth/oauth/corp/login', 'GET'],
    ['HEAD', '/auth/oauth/corp/callback', 'GET'],
    ['POST', '/auth/oauth/corp/callback', 'GET'],
  ])('R-140 %s %s is 405 with Allow: %s', async (method, path, allow) => {
    const { app, provider } = await start()

    const answer = await sendRaw(app, { method, path })

    expect(answer.status).toBe(405)
    expect(answer.headers['allow']).toBe(allow)
    expect(answer.headers['set-cookie']).toBeUndefined()
    if (method === 'HEAD') expect(answer.text).toBe('')
    else expectEnvelope(answer, 405, 'METHOD_NOT_ALLOWED')
    expectSecurityHeaders(answer.headers)
    expect(provider.requests).toEqual([])
  })

  test('HEAD answers where GET only reads, without a body', async () => {
    const mounted = await start()
    const { access_token } = (await signIn(mounted)).body as { access_token: string }

    const answer = await sendRaw(mounted.app, { method: 'HEAD', path: '/auth/me', headers: { Authorization: `Bearer ${access_token}` } })

    expect([answer.status, answer.text]).toEqual([200, ''])
    expectSecurityHeaders(answer.headers)
  })

  test('an unknown path under the prefix is the host’s, with no header of ours', async () => {
    const { app } = await start({
      host: (app) => app.use('/auth', (req, res) => void res.status(418).send(`host ${req.method} ${req.url}`)),
    })

    for (const [method, path] of [
      ['GET', '/nothing'],
      ['POST', '/sign-up'],
      ['POST', '/activate/a/b'],
      ['POST', '/cookie/login'],
      ['GET', '/ME'],
      ['GET', '/me/'],
      ['GET', '/'],
      ['OPTIONS', '/nothing'],
      ['GET', '/oauth/a/b/c/d'],
      ['GET', '/%zz'],
    ] as const) {
      const answer = await sendRaw(app, { method, path: `/auth${path}` })
      expect([answer.status, answer.text]).toEqual([418, `host ${method} ${path}`])
      for (const ours of [
        'cache-control',
        'pragma',
        'referrer-policy',
        'content-security-policy',
        'allow',
        'www-authenticate',
        'set-cookie',
      ])
        expect(answer.headers, path).not.toHaveProperty(ours)
    }
  })

  test('a provider nobody registered is 404, whatever Object.prototype holds', async () => {
    const { app } = await start()

    for (const key of ['nobody', '__proto__', 'constructor', 'toString', 'a%00b', 'x'.repeat(3000)])
      expectEnvelope(await sendRaw(app, { method: 'GET', path: `/auth/oauth/${key}/login` }), 404, 'OAUTH_PROVIDER_NOT_CONFIGURED')
  })
})

describe('R-041 the headers of every answer', () => {
  test('R-041 every 2xx, 3xx and 4xx is no-store, no-referrer, nosniff and framed by nobody', async () => {
    const mounted = await start()
    const { app, clock } = mounted
    const person = mounted.browser()
    const login = await person.get('/auth/oauth/corp/login')
    const session = await signIn(mounted)
    const bearer = { Authorization: `Bearer ${session.body.access_token as string}` }
    const post = (path: string, body: object, headers = {}): Promise<Answer> => mounted.browser().post(path).set(headers).send(body)
    const get = (path: string, headers = {}): Promise<Answer> => mounted.browser().get(path).set(headers)
    const answers = [
      login,
      session,
      await get('/auth/me', bearer),
      await get('/auth/me'),
      await get('/auth/oauth/accounts', bearer),
      await get('/auth/oauth/accounts'),
      await get('/auth/oauth/nobody/login'),
      await get('/auth/oauth/corp/callback'),
      await get('/auth/oauth/corp/callback?error=access_denied'),
      await post('/auth/oauth/accounts/unlink', { provider: 'other' }, bearer),
      await post('/auth/oauth/accounts/unlink', { provider: 'corp' }, bearer),
      await post('/auth/refresh', { refresh_token: session.body.refresh_token as string }),
      await post('/auth/refresh', { refresh_token: 'unknown' }),
      await post('/auth/logout', { refresh_token: 'unknown' }),
      await post('/auth/logout', {}),
    ]
    clock.advance(901)
    answers.push(await get('/auth/me', bearer))

    expect(answers.map((answer) => answer.status)).toEqual([302, 200, 200, 401, 200, 401, 404, 401, 401, 404, 204, 200, 401, 204, 422, 401])
    for (const answer of answers) expectSecurityHeaders(answer.headers)
    expect(app.get('etag')).toBe('weak')
  })

  test('R-041 a conditional request is answered in full', async () => {
    const mounted = await start()
    const { access_token } = (await signIn(mounted)).body as { access_token: string }

    const answer = await mounted
      .browser()
      .get('/auth/me')
      .set({ Authorization: `Bearer ${access_token}`, 'If-None-Match': '*' })

    expect(answer.status).toBe(200)
    expect(answer.body).toHaveProperty('email')
  })

  test('the host’s own JSON settings do not bend our bodies', async () => {
    const mounted = await start({
      host: (app) => {
        app.set('json spaces', 2)
        app.set('json replacer', () => 'replaced')
        app.set('json escape', true)
      },
    })

    const answer = await mounted.browser().get('/auth/me')

    expect(answer.text).toBe('{"detail":"Authentication is required.","code":"UNAUTHORIZED","details":{}}')
  })
})

describe('what a refusal says', () => {
  test('detail follows lang, then Accept-Language, then the default; code never changes', async () => {
    const mounted = await start({ settings: { jwtSecret: testSecret, defaultLocale: 'pt-BR' } })
    const ask = async (path: string, headers = {}) =>
      (await mounted.browser().get(path).set(headers)).body as { detail: string; code: string }
    const [english, portuguese] = ['Authentication is required.', 'É preciso se autenticar.']

    expect(await ask('/auth/me')).toMatchObject({ detail: portuguese, code: 'UNAUTHORIZED' })
    expect(await ask('/auth/me', { 'Accept-Language': 'en' })).toMatchObject({ detail: english, code: 'UNAUTHORIZED' })
    expect(await ask('/auth/me?lang=en-US', { 'Accept-Language': 'pt-BR' })).toMatchObject({ detail: english })
    expect(await ask('/auth/me?lang=pt', { 'Accept-Language': 'en' })).toMatchObject({ detail: portuguese })
    expect(await ask('/auth/me?lang[]=en', { 'Accept-Language': 'fr, *;q=0' })).toMatchObject({ detail: portuguese })
  })

  test('R-144 what a provider says in its redirect is never echoed, and no route of ours answers HTML', async () => {
    const mounted = await start()
    const { provider, browser } = mounted
    const hostile = '<script>alert(1)</script>'
    const person = browser()
    await startLogin(mounted, person)
    const denied = await person
      .get('/auth/oauth/corp/callback')
      .set('Accept', 'text/html')
      .query({ error: hostile, error_description: hostile, error_uri: hostile, state: provider.authorizations[0]?.state })
    const others = [
      await browser()
        .get(`/auth/oauth/${encodeURIComponent(hostile)}/login`)
        .set('Accept', 'text/html'),
      await browser().get('/auth/oauth/corp/callback').set('Accept', 'text/html').query({ state: hostile, code: hostile }),
      await browser()
        .get('/auth/me')
        .set({ Accept: 'text/html', Authorization: `Bearer ${hostile}` }),
      await browser().post('/auth/refresh').set('Accept', 'text/html').send({ refresh_token: hostile }),
      await browser().post('/auth/refresh').set({ Accept: 'text/html', 'Content-Type': 'application/json' }).send(hostile),
    ]

    expectEnvelope(denied, 401, 'OAUTH_PROVIDER_DENIED')
    expect(denied.text).not.toContain('script')
    expect(others.map((answer) => answer.body.code)).toEqual([
      'OAUTH_PROVIDER_NOT_CONFIGURED',
      'OAUTH_STATE_MISMATCH',
      'INVALID_TOKEN',
      'INVALID_TOKEN',
      'VALIDATION_ERROR',
    ])
    for (const answer of [denied, ...others]) {
      expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
    }
    const login = await browser().get('/auth/oauth/corp/login').set('Accept', 'text/html')
    expect([login.status, login.text]).toEqual([302, ''])
  })
})
