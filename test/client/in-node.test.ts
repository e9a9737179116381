import type { Express } from 'express'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { AuthRouter } from '../../src'
import { type AuthClient, AuthClientError, type AuthState, createAuthClient } from '../../src/client/client'
import { onLocal, password } from '../local/people'
import { enrolled, mfaSettings } from '../mfa/people'
import { member } from '../server-session/devices'
import { databases } from '../support/databases'
import { type Visitor, visitors } from './visitor'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')
const { start } = onLocal(sqlite)
const visit = visitors()

const cookieDeliveries = ['cookie', 'both', 'session'] as const
const deliveries = [...cookieDeliveries, 'bearer'] as const
type Delivery = (typeof deliveries)[number]
const grace = { refreshReuseGraceSeconds: 10 }
const base = (delivery: Delivery) => `/auth${delivery === 'both' ? '/cookie' : ''}`

/** What the host guards, and what it was sent. */
const orders: { as: string; csrf: string | undefined; body: string }[] = []
beforeEach(() => orders.splice(0))
afterEach(() => vi.useRealTimers())

function shop(app: Express, { guards }: AuthRouter): void {
  app.get('/api/orders', guards.requireUser(), (req, res) => void res.json({ agent: req.headers['x-agent'] ?? null }))
  app.post('/api/orders', guards.requireUser(), guards.csrf(), async (req, res) => {
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    orders.push({ as: 'someone', csrf: req.get('x-csrf-token'), body: Buffer.concat(chunks).toString() })
    res.json({})
  })
  app.post('/api/risky', guards.requireFresh(), (_req, res) => void res.json({}))
  app.get('/api/broken', (_req, res) => void res.status(401).send('no'))
  app.get('/api/broken-envelope', (_req, res) => void res.status(401).json({ code: 'PASSKEY_REJECTED', detail: 'No.', details: {} }))
}

const open = (tokenDelivery: Delivery, settings: object = {}, rest: object = {}) =>
  start({ settings: { tokenDelivery, ...(tokenDelivery === 'session' ? {} : grace), ...settings }, host: shop, ...rest })

async function signIn({ auth }: Visitor, { email }: { email: string }) {
  return auth.logIn({ email, password })
}

/** `passed` waits for `open()`. */
function gate() {
  let open = () => {}
  const passed = new Promise<undefined>((resolve) => {
    open = () => resolve(undefined)
  })
  return { open, passed }
}

function statesOf(auth: AuthClient): string[] {
  const seen: string[] = []
  auth.subscribe(({ status, user }) => seen.push(user ? user.email : status))
  return seen
}

