import express, { type Express } from 'express'
import { describe, expect, test } from 'vitest'
import { type AuthRouter, createGuards, createKnexStore, errorHandler } from '../../src'
import { bearerOf, type LocalHost, type LocalOptions, onLocal, password, post, signedIn } from '../local/people'
import { member } from '../server-session/devices'
import { type Browser, testSecret } from '../support/app'
import { databases } from '../support/databases'

const silent = { info() {}, warn() {}, error() {} }

/** Forms and pages of a host, at paths where a browser does not send the refresh cookie. */
function hostPages(app: Express, auth: AuthRouter): void {
  app.use(express.urlencoded(), express.json())
  const logOut = (input: (body: Record<string, string>) => object) =>
    (async (req, res, next) => {
      await auth
        .with(req, res)
        .logOut(input(req.body ?? {}))
        .then(() => res.status(203).end(), next)
    }) satisfies express.RequestHandler
  app.post(
    '/sign-out',
    logOut(({ token }) => ({ ...(token && { refreshToken: token }) })),
  )
  app.post(
    '/sign-out-everywhere',
    logOut(({ token }) => ({ allSessions: true, ...(token && { refreshToken: token }) })),
  )
  app.get('/live', auth.guards.requireLiveSession(), (_req, res) => void res.status(203).end())
  app.get('/fresh', auth.guards.requireFresh(), (_req, res) => void res.status(203).end())
  app.use(errorHandler({ logger: silent }))
}

const deliveries = ['cookie', 'both', 'session'] as const
type Delivery = (typeof deliveries)[number]
const wayOf = (delivery: Delivery, path: string) => `/auth${delivery === 'both' ? '/cookie' : ''}${path}`

