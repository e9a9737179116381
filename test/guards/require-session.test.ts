import type { Express, RequestHandler } from 'express'
import express from 'express'
import supertest from 'supertest'
import { describe, expect, test, vi } from 'vitest'
import { type AuthStore, ConfigurationError, createGuards, createKnexStore, findAuth, getAuth, getSession, getUser } from '../../src'
import { onLocal, sha256, signedIn } from '../local/people'
import { by, device, member, rowsOf } from '../server-session/devices'
import { type Mounted, testSecret } from '../support/app'
import { checkCookies } from '../support/cookie-check'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)

const handlerOf: Record<string, RequestHandler> = {
  session: (req, res) => void res.json(getSession(req)),
  user: (req, res) =>
    void res.json({ user: getUser(req), own: ['user', 'session', 'auth'].filter((name) => name in req), auth: findAuth(req) }),
}

function guarded(app: Express, { guards }: Mounted['auth']): void {
  app.use('/api', (_req, res, next) => {
    res.setHeader('Cache-Control', 'public, max-age=600')
    next()
  })
  for (const [name, handler] of Object.entries(handlerOf)) app.get(`/api/${name}`, guards.requireSession(), handler)
}

const get = (app: Express, path: string, headers: Record<string, string> = {}) => supertest(app).get(path).set(headers)

