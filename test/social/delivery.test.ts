import { describe, expect, test } from 'vitest'
import { setCookieOf, signIn } from '../support/app'
import { databases } from '../support/databases'
import { answer } from '../support/fake-provider'
import { begin, callBack, cookieAttributes, isCleared, newPerson, onDatabase, setCookies } from './redirect-steps'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onDatabase(database, { memory: true })

const nulls = { access_token: null, refresh_token: null, mfa_required: false, mfa_token: null }

describe('the answer of the callback', () => {
  test('bearer: both tokens in the body, and no cookie of a session', async () => {
    const host = await start()
    const response = await signIn(host, host.browser(), { profile: newPerson() })
    expect(response.body).toEqual({
      ...nulls,
      user_id: expect.any(String),
      access_token: expect.any(String),
      refresh_token: expect.any(String),
    })
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(setCookies(response).map((line) => line.split('=')[0])).toEqual(['oauth_state'])
  })

  test('cookie: both tokens as HttpOnly cookies, and null in the body', async () => {
    const host = await start({
      prefix: '/api/auth',
      settings: {
        tokenDelivery: 'cookie',
        cookieSecure: true,
        cookieSamesite: 'strict',
        accessTokenTtlSeconds: 300,
        refreshTokenTtlSeconds: 7200,
      },
    })
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const response = await callBack(host, query, { cookie })

    expect(response.status).toBe(200)
    expect(response.body).toEqual({ ...nulls, user_id: expect.any(String) })
    const { expires: _access, ...access } = cookieAttributes(response, 'access_token') ?? {}
    expect(access).toEqual({ 'max-age': '300', path: '/', httponly: '', secure: '', samesite: 'Strict' })
    const { expires: _refresh, ...refresh } = cookieAttributes(response, 'refresh_token') ?? {}
    expect(refresh).toEqual({ 'max-age': '7200', path: '/api/auth', httponly: '', secure: '', samesite: 'Strict' })
  })

  test('both: one pair, in cookies and in the body; the refresh cookie goes to prefix/cookie only', async () => {
    const host = await start({ settings: { tokenDelivery: 'both', accessCookieName: 'at', refreshCookieName: 'rt' } })
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const response = await callBack(host, query, { cookie })

    expect(setCookieOf(response, 'at')?.value).toBe(response.body.access_token)
    expect(setCookieOf(response, 'rt')?.value).toBe(response.body.refresh_token)
    expect(response.body.refresh_token).toMatch(/^[\w-]{112}$/)
    expect(cookieAttributes(response, 'rt')?.['path']).toBe('/auth/cookie')
    expect(cookieAttributes(response, 'at')?.['path']).toBe('/')
    expect(await host.knex('auth_sessions').where({ user_id: response.body.user_id })).toHaveLength(1)
  })

  test('the callback has no parallel /cookie route, in any delivery', async () => {
    for (const tokenDelivery of ['bearer', 'cookie', 'both'] as const) {
      const host = await start({ settings: { tokenDelivery } })
      for (const path of ['/auth/cookie/oauth/corp/callback', '/auth/oauth/cookie/corp/callback']) {
        expect((await host.browser().get(path)).body).not.toHaveProperty('code')
      }
    }
  })

  test('a refused login sets no cookie of a session', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const { query, cookie } = await begin(host, { profile: newPerson({ email: null }) })
    const response = await callBack(host, query, { cookie })
    expect(response.status).toBe(422)
    expect(setCookies(response).map((line) => line.split('=')[0])).toEqual(['oauth_state'])
  })
})

