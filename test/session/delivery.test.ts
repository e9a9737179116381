import type supertest from 'supertest'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ProviderClient } from '../../src'
import type { Route } from '../../src/http/routes'
import { bearerOf, type LocalHost, type LocalMember, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, onMfa } from '../mfa/people'
import { by, type Device, device, sessionCookie } from '../server-session/devices'
import { addIdentity, addUser } from '../social/accounts-at-hand'
import { begin, callBack, cookieAttributes, setCookies } from '../social/redirect-steps'
import { baseUrl, setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { mountedRoutes } from '../support/mounted-routes'

beforeEach(() => {
  mountedRoutes.length = 0
})

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onMfa(sqlite)

type Open = (host: LocalHost, path: string, person: LocalMember) => Promise<supertest.Response>

const activation: Open = (host, path) => activate(host, path)

/** How each login-shaped route is brought to its session, for somebody who is signed in and has no second factor. */
const routes: Record<string, Open> = {
  'POST /login': (host, path, { email }) => post(host, path, { email, password }),
  'POST /activate': activation,
  'POST /activate/:token': activation,
  'POST /password-reset/confirm': async (host, path, { email }) =>
    post(host, path, { token: await resetLink(host, email), new_password: otherPassword }),
  'POST /email-login/confirm': async (host, path, { email }) => {
    const { url } = await host.auth.service.requestEmailLogin(email)
    return post(host, path, { token: url?.split('/').at(-1) })
  },
  'POST /refresh': (host, path, { refreshToken }) =>
    inCookies(host, path)
      ? post(host, path, {}, { Cookie: `refresh_token=${refreshToken}` })
      : post(host, path, { refresh_token: refreshToken }),
  'POST /mfa/verify': async (host, path) => {
    const person = await enrolled(host)
    return post(host, path, { mfa_token: await challengeOf(host, person), code: person.app.nextCode() })
  },
  'POST /mfa/confirm': async (host, path, person) => {
    const { secret } = await host.auth.service.enrollTotp(person.userId)
    return post(host, path, { code: authenticator(secret, host.clock).code(), refresh_token: person.refreshToken }, bearerOf(person))
  },
  'GET /oauth/:provider/callback': (host, _path, person) => comeBack(host, person),
  'POST /oauth/:provider/token': async (host, path, { userId, email }) => {
    await addIdentity(host.knex, userId, { provider: 'in_hand', subject: `token-of-${userId}`, email })
    return post(host, path.replace(':provider', 'in_hand'), { access_token: `token-of-${userId}` })
  },
}

/** Names whoever brings a token by the token, and believes all of them to be for this application. */
const inHand: ProviderClient = {
  providerName: 'in_hand',
  clientId: 'client',
  authorizeUrl: `${baseUrl}/authorize`,
  tokenUrl: `${baseUrl}/token`,
  scopes: [],
  exchangeCode: () => Promise.reject(new Error('nobody comes with a code')),
  fetchUser: async ({ accessToken: subject }) => ({
    provider: 'in_hand',
    subject,
    email: null,
    emailVerified: null,
    name: null,
    picture: null,
    raw: {},
  }),
  verifyTokenAudience: async () => undefined,
}

type TokenDelivery = 'bearer' | 'cookie' | 'both'
const deliveryOf = new WeakMap<LocalHost, TokenDelivery | 'session'>()
const inCookies = (host: LocalHost, path: string) => deliveryOf.get(host) === 'cookie' || path.startsWith('/cookie/')
const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`
const sessionCookies = (response: supertest.Response) => setCookies(response).filter((line) => !/^(?:oauth_state|auth_device)=/.test(line))
/** A session that goes on is no login: its browser is remembered already. */
const goesOn: ReadonlySet<string> = new Set(['POST /refresh', 'POST /mfa/confirm'])

async function startDelivering(tokenDelivery: TokenDelivery | 'session', settings: object = {}) {
  const host = await start({
    prefix: '/api/v1/auth',
    settings: { tokenDelivery, emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}', ...settings },
    providers: { corp: {}, in_hand: inHand },
    options: { throttle: { mail: false, routes: false } },
  })
  deliveryOf.set(host, tokenDelivery)
  const [mounted = []] = mountedRoutes
  // A server-side session has its own cookie in every delivery: nothing below /session hands out a pair.
  return { host, mounted, shaped: mounted.filter(({ path, delivers }) => delivers === 'login' && !path.startsWith('/session/')) }
}

describe.each(['bearer', 'cookie', 'both'] as const)('delivery %s', (tokenDelivery) => {
  test('R-117: every login-shaped route that is mounted hands its pair out the same way', async () => {
    const { host, shaped } = await startDelivering(tokenDelivery)
    expect(new Set(shaped.map(nameOf))).toEqual(new Set(Object.keys(routes)))

    for (const route of shaped) {
      const response = await routes[nameOf(route)]?.(host, route.path, await signedIn(host))
      if (!response) throw new Error(`nobody knows how to open ${nameOf(route)}`)
      const isOfProvider = route.path.startsWith('/oauth/') // which has no twin below /cookie
      const hasCookies = inCookies(host, route.path) || (isOfProvider && tokenDelivery === 'both')
      const hasBody = !inCookies(host, route.path)

      expect([route.path, response.status, response.headers['cache-control']]).toEqual([route.path, 200, 'no-store'])
      const { access_token, refresh_token, ...rest } = response.body
      expect([route.path, rest]).toEqual([route.path, { user_id: expect.any(String), mfa_required: false, mfa_token: null }])
      expect([route.path, access_token !== null, refresh_token !== null]).toEqual([route.path, hasBody, hasBody])
      expect([route.path, sessionCookies(response).length]).toEqual([route.path, hasCookies ? 3 : 0])
      const remembers = hasCookies && !goesOn.has(nameOf(route))
      expect([route.path, setCookieOf(response, 'auth_device') !== null]).toEqual([route.path, remembers])
      if (!hasCookies) continue
      const [access, refresh] = [cookieAttributes(response, 'access_token'), cookieAttributes(response, 'refresh_token')]
      const scope = { httponly: '', samesite: 'Lax', expires: expect.any(String) }
      const below = tokenDelivery === 'both' ? '/api/v1/auth/cookie' : '/api/v1/auth'
      expect([route.path, access]).toEqual([route.path, { ...scope, path: '/', 'max-age': '900' }])
      expect([route.path, refresh]).toEqual([route.path, { ...scope, path: below, 'max-age': '604800' }])
      const values = [setCookieOf(response, 'access_token')?.value, setCookieOf(response, 'refresh_token')?.value]
      if (hasBody) expect(values).toEqual([access_token, refresh_token])
      for (const value of values) expect(value).toMatch(/^[\w.-]{43,}$/)
    }
  })

  test('a refusal and a challenge set no cookie', async () => {
    const { host, shaped } = await startDelivering(tokenDelivery)
    for (const { method, path } of shaped.filter((route) => route.method === 'POST')) {
      const refused = await post(host, path.replace(':token', 'unknown'), { refresh_token: 'x', token: 'x', mfa_token: 'x', code: '1' })
      expect([method, path, refused.status >= 400, setCookies(refused)]).toEqual([method, path, true, []])
    }
    const { email } = await enrolled(host)
    const bases = tokenDelivery === 'both' ? ['', '/cookie'] : ['']
    for (const base of bases) {
      const challenge = await post(host, `${base}/login`, { email, password })
      expect([challenge.body.mfa_required, typeof challenge.body.mfa_token, setCookies(challenge)]).toEqual([true, 'string', []])
    }
  })
})

/** How each login-shaped route of delivery `session` is brought to its session; `device` is somebody who is signed in, without a factor. */
const sessionRoutes: Record<string, (host: LocalHost, path: string, person: Device) => Promise<supertest.Response>> = {
  'POST /login': (host, path, { email }) => post(host, path, { email, password }),
  'POST /activate': (host, path) => activate(host, path),
  'POST /activate/:token': (host, path) => activate(host, path),
  'POST /password-reset/confirm': async (host, path, { email }) =>
    post(host, path, { token: await resetLink(host, email), new_password: otherPassword }),
  'POST /email-login/confirm': async (host, path, { email }) => {
    const { url } = await host.auth.service.requestEmailLogin(email)
    return post(host, path, { token: url?.split('/').at(-1) })
  },
  'POST /mfa/verify': async (host, path) => {
    const person = await withFactor(host)
    return post(host, path, { mfa_token: await challenged(host, person), code: person.app.nextCode() })
  },
  'POST /mfa/confirm': async (host, path, person) => {
    const { body } = await post(host, '/mfa/enroll', {}, by(person)).expect(200)
    return post(host, path, { code: authenticator(body.secret, host.clock).code() }, by(person))
  },
  'GET /oauth/:provider/callback': async (host, _path, person) => comeBack(host, person),
  'POST /oauth/:provider/token': async (host, path, { userId, email }) => {
    await addIdentity(host.knex, userId, { provider: 'in_hand', subject: `token-of-${userId}`, email })
    return post(host, path.replace(':provider', 'in_hand'), { access_token: `token-of-${userId}` })
  },
}

async function activate(host: LocalHost, path: string): Promise<supertest.Response> {
  const { email } = await addUser(host.knex, { isActive: false, activatedAt: null, emailVerifiedAt: null })
  const link = await host.auth.service.requestActivation(email)
  const token = link && 'token' in Object(link) ? (link as { token: string }).token : '' // not withheld: nothing refuses links here
  return path.endsWith(':token') ? post(host, path.replace(':token', token)) : post(host, path, { token })
}

async function comeBack(host: LocalHost, { userId, email }: Pick<Device, 'userId' | 'email'>): Promise<supertest.Response> {
  await addIdentity(host.knex, userId, { subject: `subject-of-${userId}`, email })
  const { query, cookie } = await begin(host, { profile: { sub: `subject-of-${userId}`, email } })
  return callBack(host, query, { cookie })
}

/** Doors that somebody with a factor is challenged at. */
const challengingRoutes = [
  'POST /login',
  'POST /email-login/confirm',
  'POST /password-reset/confirm',
  'GET /oauth/:provider/callback',
  'POST /oauth/:provider/token',
]
/** The others: a session that goes on, the second step itself, and an account that waits for its activation and has no factor. */
const unchallengedRoutes = ['POST /refresh', 'POST /mfa/confirm', 'POST /mfa/verify', 'POST /activate', 'POST /activate/:token']

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('delivery %s, with a second factor', (tokenDelivery) => {
  test('every door that is mounted answers the challenge without a cookie, and the second step opens the session', async () => {
    const { host, shaped } = await startDelivering(tokenDelivery)
    expect(new Set(shaped.map(nameOf))).toEqual(
      new Set([...challengingRoutes, ...unchallengedRoutes].filter((name) => name !== 'POST /refresh' || tokenDelivery !== 'session')),
    )
    for (const route of shaped.filter((one) => challengingRoutes.includes(nameOf(one)))) {
      const { person, response } = await (tokenDelivery === 'session' ? comeInSession(host, route) : comeWithTokens(host, route))
      if (!response) throw new Error(`nobody knows how to open ${nameOf(route)}`)
      const tokens = tokenDelivery === 'session' ? {} : { access_token: null, refresh_token: null }
      const challenge = { user_id: person.userId, mfa_required: true, mfa_token: expect.any(String), ...tokens }
      expect([route.path, response.body, sessionCookies(response)]).toEqual([route.path, challenge, []])
      const base = route.path.startsWith('/cookie/') ? '/cookie' : ''
      const verified = await post(host, `${base}/mfa/verify`, { mfa_token: response.body.mfa_token, code: person.app.nextCode() })
      expect([route.path, verified.status, verified.body.user_id, verified.body.mfa_required]).toEqual([
        route.path,
        200,
        person.userId,
        false,
      ])
      const names = { bearer: [], cookie: tokenCookies, both: base === '' ? [] : tokenCookies, session: ['auth_session', 'auth_hint'] }[
        tokenDelivery
      ]
      expect([route.path, sessionCookies(verified).map((line) => line.split('=')[0])]).toEqual([route.path, names])
    }
  })
})

async function comeInSession(host: LocalHost, route: Route) {
  const person = await withFactor(host)
  return { person, response: await sessionRoutes[nameOf(route)]?.(host, route.path, person) }
}

async function comeWithTokens(host: LocalHost, route: Route) {
  const person = await enrolled(host)
  return { person, response: await routes[nameOf(route)]?.(host, route.path, person) }
}

const tokenCookies = ['access_token', 'refresh_token', 'auth_hint']

describe('delivery session', () => {
  const opened = (body: object = {}) => ({
    user_id: expect.any(String),
    expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    mfa_required: false,
    ...body,
  })

  test('every login-shaped route that is mounted opens a session behind its cookie, and shows no token', async () => {
    const { host, mounted, shaped } = await startDelivering('session')
    expect(new Set(shaped.map(nameOf))).toEqual(new Set(Object.keys(sessionRoutes)))
    expect(mounted.map(nameOf).filter((name) => name === 'POST /refresh' || name.includes('/cookie/'))).toEqual([])

    for (const route of shaped) {
      const person = await device(host, undefined, {}, '/login')
      const response = await sessionRoutes[nameOf(route)]?.(host, route.path, person)
      if (!response) throw new Error(`nobody knows how to open ${nameOf(route)}`)
      expect([route.path, response.status, response.headers['cache-control']]).toEqual([route.path, 200, 'no-store'])
      expect([route.path, response.body]).toEqual([route.path, opened()])
      const names = sessionCookies(response).map((line) => line.split('=')[0])
      expect([route.path, names]).toEqual([route.path, ['auth_session', 'auth_hint']])
      const scope = { httponly: '', samesite: 'Lax', expires: expect.any(String), path: '/', 'max-age': '86400' }
      expect([route.path, cookieAttributes(response, 'auth_session')]).toEqual([route.path, scope])
      expect([route.path, setCookieOf(response, 'auth_device') !== null]).toEqual([route.path, !goesOn.has(nameOf(route))])
      expect([route.path, (await me(host, response)).status]).toEqual([route.path, 200])
    }
  })

  test('a signup that is born active says so beside the session; one that waits gets no cookie', async () => {
    const active = await startDelivering('session', { autoActivate: true })
    const signup = await post(active.host, '/signup', { email: 'born-active@example.test', password })
    expect([signup.status, signup.body]).toEqual([201, opened({ activation_required: false })])
    expect((await me(active.host, signup)).status).toBe(200)

    mountedRoutes.length = 0
    const { host } = await startDelivering('session')
    const waiting = await post(host, '/signup', { email: 'waiting@example.test', password })
    const presented = { user_id: expect.any(String), activation_required: true, activation_url: null, signup_token: expect.any(String) }
    expect([waiting.status, waiting.body, sessionCookies(waiting).filter((line) => line.startsWith('auth_session'))]).toEqual([
      201,
      presented,
      [],
    ])
  })

  test('a refusal sets no cookie', async () => {
    const { host, shaped } = await startDelivering('session')
    for (const { method, path } of shaped.filter((route) => route.method === 'POST')) {
      const refused = await post(host, path.replace(':token', 'unknown'), { token: 'x', mfa_token: 'x', code: '1' })
      expect([method, path, refused.status >= 400, setCookies(refused)]).toEqual([method, path, true, []])
    }
  })

  test('the browser that comes back from a provider goes where it was going, with its session', async () => {
    const { host } = await startDelivering('session', { oauthSuccessRedirect: '/welcome' })
    const back = await comeBack(host, await device(host, undefined, {}, '/login'))
    expect([back.status, back.headers['location'], (await me(host, back)).status]).toEqual([302, '/welcome', 200])
  })
})

/** An account with a factor, whose codes `app` shows. Its session ended when the factor began. */
async function withFactor(host: LocalHost): Promise<Device & { app: ReturnType<typeof authenticator> }> {
  const person = await device(host, undefined, {}, '/login')
  const { body } = await post(host, '/mfa/enroll', {}, by(person)).expect(200)
  const app = authenticator(body.secret, host.clock)
  await post(host, '/mfa/confirm', { code: app.code() }, by(person)).expect(200)
  return { ...person, app }
}

async function challenged(host: LocalHost, { email }: Pick<Device, 'email'>): Promise<string> {
  const { body } = await post(host, '/login', { email, password }).expect(200)
  return body.mfa_token
}

/** The account's own route, by the cookie that an answer set. */
function me(host: LocalHost, response: supertest.Response): supertest.Test {
  return host.browser().get(`${host.prefix}/me`).set('Cookie', sessionCookie(response).cookie)
}

test('below /cookie are the twins of the contract and no others, in delivery both alone', async () => {
  const twinsOf = (mounted: readonly Route[]) =>
    [...new Set(mounted.flatMap(({ path }) => /^\/cookie(\/.+)$/.exec(path)?.[1] ?? []))].sort()
  const both = await startDelivering('both', { oauthSuccessRedirect: '/' })
  expect(twinsOf(both.mounted)).toEqual(
    [
      ...['/activate', '/activate/:token', '/login', '/logout', '/mfa/confirm', '/mfa/verify', '/password-change'],
      ...[
        '/password-change/mfa',
        '/email-change/confirm',
        '/email-login/confirm',
        '/email-login/request',
        '/password-reset/confirm',
        '/password/first',
        '/reauthenticate',
        '/reauthenticate/email',
        '/refresh',
        '/sessions/revoke-others',
        '/signup',
        '/oauth/link/redeem',
        '/whoami',
      ],
    ].sort(),
  )
  for (const delivery of ['bearer', 'cookie'] as const) {
    mountedRoutes.length = 0
    expect(twinsOf((await startDelivering(delivery)).mounted)).toEqual([])
  }
})

test('signup in delivery cookie, and its twin, set cookies when the account is born active', async () => {
  for (const [delivery, path] of [
    ['cookie', '/signup'],
    ['both', '/cookie/signup'],
  ] as const) {
    const { host } = await startDelivering(delivery, { autoActivate: true })
    const signup = await post(host, path, { email: `${delivery}@example.test`, password })
    const names = setCookies(signup).map((line) => line.split('=')[0])
    expect([signup.status, names.sort(), signup.body.access_token, signup.body.refresh_token]).toEqual([
      201,
      ['access_token', 'auth_device', 'auth_hint', 'refresh_token'],
      null,
      null,
    ])
  }
})

test('R-116: of two access tokens the header’s wins, and the cookie’s is not even looked at', async () => {
  const { host } = await startDelivering('cookie')
  const [ana, bob] = [await signedIn(host), await signedIn(host)]
  const me = (headers: Record<string, string>) => host.browser().get(`${host.prefix}/me`).set(headers)

  expect((await me({ ...bearerOf(ana), Cookie: `access_token=${bob.token}` })).body.id).toBe(ana.userId)
  expect((await me({ ...bearerOf(ana), Cookie: 'access_token=nonsense' })).body.id).toBe(ana.userId)
  expect((await me({ Authorization: 'Bearer nonsense', Cookie: `access_token=${bob.token}` })).body.code).toBe('INVALID_TOKEN')
  expect((await me({ Cookie: `access_token=${bob.token}` })).body.id).toBe(bob.userId)
})
