import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RequestHandler } from 'express'
import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { OidcClient } from '../../src'
import type { Route } from '../../src/http/routes'
import { codeChallengeOf } from '../../src/social/app-redirect/exchange-code'
import { amrOf, bearerOf, isAlive, type LocalHost, type LocalMember, newAddress, password, post, signedIn } from '../local/people'
import { addIdentity } from '../social/accounts-at-hand'
import { begin, callBack, newPerson, setCookies } from '../social/redirect-steps'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { mountedRoutes } from '../support/mounted-routes'
import { authenticator } from './authenticator'
import { challengeOf, enrolled, onMfa, verify } from './people'

interface Door {
  /** Of the first step. */
  amr: string[]
  /** Which one vouches for the person. */
  provider?: string
  open(host: LocalHost, path: string, person: LocalMember): Promise<supertest.Response>
}

const login: Door = { amr: ['pwd'], open: (host, path, { email }) => post(host, path, { email, password }) }

const activation: Door = {
  amr: ['email'],
  async open(host, path, { userId, email }) {
    await host.knex('auth_users').where({ id: userId }).update({ is_active: false, activated_at: null, last_login_at: null })
    const link = await host.auth.service.requestActivation(email)
    const token = link && 'token' in Object(link) ? (link as { token: string }).token : '' // not withheld: nothing refuses links here
    return path.endsWith(':token') ? post(host, path.replace(':token', token)) : post(host, path, { token })
  },
}

const byMail = { emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } as const
const appRedirects = ['com.example.app:/signed-in'] as const
const exchange = 'POST /oauth/exchange'

/** Every login-shaped route that is a first step, below `/cookie` or not; a new one has to join here, or be a later step. */
const doors: Record<string, Door> = {
  'POST /login': login,
  'POST /session/login': login,
  'POST /activate': activation,
  'POST /activate/:token': activation,
  'POST /password-reset/confirm': {
    amr: ['email'],
    async open(host, path, { email }) {
      const link = await host.auth.service.requestPasswordReset(email)
      return post(host, path, { token: link?.token, new_password: 'nine green bicycles uphill' })
    },
  },
  'POST /email-login/confirm': {
    amr: ['email'],
    async open(host, path, { email }) {
      const { url } = await host.auth.service.requestEmailLogin(email)
      return post(host, path, { token: url?.split('/').at(-1) })
    },
  },
  'GET /oauth/:provider/callback': {
    amr: ['ext'],
    provider: 'corp',
    async open(host, _path, { userId, email }) {
      const subject = `subject-of-${userId}`
      await addIdentity(host.knex, userId, { subject, email })
      const { query, cookie } = await begin(host, { profile: { sub: subject, email } })
      return callBack(host, query, { cookie })
    },
  },
  [exchange]: {
    amr: ['ext'],
    provider: 'corp',
    async open(host, path, { userId, email }) {
      const subject = `subject-of-${userId}`
      await addIdentity(host.knex, userId, { subject, email })
      const verifier = 'v'.repeat(43)
      const app = { redirect_to: appRedirects[0], code_challenge: codeChallengeOf(verifier) }
      const { query, cookie } = await begin(host, { profile: { sub: subject, email }, query: app })
      const code = String((await callBack(host, query, { cookie })).headers['location']).split('code=')[1]
      return post(host, path, { code, code_verifier: verifier })
    },
  },
  'POST /oauth/:provider/token': {
    amr: ['ext'],
    provider: 'introspecting',
    async open(host, _path, { userId, email }) {
      const { provider } = host
      const subject = `subject-of-${userId}`
      await addIdentity(host.knex, userId, { subject, email, provider: 'introspecting' })
      return post(host, '/oauth/introspecting/token', { access_token: provider.issueAccessToken({ profile: { sub: subject, email } }) })
    },
  },
}

const introspecting = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
const providers = { corp: {}, introspecting }

/** Login-shaped, and no first step: what they need was given by one. */
const laterSteps = ['POST /refresh', 'POST /mfa/verify', 'POST /mfa/confirm', 'POST /session/mfa/verify']