describe.each(deliveries)('the client in delivery %s', (delivery) => {
  test('signs in, reads, writes, refreshes once after a 401 and repeats, and signs out', async () => {
    const host = await open(delivery, { sessionTtlSeconds: 7_200 })
    const person = await member(host)
    const visitor = await visit(host, { delivery })
    const states = statesOf(visitor.auth)
    const result = await signIn(visitor, person)

    expect(result).toEqual({ kind: 'session', user: await visitor.auth.account.get() })
    expect(visitor.seen()).toEqual([
      ...(delivery === 'bearer' ? [] : [`GET ${base(delivery)}/whoami 200`]),
      `POST ${base(delivery)}/login 200`,
      `GET ${base(delivery)}/whoami 200`,
      'GET /auth/me 200',
    ])
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(200)
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })).status).toBe(200)
    expect(orders.map(({ csrf }) => typeof csrf)).toEqual([delivery === 'bearer' ? 'undefined' : 'string'])
    visitor.seen()

    if (delivery !== 'session') {
      host.clock.advance(901)
      const answers = await Promise.all(
        [1, 2, 3].map(() => visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: new URLSearchParams({ a: '1' }) })),
      )
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
      const seen = visitor.seen()
      expect(seen.filter((line) => line.includes('refresh'))).toEqual([`POST ${base(delivery)}/refresh 200`])
      expect(seen.filter((line) => line === 'POST /api/orders 401')).toHaveLength(3)
      expect(orders.slice(1).map(({ body }) => body)).toEqual(['a=1', 'a=1', 'a=1'])
    }

    await visitor.auth.logOut()
    expect(visitor.seen()[0]).toBe(`POST ${base(delivery)}/logout 204`)
    expect(visitor.auth.state).toEqual({ status: 'signed-out', user: null })
    expect(states.filter((state, place) => state !== states[place - 1])).toEqual([
      ...(states[0] === 'loading' ? ['loading'] : []),
      'signed-out',
      person.email,
      'signed-out',
    ])
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(401)
    expect(visitor.seen().filter((line) => line.includes('refresh'))).toEqual([])
  })

  test('a person deletes the account and is signed out; a right login tells the way back', async () => {
    const host = await open(delivery, { accountDeletion: 'soft' })
    const person = await member(host)
    const { auth } = await visit(host, { delivery })
    await signIn({ auth } as Visitor, person)
    const exported = await auth.account.export()
    expect(exported.user.email).toBe(person.email)
    await auth.account.delete()
    expect(auth.state).toEqual({ status: 'signed-out', user: null })
    const refused = await signIn({ auth } as Visitor, person).catch((error: unknown) => error as AuthClientError)
    expect(refused).toMatchObject({ code: 'DELETION_PENDING' })
    const { restore_token: token } = (refused as AuthClientError).details as { restore_token: string }
    await auth.account.restore({ token })
    expect((await signIn({ auth } as Visitor, person)).kind).toBe('session')
  })

  test('without the option delivery, finds out itself', async () => {
    const host = await open(delivery)
    const person = await member(host)
    const visitor = await visit(host)
    await signIn(visitor, person)
    expect(visitor.auth.state.user?.email).toBe(person.email)
    expect(visitor.seen().filter((line) => line.includes('/login'))).toEqual(['POST /auth/login 200']) // without a page, both means bodies
    expect(await visitor.auth.sessions.list()).toHaveLength(1)
  })

  test('a wrong password is sent once and refreshes nothing, and its error has every field', async () => {
    const host = await open(delivery)
    const person = await member(host)
    const visitor = await visit(host, { delivery })
    const failed = await visitor.auth.logIn({ email: person.email, password: 'wrong wrong wrong' }).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(AuthClientError)
    expect(failed).toBeInstanceOf(Error)
    expect(failed).toMatchObject({ status: 401, code: 'UNAUTHORIZED', detail: expect.any(String), details: {}, retryAfterSeconds: null })
    expect(visitor.seen().filter((line) => /login|refresh/.test(line))).toEqual([`POST ${base(delivery)}/login 401`])
    expect(visitor.auth.state.status).toBe('signed-out')
  })

  test('a lost answer to a login is sent once', async () => {
    const host = await open(delivery)
    const person = await member(host)
    const visitor = await visit(host, { delivery })
    visitor.meet((route) => (route.endsWith('/login') ? 'lost answer' : undefined))
    await expect(signIn(visitor, person)).rejects.toMatchObject({ status: 0, code: 'NETWORK_ERROR' })
    expect(visitor.seen().filter((line) => /login/.test(line))).toEqual([`POST ${base(delivery)}/login lost`])
  })

  test('a second factor is finished with the token that the client kept', async () => {
    const host = await open(delivery, mfaSettings)
    const person = await enrolled(host)
    const visitor = await visit(host, { delivery })
    const step = await signIn(visitor, person)
    expect(step).toEqual({ kind: 'second_factor', methods: ['otp'] })
    await expect(visitor.auth.secondFactor.verify({ code: '000000' })).rejects.toMatchObject({ code: 'MFA_CODE_INVALID' })
    const done = await visitor.auth.secondFactor.verify({ code: person.app.nextCode() })
    expect(done).toMatchObject({ kind: 'session', user: { email: person.email, mfa_enabled: true } })
    expect(JSON.stringify(step)).not.toContain('token')
  })

  test('signUp says that the mail must be opened', async () => {
    const host = await open(delivery)
    const visitor = await visit(host, { delivery })
    expect(await visitor.auth.signUp({ email: 'new@example.test', password })).toEqual({ kind: 'activation_required' })
  })

  test('a session that was revoked elsewhere signs out, and the first answer is the result', async () => {
    const host = await open(delivery)
    const person = await member(host)
    const visitor = await visit(host, { delivery })
    await signIn(visitor, person)
    await host.knex('auth_sessions').where({ user_id: person.userId }).update({ revoked_at: host.clock.now().getTime() })
    host.clock.advance(901)
    visitor.seen()
    const answer = await visitor.auth.fetch(`${visitor.origin}/api/orders`)
    expect([answer.status, visitor.auth.state.status]).toEqual([401, 'signed-out'])
    expect(visitor.seen().filter((line) => line === 'GET /api/orders 401')).toHaveLength(1)
  })

  test('a reauthentication makes the session fresh, once for all requests that wait', async () => {
    const host = await open(delivery, { freshSessionSeconds: 60, sessionTtlSeconds: 7_200 })
    const person = await member(host)
    const asked: (readonly string[])[] = []
    const visitor: Visitor = await visit(host, {
      delivery,
      onReauthenticate: async ({ methods }) => {
        asked.push(methods)
        const confirmed = await visitor.auth.reauthenticate({ password })
        return confirmed.kind === 'session'
      },
    })
    await signIn(visitor, person)
    host.clock.advance(120)
    const risky = () => visitor.auth.fetch(`${visitor.origin}/api/risky`, { method: 'POST' })
    expect((await Promise.all([risky(), risky()])).map(({ status }) => status)).toEqual([200, 200])
    expect(asked).toEqual([['password', 'email']])
  })
})

