import { describe, expect, test } from 'vitest'
import { memoryCounters } from '../../src/rate-limits/memory-counters'
import type { CounterStore } from '../../src/rate-limits/rate-limit'
import { type Mounted, type MountOptions, signIn } from '../support/app'
import { databases } from '../support/databases'
import { begin, callBack, cookiePair, newPerson, onDatabase } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const path = '/auth/oauth/corp/login'
const get = (host: Mounted, headers: Record<string, string> = {}) => host.browser().get(path).set(headers)
const two = { throttle: { routes: { attempts: 2, windowSeconds: 60 } } }
const sorry = { settings: { tokenDelivery: 'cookie', oauthErrorRedirect: 'https://app.example.test/sorry' } } satisfies Omit<
  MountOptions,
  'knex'
>

describe('the limit of GET /oauth/:provider/login', () => {
  test('by default the 61st call of a client within 60 seconds is 429, and writes no cookie', async () => {
    const host = await start()
    for (let call = 0; call < 60; call += 1) expect((await get(host)).status).toBe(302)
    const past = await get(host)
    expect([past.status, past.body.code, past.headers['retry-after'], past.headers['set-cookie']]).toEqual([
      429,
      'TOO_MANY_REQUESTS',
      '60',
      undefined,
    ])
    host.clock.advance(60)
    expect((await get(host)).status).toBe(302)
  })

  test.each([
    ['says that it navigates', { 'Sec-Fetch-Mode': 'navigate' }],
    ['says nothing', {}],
  ])('past it a browser that %s goes to oauthErrorRedirect with the code', async (_case, headers) => {
    const host = await start({ ...sorry, options: two })
    for (let call = 0; call < 2; call += 1) await get(host, headers)
    const past = await get(host, headers)
    expect([past.status, past.headers['location']]).toEqual([302, 'https://app.example.test/sorry?error=TOO_MANY_REQUESTS'])
  })

  test('other refusals stay where they are', async () => {
    const host = await start(sorry)
    const unknown = await host.browser().get('/auth/oauth/unknown/login')
    expect([unknown.status, unknown.body.code]).toEqual([404, 'OAUTH_PROVIDER_NOT_CONFIGURED'])
  })

  test.each(['no-cors', 'cors', 'same-origin', 'websocket', ''])(
    'an image or a script (Sec-Fetch-Mode: %s) is 403, begins nothing and uses none of the limit',
    async (mode) => {
      const host = await start({ ...sorry, options: two })
      for (let call = 0; call < 70; call += 1) {
        const { status, body, headers } = await get(host, { 'Sec-Fetch-Mode': mode })
        expect([status, body.code, body.details, headers['set-cookie']]).toEqual([
          403,
          'CSRF_VALIDATION_FAILED',
          { reason: 'site' },
          undefined,
        ])
      }
      expect((await signIn(host, host.browser(), { profile: newPerson() })).status).toBe(200)
    },
  )
})

describe('the limit of POST /oauth/:provider/link', () => {
  test('past it a navigation goes to oauthErrorRedirect, and a script gets 429', async () => {
    const host = await start({ ...sorry, options: two })
    const browser = host.browser()
    await signIn(host, browser, { profile: newPerson() })
    const link = (headers: Record<string, string>) => browser.post('/auth/oauth/corp/link').set(headers).send({})
    for (let call = 0; call < 2; call += 1) expect((await link({})).status).toBe(200)
    const [script, form] = [await link({ 'Sec-Fetch-Mode': 'cors' }), await link({ 'Sec-Fetch-Mode': 'navigate' })]
    expect([script.status, script.body.code]).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect([form.status, form.headers['location']]).toEqual([302, 'https://app.example.test/sorry?error=TOO_MANY_REQUESTS'])
  })
})

test('one anonymous client marks at most 60 states a minute, and another person signs in meanwhile', async () => {
  const inner = memoryCounters()
  const marked = new Set<string>()
  const counters: CounterStore = {
    ...inner,
    increment(...given) {
      if (given[0].startsWith('oauth-state:')) marked.add(given[0])
      return inner.increment(...given)
    },
  }
  const host = await start({ options: { throttle: { counters } } })
  host.app.set('trust proxy', 1)
  const from = (address: string) => ({ 'X-Forwarded-For': address })
  let refused = 0
  for (let call = 0; call < 100; call += 1) {
    const login = await get(host, from('192.0.2.1'))
    const attempt = login.status === 302 ? login : await get(host, from(`198.51.100.${call}`)) // begun elsewhere
    const state = new URL(String(attempt.headers['location'])).searchParams.get('state') ?? ''
    const answer = await callBack(host, { state }, { cookie: cookiePair(attempt), headers: from('192.0.2.1') })
    if (answer.status === 429) refused += 1
  }
  expect([marked.size, refused]).toEqual([60, 40])
  const { query, cookie } = await begin(host, { profile: newPerson(), headers: from('203.0.113.7') })
  expect((await callBack(host, query, { cookie, headers: from('203.0.113.7') })).status).toBe(200)
})