describe('requireSession', () => {
  test('lets a live session through: getSession and getUser know whose it is, and nothing is written on the request', async () => {
    const host = await start({ host: guarded })
    const ana = await device(host, await member(host), { 'User-Agent': 'phone' })
    const [row] = await rowsOf(host, ana.userId)

    const session = await get(host.app, '/api/session', by(ana))
    const { createdAt, lastSeenAt, expiresAt } = JSON.parse(JSON.stringify(row)) as Record<string, string>
    const { id, ip } = row ?? {}
    expect([session.status, session.body]).toEqual([
      200,
      { id, userId: ana.userId, kind: 'session', amr: ['pwd'], provider: null, createdAt, lastSeenAt, expiresAt, ip, userAgent: 'phone' },
    ])
    const { body } = await get(host.app, '/api/user', by(ana))
    expect(body).toMatchObject({ user: { id: ana.userId, email: ana.email, isActive: true }, own: [], auth: null })
    expect(JSON.stringify([session.body, body])).not.toMatch(/hash|secret/i)
  })

  test('refuses whatever is no live session with one and the same 401, in the envelope, and never reaches the handler', async () => {
    const host = await start({ host: guarded, settings: { sessionTtlSeconds: 600 } })
    const [ended, inactive, gone, expired] = [await device(host), await device(host), await device(host), await device(host)]
    await host.auth.service.logOutSession(ended.token)
    await host.knex('auth_users').where({ id: inactive.userId }).update({ is_active: false })
    await host.knex('auth_users').where({ id: gone.userId }).delete()
    host.clock.advance(600)
    const bearer = { Authorization: `Bearer ${(await signedIn(host)).token}` }
    const value = (token: string) => ({ Cookie: `auth_session=${token}` })
    const refused: Record<string, string>[] = [
      {},
      bearer,
      ...[ended, inactive, gone, expired].map(by),
      ...['', 'x', sha256('x'), 'j:{"a":1}', `${expired.token}x`, 'a'.repeat(5000), '%00', "' or 1=1 --"].map(value),
    ]
    for (const headers of refused) {
      const { status, text, headers: answered } = await get(host.app, '/api/session', headers)
      expect([JSON.stringify(headers).slice(0, 80), status, text]).toEqual([
        JSON.stringify(headers).slice(0, 80),
        401,
        '{"detail":"Authentication is required.","code":"UNAUTHORIZED","details":{}}',
      ])
      expect([answered['cache-control'], answered['set-cookie']]).toEqual(['no-store', undefined])
    }
  })

  test('R-117 slides at most once a minute: the cookie goes out again, on an answer that no cache may keep', async () => {
    const host = await start({ host: guarded })
    const ana = await device(host)
    const fresh = await get(host.app, '/api/session', by(ana))
    expect([fresh.headers['set-cookie'], fresh.headers['cache-control']]).toEqual([undefined, 'public, max-age=600'])
    host.clock.advance(60)
    const slid = await get(host.app, '/api/session', by(ana))
    const lines = slid.headers['set-cookie'] as unknown as string[]
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`^auth_session=${ana.token}; Max-Age=86400; Path=/; .*HttpOnly; SameSite=Lax$`)),
      expect.stringMatching(/^auth_hint=1; Max-Age=86400; Path=\/; [^;]+; SameSite=Lax$/),
    ])
    expect([slid.headers['cache-control'], slid.body.lastSeenAt]).toEqual(['no-store', host.clock.now().toISOString()])
    expect((await get(host.app, '/api/session', by(ana))).headers['set-cookie']).toBeUndefined()
  })

  test('a session that is ended while it slides is not revived', async () => {
    const { knex } = await start()
    const store = createKnexStore({ knex })
    const ending: AuthStore = {
      ...store,
      sessions: {
        ...store.sessions,
        touch: async (id, ...slide) => {
          await knex('auth_sessions').where({ id }).delete()
          return store.sessions.touch(id, ...slide)
        },
      },
    }
    const host = await start({ host: guarded, options: { store: ending } })
    const ana = await device(host)
    host.clock.advance(60)
    const { status, headers } = await get(host.app, '/api/session', by(ana))
    expect([status, headers['set-cookie'], await rowsOf(host, ana.userId)]).toEqual([401, undefined, []])
  })

  test('R-104 a store that fails, or answers with another session, lets nobody through', async () => {
    const { knex } = await start()
    const { sessions, ...rest } = createKnexStore({ knex })
    const host = await start({ host: guarded })
    const [ana, bob] = [await device(host), await device(host)]
    const found = () => sessions.find({ tokenHash: sha256(bob.token), kind: 'session' })
    const answers: Record<string, () => Promise<never>> = {
      'an Error': () => Promise.reject(new Error('canary')),
      nothing: () => Promise.reject(undefined),
      'another session': async () => (await found()) as never,
      'the session with another user': async () => {
        const mine = await sessions.find({ tokenHash: sha256(ana.token), kind: 'session' })
        return { session: mine?.session, user: (await found())?.user } as never
      },
    }
    const seen: unknown[] = []
    for (const [what, find] of Object.entries(answers)) {
      const store = { ...rest, sessions: { ...sessions, find } }
      const guards = createGuards({ settings: { jwtSecret: testSecret }, store, logger: logTap(), now: host.clock.now })
      const app = express()
        .use(checkCookies())
        .get('/api', guards.requireSession(), (req, res) => void res.json(getSession(req)))
      const { status, body, text } = await get(app, '/api', by(ana))
      expect(text).not.toContain('canary')
      seen.push([what, status, body.code])
    }
    expect(seen).toEqual([
      ['an Error', 503, 'SERVICE_UNAVAILABLE'],
      ['nothing', 503, 'SERVICE_UNAVAILABLE'],
      ['another session', 401, 'UNAUTHORIZED'],
      ['the session with another user', 401, 'UNAUTHORIZED'],
    ])
  })

  test('createGuards has it too, under the same cookie settings; without a table of sessions it is refused when it is made', async () => {
    const settings = { sessionCookieName: 'sid', sessionTtlSeconds: 600, cookieSamesite: 'strict' as const }
    const host = await start({ settings })
    const store = createKnexStore({ knex: host.knex })
    const login = await host.auth.service.logInToSession({ ...(await member(host)), password: 'a quiet harbour in winter' })
    const token = login.kind === 'session' ? login.sessionToken : ''
    const guards = createGuards({ settings: { jwtSecret: testSecret, ...settings }, store, now: host.clock.now })
    const app = express()
      .use(checkCookies())
      .get('/api', guards.requireSession(), (req, res) => void res.json(getUser(req).id))
    host.clock.advance(60)
    const { body, headers } = await get(app, '/api', { Cookie: `sid=${token}` })
    expect([body, headers['set-cookie']]).toEqual([
      login.userId,
      [
        expect.stringMatching(new RegExp(`^sid=${token}; Max-Age=600; Path=/; .*HttpOnly; Secure; SameSite=Strict$`)),
        expect.stringMatching(/^auth_hint=1; Max-Age=600; Path=\/; [^;]+; Secure; SameSite=Strict$/),
      ],
    ])

    for (const without of [{}, { store: createKnexStore({ knex: host.knex, sessions: false }) }]) {
      const lacking = createGuards({ settings: { jwtSecret: testSecret }, ...without })
      expect(() => lacking.requireSession()).toThrow(ConfigurationError)
      expect(() => lacking.requireSession()).toThrow(/`sessions`/)
    }
  })

  test('createGuards with the secret refuses a made-up cookie without a query; without the secret it asks for what has the shape', async () => {
    const host = await start()
    const ana = await device(host)
    const { sessions, ...rest } = createKnexStore({ knex: host.knex })
    const jwksUri = 'https://id.example.test/jwks'
    for (const [settings, queries] of [[{ jwtSecret: testSecret }, 0] as const, [{ jwksUri }, 1] as const]) {
      const find = vi.fn(sessions.find)
      const guards = createGuards({ settings, store: { ...rest, sessions: { ...sessions, find } }, now: host.clock.now })
      const app = express()
        .use(checkCookies())
        .get('/api', guards.requireSession(), (req, res) => void res.json(getUser(req).id))
      for (const value of ['x', 'a'.repeat(111), 'a'.repeat(112)])
        expect((await get(app, '/api', { Cookie: `auth_session=${value}` })).status).toBe(401)
      expect(find).toHaveBeenCalledTimes(queries)
      expect((await get(app, '/api', by(ana))).body).toBe(ana.userId)
    }
  })

  test('R-116 one guard decides: after a token’s guard there is no session, after the session’s no token, and never two people', async () => {
    const host = await start({
      host: (app, { guards }) => {
        const who: RequestHandler = (req, res) => {
          const says = (ask: () => string) => {
            try {
              return ask()
            } catch (error) {
              return (error as Error).message.slice(0, 12)
            }
          }
          res.json([says(() => getAuth(req).sub), says(() => getSession(req).userId), says(() => getUser(req).id)])
        }
        app.get('/none', who)
        app.get('/token-then-session', guards.requireUser(), guards.requireSession(), who)
        app.get('/session-then-token', guards.requireSession(), guards.requireUser(), who)
        app.get('/session-then-optional', guards.requireSession(), guards.optionalAuth(), who)
      },
    })
    const [ana, bob] = [await device(host), await signedIn(host)]
    const both = { ...by(ana), Authorization: `Bearer ${bob.token}` }
    const ask = async (path: string, headers: Record<string, string>) => (await get(host.app, path, headers)).body as unknown
    expect(await ask('/none', both)).toEqual(['getAuth(req)', 'getSession(r', 'getUser(req)'])
    expect(await ask('/token-then-session', both)).toEqual(['getAuth(req)', ana.userId, ana.userId])
    expect(await ask('/session-then-token', both)).toEqual([bob.userId, 'getSession(r', bob.userId])
    expect(await ask('/session-then-optional', by(ana))).toEqual(['getAuth(req)', ana.userId, ana.userId])
  })
})
