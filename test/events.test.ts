import { describe, expect, test } from 'vitest'
import { type AuthEventName, createKnexStore } from '../src'
import { createEvents } from '../src/core/events'
import { describeError } from '../src/core/logger'
import { type Mounted, signIn, startLogin } from './support/app'
import { appPerTest } from './support/app-per-test'
import { faultyStore } from './support/faulty-store'
import { logTap } from './support/log-tap'

const start = appPerTest()
/** Listeners run on a promise chain of their own: after the operation, before the next timer. */
const settled = () => new Promise((resolve) => setImmediate(resolve))
const names: AuthEventName[] = [
  'signup',
  'login',
  'login.failed',
  'challenge',
  'logout',
  'refresh.reused',
  'identity.linked',
  'identity.unlinked',
  'throttled',
  'provider.failed',
]

/** Every event from now on, in order. */
function listen({ auth }: Mounted): [AuthEventName, object][] {
  const heard: [AuthEventName, object][] = []
  for (const name of names) auth.events.on(name, (payload) => heard.push([name, payload]))
  return heard
}

describe('what is told', () => {
  test('R-142 a first login, a later one, a refresh that is reused, an unlink, a logout', async () => {
    const mounted = await start()
    const heard = listen(mounted)
    const browser = mounted.browser()

    const { body } = await signIn(mounted, browser)
    const again = await signIn(mounted, browser)
    const next = await browser.post('/auth/refresh').send({ refresh_token: body.refresh_token })
    await browser.post('/auth/refresh').send({ refresh_token: body.refresh_token })
    await browser.post('/auth/refresh').send({ refresh_token: next.body.refresh_token })
    await browser.post('/auth/oauth/accounts/unlink').set('Authorization', `Bearer ${again.body.access_token}`).send({ provider: 'corp' })
    await browser.post('/auth/logout').send({ refresh_token: again.body.refresh_token, all_sessions: true })
    await browser.post('/auth/logout').send({ refresh_token: 'unknown' })
    await settled()

    const userId = body.user_id as string
    expect(heard).toEqual([
      ['signup', { userId, by: 'ext', provider: 'corp' }],
      ['identity.linked', { userId, provider: 'corp' }],
      ['login', { userId, amr: ['ext'], provider: 'corp' }],
      ['login', { userId, amr: ['ext'], provider: 'corp' }],
      ['refresh.reused', { userId, familyId: expect.any(String) }],
      ['identity.unlinked', { userId, provider: 'corp' }],
      ['logout', { userId, allSessions: true }],
    ])
  })

  test('R-142 a provider that fails, and a client past its budget', async () => {
    const mounted = await start({ options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } } })
    const heard = listen(mounted)
    mounted.provider.on('token', (_request, response) => void response.writeHead(400).end('{"error":"invalid_grant"}'))

    expect((await signIn(mounted)).status).toBe(502)
    expect((await mounted.browser().get('/auth/oauth/corp/callback')).status).toBe(429)
    await settled()

    expect(heard).toContainEqual(['provider.failed', { provider: 'corp', code: 'OAUTH_ERROR', status: 400 }])
    expect(heard).toContainEqual([
      'throttled',
      { code: 'TOO_MANY_REQUESTS', route: 'oauth_callback', keyDigest: expect.any(String), retryAfterSeconds: 60 },
    ])
  })

  test('R-142 a login that does not happen, with the code of the refusal', async () => {
    const mounted = await start({ settings: { oauthAllowAccountCreation: false } })
    const heard = listen(mounted)
    const browser = mounted.browser()
    await startLogin(mounted, browser)

    await browser.get('/auth/oauth/corp/callback').query({ error: 'access_denied' })
    await browser.get('/auth/oauth/corp/callback').query({ code: 'a', state: 'unknown' })
    expect((await signIn(mounted)).status).toBe(403)
    await browser.get('/auth/oauth/nobody/callback').query({ code: 'a', state: 'unknown' })
    await settled()

    const reasons = ['OAUTH_PROVIDER_DENIED', 'OAUTH_STATE_MISMATCH', 'OAUTH_REGISTRATION_DISABLED']
    const unknown = { userId: null, clientKey: '127.0.0.1' }
    const addressDigests = [null, null, expect.stringMatching(/^[\w-]{43}$/)] // the provider named one before the third refusal
    expect(heard).toEqual(
      reasons.map((reason, index) => ['login.failed', { reason, provider: 'corp', ...unknown, addressDigest: addressDigests[index] }]),
    )
  })

  test('R-142 no payload holds an address, a token or a name', async () => {
    const mounted = await start()
    const heard = listen(mounted)
    const { body } = await signIn(mounted)
    await mounted.browser().post('/auth/logout').send({ refresh_token: body.refresh_token })
    await settled()

    expect(heard.length).toBeGreaterThan(3)
    const text = JSON.stringify(heard)
    for (const secret of ['ana@example.com', 'Ana Souza', 'subject-1', body.access_token, body.refresh_token])
      expect(text).not.toContain(secret)
  })
})

