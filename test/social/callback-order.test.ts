import http from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type RequestHandler } from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { begin, callBack, type HttpResponse, isCleared, newPerson, onDatabase, providerCalls } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

function refusal(response: HttpResponse): [number, string] {
  return [response.status, response.body.code]
}

describe('the checks of the callback, in order', () => {
  test('R-029: provider, then error, then state, then code', async () => {
    const host = await start()
    const { query, cookie } = await begin(host)
    const everything = { ...query, error: 'access_denied' }

    expect(refusal(await callBack(host, everything, { key: 'unknown', cookie }))).toEqual([404, 'OAUTH_PROVIDER_NOT_CONFIGURED'])
    expect(refusal(await callBack(host, { error: 'access_denied', state: 'bad' }, { cookie: null }))).toEqual([
      401,
      'OAUTH_PROVIDER_DENIED',
    ])
    expect(refusal(await callBack(host, everything, { cookie }))).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
    expect(refusal(await callBack(host, { state: 'bad' }, { cookie }))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect(refusal(await callBack(host, {}, { cookie: null }))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect(providerCalls(host)).toBe(0)
  })

  test('R-029: a denial clears the cookie, echoes nothing of the query and calls no provider', async () => {
    const host = await start()
    const { state, cookie } = await begin(host)
    const marker = 'canary-5e1f'

    const response = await callBack(
      host,
      { error: `access_denied<${marker}>`, error_description: `<script>${marker}</script>`, error_uri: `https://${marker}.example`, state },
      { cookie },
    )

    expect(refusal(response)).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
    expect(response.body.details).toEqual({})
    expect(isCleared(response)).toBe(true)
    expect(response.text + JSON.stringify(response.headers) + host.logs.text()).not.toContain(marker)
    expect(providerCalls(host)).toBe(0)
  })

  test.each(['error=a&error=b', 'error=&error=b', `error=${'e'.repeat(3000)}`, 'error=%00', 'error=%E0%A4%A', 'error=+'])(
    'R-029: an error in any form is a denial (%s)',
    async (query) => {
      const host = await start()
      const { state, cookie } = await begin(host)
      expect(refusal(await callBack(host, `${query}&state=${state}&code=c`, { cookie }))).toEqual([401, 'OAUTH_PROVIDER_DENIED'])
      expect(providerCalls(host)).toBe(0)
    },
  )

  test('an empty error counts as omitted (RFC 6749 section 3.1)', async () => {
    const host = await start()
    const { query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, { ...query, error: '' }, { cookie })).status).toBe(200)
  })

  test('R-029: a valid state with neither code nor error is 422 OAUTH_CODE_MISSING, and no new redirect', async () => {
    const host = await start()
    for (const rest of ['', '&code=', '&foo=bar']) {
      const { state, cookie } = await begin(host)
      const response = await callBack(host, `state=${state}${rest}`, { cookie })
      expect(refusal(response)).toEqual([422, 'OAUTH_CODE_MISSING'])
      expect(response.headers['location']).toBeUndefined()
      expect(isCleared(response)).toBe(true)
    }
    expect(providerCalls(host)).toBe(0)
  })
})

