import { describe, expect, test } from 'vitest'
import { type Browser, baseUrl, type Mounted, setCookieOf, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { oldBrowser } from '../support/cookie-check'
import { linkTemplates } from '../support/mailbox'
import { type RawAnswer, sendRaw } from '../support/send-raw'

const start = appPerTest()
const settingsOf = (settings: object) => ({ jwtSecret: testSecret, ...settings })

/** What the browser must see alike to replace or drop a cookie. */
function scopeOf(attributes: string | undefined): string[] {
  return (attributes ?? 'absent')
    .split('; ')
    .filter((attribute) => !/^(Max-Age|Expires)=/.test(attribute))
    .sort()
}

function maxAgeOf(attributes: string | undefined): number {
  return Number(/Max-Age=(\d+)/.exec(attributes ?? '')?.[1])
}

/** A browser that has signed in, and the value of its refresh cookie. */
async function signedIn(mounted: Mounted): Promise<{ browser: Browser; response: Awaited<ReturnType<typeof signIn>>; refresh: string }> {
  const browser = mounted.browser()
  const response = await signIn(mounted, browser)
  return { browser, response, refresh: setCookieOf(response, 'refresh_token')?.value ?? '' }
}

describe.each([
  { tokenDelivery: 'cookie', base: '', prefix: '/auth', path: '/auth' },
  { tokenDelivery: 'cookie', base: '', prefix: '/api/v1/auth', path: '/api/v1/auth' },
  { tokenDelivery: 'both', base: '/cookie', prefix: '/auth', path: '/auth/cookie' },
  { tokenDelivery: 'both', base: '/cookie', prefix: '/api/v1/auth', path: '/api/v1/auth/cookie' },
] as const)('delivery $tokenDelivery mounted at $prefix', ({ tokenDelivery, base, prefix, path }) => {
  test('R-117: a login sets both cookies; the body holds the tokens only where delivery says both', async () => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery }), prefix })

    const { response } = await signedIn(mounted)

    const [access, refresh] = [setCookieOf(response, 'access_token'), setCookieOf(response, 'refresh_token')]
    expect(scopeOf(access?.attributes)).toEqual(['HttpOnly', 'Path=/', 'SameSite=Lax'])
    expect(scopeOf(refresh?.attributes)).toEqual(['HttpOnly', `Path=${path}`, 'SameSite=Lax'])
    expect([maxAgeOf(access?.attributes), maxAgeOf(refresh?.attributes)]).toEqual([900, 604_800])
    const inBody =
      tokenDelivery === 'both'
        ? { access_token: access?.value, refresh_token: refresh?.value }
        : { access_token: null, refresh_token: null }
    expect(response.body).toMatchObject(inBody)
  })

  test('refresh by cookie rotates and answers in cookies, with null in the body', async () => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery }), prefix })
    const { browser, refresh } = await signedIn(mounted)

    const response = await browser.post(`${prefix}${base}/refresh`)

    expect(response.status, response.text).toBe(200)
    expect(response.body).toMatchObject({ access_token: null, refresh_token: null, mfa_required: false })
    const rotated = setCookieOf(response, 'refresh_token')
    expect(rotated?.value).toMatch(/^[\w-]{112}$/)
    expect(rotated?.value).not.toBe(refresh)
    expect(setCookieOf(response, 'access_token')?.value).toMatch(/^eyJ/)
    expect((await browser.post(`${prefix}${base}/refresh`)).status).toBe(200)
  })

  test('R-113: logout clears both cookies with the attributes they were set with, and ends the family', async () => {
    const secure = { tokenDelivery, cookieSecure: true, cookieDomain: 'example.test', cookieSamesite: 'strict' }
    const mounted = await start({ settings: settingsOf(secure), prefix })
    const response = await signInByHand(mounted, prefix)
    const headers = { Cookie: `refresh_token=${setCookieOf(response, 'refresh_token')?.value}` }

    const logout = await sendRaw(mounted.app, { path: `${prefix}${base}/logout`, headers })

    expect([logout.status, logout.text]).toEqual([204, ''])
    for (const name of ['access_token', 'refresh_token']) {
      const [set, cleared] = [setCookieOf(response, name), setCookieOf(logout, name)]
      expect(scopeOf(set?.attributes)).toEqual(scopeOf(cleared?.attributes))
      expect(scopeOf(set?.attributes)).toEqual(expect.arrayContaining(['Domain=example.test', 'HttpOnly', 'SameSite=Strict', 'Secure']))
      expect(cleared?.value).toBe('')
      expect(cleared?.attributes).toContain('Expires=Thu, 01 Jan 1970 00:00:00 GMT')
      expect(cleared?.attributes).not.toContain('Max-Age')
    }
    expect((await sendRaw(mounted.app, { path: `${prefix}${base}/refresh`, headers })).body['code']).toBe('INVALID_TOKEN')
  })

  test('logout without a cookie is the same 204, and clears what may be left', async () => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery }), prefix })

    const response = await mounted.browser().post(`${prefix}${base}/logout`).send({ all_sessions: true })

    expect(response.status).toBe(204)
    expect(setCookieOf(response, 'refresh_token')?.value).toBe('')
  })

  test('refresh without the cookie is 401 UNAUTHORIZED, also with a token in the body or an empty cookie', async () => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery }), prefix })
    const { refresh } = await signedIn(mounted)
    const url = `${prefix}${base}/refresh`

    for (const asked of [
      {},
      { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ refresh_token: refresh }) },
      { headers: { Cookie: 'refresh_token=' } },
      { headers: { Cookie: 'refresh_token=j:{"a":1}' } },
    ]) {
      const answer = await sendRaw(mounted.app, { path: url, ...asked })
      expect([answer.status, answer.body['code'], answer.headers['set-cookie']]).toEqual([401, 'UNAUTHORIZED', undefined])
    }
  })

  test('Max-Age of the refresh cookie ends where the family ends', async () => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery, refreshFamilyTtlSeconds: 1_000_000 }), prefix })
    const { refresh } = await signedIn(mounted)
    mounted.clock.advance(600_000)

    const answer = await sendRaw(mounted.app, { path: `${prefix}${base}/refresh`, headers: { Cookie: `refresh_token=${refresh}` } })

    expect(maxAgeOf(setCookieOf(answer, 'refresh_token')?.attributes)).toBe(400_000)
  })

  test.each([
    ['an origin of another site', { Origin: 'https://evil.example' }, 403],
    ['a look-alike origin', { Origin: `${baseUrl}.evil.example` }, 403],
    ['the origin null', { Origin: 'null' }, 403],
    ['an empty origin', { Origin: '' }, 403],
    ['another origin, whatever Sec-Fetch-Site says', { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'same-origin' }, 403],
    ['Sec-Fetch-Site cross-site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
    ['Sec-Fetch-Site same-site', { 'Sec-Fetch-Site': 'same-site' }, 403],
    ['an unknown Sec-Fetch-Site', { 'Sec-Fetch-Site': 'x' }, 403],
    ['the public origin', { Origin: baseUrl }, 200],
    ['a listed origin', { Origin: 'https://spa.example.test' }, 200],
    ['a listed origin of the same site', { Origin: 'https://spa.example.test', 'Sec-Fetch-Site': 'same-site' }, 200],
    ['Sec-Fetch-Site same-origin', { 'Sec-Fetch-Site': 'same-origin' }, 200],
    ['Sec-Fetch-Site none', { 'Sec-Fetch-Site': 'none' }, 200],
    ['neither header (curl, native apps)', {}, 200],
  ])('a request with %s is %s', async (_what, headers, status) => {
    const mounted = await start({ settings: settingsOf({ tokenDelivery, trustedOrigins: ['https://spa.example.test'] }), prefix })
    const { refresh } = await signedIn(mounted)
    const cookie = { Cookie: `refresh_token=${refresh}`, ...oldBrowser }

    const refreshed = await sendRaw(mounted.app, { path: `${prefix}${base}/refresh`, headers: { ...cookie, ...headers } })
    const token = setCookieOf(refreshed, 'refresh_token')?.value ?? refresh
    const logout = await sendRaw(mounted.app, {
      path: `${prefix}${base}/logout`,
      headers: { ...cookie, Cookie: `refresh_token=${token}`, ...headers },
    })

    expect([refreshed.status, logout.status]).toEqual([status, status === 200 ? 204 : 403])
    if (status === 200) return
    for (const answer of [refreshed, logout]) {
      expect(answer.body['code']).toBe('CSRF_VALIDATION_FAILED')
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    expect((await sendRaw(mounted.app, { path: `${prefix}${base}/refresh`, headers: cookie })).status).toBe(200)
  })
})

