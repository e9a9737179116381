import knex from 'knex'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createKnexStore, errors } from '../../src'
import { ask, by, device, idOf, logIn } from '../server-session/devices'
import { type Mounted, mount, setCookieOf, signIn, startLogin } from '../support/app'
import { databases } from '../support/databases'
import { unreachableUrl } from '../support/fake-provider'
import { type Fault, type FaultyStore, faultyStore } from '../support/faulty-store'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function openDatabase() {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  return sqlite.open({ memory: true })
}

async function start(): Promise<Mounted & { faulty: FaultyStore }> {
  const opened = await openDatabase()
  const faulty = faultyStore(createKnexStore({ knex: opened.knex }))
  const mounted = await mount({ knex: opened.knex, options: { store: faulty.store, throttle: { routes: false } } })
  closing.push(opened.close, mounted.close)
  return { ...mounted, faulty }
}

type Started = Awaited<ReturnType<typeof start>>
interface Prepared {
  mounted: Started
  browser: ReturnType<Mounted['browser']>
  tokens: { access: string; refresh: string }
}

/** Each route that reads or writes rows, and each of its ways through the store. */
const requests: Record<string, (prepared: Prepared) => Promise<{ send(): Promise<{ status: number; text: string; headers: object }> }>> = {
  'GET /me': async ({ browser, tokens }) => ({ send: async () => browser.get('/auth/me').set('Authorization', `Bearer ${tokens.access}`) }),
  'GET /oauth/accounts': async ({ browser, tokens }) => ({
    send: async () => browser.get('/auth/oauth/accounts').set('Authorization', `Bearer ${tokens.access}`),
  }),
  'POST /oauth/accounts/unlink': async ({ browser, tokens }) => ({
    send: async () =>
      browser.post('/auth/oauth/accounts/unlink').set('Authorization', `Bearer ${tokens.access}`).send({ provider: 'corp' }),
  }),
  'POST /refresh': async ({ browser, tokens }) => ({
    send: async () => browser.post('/auth/refresh').send({ refresh_token: tokens.refresh }),
  }),
  'POST /refresh of a spent token': async ({ browser, tokens }) => {
    await browser.post('/auth/refresh').send({ refresh_token: tokens.refresh })
    return { send: async () => browser.post('/auth/refresh').send({ refresh_token: tokens.refresh }) }
  },
  'POST /refresh of an inactive account': async ({ browser, tokens, mounted }) => {
    await mounted.knex('auth_users').update({ is_active: false })
    return { send: async () => browser.post('/auth/refresh').send({ refresh_token: tokens.refresh }) }
  },
  'POST /logout': async ({ browser, tokens }) => ({
    send: async () => browser.post('/auth/logout').send({ refresh_token: tokens.refresh }),
  }),
  'POST /logout of all sessions': async ({ browser, tokens }) => ({
    send: async () => browser.post('/auth/logout').send({ refresh_token: tokens.refresh, all_sessions: true }),
  }),
  'POST /session/login with the cookie of an earlier one': async ({ mounted }) => {
    const ana = await device(mounted)
    return { send: async () => logIn(mounted, ana, by(ana)) }
  },
  'GET /session/me, sliding': async ({ mounted }) => {
    const ana = await device(mounted)
    mounted.clock.advance(60)
    return { send: async () => ask(mounted, 'get', '/session/me', by(ana)) }
  },
  'GET /session/list': async ({ mounted }) => {
    const ana = await device(mounted)
    return { send: async () => ask(mounted, 'get', '/session/list', by(ana)) }
  },
  'DELETE /session/:id': async ({ mounted }) => {
    const ana = await device(mounted)
    const id = await idOf(mounted, ana)
    return { send: async () => ask(mounted, 'delete', `/session/${id}`, by(ana)) }
  },
  'POST /session/logout': async ({ mounted }) => {
    const ana = await device(mounted)
    return { send: async () => ask(mounted, 'post', '/session/logout', by(ana)) }
  },
  'GET /oauth/corp/callback of a known identity': async ({ mounted, browser }) => {
    const { callbackQuery } = await startLogin(mounted, browser)
    return { send: async () => browser.get('/auth/oauth/corp/callback').query(callbackQuery) }
  },
  'GET /oauth/corp/callback of a new identity': async ({ mounted, browser }) => {
    const { callbackQuery } = await startLogin(mounted, browser, { profile: { sub: `new-${people}`, email: `new${people}@example.test` } })
    return { send: async () => browser.get('/auth/oauth/corp/callback').query(callbackQuery) }
  },
}

let people = 0

/** Somebody new signs in and is about to send the request. */
async function prepare(name: string, mounted: Started) {
  const browser = mounted.browser()
  people += 1
  mounted.provider.profile = { sub: `S-${people}`, email: `person${people}@example.test` }
  const { body } = await signIn(mounted, browser)
  const prepared = await requests[name]?.({ mounted, browser, tokens: { access: body.access_token, refresh: body.refresh_token } })
  if (!prepared) throw new Error(`no request is called ${name}`)
  mounted.faulty.calls.length = 0
  mounted.logs.entries.length = 0
  return prepared.send
}