describe('where code and state come from', () => {
  test.each(['code=a&code=b', 'code[]=a', 'code[x]=a', `code=${'c'.repeat(4097)}`])(
    'R-030: a code that is not one string of a sane length counts as missing (%s)',
    async (code) => {
      const host = await start()
      const { state, cookie } = await begin(host)
      expect(refusal(await callBack(host, `state=${state}&${code}`, { cookie }))).toEqual([422, 'OAUTH_CODE_MISSING'])
      expect(providerCalls(host)).toBe(0)
    },
  )

  test('R-030: a code of 4,096 characters is taken to the provider', async () => {
    const host = await start()
    const { state, cookie } = await begin(host)
    expect((await callBack(host, { state, code: 'c'.repeat(4096) }, { cookie })).status).toBe(502)
    expect(host.provider.requestsTo('token')[0]?.form.get('code')).toHaveLength(4096)
  })

  test('R-030: a body is not read, parsed by the host or not', async () => {
    const host = await start({ before: [express.json(), express.urlencoded({ extended: true })] })
    const { state, query, cookie } = await begin(host)

    const withCode = await supertest(host.app)
      .get(`/auth/oauth/corp/callback?state=${state}`)
      .set('Cookie', cookie)
      .send({ code: query['code'] })
    expect(refusal(withCode)).toEqual([422, 'OAUTH_CODE_MISSING'])
    const again = await begin(host)
    const withState = await supertest(host.app)
      .get('/auth/oauth/corp/callback?code=c')
      .set('Cookie', again.cookie)
      .send({ state: again.state })
    expect(refusal(withState)).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    expect(providerCalls(host)).toBe(0)
  })

  test.each<[string, object]>([
    ['an empty one', {}],
    ['one that says otherwise', { error: 'access_denied', state: 'another', code: ['a', 'b'] }],
    ['one with every value in an array', { error: [''], state: [{ x: '1' }], code: { x: '1' } }],
  ])("R-030: the query of the URL counts, not the host's reading of it: %s", async (_case, parsed) => {
    const replaceQuery: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'query', { value: parsed })
      next()
    }
    const host = await start({ before: [replaceQuery] })
    const repeated = await begin(host)
    const { state } = repeated
    expect(refusal(await callBack(host, `state=${state}&state=${state}&code=c`, repeated))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
    const { query, cookie } = await begin(host, { profile: newPerson() })
    expect((await callBack(host, query, { cookie })).status).toBe(200)
  })
})

describe('headers', () => {
  const expected = {
    'cache-control': 'no-store',
    pragma: 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  }

  test('R-041: every answer of the flow is kept by nobody, framed by nobody and told to nobody', async () => {
    const host = await start()
    const { response: login, query, cookie } = await begin(host, { profile: newPerson() })
    const success = await callBack(host, query, { cookie })
    const bearer = { Authorization: `Bearer ${success.body.access_token}` }
    const answers = {
      login,
      success,
      replay: await callBack(host, query, { cookie }),
      denial: await callBack(host, 'error=access_denied'),
      unknown: await callBack(host, query, { key: 'unknown' }),
      method: await supertest(host.app).post('/auth/oauth/corp/callback'),
      accounts: await supertest(host.app).get('/auth/oauth/accounts').set(bearer),
      anonymous: await supertest(host.app).get('/auth/oauth/accounts'),
      unlinkRefused: await supertest(host.app).post('/auth/oauth/accounts/unlink').set(bearer).send({ provider: 'none' }),
      unlink: await supertest(host.app).post('/auth/oauth/accounts/unlink').set(bearer).send({ provider: 'corp' }),
    }
    expect(Object.fromEntries(Object.entries(answers).map(([name, { status }]) => [name, status]))).toEqual({
      login: 302,
      success: 200,
      replay: 401,
      denial: 401,
      unknown: 404,
      method: 405,
      accounts: 200,
      anonymous: 401,
      unlinkRefused: 404,
      unlink: 204,
    })
    for (const [name, { headers }] of Object.entries(answers)) expect({ name, headers }).toMatchObject({ name, headers: expected })
  })

  test('a conditional request is answered in full: no ETag, no 304', async () => {
    const host = await start()
    const { query, cookie } = await begin(host, { profile: newPerson() })
    const response = await callBack(host, query, { cookie, headers: { 'If-None-Match': '*' } })
    expect(response.status).toBe(200)
    expect(response.headers).not.toHaveProperty('etag')
  })
})

test('a client that goes away in the middle harms nobody: its attempt is spent, the next request is served', async () => {
  const host = await start()
  const server = http.createServer(host.app).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo // a TCP server's address
  const { query, cookie } = await begin(host, { profile: newPerson() })
  const gone = new Promise<void>((resolve) => {
    host.provider.on('token', () => {
      request.destroy()
      resolve()
    })
  })
  const path = `/auth/oauth/corp/callback?${new URLSearchParams(query)}`
  const request = http.get({ port, host: '127.0.0.1', path, headers: { cookie } }).on('error', () => undefined)
  await gone
  host.provider.on('token', null)

  const next = await begin(host, { profile: newPerson() })
  expect((await callBack(host, next.query, next)).status).toBe(200)
  expect(refusal(await callBack(host, query, { cookie }))).toEqual([401, 'OAUTH_STATE_MISMATCH'])
  await new Promise((resolve) => server.close(resolve))
})