test('where no public origin is configured, only a page of the host that was asked passes', async () => {
  const mounted = await start({
    settings: settingsOf({ tokenDelivery: 'cookie', oauthRedirectBaseUrl: '', ...linkTemplates }),
    providers: { corp: { redirectUri: `${baseUrl}/auth/oauth/corp/callback` } },
  })
  const { refresh } = await signedIn(mounted)

  const ask = (Origin: string, site?: string) =>
    sendRaw(mounted.app, {
      path: '/auth/refresh',
      headers: {
        Host: 'app.example.test:8443',
        Cookie: `refresh_token=${refresh}`,
        Origin,
        ...oldBrowser,
        ...(site && { 'Sec-Fetch-Site': site }),
      },
    })

  for (const origin of [
    '',
    'null',
    'https://evil.example',
    'https://app.example.test',
    'app.example.test:8443',
    'https://x.app.example.test:8443',
  ])
    expect((await ask(origin)).body['code'], origin).toBe('CSRF_VALIDATION_FAILED')
  // The page of http can be forged on the way to the browser, and the browser calls it another site.
  expect((await ask('http://app.example.test:8443', 'cross-site')).body['code']).toBe('CSRF_VALIDATION_FAILED')
  expect((await ask('https://app.example.test:8443', 'same-origin')).status).toBe(200)
})