const pathOf = (name: string) => name.slice(name.indexOf('/'))
const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`

describe.each(['bearer', 'cookie', 'both'] as const)('R-096: the doors in delivery %s', async (tokenDelivery) => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('every login-shaped route that is mounted answers an enrolled account with a challenge, and sets no cookie', async () => {
    mountedRoutes.length = 0
    const isOfApps = tokenDelivery !== 'cookie'
    const settings = { tokenDelivery, appRedirects: isOfApps ? appRedirects : [], ...byMail }
    const host = await start({ settings, options: { throttle: { mail: false } }, providers })
    const [routes = []] = mountedRoutes
    const shaped = routes.filter(({ delivers }) => delivers === 'login')
    const firstSteps = Object.keys(doors).filter((name) => isOfApps || name !== exchange)
    expect(new Set(shaped.map(nameOf))).toEqual(new Set([...firstSteps, ...laterSteps]))

    for (const route of shaped.filter((line) => !laterSteps.includes(nameOf(line)))) {
      const door = doors[nameOf(route)]
      const person = await enrolled(host)
      const response = await door?.open(host, route.path, person)
      if (!response) throw new Error(`nobody knows how to open ${nameOf(route)}`)

      expect([route.path, response.status, response.text]).toEqual([route.path, 200, expect.any(String)])
      const mfa_token = expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/)
      expect(response.body).toEqual({ user_id: person.userId, access_token: null, refresh_token: null, mfa_required: true, mfa_token })
      expect(setCookies(response).filter((line) => !line.startsWith('oauth_state=;'))).toEqual([])
      const rows: { kind: string }[] = await host.knex('auth_sessions').where({ user_id: person.userId })
      expect(rows.map(({ kind }) => kind)).toEqual(['tokens', 'tokens', 'tokens']) // of before the factor, of confirming it, of a day later
      const session = await host.auth.service.verifyMfa({ mfaToken: response.body.mfa_token, code: person.app.nextCode() })
      expect([route.path, session]).toMatchObject([route.path, { kind: 'session', amr: [...(door?.amr ?? []), 'otp'] }])
    }
  })

  test('verify and confirm deliver as a login does, and refresh repeats the methods', async () => {
    const host = await start({ settings: { tokenDelivery } })
    const bases = tokenDelivery === 'both' ? ['', '/cookie'] : ['']
    for (const base of bases) {
      const inCookies = tokenDelivery === 'cookie' || base === '/cookie'
      const person = await signedIn(host)
      const { secret } = await host.auth.service.enrollTotp(person.userId)
      const app = authenticator(secret, host.clock)
      const confirmed = await post(host, `${base}/mfa/confirm`, { code: app.code(), refresh_token: person.refreshToken }, bearerOf(person))
      const verified = await post(host, `${base}/mfa/verify`, { mfa_token: await challengeOf(host, person), code: app.nextCode() })
      for (const response of [confirmed, verified]) {
        const { status, headers, body } = response
        const cookies = ((headers['set-cookie'] ?? []) as unknown as string[]).map((line) => line.split('=')[0]) // Node gives a list
        const device = response === verified ? ['auth_device'] : [] // a session that goes on is no login
        expect([status, cookies]).toEqual([200, inCookies ? [...device, 'access_token', 'refresh_token', 'auth_hint'] : []])
        expect([typeof body.access_token, body.mfa_required]).toEqual([inCookies ? 'object' : 'string', false])
      }
      if (inCookies) continue
      const refreshed = await post(host, '/refresh', { refresh_token: verified.body.refresh_token })
      expect(amrOf(refreshed.body.access_token)).toEqual(['pwd', 'otp'])
    }
  })
})

describe('a session says where it was opened, and by which provider', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)
  const device = { ip: '2001:db8::7', user_agent: 'Firefox on a laptop' }
  const onThatDevice: RequestHandler = (req, _res, next) => {
    Object.defineProperty(req, 'ip', { value: device.ip })
    req.headers['user-agent'] = device.user_agent
    next()
  }
  const throughDoors = () =>
    start({
      settings: { autoActivate: true, appRedirects, ...byMail },
      options: { throttle: { mail: false } },
      providers,
      before: [onThatDevice],
    })
  const kindOf = (name: string) => (name.includes('/session/') ? 'session' : 'tokens')

  /** The one living session that is younger than those of before. */
  async function opened(host: LocalHost, userId: string, before: readonly string[] = []) {
    const rows: Record<string, unknown>[] = await host.knex('auth_sessions').where({ user_id: userId }).whereNotIn('id', before)
    const [row, ...more] = rows.map(({ kind, ip, user_agent, provider, amr }) => ({ kind, ip, user_agent, provider, amr }))
    expect(more).toEqual([])
    return row
  }
  const idsOf = (host: LocalHost, userId: string): Promise<string[]> => host.knex('auth_sessions').where({ user_id: userId }).pluck('id')

  test.each(Object.entries(doors))('%s', async (name, { amr, provider = null, open }) => {
    const host = await throughDoors()
    const person = await signedIn(host)
    const before = await idsOf(host, person.userId)

    expect((await open(host, pathOf(name), person)).status).toBe(200)

    expect(await opened(host, person.userId, before)).toEqual({ kind: kindOf(name), ...device, provider, amr: amr.join(' ') })
  })

  test.each(
    Object.entries(doors).flatMap(([name, door]) => ['/mfa/verify', '/session/mfa/verify'].map((verify) => ({ name, verify, door }))),
  )('$name, then $verify', async ({ name, verify, door: { amr, provider = null, open } }) => {
    const host = await throughDoors()
    const person = await enrolled(host)
    const { body } = await open(host, pathOf(name), person)
    const before = await idsOf(host, person.userId)

    expect((await post(host, verify, { mfa_token: body.mfa_token, code: person.app.nextCode() })).status).toBe(200)

    const methods = [...amr, 'otp'].join(' ')
    expect(await opened(host, person.userId, before)).toEqual({ kind: kindOf(verify), ...device, provider, amr: methods })
  })

  test('signup where accounts are born active, a first login by a provider; the confirmation of a factor opens none', async () => {
    const host = await throughDoors()
    const signup = await post(host, '/signup', { email: newAddress(), password })
    expect(await opened(host, signup.body.user_id)).toEqual({ kind: 'tokens', ...device, provider: null, amr: 'pwd' })

    const { query, cookie } = await begin(host, { profile: newPerson() })
    const { body } = await callBack(host, query, { cookie })
    expect(await opened(host, body.user_id)).toEqual({ kind: 'tokens', ...device, provider: 'corp', amr: 'ext' })

    const person = await signedIn(host)
    const { secret } = await host.auth.service.enrollTotp(person.userId)
    const before = await idsOf(host, person.userId)
    expect((await post(host, '/mfa/confirm', { code: authenticator(secret, host.clock).code() }, bearerOf(person))).status).toBe(200)
    expect(await idsOf(host, person.userId)).toEqual(before)
  })
})

describe('no session is made beside the door', () => {
  const src = join(import.meta.dirname, '../../src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('testing'))
    .map((file) => ({ file: file.replaceAll('\\', '/'), text: readFileSync(join(src, file), 'utf8') }))
  const callersOf = (call: RegExp) => files.flatMap(({ file, text }) => (call.test(text) ? [file] : [])).sort()

  test('R-096: every way to log in ends in startLogin, and nothing else starts a session', () => {
    expect(callersOf(/(?<!function )\bstartLogin\(/)).toEqual([
      'accounts/activate.ts',
      'accounts/email-login/log-in-by-email.ts',
      'accounts/password-login.ts',
      'accounts/reset-password.ts',
      'accounts/sign-up.ts',
      'login-tasks/steps.ts',
      'passkeys/passkey-login.ts',
      'second-factor/confirm.ts',
      'second-factor/verify-challenge.ts',
      'sessions/open-session.ts',
      'sessions/start-login.ts', // after the host was asked what the login owes
      'social/app-redirect/exchange-code.ts',
      'social/log-in-with-identity.ts',
    ])
    for (const step of ['beginSession', 'startSession', 'issueStatelessToken'])
      expect(callersOf(new RegExp(`(?<!function )\\b${step}\\(`))).toEqual(['sessions/start-login.ts'])
    expect(callersOf(/(?<!function )\bissueAppCode\(/)).toEqual(['sessions/start-login.ts', 'social/app-redirect/issue-code.ts'])
    expect(callersOf(/sessionsOf\(\S+\)\.insert(Within)?\(|\bsessions\??\.insert(Within)?\(/)).toEqual([
      'sessions/insert-session.ts',
      'store/rechecked-store.ts',
    ])
  })

  test('R-096: only a login and a refresh sign access tokens and make refresh tokens', () => {
    // The first gives a living session another access token, and ends or replaces nothing.
    expect(callersOf(/(?<!function )\bsignAccessToken\(/)).toEqual([
      'sessions/continue.ts',
      'sessions/refresh.ts',
      'sessions/reissue-tokens.ts',
      'sessions/start-login.ts',
    ])
    expect(callersOf(/(?<!function )\bmakeSessionToken\(/)).toEqual([
      'sessions/insert-session.ts',
      'sessions/refresh.ts',
      'sessions/reissue-tokens.ts',
    ])
    expect(callersOf(/(?<!function )\bsuccessorOf\(/)).toEqual(['sessions/refresh.ts'])
    expect(callersOf(/(?<!function )\bsignStatelessToken\(/)).toEqual([
      'sessions/refresh.ts',
      'sessions/reissue-tokens.ts',
      'sessions/stateless-refresh-token.ts',
    ])
  })
})

describe('R-096: a session keeps the methods it began with', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('refresh cannot raise amr: a session of before the factor stays without it, and one by bare service too', async () => {
    const host = await start()
    const { userId, email, refreshToken } = await signedIn(host)
    const { secret } = await host.auth.service.enrollTotp(userId)
    await host.auth.service.confirmTotp({ userId, code: authenticator(secret, host.clock).code(), revokeSessions: false })

    const { body } = await post(host, '/refresh', { refresh_token: refreshToken })
    expect(amrOf(body.access_token)).toEqual(['pwd'])
    expect((await post(host, '/login', { email, password })).body.mfa_required).toBe(true)
  })

  test('with mfaEnabled off a login is one step, /mfa/* is absent, and nothing is lost for the day it is on again', async () => {
    const on = await start()
    const person = await enrolled(on)
    const off = await start({ settings: { mfaEnabled: false } })

    const login = await post(off, '/login', { email: person.email, password })
    expect([login.body.mfa_required, amrOf(login.body.access_token)]).toEqual([false, ['pwd']])
    for (const path of ['enroll', 'confirm', 'verify', 'disable', 'recovery-codes'])
      expect((await post(off, `/mfa/${path}`, {}, bearerOf(person))).headers['content-type']).toMatch(/html/) // the host's own 404
    expect(await isAlive(off, person.refreshToken)).toBe(true)
    expect((await verify(on, await challengeOf(on, person), person.app.nextCode())).status).toBe(200)
  })
})
