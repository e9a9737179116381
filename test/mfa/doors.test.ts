import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type supertest from 'supertest'
import { describe, expect, test, vi } from 'vitest'
import { OidcClient } from '../../src'
import type { Route } from '../../src/http/routes'
import { amrOf, bearerOf, isAlive, type LocalHost, password, post, signedIn } from '../local/people'
import { addIdentity } from '../social/accounts-at-hand'
import { begin, callBack, setCookies } from '../social/redirect-steps'
import { databases } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { mountedRoutes } from '../support/mounted-routes'
import { authenticator } from './authenticator'
import { challengeOf, type EnrolledMember, enrolled, onMfa, verify } from './people'

vi.mock('../../src/http/routes', async (original) => (await import('../support/mounted-routes')).watchMounting(await original()))

interface Door {
  /** Of the first step. */
  amr: string[]
  open(host: LocalHost, path: string, person: EnrolledMember): Promise<supertest.Response>
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
  'GET /oauth/:provider/callback': {
    amr: ['ext'],
    async open(host, _path, { userId, email }) {
      const subject = `subject-of-${userId}`
      await addIdentity(host.knex, userId, { subject, email })
      const { query, cookie } = await begin(host, { profile: { sub: subject, email } })
      return callBack(host, query, { cookie })
    },
  },
  'POST /oauth/:provider/token': {
    amr: ['ext'],
    async open(host, _path, { userId, email }) {
      const { provider } = host
      const subject = `subject-of-${userId}`
      await addIdentity(host.knex, userId, { subject, email, provider: 'introspecting' })
      return post(host, '/oauth/introspecting/token', { access_token: provider.issueAccessToken({ profile: { sub: subject, email } }) })
    },
  },
}

/** Login-shaped, and no first step: what they need was given by one. */
const laterSteps = ['POST /refresh', 'POST /mfa/verify', 'POST /mfa/confirm', 'POST /session/mfa/verify']

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path.replace(/^\/cookie(?=\/)/, '')}`

describe.each(['bearer', 'cookie', 'both'] as const)('R-096: the doors in delivery %s', async (tokenDelivery) => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('every login-shaped route that is mounted answers an enrolled account with a challenge, and sets no cookie', async () => {
    mountedRoutes.length = 0
    const introspecting = (provider: FakeProvider) => new OidcClient(provider.oidcOptions({ introspectionUrl: provider.introspectionUrl }))
    const providers = { corp: {}, introspecting }
    const host = await start({ settings: { tokenDelivery }, options: { throttle: { mail: false } }, providers })
    const [routes = []] = mountedRoutes
    const shaped = routes.filter(({ loginShaped }) => loginShaped)
    expect(new Set(shaped.map(nameOf))).toEqual(new Set([...Object.keys(doors), ...laterSteps]))

    for (const route of shaped.filter((line) => !laterSteps.includes(nameOf(line)))) {
      const door = doors[nameOf(route)]
      const person = await enrolled(host)
      const response = await door?.open(host, route.path, person)
      if (!response) throw new Error(`nobody knows how to open ${nameOf(route)}`)

      expect([route.path, response.status, response.text]).toEqual([route.path, 200, expect.any(String)])
      const mfa_token = expect.stringMatching(/^eyJ[\w-]+\.[\w-]+\.[\w-]+$/)
      expect(response.body).toEqual({ user_id: person.userId, access_token: null, refresh_token: null, mfa_required: true, mfa_token })
      expect(setCookies(response).filter((line) => !line.startsWith('oauth_state=;'))).toEqual([])
      expect(await host.knex('auth_refresh_tokens').where({ user_id: person.userId })).toHaveLength(2) // the login's and confirm's
      expect(await host.knex('auth_sessions').where({ user_id: person.userId })).toEqual([])
      const session = await host.auth.service.verifyMfa({ mfaToken: response.body.mfa_token, code: person.app.nextCode() })
      expect([route.path, session.kind, session.amr]).toEqual([route.path, 'session', [...(door?.amr ?? []), 'otp']])
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
      const confirmed = await post(host, `${base}/mfa/confirm`, { code: app.code() }, bearerOf(person))
      const verified = await post(host, `${base}/mfa/verify`, { mfa_token: await challengeOf(host, person), code: app.nextCode() })
      for (const { status, headers, body } of [confirmed, verified]) {
        const cookies = ((headers['set-cookie'] ?? []) as unknown as string[]).map((line) => line.split('=')[0]) // Node gives a list
        expect([status, cookies]).toEqual([200, inCookies ? ['access_token', 'refresh_token'] : []])
        expect([typeof body.access_token, body.mfa_required]).toEqual([inCookies ? 'object' : 'string', false])
      }
      if (inCookies) continue
      const refreshed = await post(host, '/refresh', { refresh_token: verified.body.refresh_token })
      expect(amrOf(refreshed.body.access_token)).toEqual(['pwd', 'otp'])
    }
  })
})

describe('no session is made beside the door', () => {
  const src = join(import.meta.dirname, '../../src')
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('testing'))
    .map((file) => ({ file: file.replaceAll('\\', '/'), text: readFileSync(join(src, file), 'utf8') }))
  const callersOf = (call: RegExp) => files.flatMap(({ file, text }) => (call.test(text) ? [file] : [])).sort()

  test('R-096: only finishLogin opens a server-side session, by what the logins hand it', () => {
    expect(callersOf(/(?<!function )\bopenServerSession\(/)).toEqual(['local/login-routes.ts', 'mfa/verify-routes.ts', 'service.ts'])
    expect(callersOf(/sessionsOf\(\S+\)\.insert\(|\bsessions\??\.insert\(/)).toEqual([
      'session/open-server-session.ts',
      'store/rechecked-store.ts',
    ])
    expect(callersOf(/\bopen\(ctx/)).toEqual(['session/finish-login.ts'])
  })

  test('R-096: only finishLogin and refresh sign access tokens, and only finishLogin begins a family', () => {
    expect(callersOf(/(?<!function )\bsignAccessToken\(/)).toEqual(['session/finish-login.ts', 'session/refresh.ts'])
    expect(callersOf(/(?<!function )\bissueRefreshToken\(/)).toEqual(['session/finish-login.ts'])
    expect(callersOf(/\brefreshTokens\??\.insert\(/)).toEqual(['session/refresh-token.ts', 'store/rechecked-store.ts'])
    expect(callersOf(/(?<!function )\bissueStatelessToken\(/)).toEqual(['session/refresh-token.ts'])
    expect(callersOf(/(?<!function )\bsignStatelessToken\(/)).toEqual(['session/refresh.ts', 'session/stateless-refresh-token.ts'])
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
