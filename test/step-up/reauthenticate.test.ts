import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import {
  amrOf,
  bearerOf,
  isAlive,
  type LocalHost,
  type LocalMember,
  otherPassword,
  password,
  post,
  signedIn,
  userOf,
} from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, onMfa, outcome, signedInAgain, verify } from '../mfa/people'
import { setCookies } from '../social/redirect-steps'
import { setCookieOf } from '../support/app'
import { oldBrowser } from '../support/cookie-check'
import { databases } from '../support/databases'

const reauthenticate = (host: LocalHost, who: { token: string }, body: object) => post(host, '/reauthenticate', body, bearerOf(who))
const authTimeOf = (token: string) => (jwt.decode(token) as jwt.JwtPayload)['auth_time']
const secondsOf = (host: LocalHost) => Math.floor(host.clock.now().getTime() / 1000)

describe.each(await databases())('reauthenticating, on $name', (database) => {
  const { start } = onMfa(database)
  const settings = { accessTokenTtlSeconds: 7_200 }

  test('the password makes a new access token fresh; without its refresh token the row of the session does not move (25.2.1)', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const before = await host.knex('auth_sessions').where({ user_id: member.userId }).first()
    host.clock.advance(901)
    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(member)))).toBe('REAUTHENTICATION_REQUIRED')
    const answer = await reauthenticate(host, member, { password })

    expect(answer.body).toEqual({
      user_id: member.userId,
      access_token: expect.any(String),
      refresh_token: null,
      mfa_required: false,
      mfa_token: null,
    })
    expect(authTimeOf(answer.body.access_token)).toBe(secondsOf(host))
    const after = await host.knex('auth_sessions').where({ user_id: member.userId }).first()
    expect(after).toEqual(before)
    expect((await post(host, '/mfa/enroll', {}, bearerOf({ token: answer.body.access_token }))).status).toBe(200)
    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(member)))).toBe('REAUTHENTICATION_REQUIRED') // the older token stays old
    expect(await isAlive(host, member.refreshToken)).toBe(true)
  })

  test('X13: where a factor is a day old, a password alone is MFA_REQUIRED, nothing is counted, and a code makes fresh', async () => {
    const host = await start({ settings })
    const person = await enrolled(host)
    host.clock.advance(901)
    for (let count = 0; count < 8; count++) expect(outcome(await reauthenticate(host, person, { password: 'wrong' }))).toBe('MFA_REQUIRED')
    expect(outcome(await reauthenticate(host, person, { password }))).toBe('MFA_REQUIRED')
    expect(outcome(await reauthenticate(host, person, { code: person.recoveryCodes[0] }))).toBe('MFA_CODE_INVALID')
    const answer = await reauthenticate(host, person, { code: person.app.nextCode(), password })
    expect([answer.status, amrOf(answer.body.access_token)]).toEqual([200, ['pwd', 'otp']])
  })

  test('a race: a session that ends while the password is looked at changes nothing and is 401', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const original = host.hasher.verify.bind(host.hasher)
    host.hasher.verify = async (...given) => {
      host.hasher.verify = original
      await host.auth.service.logOut(member.refreshToken)
      return original(...given)
    }
    expect(outcome(await reauthenticate(host, member, { password }))).toBe('INVALID_TOKEN')

    const other = await signedIn(host)
    const hash = host.hasher.hash.bind(host.hasher)
    host.hasher.hash = async (text) => {
      host.hasher.hash = hash
      await host.auth.service.logOut(other.refreshToken)
      return hash(text)
    }
    const change = { current_password: password, new_password: otherPassword }
    expect(outcome(await post(host, '/password-change', change, bearerOf(other)))).toBe('INVALID_TOKEN')
    expect((await post(host, '/login', { email: other.email, password })).status).toBe(200)
  })
})

