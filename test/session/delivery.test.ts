import type supertest from 'supertest'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ProviderClient } from '../../src'
import type { Route } from '../../src/http/routes'
import { bearerOf, type LocalHost, type LocalMember, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, onMfa } from '../mfa/people'
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

const activation: Open = async (host, path) => {
  const { email } = await addUser(host.knex, { isActive: false, activatedAt: null, emailVerifiedAt: null })
  const link = await host.auth.service.requestActivation(email)
  const token = link && 'token' in Object(link) ? (link as { token: string }).token : '' // not withheld: nothing refuses links here
  return path.endsWith(':token') ? post(host, path.replace(':token', token)) : post(host, path, { token })
}

/** How each login-shaped route is brought to its session, for somebody who is signed in and has no second factor. */
const routes: Record<string, Open> = {
  'POST /login': (host, path, { email }) => post(host, path, { email, password }),
  'POST /activate': activation,
  'POST /activate/:token': activation,
  'POST /password-reset/confirm': async (host, path, { email }) =>
    post(host, path, { token: await resetLink(host, email), new_password: otherPassword }),
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
  'GET /oauth/:provider/callback': async (host, _path, { userId, email }) => {
    await addIdentity(host.knex, userId, { subject: `subject-of-${userId}`, email })
    const { query, cookie } = await begin(host, { profile: { sub: `subject-of-${userId}`, email } })
    return callBack(host, query, { cookie })
  },
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

const deliveryOf = new WeakMap<LocalHost, 'bearer' | 'cookie' | 'both'>()
const inCookies = (host: LocalHost, path: string) => deliveryOf.get(host) === 'cookie' || path.startsWith('/cookie/')
const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`
const sessionCookies = (response: supertest.Response) => setCookies(response).filter((line) => !/^(?:oauth_state|auth_device)=/.test(line))
/** A session that goes on is no login: its browser is remembered already. */
const goesOn: ReadonlySet<string> = new Set(['POST /refresh', 'POST /mfa/confirm'])

async function startDelivering(tokenDelivery: 'bearer' | 'cookie' | 'both', settings: object = {}) {
  const host = await start({
    prefix: '/api/v1/auth',
    settings: { tokenDelivery, ...settings },
    providers: { corp: {}, in_hand: inHand },
    options: { throttle: { mail: false, routes: false } },
  })
  deliveryOf.set(host, tokenDelivery)
  const [mounted = []] = mountedRoutes
  // A server-side session has its own cookie in every delivery: nothing below /session hands out a pair.
  return { host, mounted, shaped: mounted.filter(({ path, loginShaped }) => loginShaped && !path.startsWith('/session/')) }
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
      expect([route.path, sessionCookies(response).length]).toEqual([route.path, hasCookies ? 2 : 0])
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

test('below /cookie are the twins of the contract and no others, in delivery both alone', async () => {
  const twinsOf = (mounted: readonly Route[]) =>
    [...new Set(mounted.flatMap(({ path }) => /^\/cookie(\/.+)$/.exec(path)?.[1] ?? []))].sort()
  const both = await startDelivering('both', { oauthSuccessRedirect: '/' })
  expect(twinsOf(both.mounted)).toEqual(
    [
      ...['/activate', '/activate/:token', '/login', '/logout', '/mfa/confirm', '/mfa/verify', '/password-change'],
      ...[
        '/password-change/mfa',
        '/password-reset/confirm',
        '/password/first',
        '/reauthenticate',
        '/refresh',
        '/signup',
        '/oauth/link/redeem',
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
      ['access_token', 'auth_device', 'refresh_token'],
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
