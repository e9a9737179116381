import { describe, expect, test } from 'vitest'
import { databases } from '../support/databases'
import { sendRaw } from '../support/send-raw'
import { bearerOf, onLocal, signedIn } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const json = { 'Content-Type': 'application/json' }
const routes = [
  '/signup',
  '/login',
  '/activate',
  '/activate/some-token',
  '/activation/request',
  '/password-reset/request',
  '/password-reset/confirm',
  '/password-change',
]
const paths = [...routes, ...routes.filter((path) => !path.endsWith('request')).map((path) => `/cookie${path}`)]

// Contract section 2: what every body is held to, on every local route and its twin.
describe.each(paths)('POST %s', (path) => {
  const { start } = onLocal(sqlite)

  async function hostAndAsk() {
    const host = await start({ settings: { tokenDelivery: 'both' }, options: { throttle: { routes: false } } })
    const bearer = bearerOf(await signedIn(host))
    const ask = (headers: Record<string, string>, body?: string, method = 'POST') =>
      sendRaw(host.app, { method, path: `/auth${path}`, headers: { ...bearer, ...headers }, ...(body === undefined ? {} : { body }) })
    return { host, ask }
  }

  test('another content type is 415, over 16 KiB 413, malformed JSON 422, another method 405 with Allow; all no-store, in the envelope', async () => {
    const { host, ask } = await hostAndAsk()
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      'application/json-seq',
    ]
    const answers = {
      ...Object.fromEntries(await Promise.all(types.map(async (type) => [type, await ask({ 'Content-Type': type }, '{}')] as const))),
      'a form, empty': await ask({ 'Content-Type': 'application/x-www-form-urlencoded' }),
      'too large': await ask(json, JSON.stringify({ email: 'a'.repeat(16 * 1024) })),
      malformed: await ask(json, '{"email":'),
      'an array': await ask(json, '[]'),
      'a string': await ask(json, '"x"'),
      GET: await ask({}, undefined, 'GET'),
      PUT: await ask(json, '{}', 'PUT'),
      DELETE: await ask({}, undefined, 'DELETE'),
    }

    expect(Object.fromEntries(Object.entries(answers).map(([what, { status, body }]) => [what, [status, body['code']]]))).toEqual({
      ...Object.fromEntries(types.map((type) => [type, [415, 'UNSUPPORTED_MEDIA_TYPE']])),
      'a form, empty': [415, 'UNSUPPORTED_MEDIA_TYPE'],
      'too large': [413, 'PAYLOAD_TOO_LARGE'],
      malformed: [422, 'VALIDATION_ERROR'],
      'an array': [422, 'VALIDATION_ERROR'],
      'a string': [422, 'VALIDATION_ERROR'],
      GET: [405, 'METHOD_NOT_ALLOWED'],
      PUT: [405, 'METHOD_NOT_ALLOWED'],
      DELETE: [405, 'METHOD_NOT_ALLOWED'],
    })
    for (const [what, { headers, body }] of Object.entries(answers)) {
      expect(Object.keys(body), what).toEqual(['detail', 'code', 'details'])
      expect([headers['cache-control'], headers['x-content-type-options'], headers['set-cookie']], what).toEqual([
        'no-store',
        'nosniff',
        undefined,
      ])
    }
    expect(answers.GET?.headers.allow).toBe('POST')
    expect(host.mails.mails).toEqual([])
  })

  test('no body at all, or an empty object, is 422 naming the first field; only an activation by path needs none', async () => {
    const { ask } = await hostAndAsk()
    const needsNone = path.endsWith('/some-token')
    for (const answer of [await ask({}), await ask(json, '{}')]) {
      if (needsNone) expect(answer.body['code']).toBe('INVALID_TOKEN')
      else expect([answer.status, answer.body['details']]).toEqual([422, { errors: [{ path: expect.any(String), rule: 'any.required' }] }])
    }
  })
})
