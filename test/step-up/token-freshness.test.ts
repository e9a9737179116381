import express, { type Express } from 'express'
import jwt from 'jsonwebtoken'
import { describe, expect, test } from 'vitest'
import { type AuthRouter, errorHandler } from '../../src'
import { bearerOf, type LocalHost, password, post, signedIn } from '../local/people'
import { challengeOf, type EnrolledMember, enrolled, verify } from '../mfa/people'
import { onPasskeys, passkeyOwner, withFactors } from '../passkeys/people'
import { addIdentity } from '../social/accounts-at-hand'
import type { Browser, Mounted } from '../support/app'
import { databases } from '../support/databases'

const silent = { info() {}, warn() {}, error() {} }

/** A page of the host that asks for a fresh session, and a form of the host that confirms the session. */
function hostPages(app: Express, auth: AuthRouter): void {
  app.use(express.json())
  app.post('/confirm', async (req, res, next) => {
    await auth
      .with(req, res)
      .reauthenticate(req.body)
      .then(() => res.status(203).end(), next)
  })
  app.get('/fresh', auth.guards.requireFresh(), (_req, res) => void res.status(203).end())
  app.use(errorHandler({ logger: silent }))
}

const publicHost = 'app.example.test'

/** A browser with a copy of every cookie that another browser has now. */
function thiefOf(host: Mounted, owner: Browser): Browser {
  const thief = host.browser()
  for (const cookie of owner.cookies.kept()) thief.cookies.take({ 'set-cookie': [cookie.toString()] }, { host: publicHost, path: '/' })
  return thief
}

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('a copy of a browser’s cookies never becomes fresh', () => {
  const { start: startOn } = onPasskeys(sqlite)

  const deliveries = [
    { tokenDelivery: 'cookie', base: '', grace: 0 },
    { tokenDelivery: 'cookie', base: '', grace: 10 },
    { tokenDelivery: 'both', base: '/cookie', grace: 0 },
    { tokenDelivery: 'both', base: '/cookie', grace: 30 },
    { tokenDelivery: 'session', base: '', grace: 0 },
  ] as const

  describe.each(deliveries)('delivery $tokenDelivery, grace period of $grace s', ({ tokenDelivery, base, grace }) => {
    const settings = { ...withFactors, tokenDelivery, refreshReuseGraceSeconds: grace, pagesEnabled: true, emailLogin: 'off' } as const
    const start = () => startOn({ host: hostPages, settings, options: { throttle: { routes: false } } })
    const way = (path: string) => `/auth${base}${path}`

    /** The owner's browser, signed in more than fifteen minutes ago, and a copy of its cookies. */
    async function staleOwner(host: LocalHost, email: string, code?: string) {
      const owner = host.browser()
      const begun = await owner.post(way('/login')).send({ email, password })
      if (code !== undefined) await owner.post(way('/mfa/verify')).send({ mfa_token: begun.body.mfa_token, code })
      host.clock.advance(901)
      if (tokenDelivery !== 'session') expect((await owner.post(way('/refresh')).send({})).status).toBe(200)
      host.clock.advance(31) // past every grace period
      expect((await owner.get('/fresh')).status).toBe(403)
      return { owner, thief: thiefOf(host, owner) }
    }

    /** Every route that renews something, every second, and after each of them the page that asks for a fresh session. */
    async function expectNeverFresh(host: LocalHost, thief: Browser) {
      const looks = async () => expect((await thief.get('/fresh')).status).not.toBe(203)
      for (let second = 0; second < 2; second++) {
        await looks()
        for (const path of ['/auth/continue?return_to=/fresh', '/auth/account', '/auth/reauthenticate', '/auth/me']) {
          await thief.get(path)
          await looks()
        }
        host.clock.advance(1)
      }
      if (tokenDelivery !== 'session') await thief.post(way('/refresh')).send({})
      await looks()
      await thief.get('/auth/account')
      await looks()
    }

    type Credential = { email: string; code?: string; body: (browser: Browser) => Promise<object> }
    const methods: Record<string, (host: LocalHost) => Promise<Credential>> = {
      'the password': async (host) => ({ email: (await signedIn(host)).email, body: async () => ({ password }) }),
      'a code': async (host) => {
        const { email, app } = await enrolled(host)
        return { email, code: app.nextCode(), body: async () => ({ code: app.nextCode() }) }
      },
      'a mailed code': async (host) => {
        const { email } = await signedIn(host)
        return {
          email,
          body: async (browser) => {
            await browser.post(way('/reauthenticate/email')).send({})
            return { email_code: (await host.mails.next({ kind: 'email_login', to: email })).code }
          },
        }
      },
      'a passkey': async (host) => {
        const { email, authenticator } = await passkeyOwner(host)
        return {
          email,
          body: async (browser) => {
            const { body } = await browser.post(way('/reauthenticate/passkey/options')).send({})
            return { credential: authenticator.get(body), challenge_token: body.challenge_token }
          },
        }
      },
    }

    test.each(Object.keys(methods))(
      'when the owner confirms by %s at the route of the delivery, whose answer has a new cookie value (25.2.1)',
      async (method) => {
        const host = await start()
        const credential = await methods[method]?.(host)
        if (!credential) throw new Error('no such method')
        const { owner, thief } = await staleOwner(host, credential.email, credential.code)
        const confirmed = await owner.post(way('/reauthenticate')).send(await credential.body(owner))
        expect([confirmed.status, (await owner.get('/fresh')).status]).toEqual([200, 203])
        await expectNeverFresh(host, thief)
      },
    )

    test('when the owner confirms at a form of the host, where the browser sends no refresh cookie; the owner’s access cookie alone is fresh, and stays (25.2.1, 25.2.5)', async () => {
      const host = await start()
      const { email } = await signedIn(host)
      const { owner, thief } = await staleOwner(host, email)
      expect((await owner.post('/confirm').send({ password })).status).toBe(203)
      expect((await owner.get('/fresh')).status).toBe(203)
      for (const path of ['/auth/continue?return_to=/fresh', '/auth/account']) {
        await owner.get(path)
        expect((await owner.get('/fresh')).status).toBe(203)
      }
      await expectNeverFresh(host, thief)
    })

    test('when the owner confirms on the page (25.2.1)', async () => {
      const host = await start()
      const { email } = await signedIn(host)
      const { owner, thief } = await staleOwner(host, email)
      const page = await owner.get('/auth/reauthenticate')
      const form_of = /name="form_of" value="([^"]+)"/.exec(page.text)?.[1]
      const done = await owner.post('/auth/reauthenticate').type('form').send({ form_of, password })
      expect([done.status, (await owner.get('/fresh')).status]).toEqual([303, 203])
      await expectNeverFresh(host, thief)
    })

    test('when the owner confirms at a provider, and the browser comes back to the callback (25.2.1)', async () => {
      const host = await start()
      const { email, userId } = await signedIn(host)
      const sub = `subject of ${email}`
      const createdAt = new Date(host.clock.now().getTime() - 2 * 86_400_000)
      await addIdentity(host.knex, userId, { provider: 'corp', subject: sub, createdAt })
      const { owner, thief } = await staleOwner(host, email)
      const begun = await owner.post('/auth/oauth/corp/reauthenticate').send({})
      expect([begun.status, begun.body.code]).toEqual([200, undefined])
      const auth_time = Math.floor(host.clock.now().getTime() / 1000)
      const { callbackQuery } = host.provider.authorize(begun.body.authorize_url, { profile: { sub, email, auth_time } })
      await owner.get('/auth/oauth/corp/callback').query(callbackQuery)
      expect((await owner.get('/fresh')).status).toBe(203)
      await expectNeverFresh(host, thief)
    })

    if (tokenDelivery === 'session') return

    test('the old refresh cookie is a used token without grace: 401, no successor, and the session ends (25.2.2)', async () => {
      const host = await start()
      const { email } = await signedIn(host)
      const { owner, thief } = await staleOwner(host, email)
      const reused: object[] = []
      host.auth.events.on('refresh.reused', (payload) => reused.push(payload))
      await owner.post(way('/reauthenticate')).send({ password })
      const { status, body, headers } = await thief.post(way('/refresh')).send({})
      expect([status, body.code, String(headers['set-cookie'] ?? '')]).toEqual([
        401,
        'INVALID_TOKEN',
        expect.not.stringMatching(/refresh_token=[^;]/),
      ])
      expect([reused.length, (await owner.get('/fresh')).status]).toEqual([1, 401])
    })
  })

  test('delivery both: the plain route, let in by a cookie, answers as the cookie route and never changes the refresh cookie (25.2.4)', async () => {
    const host = await startOn({ host: hostPages, settings: { tokenDelivery: 'both', pagesEnabled: true } })
    const { email } = await signedIn(host)
    const browser = host.browser()
    const { body: tokens } = await browser.post('/auth/cookie/login').send({ email, password })
    expect(tokens.access_token).toBeNull()
    host.clock.advance(60)
    const { status, body, headers } = await browser.post('/auth/reauthenticate').send({ password })
    expect([status, body.access_token, body.refresh_token]).toEqual([200, null, null])
    expect((headers['set-cookie'] as unknown as string[]).map((line) => line.split('=')[0])).toEqual(['access_token'])
  })
})