describe('when it is told', () => {
  test('after the commit: what a listener is told about is in the database already', async () => {
    const mounted = await start()
    const seen: unknown[] = []
    // The one connection of the pool belongs to the unit until it has ended: a listener inside it could not ask.
    mounted.auth.events.on('signup', async ({ userId }) => seen.push(await mounted.knex('auth_users').where({ id: userId }).first('email')))
    mounted.auth.events.on('login', async () => seen.push(await mounted.knex('auth_sessions').count({ count: '*' }).first()))

    await signIn(mounted)
    await settled()

    expect(seen).toEqual(expect.arrayContaining([{ email: 'ana@example.com' }, { count: 1 }]))
  })

  test('not at all when the unit was rolled back', async () => {
    const mounted = await start()
    const faulty = faultyStore(createKnexStore({ knex: mounted.knex }))
    const broken = await start({ options: { store: faulty.store } })
    const heard = listen(broken)
    faulty.break('sessions.insertWithin', () => Promise.reject(new Error('down')))

    expect((await signIn(broken)).status).toBe(500)
    await settled()

    expect(heard).toEqual([])
    expect(await mounted.knex('auth_users')).toEqual([])
  })
})

describe('a listener', () => {
  test.each([
    [
      'throws',
      () => {
        throw new Error('canary')
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined
      },
    ],
    ['rejects', () => Promise.reject(new Error('canary'))],
    ['rejects with a text', () => Promise.reject('canary')],
    ['never settles', () => new Promise(() => undefined)],
  ])('that %s changes nothing, keeps no other from being told, and is logged without its message', async (how, listener) => {
    const mounted = await start()
    const told: string[] = []
    mounted.auth.events.on('login', listener)
    mounted.auth.events.on('login', () => told.push('second'))

    const response = await signIn(mounted)
    await settled()

    expect(response.status).toBe(200)
    expect(told).toEqual(['second'])
    const logged = mounted.logs.entries.filter((entry) => entry.level === 'error')
    expect(logged).toEqual(
      how === 'never settles'
        ? []
        : [{ level: 'error', message: 'doorward: an event listener failed', fields: { event: 'login', error: expect.any(Object) } }],
    )
    expect(mounted.logs.text()).not.toContain('canary')
  })

  test('is called for its own event only, and no more once off() was called', () => {
    const events = createEvents(logTap())
    const heard: string[] = []
    const off = events.on('logout', ({ userId }) => heard.push(userId))
    events.on('login', () => heard.push('login'))

    events.emit('logout', { userId: 'one', allSessions: false })
    return settled().then(async () => {
      off()
      off()
      events.emit('logout', { userId: 'two', allSessions: false })
      await settled()
      expect(heard).toEqual(['one'])
    })
  })

  test('does not hold the answer up', async () => {
    const mounted = await start()
    let release: () => void = () => undefined
    const order: string[] = []
    mounted.auth.events.on('login', () =>
      new Promise<void>((resolve) => {
        release = resolve
      }).then(() => order.push('listener')),
    )
    const browser = mounted.browser()
    const { callbackQuery } = await startLogin(mounted, browser)

    const response = await browser.get('/auth/oauth/corp/callback').query(callbackQuery)
    order.push('answer')
    release()
    await settled()

    expect(response.status).toBe(200)
    expect(order).toEqual(['answer', 'listener'])
  })
})

describe('R-143 what a log says of an unknown error', () => {
  test('R-143 its kind and where it happened: lines in its message that look like frames are not believed', () => {
    const error = Object.assign(new TypeError('first line\n    at canary (secret:1:1)\n    at canary'), {
      code: 'ECONN\n canary',
      sql: 'canary',
    })

    const said = describeError(error)

    expect(said).toEqual({ name: 'TypeError', code: null, at: expect.arrayContaining([expect.stringContaining('events.test.ts')]) })
    expect(JSON.stringify(said)).not.toContain('canary')
  })

  test('R-143 names and codes only where they are identifiers', () => {
    const named = (name: unknown, code: unknown) => Object.assign(new Error('x'), { name, code })

    expect(describeError(named('AbortError', 'ECONNREFUSED'))).toMatchObject({ name: 'AbortError', code: 'ECONNREFUSED' })
    expect(describeError(named('\u001b[31mred', 'a b'))).toMatchObject({ name: 'Error', code: null })
    expect(describeError(named('x'.repeat(65), 42))).toMatchObject({ name: 'Error', code: null })
    expect(describeError(Object.assign(new Error('x'), { stack: 'canary\n    at canary', message: 'other' })).at).toEqual([])
    for (const thrown of [undefined, null, 'canary', 42, { message: 'canary' }])
      expect(describeError(thrown)).toEqual({ name: typeof thrown, code: null, at: [] })
  })
})

describe('a logger that fails', () => {
  test('changes no answer and ends no process', async () => {
    const broken = () => {
      throw new Error('the log is full')
    }
    const mounted = await start({ options: { logger: { info: broken, warn: broken, error: broken } } })
    mounted.auth.events.on('login', () => Promise.reject(new Error('listener')))
    mounted.provider.on('token', (_request, response) => void response.writeHead(400).end('{}'))
    expect((await signIn(mounted)).status).toBe(502)
    mounted.provider.on('token', null)

    expect((await signIn(mounted)).status).toBe(200)
    await settled()
  })
})
