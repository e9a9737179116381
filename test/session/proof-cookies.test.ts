import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { deriveKeys } from '../../src/core/keys'
import { clearProofCookie, type ProofCookieContext, readProofCookie, setProofCookie } from '../../src/sessions/cookies'
import { setCookieOf, testSecret } from '../support/app'
import { browserOf } from '../support/browser'
import { testClock } from '../support/clock'

const olderSecret = 'an older secret of forty characters, or so'

function context(given: Partial<{ cookieSecure: boolean; cookieDomain: string | null; secrets: readonly string[] }> = {}) {
  const { cookieSecure = false, cookieDomain = null, secrets = [testSecret] } = given
  const clock = testClock()
  const ctx: ProofCookieContext = { settings: { cookieSecure, cookieDomain }, prefix: '/auth', keys: deriveKeys(secrets), now: clock.now }
  return { ctx, clock }
}

/** A host that sets, shows and clears two cookies. */
function appOf(ctx: ProofCookieContext) {
  const app = express()
  app.get('/auth/set/:name/:value', (req, res) => {
    setProofCookie(ctx, res, req.params.name, req.params.value, 60)
    res.end()
  })
  app.get('/auth/read/:name', (req, res) => void res.json({ value: readProofCookie(ctx, req, req.params.name) }))
  app.get('/auth/clear/:name', (req, res) => {
    clearProofCookie(ctx, res, req.params.name)
    res.end()
  })
  return app
}

async function set(ctx: ProofCookieContext, value: string, name = 'signup_binding') {
  return supertest(appOf(ctx)).get(`/auth/set/${name}/${encodeURIComponent(value)}`)
}

async function read(ctx: ProofCookieContext, cookie: string, name = 'signup_binding'): Promise<unknown> {
  return (await supertest(appOf(ctx)).get(`/auth/read/${name}`).set('Cookie', cookie)).body.value
}

function pairOf(response: { headers: Record<string, unknown> }, name = 'signup_binding'): string {
  return `${name}=${setCookieOf(response, name)?.value}`
}

describe('without cookieSecure', () => {
  test('the cookie has its name and the prefix as path, and cookieDomain is not its concern', async () => {
    const { ctx } = context({ cookieDomain: 'example.test' })
    const attributes = setCookieOf(await set(ctx, 'a value'), 'signup_binding')?.attributes.split('; ')
    expect(attributes?.filter((text) => !text.startsWith('Expires')).sort()).toEqual([
      'HttpOnly',
      'Max-Age=60',
      'Path=/auth',
      'SameSite=Lax',
    ])
  })

  test('the value comes back as it was set, whatever text it is', async () => {
    const { ctx } = context()
    for (const value of ['a value', 'x.y~z=;,"', 'ação 🙂', 'j:{"a":1}']) expect(await read(ctx, pairOf(await set(ctx, value)))).toBe(value)
  })

  test('a browser that is told to forget it sends it no more', async () => {
    const { ctx } = context()
    const browser = browserOf(appOf(ctx))
    await browser.get('/auth/set/signup_binding/one')
    expect((await browser.get('/auth/read/signup_binding')).body).toEqual({ value: 'one' })
    await browser.get('/auth/clear/signup_binding')
    expect((await browser.get('/auth/read/signup_binding')).body).toEqual({ value: null })
  })
})

describe('with cookieSecure', () => {
  test('the cookie is called __Host-<name>, with Path=/ and Secure and no Domain', async () => {
    const { ctx } = context({ cookieSecure: true, cookieDomain: 'example.test' })
    for (const response of [await set(ctx, 'a value'), await supertest(appOf(ctx)).get('/auth/clear/signup_binding')]) {
      const attributes = setCookieOf(response, '__Host-signup_binding')?.attributes.split('; ')
      expect(attributes?.filter((text) => !/^(Expires|Max-Age)/.test(text)).sort()).toEqual([
        'HttpOnly',
        'Path=/',
        'SameSite=Lax',
        'Secure',
      ])
    }
  })

  test('a cookie without the prefix in its name, which another subdomain can set, is not read', async () => {
    const { ctx } = context({ cookieSecure: true })
    const { value } = setCookieOf(await set(ctx, 'one'), '__Host-signup_binding') ?? { value: '' }
    expect(await read(ctx, `__Host-signup_binding=${value}`)).toBe('one')
    expect(await read(ctx, `signup_binding=${value}`)).toBeNull()
  })
})

describe('a value counts for nothing', () => {
  test('after its time, whatever the browser kept', async () => {
    const { ctx, clock } = context()
    const pair = pairOf(await set(ctx, 'one'))
    clock.advance(59)
    expect(await read(ctx, pair)).toBe('one')
    clock.advance(1)
    expect(await read(ctx, pair)).toBeNull()
  })

  test('in a cookie of another name', async () => {
    const { ctx } = context()
    const { value } = setCookieOf(await set(ctx, 'one'), 'signup_binding') ?? { value: '' }
    expect(await read(ctx, `email_login=${value}`, 'email_login')).toBeNull()
  })

  test('when the name comes twice', async () => {
    const { ctx } = context()
    const [one, other] = [pairOf(await set(ctx, 'one')), pairOf(await set(ctx, 'other'))]
    expect(await read(ctx, `${one}; ${other}`)).toBeNull()
  })

  test('when anything in it was changed, or when it was made under a secret that is not ours', async () => {
    const { ctx } = context()
    const { value } = setCookieOf(await set(ctx, 'one'), 'signup_binding') ?? { value: '' }
    const [text = '', end = '', mac = ''] = value.split('.')
    const foreign = setCookieOf(await set(context({ secrets: [olderSecret] }).ctx, 'one'), 'signup_binding')?.value
    const changed = [
      `${text}A.${end}.${mac}`,
      `${text}.${end}0.${mac}`,
      `${text}.${end}.${mac}A`,
      `${text}.${end}.`,
      text,
      `${value}.`,
      foreign,
    ]
    for (const planted of changed) expect(await read(ctx, `signup_binding=${planted}`), planted).toBeNull()
  })
})

test('while the secret is being replaced, a cookie under the older secret still counts', async () => {
  const pair = pairOf(await set(context({ secrets: [olderSecret] }).ctx, 'one'))
  expect(await read(context({ secrets: [testSecret, olderSecret] }).ctx, pair)).toBe('one')
  expect(await read(context({ secrets: [testSecret] }).ctx, pair)).toBeNull()
})