describe('reauthenticating, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)
  const settings = { accessTokenTtlSeconds: 7_200 }

  test('five wrong passwords of a session and 25 of the account are looked at within 900 seconds', async () => {
    const host = await start({ settings, options: { throttle: { routes: false, login: false } } })
    const first = await signedIn(host)
    const again = async () => String((await post(host, '/login', { email: first.email, password })).body.access_token)
    for (let session = 0; session < 5; session++) {
      const token = await again()
      for (let count = 0; count < 5; count++) expect((await reauthenticate(host, { token }, { password: 'wrong' })).status).toBe(401)
      expect(outcome(await reauthenticate(host, { token }, { password }))).toBe('TOO_MANY_REQUESTS')
    }
    expect(outcome(await reauthenticate(host, { token: await again() }, { password }))).toBe('TOO_MANY_REQUESTS')
  })

  test('a young factor is MFA_FACTOR_TOO_NEW with the instant when it counts; the password still makes fresh, and a fresh session makes no factor older (25.2.7)', async () => {
    const host = await start({ settings })
    const person = await enrolled(host, {}, { isYoung: true })
    const enabledAt = (await userOf(host, person.email)).totpEnabledAt?.getTime() ?? 0
    for (let count = 0; count < 8; count++) {
      const refused = await reauthenticate(host, person, { code: '000000', password })
      expect([refused.status, refused.body.code, refused.body.details]).toEqual([
        403,
        'MFA_FACTOR_TOO_NEW',
        { usable_at: new Date(enabledAt + 86_400_000).toISOString() },
      ])
    }
    const { status, body } = await reauthenticate(host, person, { password, refresh_token: person.refreshToken })
    expect([status, typeof body.refresh_token]).toEqual([200, 'string'])
    expect(outcome(await reauthenticate(host, { token: body.access_token }, { code: '000000', password }))).toBe('MFA_FACTOR_TOO_NEW')
  })

  test('nothing shown is 422, a code without a factor is MFA_NOT_ENROLLED, and a marker is no password', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    expect(outcome(await reauthenticate(host, member, {}))).toBe('VALIDATION_ERROR')
    expect(outcome(await reauthenticate(host, member, { code: '123456' }))).toBe('MFA_NOT_ENROLLED')
    await host
      .knex('auth_users')
      .where({ id: member.userId })
      .update({ hashed_password: `!${'a'.repeat(43)}` })
    expect(outcome(await reauthenticate(host, member, { password }))).toBe('UNAUTHORIZED')
  })

  test.each(['cookie', 'both'] as const)(
    'X12: in delivery %s the refresh cookie gets a new value, and the stolen one is dead',
    async (tokenDelivery) => {
      const host = await start({ settings: { ...settings, tokenDelivery } })
      const base = tokenDelivery === 'both' ? '/cookie' : ''
      const { email } = await signedIn(host)
      const login = await post(host, `${base}/login`, { email, password })
      const [access, refresh] = [setCookieOf(login, 'access_token')?.value, setCookieOf(login, 'refresh_token')?.value]
      host.clock.advance(901)
      const Cookie = `access_token=${access}; refresh_token=${refresh}`
      const answer = await post(host, `${base}/reauthenticate`, { password }, { Cookie })
      expect([answer.status, answer.body.access_token, answer.body.refresh_token]).toEqual([200, null, null])
      const next = setCookieOf(answer, 'refresh_token')?.value
      expect(next).toMatch(/^[\w-]{112}$/)
      const enroll = (cookie: string | undefined) => post(host, '/mfa/enroll', {}, { Cookie: `access_token=${cookie}` })
      expect([outcome(await enroll(access)), (await enroll(setCookieOf(answer, 'access_token')?.value)).status]).toEqual([
        'REAUTHENTICATION_REQUIRED',
        200,
      ])
      expect((await post(host, `${base}/refresh`, {}, { Cookie: `refresh_token=${next}` })).status).toBe(200)
      expect((await post(host, `${base}/refresh`, {}, { Cookie: `refresh_token=${refresh}` })).status).toBe(401)
    },
  )

  test('by an access cookie alone there is no new refresh cookie, and another site is refused', async () => {
    const host = await start({ settings: { ...settings, tokenDelivery: 'cookie' } })
    const { token } = await signedIn(host)
    const answer = await post(host, '/reauthenticate', { password }, { Cookie: `access_token=${token}` })
    expect([answer.status, setCookies(answer).map((line) => line.split('=')[0])]).toEqual([200, ['access_token']])
    const attack = { Cookie: `access_token=${token}`, Origin: 'https://evil.example', ...oldBrowser }
    const foreign = await post(host, '/reauthenticate', { password }, attack)
    expect(outcome(foreign)).toBe('CSRF_VALIDATION_FAILED')
  })

  test('X12: a server-side session gets a new cookie value, the old one is no cookie, and no end moves', async () => {
    const host = await start({ settings })
    const { email, userId } = await signedIn(host)
    const login = await post(host, '/session/login', { email, password })
    const old = setCookieOf(login, 'auth_session')?.value
    host.clock.advance(30)
    const answer = await post(host, '/reauthenticate', { password }, { Cookie: `auth_session=${old}` })
    expect(answer.body).toEqual({ user_id: userId, expires_at: login.body.expires_at, mfa_required: false })
    const next = setCookieOf(answer, 'auth_session')?.value
    const me = async (value: string | undefined) =>
      (
        await host
          .browser()
          .get('/auth/session/me')
          .set({ Cookie: `auth_session=${value}` })
      ).status
    expect([await me(old), await me(next)]).toEqual([401, 200])
  })

  test('a store without sessions: the access token is fresh, and a later refresh brings the old auth_time back', async () => {
    const store = createKnexStore({ knex: (await start()).knex, sessions: false })
    const host = await start({ settings, options: { store } })
    const member = await signedIn(host)
    const signedInAt = secondsOf(host)
    host.clock.advance(901)
    const answer = await reauthenticate(host, member, { password })
    expect([answer.body.refresh_token, authTimeOf(answer.body.access_token)]).toEqual([null, secondsOf(host)])
    const refreshed = await post(host, '/refresh', { refresh_token: member.refreshToken })
    expect(authTimeOf(refreshed.body.access_token)).toBe(signedInAt)
  })

  test('auth.service.reauthenticate does the same by the id of a session', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const { sid } = jwt.decode(member.token) as { sid: string }
    const { service } = host.auth
    const kept = await service.reauthenticate({ userId: member.userId, sessionId: sid, password })
    expect(kept).toMatchObject({ kind: 'session', userId: member.userId, refreshToken: null })
    const other = await signedIn(host)
    await expect(service.reauthenticate({ userId: other.userId, sessionId: sid, password })).rejects.toMatchObject({
      code: 'INVALID_TOKEN',
    })
  })
})

