import express from 'express'
import supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { ConfigurationError, createAuthRouter, createKnexStore, GitHubClient, getAuth, getSession, getUser } from '../../src'
import { answer, linkTokenOf, loginAs, mailbox, openSessionAs, startFakeProvider, testClock } from '../../src/testing'
import { type Mounted, signIn, testSecret } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { linkTemplates } from '../support/mailbox'

const start = appPerTest()

const host = (app: Mounted['app'], { guards }: Mounted['auth']) => {
  app.get('/claims', guards.requireAuth(), (req, res) => void res.json(getAuth(req)))
  app.get('/second', guards.requireMfa(), (req, res) => void res.json(getAuth(req).amr))
  app.get('/device', guards.requireSession(), (req, res) => void res.json({ user: getUser(req).email, session: getSession(req).id }))
}

describe('loginAs', () => {
  test('is a bearer and cookies of a person, found by id or address, which the routes and guards take', async () => {
    const mounted = await start({ settings: { tokenDelivery: 'both' }, host })
    const { body } = await signIn(mounted)
    const heard: unknown[] = []
    mounted.auth.events.on('login', (login) => heard.push(login))

    const byId = await loginAs(mounted.auth, { id: body.user_id })
    const byEmail = await loginAs(mounted.auth, { email: 'Ana@example.com' }, { amr: ['pwd', 'otp'] })
    const request = supertest(mounted.app)

    expect((await request.get('/claims').set(byId.bearer)).body).toMatchObject({ sub: body.user_id, amr: ['pwd'] })
    expect((await request.get('/claims').set(byId.cookies)).body).toMatchObject({ sub: body.user_id })
    expect((await request.get('/second').set(byEmail.bearer)).body).toEqual(['pwd', 'otp'])
    expect((await request.post('/auth/refresh').send({ refresh_token: byId.refreshToken })).status).toBe(200)
    expect((await request.post('/auth/cookie/refresh').set(byEmail.cookies)).status).toBe(200)
    expect(heard).toEqual([])
  })

  test('openSessionAs is a server-side session, in the list like any other', async () => {
    const mounted = await start({ host })
    const { body } = await signIn(mounted)
    const { cookies, sessionId } = await openSessionAs(mounted.auth, { id: body.user_id })

    const answered = await supertest(mounted.app).get('/device').set(cookies)
    expect(answered.body).toEqual({ user: 'ana@example.com', session: sessionId })
    const sessions = await mounted.auth.service.listSessions(body.user_id)
    expect(sessions.map(({ kind }) => kind).sort()).toEqual(['session', 'tokens'])
  })

  test('opens nothing in production, for a stranger, for an inactive account, or without the router object', async () => {
    const mounted = await start()
    const { body } = await signIn(mounted)
    const store = createKnexStore({ knex: mounted.knex })
    const production = createAuthRouter({
      settings: { jwtSecret: testSecret, ...linkTemplates },
      store,
      environment: 'production',
      mailer: mailbox(),
      logger: mounted.logs,
    })

    await expect(loginAs(production, { id: body.user_id })).rejects.toThrow(ConfigurationError)
    await expect(openSessionAs(production, { id: body.user_id })).rejects.toThrow(/environment: 'test'/)
    await expect(loginAs({ ...mounted.auth } as never, { id: body.user_id })).rejects.toThrow(ConfigurationError)
    await expect(loginAs(mounted.auth, { email: 'nobody@example.com' })).rejects.toThrow(/no such account/)
    await mounted.auth.service.deactivate(body.user_id)
    await expect(loginAs(mounted.auth, { id: body.user_id })).rejects.toThrow(/not active/)
    expect(await mounted.knex('auth_sessions').whereNull('revoked_at')).toEqual([])
  })
})

describe('the fake provider', () => {
  test('sends a browser that follows the redirect back at once, and refuses another application', async () => {
    const mounted = await start()
    const browser = mounted.browser()
    const login = await browser.get('/auth/oauth/corp/login')
    const answered = await fetch(String(login.headers['location']), { redirect: 'manual' })
    const callback = new URL(String(answered.headers.get('location')))

    expect([answered.status, callback.pathname]).toEqual([302, '/auth/oauth/corp/callback'])
    expect((await browser.get(`${callback.pathname}${callback.search}`)).status).toBe(200)
    const stranger = `${mounted.provider.authorizeUrl}?client_id=other&redirect_uri=https%3A%2F%2Fa.example`
    expect((await fetch(stranger, { redirect: 'manual' })).status).toBe(400)
  })

  test('is GitHub too, and fails when it is told to', async () => {
    const provider = await startFakeProvider()
    const mounted = await start({ providers: { github: new GitHubClient(provider.githubOptions()) } })
    try {
      const browser = mounted.browser()
      const { headers } = await browser.get('/auth/oauth/github/login')
      const { callbackQuery } = provider.authorize(String(headers['location']), { profile: { id: 7, email: 'octo@example.com' } })
      provider.on('user', answer(503, {}))
      expect((await browser.get('/auth/oauth/github/callback').query(callbackQuery)).status).toBe(502)
      expect(provider.requestsTo('user')).toHaveLength(1)
    } finally {
      await provider.close()
    }
  })
})

describe('the mailbox and the clock', () => {
  const mail = { name: null, expiresAt: null, locale: 'en', subject: '', text: '', html: '' }
  const activation = { ...mail, kind: 'activation', to: 'ana@example.com', url: 'https://app.example/activate/secret' } as const
  const notice = { ...mail, kind: 'notice', to: 'ana@example.com', url: null } as const

  test('next waits for the mail that fits, and gives each one once', async () => {
    const inbox = mailbox()
    const [first, second] = [inbox.next({ kind: 'activation' }), inbox.next()]
    await inbox.send(notice)
    await inbox.send(activation)

    expect((await second).kind).toBe('notice')
    expect(linkTokenOf(await first)).toBe('secret')
    expect(inbox.mails).toHaveLength(2)
    expect(() => linkTokenOf(notice)).toThrow(/no link/)
  })

  test('the clock stands still until it is moved, and a token is over by it', async () => {
    const clock = testClock(new Date('2026-01-01T00:00:00.000Z'))
    expect(clock.now()).toEqual(clock.now())
    clock.advance(1.5)
    expect(clock.now().toISOString()).toBe('2026-01-01T00:00:01.500Z')

    const mounted = await start({ host, options: { now: clock.now } })
    const { body } = await signIn(mounted)
    const { bearer } = await loginAs(mounted.auth, { id: body.user_id })
    clock.advance(900)
    expect((await supertest(express().use(mounted.app)).get('/claims').set(bearer)).status).toBe(401)
  })
})