describe('redirects', () => {
  const fixed = {
    tokenDelivery: 'cookie',
    oauthSuccessRedirect: 'https://app.example.test/home?from=login',
    oauthErrorRedirect: 'https://app.example.test/sorry',
  } as const

  test('a success goes to the success redirect, with the cookies and without a body', async () => {
    const host = await start({ settings: fixed })
    const { query, cookie } = await begin(host, { profile: newPerson() })

    const response = await callBack(host, query, { cookie })

    expect([response.status, response.headers['location'], response.text]).toEqual([302, fixed.oauthSuccessRedirect, ''])
    expect(
      setCookies(response)
        .map((line) => line.split('=')[0])
        .sort(),
    ).toEqual(['access_token', 'auth_device', 'auth_hint', 'oauth_state', 'refresh_token'])
  })

  test.each([
    ['https://app.example.test/sorry', 'https://app.example.test/sorry?error='],
    ['https://app.example.test/sorry?from=login', 'https://app.example.test/sorry?from=login&error='],
    ['https://app.example.test/sorry#top', 'https://app.example.test/sorry?error=*#top'],
  ])('a refusal goes to the error redirect with its code: %s', async (oauthErrorRedirect, expected) => {
    const host = await start({ settings: { ...fixed, oauthErrorRedirect } })
    const to = (code: string) => (expected.includes('*') ? expected.replace('*', code) : `${expected}${code}`)

    const denied = await callBack(host, 'error=access_denied&error_description=canary', await begin(host))
    expect([denied.status, denied.headers['location']]).toEqual([302, to('OAUTH_PROVIDER_DENIED')])
    expect(isCleared(denied)).toBe(true)
    expect((await callBack(host, 'state=bad&code=c')).headers['location']).toBe(to('OAUTH_STATE_MISMATCH'))
    const { state, cookie } = await begin(host)
    expect((await callBack(host, { state }, { cookie })).headers['location']).toBe(to('OAUTH_CODE_MISSING'))
    const missing = await begin(host, { profile: newPerson({ email: null }) })
    expect((await callBack(host, missing.query, missing)).headers['location']).toBe(to('OAUTH_EMAIL_MISSING'))
    host.provider.on('token', answer(500, { secret: 'canary' }))
    const failing = await begin(host)
    const failed = await callBack(host, failing.query, failing)
    expect(failed.headers['location']).toBe(to('OAUTH_ERROR'))
    expect(failed.text).toBe('')
  })

  test('login itself answers in the envelope: its refusals are the host’s mistakes, not the person’s', async () => {
    const host = await start({ settings: fixed })
    const response = await host.browser().get('/auth/oauth/unknown/login')
    expect([response.status, response.body.code]).toEqual([404, 'OAUTH_PROVIDER_NOT_CONFIGURED'])
  })

  test.each([
    '//evil.example',
    '/\\evil.example',
    '\t//evil.example',
    'https://app.example.test@evil.example',
    'https://evil.example',
    'javascript:alert(1)',
  ])('R-032: no target in the query is ever redirected to (%j)', async (target) => {
    const names = ['next', 'returnTo', 'redirect', 'redirect_uri', 'callbackURL', 'RelayState', 'continue', 'url']
    const atLogin = Object.fromEntries(names.map((name) => [name, target]))
    const evil = { ...atLogin, return_to: target, redirect_to: target } // login refuses the two: return-to.test.ts
    const host = await start({ settings: fixed })

    const { response: login, query, cookie } = await begin(host, { query: atLogin, profile: newPerson() })
    expect(login.headers['location']).not.toContain('evil')
    expect((await callBack(host, { ...query, ...evil }, { cookie })).headers['location']).toBe(fixed.oauthSuccessRedirect)
    const refused = await callBack(host, { error: 'access_denied', ...evil })
    expect(refused.headers['location']).toBe(`${fixed.oauthErrorRedirect}?error=OAUTH_PROVIDER_DENIED`)
    const plain = await start()
    const attempt = await begin(plain, { profile: newPerson() })
    const answered = await callBack(plain, { ...attempt.query, ...evil }, attempt)
    expect([answered.status, answered.headers['location']]).toEqual([200, undefined])
  })

  test('R-032: redirects are refused at boot in delivery bearer', async () => {
    const { oauthSuccessRedirect, oauthErrorRedirect } = fixed
    await expect(start({ settings: { oauthSuccessRedirect } })).rejects.toThrow(/oauthSuccessRedirect/)
    await expect(start({ settings: { oauthErrorRedirect } })).rejects.toThrow(/oauthErrorRedirect/)
  })
})