/** The verbs a route really calls: asked of the route itself, so that a new call is a new test. */
async function verbsOf(name: string): Promise<string[]> {
  const mounted = await start()
  const send = await prepare(name, mounted)
  await send()
  for (const close of closing.splice(0).reverse()) await close()
  return [...new Set(mounted.faulty.calls)]
}

const failures: Record<string, Fault> = {
  'throws an Error with a secret in it': () => {
    throw Object.assign(new Error('canary-secret'), { code: 'canary secret code', sql: 'canary-sql', status: 418 })
  },
  'throws undefined': () => {
    throw undefined
  },
  "throws 'route'": () => {
    throw 'route'
  },
  'rejects with an Error': () => Promise.reject(new TypeError('canary-secret')),
  'rejects with null': () => Promise.reject(null),
  "rejects with 'router'": () => Promise.reject('router'),
  'rejects with 42': () => Promise.reject(42),
  'rejects with what looks like a refusal of a client': () => Promise.reject(Object.assign(new Error('canary-secret'), { status: 404 })),
}

const nonsense: Record<string, Fault> = {
  'answers undefined': () => undefined,
  'answers null': async () => null,
  'answers a number': async () => 42,
  'answers a text': async () => 'canary-secret',
  'answers {}': async () => ({}),
}

for (const name of Object.keys(requests)) {
  const verbs = await verbsOf(name)

  describe(name, () => {
    test('calls the store', () => {
      expect(verbs.length).toBeGreaterThan(0)
    })

    test.each(verbs)('R-140 is answered with 500 or 503 in the envelope when %s fails, whatever it throws', async (verb) => {
      const mounted = await start()
      let lines = 0
      for (const [how, fault] of Object.entries(failures)) {
        const send = await prepare(name, mounted)
        mounted.faulty.break(verb, fault)

        const answer = await send()

        mounted.faulty.break(null)

        expect([500, 503], `${verb} ${how}: ${answer.status} ${answer.text}`).toContain(answer.status)
        const body = JSON.parse(answer.text) as Record<string, unknown>
        expect(body).toEqual({
          code: answer.status === 500 ? 'INTERNAL_ERROR' : 'SERVICE_UNAVAILABLE',
          detail: expect.any(String),
          details: {},
        })
        expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' })
        if (answer.status === 503) expect(answer.headers).toHaveProperty('retry-after')
        for (const name of ['access_token', 'auth_session'])
          expect(setCookieOf({ headers: answer.headers as Record<string, unknown> }, name), name).toBeNull()
        expect(answer.text + mounted.logs.text()).not.toContain('canary')
        const told = mounted.logs.entries.filter((entry) => entry.level === 'error')
        expect(told.length).toBeLessThanOrEqual(1)
        lines += told.length
      }
      expect(lines).toBeGreaterThan(0) // many answers of one kind share a line (25.8.7)
    })

    test.each(verbs)('R-140 is answered, and a refusal is the envelope, when %s answers nonsense', async (verb) => {
      const mounted = await start()
      for (const [how, fault] of Object.entries(nonsense)) {
        const send = await prepare(name, mounted)
        mounted.faulty.break(verb, fault)

        const answer = await send()

        mounted.faulty.break(null)

        const where = `${verb} ${how}: ${answer.status} ${answer.text}`
        expect(answer.text, where).not.toContain('canary')
        if (answer.status >= 400) {
          expect(Object.keys(JSON.parse(answer.text) as object).sort(), where).toEqual(['code', 'detail', 'details'])
          expect([401, 403, 404, 409, 500, 503], where).toContain(answer.status)
        }
      }
    })
  })
}

test('R-140 one request whose store never settles keeps no other from its answer', async () => {
  const mounted = await start()
  const { body } = await signIn(mounted)
  mounted.faulty.break('sessions.find', () => new Promise(() => undefined))
  const stuck = mounted.browser().post('/auth/logout').send({ refresh_token: body.refresh_token }).timeout(300)

  const [answer] = await Promise.all([
    mounted.browser().get('/auth/me').set('Authorization', `Bearer ${body.access_token}`),
    expect(stuck).rejects.toThrow(/timeout/i),
  ])

  expect(answer.status).toBe(200)
})

