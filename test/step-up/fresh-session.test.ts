import express from 'express'
import jwt from 'jsonwebtoken'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { loginAs } from '../../src/testing'
import { bearerOf, newAddress, onLocal, otherPassword, password, post, resetLink, signedIn, userOf } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mfaSettings, outcome } from '../mfa/people'
import { setCookieOf } from '../support/app'
import { checkCookies } from '../support/cookie-check'
import { databases } from '../support/databases'

const challenge = 'Bearer error="insufficient_user_authentication", max_age="900"'

describe.each(await databases())('a fresh session, on $name', (database) => {
  const { start } = onLocal(database)

  test('a login is fresh for freshSessionSeconds and no longer, and a refresh does not move auth_time', async () => {
    const host = await start({ settings: mfaSettings })
    const member = await signedIn(host)
    const authTime = Math.floor(host.clock.now().getTime() / 1000)
    host.clock.advance(900)
    const { body } = await post(host, '/refresh', { refresh_token: member.refreshToken })
    expect(jwt.decode(body.access_token)).toMatchObject({ auth_time: authTime, iat: authTime + 900 })
    expect((await post(host, '/mfa/enroll', {}, bearerOf({ token: body.access_token }))).status).toBe(200)

    host.clock.advance(1)
    const refused = await post(host, '/mfa/enroll', {}, bearerOf({ token: body.access_token }))
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([
      403,
      'REAUTHENTICATION_REQUIRED',
      { methods: ['password', 'email'] },
    ])
    expect(refused.headers['www-authenticate']).toBe(challenge)
  })

  test('an older access token does not profit from a later sign-in of its session', async () => {
    const host = await start({ settings: mfaSettings })
    const member = await signedIn(host)
    host.clock.advance(901)
    const { body } = await post(host, '/refresh', { refresh_token: member.refreshToken })
    await host
      .knex('auth_sessions')
      .where({ user_id: member.userId })
      .update({ authenticated_at: await nowOf(host) })
    const renewed = await post(host, '/refresh', { refresh_token: body.refresh_token })

    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf({ token: body.access_token })))).toBe('REAUTHENTICATION_REQUIRED')
    expect((await post(host, '/mfa/enroll', {}, bearerOf({ token: renewed.body.access_token }))).status).toBe(200)
  })

  test('with accessTokenSessionClaims false the token has six claims, the body names the session, and the row decides', async () => {
    const host = await start({ settings: { ...mfaSettings, accessTokenSessionClaims: false } })
    const member = await signedIn(host)
    expect(Object.keys(jwt.decode(member.token) as object).sort()).toEqual(['amr', 'email', 'exp', 'iat', 'sub', 'typ'])
    const enroll = (body: object) => post(host, '/mfa/enroll', body, bearerOf(member))

    expect(outcome(await enroll({}))).toBe('REAUTHENTICATION_REQUIRED')
    expect(outcome(await enroll({ refresh_token: (await signedIn(host)).refreshToken }))).toBe('REAUTHENTICATION_REQUIRED')
    expect((await enroll({ refresh_token: member.refreshToken })).status).toBe(200)
    await host.knex('auth_sessions').update({ authenticated_at: null })
    expect(outcome(await enroll({ refresh_token: member.refreshToken }))).toBe('REAUTHENTICATION_REQUIRED')
  })

  /** The row as the store writes an instant. */
  async function nowOf(host: Awaited<ReturnType<typeof start>>): Promise<unknown> {
    const other = await signedIn(host)
    return (await host.knex('auth_sessions').where({ user_id: other.userId }).first()).authenticated_at
  }
})