for (const database of await databases()) {
  const { start: startOn } = onLocal(database)
  const start = (options: LocalOptions) =>
    startOn({ host: hostPages, ...options, options: { throttle: { routes: false }, ...options.options } })

  const logIn = async (browser: Browser, delivery: Delivery, email: string) => {
    const { status } = await browser.post(wayOf(delivery, '/login')).send({ email, password })
    expect(status).toBe(200)
  }
  const liveOf = async (host: LocalHost, userId: string) => (await host.auth.service.listSessions(userId)).length

  describe.each(deliveries)(`the session of a browser has one name at every path, on ${database.name}, delivery %s`, (delivery) => {
    describe.each([true, false])('with cookieSecure: %s', (cookieSecure) => {
      const settings = { tokenDelivery: delivery, cookieSecure }
      const deviceName = cookieSecure ? '__Host-auth_device' : 'auth_device'

      test('the device cookie reaches every path of the host (25.1.1)', async () => {
        const host = await start({ settings })
        const { email } = await member(host)
        const browser = host.browser()
        await logIn(browser, delivery, email)
        const device = browser.cookies.kept().find(({ key }) => key === deviceName)
        expect([device?.path, device?.secure, device?.httpOnly, device?.sameSite]).toEqual(['/', cookieSecure, true, 'lax'])
      })

      test('a logout by a form of the host revokes the session, also after the end of the access cookie, and a copy of the cookies does not refresh (25.1.5)', async () => {
        const host = await start({ settings })
        const { email, userId } = await member(host)
        for (const secondsLater of [0, 901]) {
          const browser = host.browser()
          await logIn(browser, delivery, email)
          const copy = browser.cookies.header({ host: 'app.example.test', path: wayOf(delivery, '/refresh') }) ?? ''
          host.clock.advance(secondsLater)
          expect((await browser.post('/sign-out')).status).toBe(203)
          expect(await liveOf(host, userId)).toBe(0)
          if (delivery !== 'session') {
            const refreshed = await host.browser().post(wayOf(delivery, '/refresh')).set('Cookie', copy).send({})
            expect([refreshed.status, refreshed.body.code]).toEqual([401, 'INVALID_TOKEN'])
          }
          expect((await browser.get('/live')).status).toBe(401)
        }
      })

      test('a second click on "Sign out", and a session that was revoked elsewhere, are no errors (25.1.5)', async () => {
        const host = await start({ settings })
        const { email, userId } = await member(host)
        const browser = host.browser()
        await logIn(browser, delivery, email)
        await host.auth.service.revokeSessions(userId)
        expect((await browser.post('/sign-out')).status).toBe(203)
        await logIn(browser, delivery, email)
        expect((await browser.post('/sign-out')).status).toBe(203)
        expect((await browser.post('/sign-out')).status).toBe(203)
      })

      test('logOut({ allSessions: true }) acts for the account that signed in last in this browser (25.1.5)', async () => {
        const host = await start({ settings })
        const [ada, bob] = [await member(host), await member(host)]
        const [shared, phone, bobsPhone] = [host.browser(), host.browser(), host.browser()]
        await logIn(phone, delivery, ada.email)
        await logIn(bobsPhone, delivery, bob.email)
        await logIn(shared, delivery, ada.email)
        await logIn(shared, delivery, bob.email)
        expect((await shared.post('/sign-out-everywhere')).status).toBe(203)
        expect(await liveOf(host, bob.userId)).toBe(0)
        expect((await phone.get('/live')).status).toBe(203)
        expect((await bobsPhone.get('/live')).status).toBe(401)
      })

      test('a planted session cookie of an attacker does not save the owner’s session from a logout (25.1.5)', async () => {
        const host = await start({ settings })
        const [owner, attacker] = [await member(host), await member(host)]
        const [browser, thief] = [host.browser(), host.browser()]
        await logIn(browser, delivery, owner.email)
        await logIn(thief, delivery, attacker.email)
        const name = delivery === 'session' ? 'auth_session' : 'access_token'
        const planted = thief.cookies.kept().find(({ key }) => key === name)?.value ?? ''
        const own = (browser.cookies.header({ host: 'app.example.test', path: '/sign-out' }) ?? '').split('; ')
        const cookie = [...own.filter((pair) => !pair.startsWith(`${name}=`)), `${name}=${planted}`].join('; ')
        const { status } = await host.browser().post('/sign-out').set('Cookie', cookie)
        expect([status, await liveOf(host, owner.userId)]).toEqual([203, 0])
      })

      test('a device cookie that is not ours, or has the other name, signs nobody in and nobody out: 401 (25.1.2, 25.1.3)', async () => {
        const host = await start({ settings })
        const { email, userId } = await member(host)
        const browser = host.browser()
        await logIn(browser, delivery, email)
        const value = browser.cookies.kept().find(({ key }) => key === deviceName)?.value ?? ''
        const other = cookieSecure ? 'auth_device' : '__Host-auth_device'
        const forged = value.slice(0, -2) + (value.at(-2) === 'A' ? 'B' : 'A') + value.slice(-1)
        for (const cookie of [`${deviceName}=${forged}`, `${other}=${value}`, '']) {
          for (const path of ['/sign-out', '/sign-out-everywhere']) {
            const { status, body } = await host.browser().post(path).set('Cookie', cookie)
            expect([status, body.code]).toEqual([401, 'UNAUTHORIZED'])
          }
        }
        const alone = `${deviceName}=${value}`
        for (const path of ['/live', '/fresh', '/auth/me', '/auth/sessions'])
          expect((await host.browser().get(path).set('Cookie', alone)).status).toBe(401)
        expect(await liveOf(host, userId)).toBe(1)
      })

      test('a form of another site at the host’s sign-out is 403 and revokes nothing (25.1.5)', async () => {
        const host = await start({ settings })
        const { email, userId } = await member(host)
        const browser = host.browser()
        await logIn(browser, delivery, email)
        const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
        const { status, body } = await browser.post('/sign-out').set(foreign)
        expect([status, body.code, await liveOf(host, userId)]).toEqual([403, 'CSRF_VALIDATION_FAILED', 1])
      })

      test('past the rate limit of logouts, one statement revokes every session that the request names (25.1.5)', async () => {
        const limited = { throttle: { routes: { attempts: 1, windowSeconds: 60 } } }
        const host = await start({ settings, options: limited })
        const [ada, bob] = [await member(host), await member(host)]
        const browser = host.browser()
        await logIn(browser, delivery, ada.email)
        await browser.post('/sign-out')
        const thief = host.browser()
        await logIn(thief, delivery, bob.email)
        await logIn(browser, delivery, ada.email)
        const { status } = await browser.post('/sign-out')
        expect([status, await liveOf(host, ada.userId), await liveOf(host, bob.userId)]).toEqual([203, 0, 1])
      })
    })

    if (delivery === 'session') return

    test('an access token without sid gets its session from the device cookie, at every path (25.1.4)', async () => {
      const host = await start({ settings: { tokenDelivery: delivery, cookieSecure: true, accessTokenSessionClaims: false } })
      const [owner, other] = [await member(host), await member(host)]
      const browser = host.browser()
      await logIn(browser, delivery, owner.email)
      expect((await browser.get('/live')).status).toBe(203)
      expect((await browser.get('/fresh')).status).toBe(203)
      expect((await browser.get('/auth/sessions')).status).toBe(200)
      // The entry of another account beside the token names nothing.
      const stranger = host.browser()
      await logIn(stranger, delivery, other.email)
      const access = browser.cookies.kept().find(({ key }) => key === 'access_token')?.value ?? ''
      const device = stranger.cookies.kept().find(({ key }) => key === '__Host-auth_device')?.value ?? ''
      for (const cookie of [`access_token=${access}; __Host-auth_device=${device}`, `access_token=${access}`]) {
        for (const path of ['/live', '/fresh', '/auth/sessions']) {
          const { status, body } = await host.browser().get(path).set('Cookie', cookie)
          expect([path, status, body.code]).toEqual([path, 403, 'REAUTHENTICATION_REQUIRED'])
        }
      }
      await host.auth.service.revokeSessions(owner.userId)
      for (const path of ['/live', '/fresh', '/auth/sessions']) {
        const { status, body } = await browser.get(path)
        expect([status, body.code]).toEqual([401, 'INVALID_TOKEN'])
      }
    })

    test.each([
      ['a second later', 1],
      ['in the same second', 0],
    ])(
      'a copy of the access cookie and the device cookie does not become fresh when the owner confirms %s (25.1.4, 25.2)',
      async (_when, seconds) => {
        const host = await start({ settings: { tokenDelivery: delivery, cookieSecure: true, accessTokenSessionClaims: false } })
        const { email } = await member(host)
        const [browser, phone] = [host.browser(), host.browser()]
        await logIn(browser, delivery, email)
        await logIn(phone, delivery, email)
        host.clock.advance(901)
        await browser.post(wayOf(delivery, '/refresh')).send({})
        const cookiesOf = (of: Browser) => of.cookies.header({ host: 'app.example.test', path: '/fresh' })?.split('; ') ?? []
        const copy = cookiesOf(browser)
        host.clock.advance(seconds)
        expect((await browser.get('/fresh')).status).toBe(403)
        expect((await browser.post(wayOf(delivery, '/reauthenticate')).send({ password })).status).toBe(200)
        expect((await browser.get('/fresh')).status).toBe(203)
        const freshBy = async (cookies: string[]) => (await host.browser().get('/fresh').set('Cookie', cookies.join('; '))).body.code
        expect(await freshBy(copy)).toBe('REAUTHENTICATION_REQUIRED')
        // Neither does a younger token of another session of the account beside the copied device cookie.
        host.clock.advance(2)
        await phone.post(wayOf(delivery, '/refresh')).send({})
        const isAccess = (pair: string) => pair.startsWith('access_token=')
        const younger = [...cookiesOf(phone).filter(isAccess), ...copy.filter((pair) => !isAccess(pair))]
        expect(await freshBy(younger)).toBe('REAUTHENTICATION_REQUIRED')
        expect((await browser.get('/fresh')).status).toBe(203)
      },
    )

    test('createGuards() with jwtSecret and a store reads the device cookie too (25.1.4)', async () => {
      const settings = { tokenDelivery: delivery, cookieSecure: true, accessTokenSessionClaims: false }
      const host = await start({ settings })
      const store = createKnexStore({ knex: host.knex })
      const guards = createGuards({ settings: { ...settings, jwtSecret: testSecret }, store, now: host.clock.now })
      host.app.get('/elsewhere', guards.requireLiveSession(), (_req, res) => void res.status(203).end())
      const { email } = await member(host)
      const browser = host.browser()
      await logIn(browser, delivery, email)
      expect((await browser.get('/elsewhere')).status).toBe(203)
    })
  })

  describe.each(['bearer', 'both'] as const)(`logOut() by a token in the header, on ${database.name}, delivery %s`, (tokenDelivery) => {
    test('names the session by its sid, also after its end, and neither reads nor clears a cookie (25.1.5)', async () => {
      const host = await start({ settings: { tokenDelivery } })
      for (const secondsLater of [0, 901]) {
        const { token, userId } = await signedIn(host)
        host.clock.advance(secondsLater)
        const { status, headers } = await host.browser().post('/sign-out').set(bearerOf({ token }))
        expect([status, headers['set-cookie'], await liveOf(host, userId)]).toEqual([203, undefined, 0])
      }
      const { userId, refreshToken } = await signedIn(host)
      const byInput = await host.browser().post('/sign-out').send({ token: refreshToken })
      expect([byInput.status, await liveOf(host, userId)]).toEqual([203, 0])
      const nobody = await host
        .browser()
        .post('/sign-out')
        .set(bearerOf({ token: 'nonsense' }))
      expect([nobody.status, nobody.body.code]).toEqual([401, 'UNAUTHORIZED'])
    })

    test('a logout everywhere by an expired access token alone asks for a new one, and ends nothing (25.1.5)', async () => {
      const host = await start({ settings: { tokenDelivery } })
      const { token, userId, email } = await signedIn(host)
      host.clock.advance(901)
      await host.auth.service.logIn({ email, password })
      const everywhere = () => host.browser().post('/sign-out-everywhere').set(bearerOf({ token }))
      const { status, body } = await everywhere()
      expect([status, body.code, await liveOf(host, userId)]).toEqual([401, 'TOKEN_EXPIRED', 2])
      await host.auth.service.revokeSessions(userId)
      expect((await everywhere()).status).toBe(203)
    })

    test('a used refresh token revokes its own session and nothing else, whatever all_sessions says (25.3.4)', async () => {
      const host = await start({ settings: { tokenDelivery } })
      const { userId, email, refreshToken } = await signedIn(host)
      await host.auth.service.logIn({ email, password })
      expect((await post(host, '/refresh', { refresh_token: refreshToken })).status).toBe(200)
      const { status } = await post(host, '/logout', { refresh_token: refreshToken, all_sessions: true })
      expect([status, await liveOf(host, userId)]).toEqual([204, 1])
    })
  })
}