describe('hooks of the host', () => {
  test.each(Object.entries(failures))(
    'R-140 a password hasher that %s is a 500 in the envelope, and no account is left behind',
    async (_how, fault) => {
      const mounted = await start()
      mounted.hasher.hash = async () => fault() as string // what it answers is never reached

      const person = { email: 'ana@example.test', password: 'a quiet harbour in winter' }
      const response = await mounted.browser().post('/auth/signup').send(person)

      expect([response.status, response.body.code]).toEqual([500, 'INTERNAL_ERROR'])
      expect(response.text + mounted.logs.text()).not.toContain('canary')
      expect(await mounted.knex('auth_users')).toEqual([])
    },
  )

  test.each(Object.entries(failures))('R-140 a custom provider client that %s is a 502 in the envelope', async (_how, fault) => {
    const opened = await openDatabase()
    const client = {
      providerName: 'own',
      clientId: 'c',
      authorizeUrl: 'https://own.example.test/authorize',
      tokenUrl: 'https://own.example.test/token',
      scopes: [],
    }
    for (const verb of ['exchangeCode', 'fetchUser'] as const) {
      const own = { ...client, exchangeCode: async () => ({}), fetchUser: async () => ({}), [verb]: fault } as never // only what the test calls
      const mounted = await mount({ knex: opened.knex, providers: { own } })
      closing.push(mounted.close)
      const browser = mounted.browser()
      const login = await browser.get('/auth/oauth/own/login')
      const state = new URL(String(login.headers['location'])).searchParams.get('state')

      const answer = await browser.get('/auth/oauth/own/callback').query({ state, code: 'x' })

      expect([answer.status, answer.body.code], verb).toEqual([502, 'OAUTH_ERROR'])
      expect(answer.body.details).toEqual({ provider: 'own', status: null, body: null })
      expect(answer.text + mounted.logs.text()).not.toContain('canary')
    }
    closing.push(opened.close)
  })
})

describe('a database that is down', () => {
  async function signedIn() {
    const mounted = await start()
    const { body } = await signIn(mounted)
    return { mounted, access: body.access_token as string, refresh: body.refresh_token as string }
  }

  async function expectUnavailable(answer: { status: number; text: string; headers: Record<string, unknown> }, retryAfter = '1') {
    expect(answer.status, answer.text).toBe(503)
    expect(JSON.parse(answer.text)).toEqual({ code: 'SERVICE_UNAVAILABLE', detail: expect.any(String), details: {} })
    expect(answer.headers['retry-after']).toBe(retryAfter)
    expect(setCookieOf(answer, 'access_token')).toBeNull()
    expect(setCookieOf(answer, 'refresh_token')).toBeNull()
  }

  async function everyRoute(mounted: Mounted, access: string, refresh: string) {
    const bearer = { Authorization: `Bearer ${access}` }
    const browser = mounted.browser()
    const { callbackQuery } = await startLogin(mounted, browser)
    return [
      await browser.get('/auth/oauth/corp/callback').query(callbackQuery),
      await browser.get('/auth/me').set(bearer),
      await browser.get('/auth/oauth/accounts').set(bearer),
      await browser.post('/auth/oauth/accounts/unlink').set(bearer).send({ provider: 'corp' }),
      await browser.post('/auth/refresh').send({ refresh_token: refresh }),
      await browser.post('/auth/logout').send({ refresh_token: refresh }),
    ]
  }

  test.each(['bearer', 'cookie', 'both'] as const)(
    'R-140 a closed port is 503 with Retry-After and no cookie, delivery %s',
    async (tokenDelivery) => {
      const { access, refresh } = await signedIn()
      const { port } = new URL(unreachableUrl)
      const down = knex({ client: 'pg', connection: { host: '127.0.0.1', port: Number(port), user: 'nobody', database: 'none' } })
      const opened = await openDatabase()
      const mounted = await mount({
        knex: opened.knex,
        settings: { tokenDelivery } as never, // mount() adds the rest
        options: { store: createKnexStore({ knex: down }) },
      })
      closing.push(opened.close, mounted.close, () => down.destroy())

      const answers = await everyRoute(mounted, access, refresh)

      // It was never there, which the check of the tables found.
      for (const answer of tokenDelivery === 'cookie' ? answers.slice(0, 4) : answers) await expectUnavailable(answer, '60')
    },
  )

  test('R-140 a pool that the host has destroyed is 503 too', async () => {
    const { mounted, access, refresh } = await signedIn()
    await mounted.knex.destroy()

    for (const answer of await everyRoute(mounted, access, refresh)) await expectUnavailable(answer)
  })

  test('R-104 requireUser is closed when the store fails: 503, and the handler is not reached', async () => {
    const { mounted, access } = await signedIn()
    const handler = vi.fn((_req, res) => void res.json({ secret: true }))
    mounted.app.get('/private', mounted.auth.guards.requireUser(), handler)
    for (const fault of [...Object.values(failures), () => Promise.reject(new errors.ServiceUnavailableError())]) {
      mounted.faulty.break('users.find', fault)

      const answer = await mounted.browser().get('/private').set('Authorization', `Bearer ${access}`)

      await expectUnavailable(answer)
    }
    expect(handler).not.toHaveBeenCalled()
    mounted.faulty.break(null)
    expect((await mounted.browser().get('/private').set('Authorization', `Bearer ${access}`)).status).toBe(200)
  })
})