describe('one stolen access token and no password', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  /** Enrols and confirms with the token alone. */
  async function enrolByToken(host: LocalHost, { token }: Pick<LocalMember, 'token'>) {
    const { body } = await post(host, '/mfa/enroll', {}, bearerOf({ token }))
    const app = authenticator(body.secret, host.clock)
    return { app, confirmed: await post(host, '/mfa/confirm', { code: app.code() }, bearerOf({ token })) }
  }

  test('enroll a factor, confirm it, change the password by it: the last step is refused for a day, and the token has died by then', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const { app, confirmed } = await enrolByToken(host, owner)
    const token = confirmed.body.access_token
    const change = (presented: string) =>
      post(host, '/password-change/mfa', { code: app.nextCode(), new_password: otherPassword }, bearerOf({ token: presented }))
    expect(outcome(await change(token))).toBe('MFA_FACTOR_TOO_NEW')
    host.clock.advance(86_401)
    expect(outcome(await change(token))).toBe('TOKEN_EXPIRED')
    expect((await post(host, '/login', { email: owner.email, password })).status).toBe(200)
  })

  test('X5: confirming a factor gives no refresh token for an access token, ends nothing of the session, and makes it no fresher', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const signedInAt = authTimeOf(owner.token)
    host.clock.advance(600)
    const { confirmed } = await enrolByToken(host, owner)

    expect([confirmed.status, confirmed.body.refresh_token, amrOf(confirmed.body.access_token)]).toEqual([200, null, ['pwd', 'otp']])
    expect(authTimeOf(confirmed.body.access_token)).toBe(signedInAt)
    expect(await isAlive(host, owner.refreshToken)).toBe(true)
  })

  test('what was begun in a fresh session is finished by that session alone, once, and within 15 minutes', async () => {
    const host = await start({ settings: { accessTokenTtlSeconds: 7_200 } })
    const owner = await signedIn(host)
    const other = { token: String((await post(host, '/login', { email: owner.email, password })).body.access_token) }
    const begin = async () => authenticator((await post(host, '/mfa/enroll', {}, bearerOf(owner))).body.secret, host.clock)
    const confirm = (who: { token: string }, code: string) => post(host, '/mfa/confirm', { code }, bearerOf(who))
    const app = await begin()
    expect(outcome(await confirm(other, app.code()))).toBe('REAUTHENTICATION_REQUIRED')
    host.clock.advance(900)
    const late = await confirm(owner, app.code())
    expect([late.status, late.body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])

    const { body } = await reauthenticate(host, owner, { password })
    owner.token = body.access_token
    host.clock.advance(600)
    const second = await begin()
    host.clock.advance(600)
    expect(outcome(await post(host, '/mfa/enroll', {}, bearerOf(owner)))).toBe('REAUTHENTICATION_REQUIRED')
    expect((await confirm(owner, second.code())).status).toBe(200)
  })

  test('disabling the factor takes otp from the methods of the session that goes on', async () => {
    const host = await start()
    const person = await enrolled(host)
    expect((await post(host, '/mfa/disable', { password, code: person.app.nextCode() }, bearerOf(person))).status).toBe(204)
    const { body } = await post(host, '/refresh', { refresh_token: person.refreshToken })
    expect(amrOf(body.access_token)).toEqual(['pwd'])
  })

  test('a login by password and factor is fresh, also if the factor is of today (25.9.4)', async () => {
    const host = await start()
    const old = await signedInAgain(host, await enrolled(host))
    expect(authTimeOf(old.token)).toBe(secondsOf(host))
    const young = await enrolled(host, {}, { isYoung: true })
    const { body } = await verify(host, await challengeOf(host, young), young.app.nextCode())
    expect(authTimeOf(body.access_token)).toBe(secondsOf(host))
    const refreshed = await post(host, '/refresh', { refresh_token: body.refresh_token })
    expect(authTimeOf(refreshed.body.access_token)).toBe(authTimeOf(body.access_token))
  })
})
