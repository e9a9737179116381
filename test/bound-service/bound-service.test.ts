import express, { type Express, type Request, type Response } from 'express'
import Joi from 'joi'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type BoundService, errorHandler } from '../../src'
import { serviceBinder } from '../../src/router/request-service/request-service'
import { adminOperations, everyOperation } from '../client/operations-of'
import { type LocalHost, type LocalOptions, otherPassword, password } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { onMfa } from '../mfa/people'
import { signupSettings } from '../passkeys/newcomers'
import { member } from '../server-session/devices'
import { cookieAttributes, cookiePair, setCookies } from '../social/redirect-steps'
import type { Mounted } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { cookiesAfter } from '../support/cookie-jar'
import { databases } from '../support/databases'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start: startOn } = onMfa(sqlite)

/** Operations of the client that `auth.with` does otherwise, or not at all, because `auth.service` has them for the host's own pages. */
const unbound = [
  'POST /logout', // logOut() takes it at every path
  'POST /security/undo',
  'GET /me', // currentUser()
  'POST /oauth/exchange', // the browser of the host's page has its cookies
  'GET /admin/users',
  'GET /admin/users/:id',
  'PATCH /admin/users/:id',
  'POST /admin/users/:id/deactivate',
  'POST /admin/users/:id/activate',
  'POST /admin/users/:id/revoke-sessions',
  'POST /admin/users/:id/reset-mfa',
  'POST /admin/users/:id/expire-password',
]

type Deed = (bound: BoundService, req: Request) => unknown
const deeds = new WeakMap<Express, Deed>()