test('under delivery both the plain paths answer in the body and set no cookie', async () => {
  const mounted = await start({ settings: settingsOf({ tokenDelivery: 'both' }) })
  const { response } = await signedIn(mounted)

  const refreshed = await mounted.browser().post('/auth/refresh').send({ refresh_token: response.body.refresh_token })
  const logout = await mounted.browser().post('/auth/logout').send({ refresh_token: refreshed.body.refresh_token })

  expect([refreshed.status, logout.status]).toEqual([200, 204])
  expect(refreshed.body.refresh_token).toMatch(/^[\w-]{112}$/)
  for (const answer of [refreshed, logout]) expect(answer.headers['set-cookie']).toBeUndefined()
})

test('delivery bearer sets no cookie, reads none, and has no twins', async () => {
  const mounted = await start()
  const { response } = await signedIn(mounted)

  expect(setCookieOf(response, 'access_token')).toBeNull()
  expect(setCookieOf(response, 'refresh_token')).toBeNull()
  const headers = { Cookie: `refresh_token=${response.body.refresh_token}; access_token=${response.body.access_token}` }
  expect((await sendRaw(mounted.app, { path: '/auth/refresh', headers })).body['code']).toBe('VALIDATION_ERROR')
  expect((await sendRaw(mounted.app, { method: 'GET', path: '/auth/me', headers })).body['code']).toBe('UNAUTHORIZED')
  expect((await sendRaw(mounted.app, { path: '/auth/cookie/refresh', headers })).status).toBe(404)
})

test('R-117: Set-Cookie is never on an answer that may be kept', async () => {
  const mounted = await start({ settings: settingsOf({ tokenDelivery: 'both' }) })
  const { browser, response } = await signedIn(mounted)
  const answers = [
    response,
    await browser.post('/auth/cookie/refresh'),
    await browser.post('/auth/cookie/logout'),
    await browser.get('/auth/oauth/corp/login'),
  ]

  for (const answer of answers) {
    expect(answer.headers['set-cookie']).toBeDefined()
    expect(answer.headers['cache-control']).toBe('no-store')
  }
})

/** Without a cookie jar, which would keep Secure cookies and those of another domain away from loopback. */
async function signInByHand(mounted: Mounted, prefix: string): Promise<RawAnswer> {
  const login = await sendRaw(mounted.app, { method: 'GET', path: `${prefix}/oauth/corp/login` })
  const { callbackQuery } = mounted.provider.authorize(String(login.headers.location))
  return sendRaw(mounted.app, {
    method: 'GET',
    path: `${prefix}/oauth/corp/callback?${new URLSearchParams(callbackQuery)}`,
    headers: { Cookie: `oauth_state=${setCookieOf(login, 'oauth_state')?.value}` },
  })
}