describe('guards of the host', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onLocal(sqlite)

  async function mounted(changes: Parameters<typeof start>[0] = {}) {
    const host = await start(changes)
    const { guards } = host.auth
    const app = express().use(checkCookies())
    app.get('/live', guards.requireLiveSession(), (req, res) => void res.send(guards.getUser(req).email))
    app.get('/fresh', guards.requireFresh(), (req, res) => void res.send(guards.getUser(req).email))
    app.get('/within-minute', guards.requireFresh({ maxAgeSeconds: 60 }), (_req, res) => void res.send('ok'))
    app.get('/fresh-mfa', guards.requireMfa(), guards.requireFresh(), (_req, res) => void res.send('ok'))
    app.get('/browser', guards.requireSession(), guards.requireFresh(), (req, res) => void res.send(guards.getUser(req).email))
    const get = (path: string, headers: Record<string, string> = {}) => supertest(app).get(path).set(headers)
    return { host, get }
  }

  test('requireLiveSession refuses a token whose session has ended, and loads the user', async () => {
    const { host, get } = await mounted()
    const member = await signedIn(host)
    expect((await get('/live', bearerOf(member))).text).toBe(member.email)
    expect(outcome(await get('/live'))).toBe('UNAUTHORIZED')
    await post(host, '/logout', { refresh_token: member.refreshToken })
    expect(outcome(await get('/live', bearerOf(member)))).toBe('INVALID_TOKEN')
    expect(outcome(await get('/fresh', bearerOf(member)))).toBe('INVALID_TOKEN')
  })

  test('requireFresh asks for a credential within its seconds, with the same answer as our routes', async () => {
    const { host, get } = await mounted()
    const member = await signedIn(host)
    host.clock.advance(61)
    expect((await get('/fresh', bearerOf(member))).text).toBe(member.email)
    const refused = await get('/within-minute', bearerOf(member))
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([
      403,
      'REAUTHENTICATION_REQUIRED',
      { methods: ['password', 'email'] },
    ])
    expect(refused.headers['www-authenticate']).toBe('Bearer error="insufficient_user_authentication", max_age="60"')
  })

  test('a factor that was added in the very instant of the sign-up is young like any other', async () => {
    const { host } = await mounted({ settings: { ...mfaSettings, autoActivate: true } })
    const email = newAddress()
    const { body } = await post(host, '/signup', { email, password }).expect(201)
    const { secret } = await host.auth.service.enrollTotp(body.user_id)
    const app = authenticator(secret, host.clock)
    await host.auth.service.confirmTotp({ userId: body.user_id, amr: ['pwd'], code: app.code() })
    expect((await userOf(host, email)).totpEnabledAt).toEqual((await userOf(host, email)).createdAt)
    const { accessToken: token } = await loginAs(host.auth, { id: body.user_id })
    const change = await post(host, '/password-change/mfa', { code: app.nextCode(), new_password: otherPassword }, bearerOf({ token }))
    expect(outcome(change)).toBe('MFA_FACTOR_TOO_NEW')
  })

  test('requireMfa and requireFresh: a factor that was added to a fresh session lets nobody in until a credential is shown after it', async () => {
    const { host, get } = await mounted({ settings: mfaSettings })
    const member = await signedIn(host)
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf(member)).expect(200)
    host.clock.advance(60)
    const code = authenticator(body.secret, host.clock).code()
    const confirmed = await post(host, '/mfa/confirm', { code }, bearerOf(member)).expect(200)
    const stolen = bearerOf({ token: confirmed.body.access_token })
    expect(outcome(await get('/fresh-mfa', stolen))).toBe('REAUTHENTICATION_REQUIRED')

    host.clock.advance(1)
    const again = await post(host, '/reauthenticate', { password }, stolen).expect(200)
    expect((await get('/fresh-mfa', bearerOf({ token: again.body.access_token }))).status).toBe(200)
  })

  test('an account that was closed in the table is 403 ACCOUNT_INACTIVE', async () => {
    const { host, get } = await mounted()
    const member = await signedIn(host)
    await host.knex('auth_users').where({ id: member.userId }).update({ is_active: false })
    for (const path of ['/live', '/fresh']) expect(outcome(await get(path, bearerOf(member)))).toBe('ACCOUNT_INACTIVE')
  })

  test('behind requireSession the row of the session cookie decides', async () => {
    const { host, get } = await mounted()
    const { email } = await signedIn(host)
    const login = await post(host, '/session/login', { email, password })
    const cookie = { Cookie: `auth_session=${setCookieOf(login, 'auth_session')?.value}` }
    expect((await get('/browser', cookie)).text).toBe(email)
    host.clock.advance(901)
    expect(outcome(await get('/browser', cookie))).toBe('REAUTHENTICATION_REQUIRED')
  })

  test('a store without sessions: freshness is the token’s, and requireLiveSession cannot be built', async () => {
    const knexStore = createKnexStore({ knex: (await start()).knex, sessions: false })
    const host = await start({ options: { store: knexStore }, settings: mfaSettings })
    const member = await signedIn(host)
    expect((await post(host, '/mfa/enroll', {}, bearerOf(member))).status).toBe(200)
    expect(() => host.auth.guards.requireLiveSession()).toThrow(/session table/)
    host.clock.advance(899)
    const { body } = await post(host, '/refresh', { refresh_token: member.refreshToken })
    host.clock.advance(2)
    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf({ token: body.access_token })))).toBe('REAUTHENTICATION_REQUIRED')
  })

  test('a store without sessions: a token from before a reset is refused by requireFresh, as by our own routes', async () => {
    const store = createKnexStore({ knex: (await start()).knex, sessions: false })
    const host = await start({
      options: { store },
      host: (app, auth) => app.get('/fresh', auth.guards.requireFresh(), (_req, res) => void res.send('in')),
    })
    const member = await signedIn(host)
    const fresh = () => host.browser().get('/fresh').set(bearerOf(member))
    expect((await fresh()).status).toBe(200)
    const token = await resetLink(host, member.email)
    host.clock.advance(2)
    expect((await post(host, '/password-reset/confirm', { token, new_password: otherPassword })).status).toBe(200)
    expect(outcome(await fresh())).toBe('INVALID_TOKEN')
  })

  test('wrong set-ups are refused with a sentence', async () => {
    const { guards } = (await start()).auth
    for (const maxAgeSeconds of [0, -1, 1.5, Number.NaN, '60' as unknown as number])
      expect(() => guards.requireFresh({ maxAgeSeconds })).toThrow(/maxAgeSeconds/)
    const host = await start()
    const store = createKnexStore({ knex: host.knex, sessions: false })
    await expect(start({ options: { store }, settings: { accessTokenSessionClaims: false } })).rejects.toThrow(
      /accessTokenSessionClaims.*keeps no sessions/,
    )
  })
})