/** A form of the host's, which it reads itself, and whose answer is its own page. */
function formOf(app: Express, auth: Pick<Mounted['auth'], 'with'>): void {
  app.use(express.urlencoded())
  app.post('/form', async (req, res, next) => {
    try {
      const outcome = await deeds.get(app)?.(auth.with(req, res), req)
      res.status(203).json({ outcome: outcome ?? null })
    } catch (error) {
      next(error)
    }
  })
  app.use(errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
}

function start(settings: NonNullable<LocalOptions['settings']>, options: LocalOptions['options'] = {}): Promise<LocalHost> {
  return startOn({ host: formOf, settings, options: { throttle: { mail: false, routes: false }, ...options } })
}

/** The person's browser sends the form, and the host does this. */
function submit(host: LocalHost, deed: Deed, cookie = '', headers: Record<string, string> = {}): supertest.Test {
  deeds.set(host.app, deed)
  return supertest(host.app)
    .post('/form')
    .set({ ...headers, ...(cookie && { Cookie: cookie }) })
    .type('form')
    .send({ email: 'what the host reads is its own affair' })
}

/** What the person's browser sends after this answer. */
const cookiesOf = (response: supertest.Response, path = '/form') => cookiesAfter(response, path)

const deliveries = [
  { tokenDelivery: 'cookie', names: ['access_token', 'refresh_token'], path: '/auth' },
  { tokenDelivery: 'both', names: ['access_token', 'refresh_token'], path: '/auth/cookie' },
  { tokenDelivery: 'session', names: ['auth_session'], path: '/' },
] as const

describe.each(deliveries)('auth.with(req, res) in delivery $tokenDelivery', ({ tokenDelivery, names, path }) => {
  const inSession = tokenDelivery === 'session'

  test('a login sets the cookies, hands over no token, and leaves the answer to the host', async () => {
    const host = await start({ tokenDelivery })
    const { email, userId } = await member(host)
    const login = await submit(host, (bound) => bound.logIn({ email, password }))
    const rest = inSession
      ? { sessionId: expect.any(String), expiresAt: expect.any(String) }
      : { refreshTokenExpiresAt: expect.any(String) }
    expect([login.status, login.body]).toEqual([203, { outcome: { kind: 'session', userId, amr: ['pwd'], ...rest } }])
    expect(cookieAttributes(login, names[names.length - 1] ?? '')).toMatchObject({ path, httponly: '' })
    expect(setCookies(login).map((line) => line.split('=')[0])).toEqual(expect.arrayContaining([...names, 'auth_device']))
    expect([login.headers['cache-control'], login.headers['content-security-policy'], login.headers['content-type']]).toEqual([
      'no-store',
      undefined,
      'application/json; charset=utf-8',
    ])

    const me = await submit(host, (bound) => bound.currentUser(), cookiesOf(login))
    expect([me.body.outcome.id, me.body.outcome.email]).toEqual([userId, email])
    const out = await submit(host, (bound) => bound.logOut(), cookiesOf(login))
    expect([out.status, out.body]).toEqual([203, { outcome: null }])
    const led = await submit(host, (bound) => bound.logOut({ providerLogout: true }), cookiesOf(login))
    expect(led.body).toEqual({ outcome: { logoutUrl: null } })
    const nobody = await submit(host, (bound) => bound.logOut({ providerLogout: true }))
    expect([nobody.status, nobody.body.code]).toEqual([401, 'UNAUTHORIZED'])
    for (const name of names) expect(cookieAttributes(out, name)).toMatchObject({ expires: expect.stringContaining('1970') })
    if (inSession) expect((await submit(host, (bound) => bound.currentUser(), cookiesOf(login))).body.outcome).toBeNull()
  })

  test('a second factor: the challenge sets no cookie, and its mfaToken goes to verifyMfa', async () => {
    const host = await start({ tokenDelivery })
    const { email, userId } = await member(host)
    const begun = cookiesOf(await submit(host, (bound) => bound.logIn({ email, password })))
    const enrolment = await submit(host, (bound) => bound.enrollTotp(), begun)
    expect(Object.keys(enrolment.body.outcome).sort()).toEqual(['provisioningUri', 'qrSvg', 'recoveryCodes', 'secret'])
    const app = authenticator(enrolment.body.outcome.secret, host.clock)
    const confirmed = await submit(host, (bound) => bound.confirmTotp({ code: app.code() }), begun)
    expect(confirmed.body.outcome).toMatchObject({ kind: 'session', userId, amr: ['pwd', 'otp'] })
    expect(JSON.stringify(confirmed.body)).not.toMatch(/Token"/)

    const challenge = await submit(host, (bound) => bound.logIn({ email, password, remember: false }))
    expect(challenge.body.outcome).toEqual({ kind: 'challenge', userId, amr: ['pwd'], mfaToken: expect.any(String) })
    expect(setCookies(challenge)).toEqual([])
    const { mfaToken } = challenge.body.outcome
    const verified = await submit(host, (bound) => bound.verifyMfa({ mfaToken, code: app.nextCode() }))
    expect(verified.body.outcome).toMatchObject({ kind: 'session', userId, amr: ['pwd', 'otp'] })
    for (const name of names) expect(cookieAttributes(verified, name)).not.toHaveProperty('max-age')
  })

  test('what the route refuses is thrown: another site, a stale session, a session that has ended', async () => {
    const host = await start({ tokenDelivery })
    const { email } = await member(host)
    const foreign = { Origin: 'https://elsewhere.example', 'Sec-Fetch-Site': 'cross-site' }
    const logIn: Deed = (bound) => bound.logIn({ email, password })
    const refused = await submit(host, logIn, '', foreign)
    expect([refused.status, refused.body.code, setCookies(refused)]).toEqual([403, 'CSRF_VALIDATION_FAILED', []])

    const login = await submit(host, logIn)
    const cookies = cookiesOf(login)
    const change: Deed = (bound) => bound.changePassword({ currentPassword: password, newPassword: otherPassword })
    const attached = { ...foreign, ...oldBrowser }
    expect((await submit(host, change, cookies, attached)).body.code).toBe('CSRF_VALIDATION_FAILED')
    host.clock.advance(901)
    const refresh = `${path}/refresh`
    const again = inSession ? cookies : cookiesOf(await supertest(host.app).post(refresh).set('Cookie', cookiesOf(login, refresh)))
    const stale = await submit(host, (bound) => bound.enrollTotp(), again)
    expect([stale.status, stale.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
    const confirmed = await submit(host, (bound) => bound.reauthenticate({ password }), again)
    expect(confirmed.body.outcome).toMatchObject({ kind: 'session', amr: ['pwd'] })
    const asked = await submit(host, (bound) => bound.requestConfirmationCode(), cookiesOf(confirmed))
    expect([asked.status, asked.body]).toEqual([203, { outcome: null }])
    const { code: emailCode = '' } = await host.mails.next({ kind: 'email_login', to: email })
    const fresh = await submit(host, (bound) => bound.reauthenticate({ emailCode }), cookiesOf(confirmed))
    expect(fresh.body.outcome).toMatchObject({ kind: 'session', amr: ['pwd', 'email'] })
    expect((await submit(host, (bound) => bound.enrollTotp(), cookiesOf(fresh))).status).toBe(203)
    await host.auth.service.revokeSessions(fresh.body.outcome.userId)
    expect((await submit(host, change, cookiesOf(fresh))).status).toBe(401)
  })

  test('a second verb of the same request sees the cookies that the first one set and cleared', async () => {
    const host = await start({ tokenDelivery })
    const { email, userId } = await member(host)
    const inAndOn = await submit(host, async (bound) => {
      await bound.logIn({ email, password })
      const inside = await bound.currentUser()
      await bound.reauthenticate({ password })
      await bound.logOut()
      return [inside?.id, await bound.currentUser()]
    })
    expect(inAndOn.body.outcome).toEqual([userId, null])
    for (const name of names) expect(cookieAttributes(inAndOn, name)).toMatchObject({ expires: expect.stringContaining('1970') })
    expect(await host.knex('auth_sessions').where({ user_id: userId, revoked_at: null })).toEqual([])
  })

  test('currentUser() is null for nobody, for nonsense and for an inactive account, and never throws', async () => {
    const host = await start({ tokenDelivery })
    const { email, userId } = await member(host)
    const cookies = cookiesOf(await submit(host, (bound) => bound.logIn({ email, password })))
    await host.knex('auth_users').where({ id: userId }).update({ is_active: false })
    for (const cookie of ['', `${names[0]}=nonsense`, cookies]) {
      const { status, body } = await submit(host, (bound) => bound.currentUser(), cookie)
      expect([status, body.outcome]).toEqual([203, null])
    }
    expect((await submit(host, (bound) => bound.currentUser(), '', { Authorization: 'Bearer nonsense' })).body.outcome).toBeNull()
  })
})

describe('auth.with(req, res)', () => {
  test('counts the failed logins of the client, and the calls of the route', async () => {
    const host = await start({ tokenDelivery: 'session' }, { throttle: { routes: { attempts: 2, windowSeconds: 60 } } })
    const { email } = await member(host)
    for (let count = 0; count < 5; count++)
      expect((await submit(host, (bound) => bound.logIn({ email, password: 'wrong' }))).body.code).toBe('UNAUTHORIZED')
    const throttled = await submit(host, (bound) => bound.logIn({ email, password }))
    expect([throttled.status, throttled.body.code, Number(throttled.headers['retry-after']) > 0]).toEqual([429, 'LOGIN_THROTTLED', true])
    const reset: Deed = (bound) => bound.resetPassword({ token: 'unknown', newPassword: otherPassword })
    const codes = []
    for (let count = 0; count < 3; count++) codes.push((await submit(host, reset)).body.code)
    expect(codes).toEqual(['INVALID_TOKEN', 'INVALID_TOKEN', 'TOO_MANY_REQUESTS'])
  })

  test('a signup tells no more than its route: a taken address looks like a free one', async () => {
    const host = await start({ tokenDelivery: 'session' })
    const { email } = await member(host)
    const signUp = (address: string) => submit(host, (bound) => bound.signUp({ email: address, password }))
    const [free, taken] = [await signUp('free@example.test'), await signUp(email)]
    const presented = { userId: expect.any(String), activationRequired: true, activationUrl: null }
    expect([free.body.outcome, taken.body.outcome]).toEqual([presented, presented])
    expect(setCookies(free).map((line) => line.split('=')[0])).toEqual(setCookies(taken).map((line) => line.split('=')[0]))
    const refused = await submit(host, (bound) => bound.signUp({ email: 'no address', password: 'x' }))
    expect([refused.status, refused.body.code]).toEqual([422, 'VALIDATION_ERROR'])
  })

  test('fields of the host keep their names, also those that we have for fields of our own, and ours win', async () => {
    const schema = Joi.object({ newEmail: Joi.string().required(), previousToken: Joi.string().required() })
    const host = await start({ tokenDelivery: 'session' }, { signup: { schema } })
    const fields = { newEmail: 'the shop’s own', previousToken: 'too', password: 'x', email: 'x' }
    const joined = await submit(host, (bound) => bound.signUp({ email: 'free@example.test', password, fields }))
    expect([joined.status, joined.body.outcome]).toEqual([203, expect.objectContaining({ activationRequired: true })])
    expect(await host.knex('auth_users').where({ email: 'free@example.test' })).toHaveLength(1)
  })

  test('a mailed link: requested, and redeemed into a session', async () => {
    const host = await start({ tokenDelivery: 'session' })
    const { email } = await member(host)
    expect((await submit(host, (bound) => bound.requestPasswordReset(email))).body.outcome).toEqual({ url: null })
    const link = await host.auth.service.requestPasswordReset(email)
    const reset = await submit(host, (bound) => bound.resetPassword({ token: link?.token ?? '', newPassword: otherPassword }))
    expect([reset.body.outcome.kind, cookiePair(reset, 'auth_session')]).toEqual(['session', expect.any(String)])
    const list = await submit(host, (bound) => bound.listSessions(), cookiesOf(reset))
    expect(list.body.outcome).toMatchObject([{ kind: 'session', id: reset.body.outcome.sessionId }])
  })

  test('in delivery bearer it hands the tokens to the caller, and sets no cookie', async () => {
    const host = await start({ tokenDelivery: 'bearer' })
    const { email } = await member(host)
    const login = await submit(host, (bound) => bound.logIn({ email, password }))
    expect(setCookies(login)).toEqual([])
    const { accessToken, refreshToken } = login.body.outcome
    const me = await submit(host, (bound) => bound.currentUser(), '', { Authorization: `Bearer ${accessToken}` })
    expect(me.body.outcome.email).toBe(email)
    expect((await submit(host, (bound) => bound.logOut({ refreshToken }))).status).toBe(203)
    await expect(host.auth.service.refresh(refreshToken)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
  })

  test('a link of the host that changes an address is judged as the POST it stands for: another site moves nothing', async () => {
    const host = await start({ tokenDelivery: 'session' })
    const { email, userId } = await member(host)
    const cookie = cookiesOf(await submit(host, (bound) => bound.logIn({ email, password })))
    const link = await host.auth.service.requestEmailChange({ userId, newEmail: 'moved@example.test' })
    host.app.get('/confirm', async (req: Request, res: Response) => {
      const said = await host.auth
        .with(req, res)
        .changeEmail(link?.token ?? '')
        .catch((error: { code: string }) => error.code)
      res.json({ said: said ?? null })
    })
    const foreign = { Cookie: cookie, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }
    expect((await supertest(host.app).get('/confirm').set(foreign)).body.said).toMatch(/UNAUTHORIZED|INVALID/)
    expect((await host.knex('auth_users').where({ id: userId }).first()).email).toBe(email)
  })

  test('login by email: the browser of the form is the one that may type the code', async () => {
    const host = await start({ tokenDelivery: 'session', emailLogin: 'code', cookieSecure: true })
    const { email, userId } = await member(host)
    const asked = await submit(host, (bound) => bound.requestEmailLogin({ email }))
    expect(asked.body.outcome).toEqual({ requestToken: expect.any(String), loginUrl: null, code: null })
    const { code = '' } = await host.mails.next({ kind: 'email_login', to: email })
    const elsewhere = await submit(host, (bound) => bound.confirmEmailLogin({ code }))
    expect(elsewhere.body.code).toBe('EMAIL_LOGIN_INVALID')
    const login = await submit(host, (bound) => bound.confirmEmailLogin({ code }), cookiesOf(asked))
    expect(login.body.outcome).toMatchObject({ kind: 'session', userId, amr: ['email'] })
    expect(setCookies(login).map((line) => line.split('=')[0])).toContain('auth_session')
  })

  test('every verb finds its route; one whose feature is off says so', async () => {
    const host = await start({
      tokenDelivery: 'session',
      emailLogin: 'code',
      trustedDeviceDays: 30,
      invitationsEnabled: true,
      signupMode: 'approve',
      accountDeletion: 'soft',
      ...signupSettings,
    })
    const given = {
      email: 'x@example.test',
      password: 'x',
      token: 'x',
      provider: 'corp',
      code: '123456',
      newPassword: 'x',
      newEmail: 'x@y.test',
    }
    // Their feature is off here; test/login-tasks/pages.test.ts calls them.
    const ofTasks = ['confirmDevice', 'resendDeviceCode', 'setNewPassword', 'beginSecondFactor', 'finishSecondFactor', 'completeTask']
    let verbs: string[] = []
    await submit(host, (bound) => {
      verbs = Object.keys(bound).filter((verb) => !ofTasks.includes(verb))
    })
    expect(verbs.length).toBeGreaterThan(25)
    for (const verb of verbs) {
      const call = (bound: BoundService) => (bound as unknown as Record<string, (input: unknown) => Promise<unknown>>)[verb]?.(given)
      const { status, body } = await submit(host, call)
      expect([verb, status < 500, body.code === undefined ? status : body.code]).not.toEqual([verb, false, 'INTERNAL_ERROR'])
    }
    const off = await startOn({ settings: { mfaEnabled: false, tokenDelivery: 'session' } })
    let said: unknown
    off.app.post('/form', async (req: Request, res: Response) => {
      said = await off.auth
        .with(req, res)
        .enrollTotp()
        .catch((error: Error) => error.message)
      res.end()
      expect(() => off.auth.with(req, res)).toThrow(/already sent/)
    })
    await supertest(off.app).post('/form')
    expect(said).toMatch(/enrollTotp\(\).*POST \/mfa\/enroll.*its feature is off/)
  })

  test('every operation of the client has a verb, or a reason', async () => {
    const bind = serviceBinder({ settings: { tokenDelivery: 'session' } } as never, [], {} as never, {} as never)
    const bound = bind({} as Request, {} as Response) as unknown as Record<string, (...input: unknown[]) => Promise<unknown>>
    const verbs = Object.keys(bound).filter((verb) => verb !== 'currentUser' && verb !== 'logOut')
    const asked = await Promise.all(
      [...verbs.map((verb) => [verb, verb === 'completeTask' ? 'x' : {}] as const), ['passkeyStepOptions', { mfaToken: 'x' }] as const].map(
        async ([verb, input]) =>
          bound[verb]?.(input, {}).catch(({ message }: Error) => / needs the route (\w+ \S+), but/.exec(message)?.[1]),
      ),
    )
    const without = [...everyOperation(), ...adminOperations()].map(({ method, path }) => `${method} ${path}`)
    expect(without.filter((route) => !asked.includes(route))).toEqual(unbound)
  })
})