describe.each(['cookie', 'both', 'bearer'] as const)('refreshing in delivery %s', (delivery) => {
  const signedIn = async (settings: object = {}) => {
    const host = await open(delivery, settings)
    const person = await member(host)
    const visitor = await visit(host, { delivery })
    await signIn(visitor, person)
    host.clock.advance(901)
    visitor.seen()
    return { host, person, visitor, get: (path: string) => visitor.auth.fetch(visitor.origin + path) }
  }
  const refreshesOf = (lines: string[]) => lines.filter((line) => line.includes('/refresh'))

  test('an API that answers 401 to everything gets two refreshes at most for ten requests', async () => {
    const { visitor, get } = await signedIn()
    for (const path of ['/api/broken', '/api/broken', '/api/broken']) await get(path)
    await Promise.all(Array.from({ length: 7 }, () => get('/api/broken')))
    expect(refreshesOf(visitor.seen()).length).toBeLessThanOrEqual(2)
    expect(visitor.auth.state.status).toBe('signed-in')
  })

  test('an API that answers 401 after different times gets two refreshes at most, and each request is repeated once', async () => {
    const { visitor } = await signedIn()
    const sends: number[] = []
    visitor.meet(async (route) => {
      const number = Number(/broken-(\d)$/.exec(route)?.[1] ?? Number.NaN)
      if (Number.isNaN(number)) return undefined
      sends[number] = (sends[number] ?? 0) + 1
      const ms = sends[number] === 1 ? 10 + number * 60 : number > 0 ? 40 : 900 // the first repetition is slow
      await new Promise((resolve) => setTimeout(resolve, ms))
      return new Response('no', { status: 401 })
    })
    await Promise.all(Array.from({ length: 10 }, (_, number) => visitor.auth.fetch(`${visitor.origin}/api/broken-${number}`)))
    expect(refreshesOf(visitor.seen()).length).toBeLessThanOrEqual(2)
    expect(Math.max(...sends)).toBe(2)
  })

  test('a refresh that names another person leaves the first at once, and asks until it knows', async () => {
    const { host, visitor, get } = await signedIn()
    const other = await member(host)
    const seen = statesOf(visitor.auth)
    let lost = true
    visitor.meet((route) => {
      const answer = { user_id: other.userId, access_token: null, refresh_token: null }
      const tokens = delivery === 'bearer' ? { access_token: 'x', refresh_token: 'y' } : {}
      if (route.endsWith('/refresh')) return Response.json({ ...answer, ...tokens })
      if (!route.endsWith('/whoami')) return undefined
      if (lost) return 'lost'
      return Response.json({ user: { id: other.userId, email: other.email }, csrf_token: null, can_refresh: false, delivery })
    })
    await get('/api/orders')
    expect(seen.at(-1)).toBe('signed-out')
    lost = false
    await vi.waitFor(() => expect(seen.at(-1)).toBe(other.email), 3_000)
  })

  test('a 401 with another code of ours refreshes nothing', async () => {
    const { visitor, get } = await signedIn()
    expect((await get('/api/broken-envelope')).status).toBe(401)
    expect(visitor.seen()).toEqual(['GET /api/broken-envelope 401'])
  })

  test('a refresh whose answer is lost is sent once more, at once', async () => {
    const { visitor, get } = await signedIn()
    let times = 0
    visitor.meet((route) => (route.endsWith('/refresh') && times++ === 0 ? 'lost answer' : undefined))
    expect((await get('/api/orders')).status).toBe(200)
    expect(refreshesOf(visitor.seen())).toEqual([`POST ${base(delivery)}/refresh lost`, `POST ${base(delivery)}/refresh 200`])
  })

  test.each([
    ['429', () => new Response(null, { status: 429, headers: { 'Retry-After': '7' } })],
    ['503', () => new Response(null, { status: 503 })],
    ['a lost network', () => 'lost' as const],
  ])('%s signs nobody out', async (_name, fate) => {
    const { visitor, get, person } = await signedIn()
    visitor.meet((route) => (/refresh|whoami/.test(route) ? fate() : undefined))
    expect((await get('/api/orders')).status).toBe(401)
    expect(visitor.auth.state.user?.email).toBe(person.email)
    visitor.meet(() => undefined)
    expect((await get('/api/orders')).status).toBe(200)
  })

  test('a stream is sent once, and the session is refreshed all the same', async () => {
    const { host, visitor } = await signedIn()
    const body = new Blob(['tea']).stream()
    const init = { method: 'POST', body, duplex: 'half' } as RequestInit
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`, init)).status).toBe(401)
    const request = new Request(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })
    host.clock.advance(901)
    expect((await visitor.auth.fetch(request)).status).toBe(401)
    expect(orders).toEqual([])
  })

  test('an answer that comes after the logout brings nobody back', async () => {
    const { visitor, get } = await signedIn()
    let release = () => {}
    visitor.meet((route) => {
      if (!route.endsWith('/refresh')) return undefined
      return new Promise<undefined>((resolve) => {
        release = () => resolve(undefined)
      })
    })
    const waiting = get('/api/orders')
    await vi.waitFor(() => expect(visitor.seen()).toContain('GET /api/orders 401'))
    const out = visitor.auth.logOut()
    await vi.waitFor(() => expect(visitor.auth.state.status).toBe('signed-out'))
    release()
    await out
    expect((await waiting).status).toBe(401)
    expect(visitor.auth.state.status).toBe('signed-out')
    expect((await get('/api/orders')).status).toBe(401)
  })

  test('a request is repeated only for the same person', async () => {
    const { host, visitor, get } = await signedIn()
    const other = await member(host)
    const seen = statesOf(visitor.auth)
    const stolen = await visit(host, { delivery })
    await signIn(stolen, other)
    // The refresh answers for another person, as if she had signed in in another tab.
    visitor.meet((route) => {
      if (!route.endsWith('/refresh')) return undefined
      const { user_id } = { user_id: other.userId }
      const tokens = delivery === 'bearer' ? { access_token: 'x', refresh_token: 'y' } : { access_token: null, refresh_token: null }
      return Response.json({ user_id, ...tokens, mfa_required: false, mfa_token: null })
    })
    expect((await get('/api/orders')).status).toBe(401)
    expect(seen.at(-1)).toBe('signed-out')
    expect(visitor.seen().filter((line) => line.startsWith('GET /api/orders'))).toHaveLength(1)
  })
})

describe.each(cookieDeliveries)('CSRF tokens in delivery %s', (delivery) => {
  test('a token that the server refuses is replaced once, and the request repeated', async () => {
    const host = await open(delivery)
    const visitor = await visit(host, { delivery })
    await signIn(visitor, await member(host))
    const other = visitor.again()
    await signIn({ ...visitor, auth: other }, await member(host).then(async () => ({ email: visitor.auth.state.user?.email ?? '' })))
    visitor.seen()
    // The same person has signed in again: the token of the first client is of another session.
    const answer = await visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })
    expect(answer.status).toBe(200)
    expect(visitor.seen().filter((line) => line.startsWith('POST /api/orders'))).toEqual(['POST /api/orders 403', 'POST /api/orders 200'])
  })

  test("Ada's form in one tab is not sent as Bob, who signed in in another", async () => {
    const host = await open(delivery)
    const [ada, bob] = [await member(host), await member(host)]
    const visitor = await visit(host, { delivery })
    await signIn(visitor, ada)
    const seen = statesOf(visitor.auth)
    await signIn({ ...visitor, auth: visitor.again() }, bob)
    const answer = await visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })
    expect([answer.status, orders]).toEqual([403, []])
    expect(seen).toEqual([ada.email, bob.email])
  })

  test("Ada's new password is not sent as Bob, whom the client finds when it looks before the request", async () => {
    const host = await open(delivery)
    const [ada, bob] = [await member(host), await member(host)]
    const visitor = await visit(host, { delivery })
    await signIn(visitor, ada)
    await signIn({ ...visitor, auth: visitor.again() }, bob)
    visitor.seen()
    const later = Date.now() + 61_000
    vi.spyOn(Date, 'now').mockReturnValue(later)
    const change = visitor.auth.password.change({ current_password: password, new_password: 'another long password 7' })
    await expect(change).rejects.toMatchObject({ status: 0, code: 'USER_CHANGED' })
    vi.restoreAllMocks()
    expect([visitor.seen(), visitor.auth.state.user?.email]).toEqual([[`GET ${base(delivery)}/whoami 200`], bob.email])
  })
})

test('delivery bearer: the answer to a login that comes after a logout brings nobody back', async () => {
  const host = await open('bearer')
  const person = await member(host)
  const visitor = await visit(host, { delivery: 'bearer' })
  await signIn(visitor, person)
  let release = () => {}
  visitor.meet((route) => {
    if (!route.endsWith('/login')) return undefined
    return new Promise<undefined>((resolve) => {
      release = () => resolve(undefined)
    })
  })
  const late = signIn(visitor, person)
  await new Promise((resolve) => setTimeout(resolve, 20))
  await visitor.auth.logOut()
  release()
  expect(await late).toEqual({ kind: 'session', user: null })
  expect([visitor.auth.state.status, (await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status]).toEqual(['signed-out', 401])
})

describe('origins', () => {
  test('another origin gets neither token nor CSRF header, and its answers ask for nothing', async () => {
    for (const delivery of ['cookie', 'bearer'] as const) {
      const host = await open(delivery)
      const foreign: Record<string, unknown>[] = []
      const stranger = await visit(
        await start({
          settings: { tokenDelivery: 'bearer' },
          host: (app) =>
            void app.use('/take', (req, res) => {
              foreign.push(req.headers)
              const code = req.method === 'GET' ? 'UNAUTHORIZED' : 'REAUTHENTICATION_REQUIRED'
              res.status(req.method === 'GET' ? 401 : 403).json({ code, detail: '', details: { methods: ['password'] } })
            }),
        }),
      )
      const asked = vi.fn(() => true)
      const visitor = await visit(host, { delivery, onReauthenticate: asked })
      host.app.use('/api/redirect', (_req, res) => void res.redirect(307, `${stranger.origin}/take`))
      await signIn(visitor, await member(host))
      visitor.seen()
      for (const url of [`${stranger.origin}/take`, `${visitor.origin}/api/redirect`])
        for (const method of ['GET', 'POST']) await visitor.auth.fetch(url, { method })
      expect(foreign.filter((headers) => 'authorization' in headers || 'x-csrf-token' in headers)).toEqual([])
      expect(foreign.length).toBeGreaterThanOrEqual(3)
      expect(asked).not.toHaveBeenCalled()
      expect(visitor.seen().filter((line) => /refresh|whoami/.test(line))).toEqual([])
    }
  })

  test('an origin of apiOrigins gets the token', async () => {
    const host = await open('bearer')
    const api = await visit(host)
    const visitor = await visit(host, { delivery: 'bearer', apiOrigins: [api.origin] })
    await signIn(visitor, await member(host))
    expect((await visitor.auth.fetch(`${api.origin}/api/orders`)).status).toBe(200)
    expect((await visitor.auth.fetch(`${api.origin}/api/orders`, { headers: { Authorization: 'Bearer mine' } })).status).toBe(401)
    expect(visitor.seen().filter((line) => line.includes('refresh'))).toEqual([])
  })

  test.each([
    'https://api.example.com/',
    'https://api.example.com/v1',
    'http://api.example.com',
    'https://*.example.com',
    'api.example.com',
    'null',
    '',
  ])('apiOrigins refuses %j', (origin) => {
    expect(() => createAuthClient({ baseUrl: '/auth', apiOrigins: [origin] })).toThrow(/apiOrigins/)
  })

  test('a relative baseUrl without a page is refused at the first request', async () => {
    const auth = createAuthClient({ baseUrl: '/auth' })
    const stop = auth.subscribe(() => {})
    await expect(auth.account.get()).rejects.toThrow(/baseUrl/)
    await expect(auth.account.get()).rejects.toBeInstanceOf(TypeError)
    await expect(auth.fetch('https://app.example.com/api')).rejects.toThrow(/baseUrl/)
    stop()
  })
})

describe('a part of a path', () => {
  const odd = ['.', '..', '']

  test.each(odd)('%j is refused, so it cannot make the path that of another route, and nothing is sent', async (part) => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    await expect(visitor.auth.sessions.revoke(part)).rejects.toThrow(TypeError)
    await expect(visitor.auth.passkeys.remove(part)).rejects.toThrow(TypeError)
    await expect(visitor.auth.providers.link(part)).rejects.toThrow(TypeError)
    await expect(visitor.auth.tasks.complete(part)).rejects.toThrow(TypeError)
    expect(() => visitor.auth.providers.logIn(part)).toThrow(TypeError)
    expect(visitor.seen()).toEqual(['GET /auth/whoami 200'])
  })

  test.each(['../me', '%2e%2e', '..%2fme', 'a/b', '?x=1', '#x', '...', '\\..\\me'])('%j stays one part', async (part) => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    await expect(visitor.auth.sessions.revoke(part)).rejects.toMatchObject({ status: 401 })
    expect(visitor.seen()[1]).toMatch(/^DELETE \/auth\/sessions\/[^/?#]+ 401$/)
  })
})

describe('a login by a provider', () => {
  test('leads to the provider, with what the app asks for and no bare question mark', async () => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    const left: string[] = []
    vi.stubGlobal('location', { assign: (url: string) => left.push(url) })
    try {
      visitor.auth.providers.logIn('corp')
      visitor.auth.providers.logIn('corp', { returnTo: '/orders?' })
    } finally {
      vi.unstubAllGlobals()
    }
    expect(left.map((url) => url.replace(/^https?:\/\/[^/]+/, ''))).toEqual([
      '/auth/oauth/corp/login',
      '/auth/oauth/corp/login?return_to=%2Forders%3F',
    ])
  })
})

describe('answers of other hands', () => {
  test('a part for passkeys that does not load makes no unhandled rejection of a login that tells authenticators', async () => {
    const host = await open('bearer')
    const visitor = await visit(host, { delivery: 'bearer' })
    const unhandled = vi.fn()
    const others = process.listeners('unhandledRejection')
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', unhandled)
    vi.stubGlobal('PublicKeyCredential', { signalCurrentUserDetails() {} })
    vi.doMock('../../src/client/passkeys', () => {
      throw new Error('offline')
    })
    await signIn(visitor, await member(host))
    await new Promise((resolve) => setTimeout(resolve, 100))
    vi.doUnmock('../../src/client/passkeys')
    vi.unstubAllGlobals()
    process.removeAllListeners('unhandledRejection')
    for (const one of others) process.on('unhandledRejection', one)
    expect(unhandled).not.toHaveBeenCalled()
  })

  test('details that are null, and a login that is answered by a page', async () => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    visitor.meet((route) => {
      if (route.endsWith('/api/orders')) return Response.json({ code: 'CLOSED', detail: 'Closed.', details: null }, { status: 403 })
      return route.endsWith('/whoami') ? undefined : new Response('<p>Welcome to our network', { status: 200 })
    })
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(403)
    const failed = await visitor.auth.logIn({ email: 'ada@example.test', password }).catch((error: unknown) => error)
    expect(failed).toBeInstanceOf(AuthClientError)
    expect(failed).toMatchObject({ status: 200, code: null, details: {} })
    expect(visitor.auth.state.status).toBe('signed-out')
  })

  test.each(['-1', '0', '0.001', '3000000'])('Retry-After %s makes no storm of requests', async (seconds) => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    visitor.meet(() => new Response(null, { status: 503, headers: { 'Retry-After': seconds } }))
    statesOf(visitor.auth)
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(visitor.requests).toHaveLength(1)
  })
})

describe('the state', () => {
  test('is the same frozen object until it changes, and a listener that throws stops nobody', async () => {
    const host = await open('cookie')
    const visitor = await visit(host, { delivery: 'cookie' })
    const reported = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { auth } = visitor
    const first = auth.state
    expect([first, Object.isFrozen(first)]).toEqual([{ status: 'loading', user: null }, true])
    const seen: AuthState[] = []
    auth.subscribe(() => {
      throw new Error('a fault of the host')
    })
    const stop = auth.subscribe((state) => seen.push(state))
    await signIn(visitor, await member(host))
    expect(seen.map(({ status }) => status)).toEqual(['loading', 'signed-out', 'signed-in'])
    expect(auth.state).toBe(seen.at(-1))
    await auth.account.update({ name: null })
    expect(Object.isFrozen(auth.state)).toBe(true)
    stop()
    await auth.logOut()
    expect(seen.at(-1)?.status).toBe('signed-in')
    expect(reported).toHaveBeenCalled()
    reported.mockRestore()
  })

  test('a listener that an earlier one stopped hears no change', async () => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    let stop = () => {}
    visitor.auth.subscribe(({ status }) => status === 'signed-out' && stop())
    const heard: string[] = []
    stop = visitor.auth.subscribe(({ status }) => heard.push(status))
    await vi.waitFor(() => expect(visitor.auth.state.status).toBe('signed-out'))
    expect(heard).toEqual(['loading'])
  })

  test('making a client sends nothing', async () => {
    const host = await open('cookie')
    const visitor = await visit(host)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect([visitor.requests, visitor.auth.state.status]).toEqual([[], 'loading'])
  })

  test('stays loading while the router does not answer, and asks again after 1, 2, 4 seconds or Retry-After', async () => {
    const host = await open('cookie')
    const person = await member(host)
    const first = await visit(host, { delivery: 'cookie' })
    await signIn(first, person)
    first.seen()
    const fates: Response[] = [new Response(null, { status: 503 }), new Response(null, { status: 429, headers: { 'Retry-After': '7' } })]
    first.meet(() => fates.shift() ?? undefined)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const auth = first.again()
    const seen = statesOf(auth)
    await vi.waitFor(() => expect(first.requests).toHaveLength(1))
    vi.advanceTimersByTime(1_000)
    await vi.waitFor(() => expect(first.requests).toHaveLength(2))
    await vi.advanceTimersByTimeAsync(6_900)
    expect([first.requests.length, seen]).toEqual([2, ['loading']])
    vi.advanceTimersByTime(200)
    vi.useRealTimers()
    await vi.waitFor(() => expect(seen).toEqual(['loading', person.email]))
  })

  test.each(['503', 'a lost network'])(
    'dispose() ends the timer of the next attempt after %s, and nothing is asked later',
    async (fate) => {
      const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
      visitor.meet(() => (fate === '503' ? new Response(null, { status: 503, headers: { 'Retry-After': '3000' } }) : 'lost'))
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      statesOf(visitor.auth)
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
      visitor.auth.dispose()
      expect(vi.getTimerCount()).toBe(0)
      await vi.advanceTimersByTimeAsync(4_000_000)
      expect([visitor.requests.length, vi.getTimerCount()]).toEqual([1, 0])
    },
  )

  test('dispose() while a request is under way begins no timer', async () => {
    const visitor = await visit(await open('cookie'), { delivery: 'cookie' })
    let release = () => {}
    visitor.meet(
      () =>
        new Promise((resolve) => {
          release = () => resolve(new Response(null, { status: 503 }))
        }),
    )
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    statesOf(visitor.auth)
    await vi.waitFor(() => expect(release.toString()).toContain('503'))
    visitor.auth.dispose()
    release()
    await vi.waitFor(() => expect(visitor.requests).toEqual(['GET /auth/whoami 503']))
    await vi.advanceTimersByTimeAsync(100_000)
    expect([visitor.requests.length, vi.getTimerCount()]).toEqual([1, 0])
  })

  test('a disposed client begins no timer: while its storage is read, and at a later call', async () => {
    let read = (_text: string) => {}
    const get = () =>
      new Promise<string>((resolve) => {
        read = resolve
      })
    const storage = { get, set: () => {}, remove: () => {} }
    const visitor = await visit(await open('bearer'), { delivery: 'bearer', storage })
    visitor.meet(() => 'lost')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    statesOf(visitor.auth)
    visitor.auth.dispose()
    read(JSON.stringify({ access_token: 'a', refresh_token: 'b' }))
    await vi.waitFor(() => expect(visitor.requests).toEqual(['GET /auth/whoami lost']))
    const later = visitor.auth.account.get().catch((error: unknown) => error)
    expect(await later).toMatchObject({ code: 'NETWORK_ERROR' })
    await vi.advanceTimersByTimeAsync(100_000)
    expect([visitor.requests.filter((line) => line.includes('whoami')).length, vi.getTimerCount()]).toEqual([1, 0])
  })

  test('the client makes one series of attempts, whatever else fails meanwhile', async () => {
    const visitor = await visit(await open('both'), { delivery: 'both' })
    visitor.meet(() => 'lost')
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    statesOf(visitor.auth)
    await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1))
    await expect(visitor.auth.logOut()).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
    void visitor.auth.account.get().catch(() => {})
    await vi.advanceTimersByTimeAsync(7_500) // after 1, 2 and 4 seconds
    expect(visitor.requests.filter((line) => line.includes('whoami'))).toHaveLength(4)
  })

  test('an expired access cookie is refreshed at the start: whoami, refresh, whoami', async () => {
    const host = await open('both')
    const visitor = await visit(host, { delivery: 'both' })
    const person = await member(host)
    await signIn(visitor, person)
    host.clock.advance(901)
    visitor.seen()
    const auth = visitor.again()
    const seen = statesOf(auth)
    await vi.waitFor(() => expect(seen).toEqual(['loading', person.email]))
    expect(visitor.seen()).toEqual(['GET /auth/cookie/whoami 200', 'POST /auth/cookie/refresh 200', 'GET /auth/cookie/whoami 200'])
  })

  test('two clients in one process do not learn of each other', async () => {
    const host = await open('cookie')
    const [one, other] = [await visit(host, { delivery: 'cookie' }), await visit(host, { delivery: 'cookie' })]
    statesOf(other.auth)
    await vi.waitFor(() => expect(other.auth.state.status).toBe('signed-out'))
    other.seen()
    await signIn(one, await member(host))
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect([other.seen(), other.auth.state.status]).toEqual([[], 'signed-out'])
  })
})

describe('storage in delivery bearer', () => {
  const memory = () => {
    const kept = new Map<string, string>()
    const storage = {
      get: async (key: string) => kept.get(key) ?? null,
      set: async (key: string, value: string) => void kept.set(key, value),
      remove: async (key: string) => void kept.delete(key),
    }
    return { kept, storage }
  }

  test('keeps the session over a reload in one key, and a logout removes it', async () => {
    const host = await open('bearer')
    const { kept, storage } = memory()
    const visitor = await visit(host, { delivery: 'bearer', storage })
    const person = await member(host)
    await signIn(visitor, person)
    expect([...kept.keys()]).toEqual([`doorward:${visitor.origin}/auth`])
    host.clock.advance(901)
    visitor.seen()
    const reloaded = visitor.again()
    expect((await reloaded.account.get()).email).toBe(person.email)
    expect(visitor.seen()).toEqual(['GET /auth/whoami 200', 'POST /auth/refresh 200', 'GET /auth/whoami 200', 'GET /auth/me 200'])

    // The first tab has the old refresh token; the storage has the new one.
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(200)
    expect(visitor.seen().filter((line) => line.includes('refresh'))).toEqual([])
    await reloaded.logOut()
    expect(kept.size).toBe(0)
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(200) // its own token lives on
    host.clock.advance(901)
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(401)
    expect(visitor.auth.state.status).toBe('signed-out')
  })

  test('a storage that fails at a reading keeps the tokens, and one that was emptied drops them', async () => {
    const host = await open('bearer')
    const { kept, storage } = memory()
    let fails = false
    const get = async (key: string) => {
      if (fails) throw new Error('locked')
      return storage.get(key)
    }
    const visitor = await visit(host, { delivery: 'bearer', storage: { ...storage, get } })
    await signIn(visitor, await member(host))
    host.clock.advance(901)
    fails = true
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(200)
    fails = false
    kept.clear()
    host.clock.advance(901)
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(401)
    visitor.seen()
    await visitor.auth.fetch(`${visitor.origin}/api/orders`)
    expect([visitor.seen(), visitor.auth.state.status]).toEqual([['GET /api/orders 401'], 'signed-out'])
  })

  test('a storage that takes nothing does not undo a login, and the session is refreshed all the same', async () => {
    const host = await open('bearer')
    const reported = vi.spyOn(console, 'error').mockImplementation(() => {})
    const set = () => {
      throw new Error('full')
    }
    const visitor = await visit(host, { delivery: 'bearer', storage: { ...memory().storage, set } })
    const person = await member(host)
    expect(await signIn(visitor, person)).toMatchObject({ kind: 'session', user: { email: person.email } })
    expect(reported).toHaveBeenCalledWith(new Error('full'))
    host.clock.advance(901)
    expect((await visitor.auth.fetch(`${visitor.origin}/api/orders`)).status).toBe(200)
    reported.mockRestore()
  })

  test('a login while a refresh for the person before is under way: the late tokens are dropped, and her request is not sent again', async () => {
    const host = await open('bearer')
    const [ada, bob] = [await member(host), await member(host)]
    const { storage } = memory()
    let written: Promise<unknown> = Promise.resolve()
    const set = async (key: string, value: string) => {
      await written
      await storage.set(key, value)
    }
    const visitor = await visit(host, { delivery: 'bearer', storage: { ...storage, set } })
    await signIn(visitor, ada)
    host.clock.advance(901)
    const [refresh, slowly] = [gate(), gate()]
    visitor.meet((route) => (route.endsWith('/refresh') ? refresh.passed : undefined))
    const waiting = visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })
    await vi.waitFor(() => expect(visitor.requests).toContain('POST /api/orders 401'))
    written = slowly.passed
    const login = signIn(visitor, bob)
    await vi.waitFor(() => expect(visitor.requests.filter((line) => line === 'POST /auth/login 200')).toHaveLength(2))
    await new Promise((resolve) => setTimeout(resolve, 50)) // until the client has read the answer
    refresh.open()
    expect([(await waiting).status, orders]).toEqual([401, []])
    slowly.open()
    expect(await login).toMatchObject({ kind: 'session', user: { email: bob.email } })
    expect((await visitor.auth.account.get()).email).toBe(bob.email)
  })

  test("Ada's form is not sent with the tokens of Bob, of whom whoami has not told yet", async () => {
    const host = await open('bearer')
    const [ada, bob] = [await member(host), await member(host)]
    const visitor = await visit(host, { delivery: 'bearer', storage: memory().storage })
    await signIn(visitor, ada)
    host.clock.advance(901)
    await signIn({ ...visitor, auth: visitor.again() }, bob)
    visitor.meet((route) => (route.endsWith('/whoami') ? 'lost' : undefined))
    const post = () => visitor.auth.fetch(`${visitor.origin}/api/orders`, { method: 'POST', body: 'tea' })
    expect((await post()).status).toBe(401) // by now the client has read the storage
    await expect(post()).rejects.toMatchObject({ code: 'USER_CHANGED' })
    expect(orders).toEqual([])
    visitor.meet(() => undefined)
    await vi.waitFor(() => expect(visitor.auth.state.user?.email).toBe(bob.email), 3_000)
    expect((await post()).status).toBe(200)
  })

  test.each(['{"x":1}', 'null', '[]', '7', '{'])('%s in the storage is no session', async (text) => {
    const host = await open('bearer')
    const visitor = await visit(host, { delivery: 'bearer', storage: { ...memory().storage, get: () => text } })
    const seen = statesOf(visitor.auth)
    await vi.waitFor(() => expect(seen.at(-1)).toBe('signed-out'))
    expect(visitor.seen()).toEqual([])
  })

  test('without it a reload signs out, without a request', async () => {
    const host = await open('bearer')
    const visitor = await visit(host, { delivery: 'bearer' })
    await signIn(visitor, await member(host))
    visitor.seen()
    expect(statesOf(visitor.again())).toEqual(['signed-out'])
    expect(visitor.seen()).toEqual([])
  })
})