describe.each(await databases())('a copy of a refresh token never becomes fresh, on $name', (database) => {
  const { start: startOn } = onPasskeys(database)
  const freshness = (token: string) => (jwt.decode(token) as jwt.JwtPayload)['auth_time']

  describe.each(['bearer', 'both'] as const)('delivery %s', (tokenDelivery) => {
    test.each([0, 10, 30])(
      'with a grace period of %i s: a confirmation that shows the live token replaces it, and every other leaves the session as old as it was (25.2.1 to 25.2.3)',
      async (grace) => {
        const settings = { ...withFactors, tokenDelivery, refreshReuseGraceSeconds: grace, accessTokenTtlSeconds: 7_200 }
        const host = await startOn({ host: hostPages, settings, options: { throttle: { routes: false } } })
        const old = async () => {
          const member = await signedIn(host)
          host.clock.advance(901)
          return member
        }
        const isFresh = async (token: string) => (await host.browser().get('/fresh').set(bearerOf({ token }))).status === 203

        const silentOwner = await old()
        const alone = await post(host, '/reauthenticate', { password }, bearerOf(silentOwner))
        expect([alone.status, alone.body.refresh_token, await isFresh(alone.body.access_token)]).toEqual([200, null, true])
        const stolen = await post(host, '/refresh', { refresh_token: silentOwner.refreshToken })
        expect([stolen.status, await isFresh(stolen.body.access_token)]).toEqual([200, false])

        for (const foreign of ['nonsense', (await old()).refreshToken]) {
          const member = await old()
          const { status, body } = await post(host, '/reauthenticate', { password, refresh_token: foreign }, bearerOf(member))
          expect([status, body.refresh_token]).toEqual([200, null])
          const later = await post(host, '/refresh', { refresh_token: member.refreshToken })
          expect(await isFresh(later.body.access_token)).toBe(false)
        }

        const owner = await old()
        const reused: object[] = []
        const off = host.auth.events.on('refresh.reused', (payload) => reused.push(payload))
        const renewed = await post(host, '/reauthenticate', { password, refresh_token: owner.refreshToken }, bearerOf(owner))
        expect([renewed.status, typeof renewed.body.refresh_token]).toEqual([200, 'string'])
        const on = await post(host, '/refresh', { refresh_token: renewed.body.refresh_token })
        expect([on.status, await isFresh(on.body.access_token)]).toEqual([200, true])
        const copy = await post(host, '/refresh', { refresh_token: owner.refreshToken })
        expect([copy.status, copy.body.code, copy.body.refresh_token, reused.length]).toEqual([401, 'INVALID_TOKEN', undefined, 1])
        expect((await post(host, '/refresh', { refresh_token: on.body.refresh_token })).status).toBe(401)
        off()

        const served = await old()
        const sid = String((jwt.decode(served.token) as jwt.JwtPayload)['sid'])
        const input = { userId: served.userId, sessionId: sid, password }
        expect(await host.auth.service.reauthenticate(input)).toMatchObject({ refreshToken: null })
        const after = await post(host, '/refresh', { refresh_token: served.refreshToken })
        expect(await isFresh(after.body.access_token)).toBe(false)
        const handed = await host.auth.service.reauthenticate({ ...input, refreshToken: after.body.refresh_token })
        expect(handed).toMatchObject({ refreshToken: expect.any(String) })
        expect((await post(host, '/refresh', { refresh_token: after.body.refresh_token })).status).toBe(401)
      },
    )
  })

  test('mfa/confirm hands out a random pair to a request that shows the live token, and null otherwise (25.2.2, 25.9.3)', async () => {
    const host = await startOn({ settings: { ...withFactors, refreshReuseGraceSeconds: 30 } })
    for (const isShown of [true, false]) {
      const member = await signedIn(host)
      const { secret } = (await post(host, '/mfa/enroll', {}, bearerOf(member))).body
      const { authenticator } = await import('../mfa/authenticator')
      const code = authenticator(secret, host.clock).code()
      const body = { code, ...(isShown && { refresh_token: member.refreshToken }) }
      const confirmed = await post(host, '/mfa/confirm', body, bearerOf(member))
      expect([confirmed.status, typeof confirmed.body.access_token]).toEqual([200, 'string'])
      expect(confirmed.body.refresh_token === null).toBe(!isShown)
      // The old token stays the session's own if it was not shown. Otherwise it has no grace.
      expect((await post(host, '/refresh', { refresh_token: member.refreshToken })).status).toBe(isShown ? 401 : 200)
    }
  })

  test('with accessTokenSessionClaims: false, a confirmation that can hand out no new token is 403 before anything is counted, and the header X-Refresh-Token names the session (25.2.6, 25.9.2)', async () => {
    const host = await startOn({ settings: { ...withFactors, accessTokenSessionClaims: false }, options: { throttle: { routes: false } } })
    const { token, email } = await signedIn(host)
    const login = await post(host, '/login', { email, password })
    const named = { 'X-Refresh-Token': login.body.refresh_token, ...bearerOf({ token: login.body.access_token }) }
    for (let count = 0; count < 8; count++) {
      const { status, body } = await post(host, '/reauthenticate', { password: 'wrong' }, bearerOf({ token }))
      expect([status, body.code]).toEqual([403, 'REAUTHENTICATION_REQUIRED'])
    }
    const listed = (headers: Record<string, string>) => host.browser().get('/auth/sessions').set(headers)
    expect([(await listed(named)).status, (await listed(bearerOf({ token }))).body.code]).toEqual([200, 'REAUTHENTICATION_REQUIRED'])
    const confirmed = await post(host, '/reauthenticate', { password }, named)
    expect([confirmed.status, typeof confirmed.body.refresh_token]).toEqual([200, 'string'])
    expect(freshness(confirmed.body.access_token)).toBeUndefined()
  })

  test('the known device counts at every route that takes a code (25.4.2)', async () => {
    const host = await startOn({ settings: withFactors, options: { throttle: { routes: false } } })
    const person: EnrolledMember = await enrolled(host)
    const wrong = async (body: object) => (await post(host, '/reauthenticate', { code: '000000', ...body }, bearerOf(person))).body.code
    for (let count = 0; count < 5; count++) expect(await wrong({})).toBe('MFA_CODE_INVALID')
    expect(await wrong({})).toBe('MFA_THROTTLED')
    const previous_token = person.refreshToken
    expect(await wrong({ previous_token })).toBe('MFA_CODE_INVALID')
    const paths = {
      '/mfa/recovery-codes': {},
      '/mfa/disable': { password },
      '/password-change/mfa': { new_password: 'nine green bicycles uphill' },
      '/mfa/enroll': {},
      '/email-change/request': { new_email: 'another@example.test' },
      '/password-change': { current_password: password, new_password: 'nine green bicycles uphill' },
    }
    for (const [path, body] of Object.entries(paths)) {
      const stranger = await post(host, path, { ...body, code: '000000' }, bearerOf(person))
      expect([path, stranger.body.code]).toEqual([path, 'MFA_THROTTLED'])
    }
    const known = await post(host, '/mfa/recovery-codes', { code: person.app.nextCode(), previous_token }, bearerOf(person))
    expect(known.status).toBe(200)
    expect((await verify(host, await challengeOf(host, person), person.app.nextCode())).status).toBe(200)
  })
})
