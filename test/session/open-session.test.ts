import express from 'express'
import { describe, expect, test } from 'vitest'
import { errorHandler, type OpenSessionOptions, secondFactorTask, task } from '../../src'
import { AccountInactiveError, NotFoundError } from '../../src/core/errors'
import { approving, putOnList } from '../approval/people'
import { amrOf, bearerOf, type LocalHost, onLocal, post, userOf } from '../local/people'
import { person, throughFactor } from '../login-tasks/people'
import { enrolled, mfaSettings, verify } from '../mfa/people'
import type { Browser } from '../support/app'
import { databases } from '../support/databases'

const opens = (host: LocalHost, userId: string, options?: OpenSessionOptions) => host.auth.service.openSession(userId, options)
const rows = (host: LocalHost, userId: string) => host.knex('auth_sessions').where({ user_id: userId }).select()

function told(host: LocalHost): unknown[][] {
  const events: unknown[][] = []
  for (const name of ['login', 'login.failed', 'challenge', 'session.revoked', 'throttled'] as const)
    host.auth.events.on(name, (payload) => events.push([name, payload]))
  return events
}

describe.each(await databases())('32.4 a session from code on $name', (database) => {
  const { start } = onLocal(database)

  test('service.openSession is a login: event, last login, fresh session, provider', async () => {
    const host = await start()
    const events = told(host)
    const { userId, email } = await person(host)
    host.clock.advance(60)
    const opened = await host.auth.service.openSession(userId, { provider: 'acme-saml', ip: '192.0.2.7', userAgent: 'A browser' })
    if (opened.kind !== 'session') throw new Error('a session')
    expect(amrOf(opened.accessToken)).toEqual(['ext'])
    expect(events).toEqual([['login', { userId, amr: ['ext'], provider: 'acme-saml' }]])
    expect((await userOf(host, email)).lastLoginAt).toEqual(host.clock.now())
    const [row] = await rows(host, userId)
    expect(row).toMatchObject({ amr: 'ext', provider: 'acme-saml', ip: '192.0.2.7', user_agent: 'A browser' })
    expect(row.authenticated_at).not.toBeNull()
    expect((await post(host, '/refresh', { refresh_token: opened.refreshToken })).status).toBe(200)
  })

  test('fresh: false stores no authenticated_at, and remember: false an ephemeral session', async () => {
    const host = await start({ host: (app, auth) => app.get('/keys', auth.guards.requireFresh(), (_req, res) => void res.json({})) })
    const { userId } = await person(host)
    const opened = await opens(host, userId, { fresh: false, remember: false, amr: ['pwd', 'email', 'pwd'] })
    if (opened.kind !== 'session') throw new Error('a session')
    expect(opened).toMatchObject({ amr: ['pwd', 'email'], isPersistent: false })
    const [row] = await rows(host, userId)
    expect([row.authenticated_at, Boolean(row.is_persistent)]).toEqual([null, false])
    const refused = await host
      .browser()
      .get('/keys')
      .set(bearerOf({ token: opened.accessToken }))
    expect(refused.body.code).toBe('REAUTHENTICATION_REQUIRED')
  })

  test('an active second factor is asked, also for a provider that is no linked identity', async () => {
    const host = await start({ settings: mfaSettings })
    const who = await enrolled(host)
    const challenge = await opens(host, who.userId, { provider: 'acme-saml', remember: false })
    if (challenge.kind !== 'challenge') throw new Error('a challenge')
    expect(challenge.amr).toEqual(['ext'])
    const done = await verify(host, challenge.mfaToken, who.app.nextCode())
    expect([done.status, amrOf(done.body.access_token)]).toEqual([200, ['ext', 'otp']])
    const stored = (await rows(host, who.userId)).find(({ provider }) => provider === 'acme-saml')
    expect([stored?.amr, Boolean(stored?.is_persistent)]).toEqual(['ext otp', false])
  })

  test('skipSecondFactor asks for none and adds nothing to amr, so requireMfa refuses; with otp in amr it passes', async () => {
    const host = await start({
      settings: mfaSettings,
      host: (app, auth) => app.get('/vault', auth.guards.requireAuth(), auth.guards.requireMfa(), (_req, res) => void res.json({})),
    })
    const who = await enrolled(host)
    const vault = async (options: OpenSessionOptions) => {
      const opened = await opens(host, who.userId, { skipSecondFactor: true, ...options })
      if (opened.kind !== 'session') throw new Error('a session')
      const { status, body } = await host
        .browser()
        .get('/vault')
        .set(bearerOf({ token: opened.accessToken }))
      return [opened.amr, status, body.code]
    }
    expect(await vault({})).toEqual([['ext'], 403, 'MFA_REQUIRED'])
    expect(await vault({ amr: ['ext', 'otp'] })).toEqual([['ext', 'otp'], 200, undefined])
  })

  test.each<[string, object]>([
    ['otp without skipSecondFactor', { amr: ['pwd', 'otp'] }],
    ['passkey without skipSecondFactor', { amr: ['passkey'] }],
    ['an empty amr', { amr: [] }],
    ['an unknown method', { amr: ['sms'] }],
    ['an amr that is no list', { amr: 'ext' }],
    ['a provider of 65 characters', { provider: 'p'.repeat(65) }],
    ['an empty provider', { provider: '' }],
    ['a fresh that is no boolean', { fresh: 'no' }],
    ['an option of another name', { skipSecondfactor: true }],
  ])('%s is a TypeError, and no session', async (_title, options) => {
    const host = await start()
    const { userId } = await person(host)
    await expect(opens(host, userId, options as OpenSessionOptions)).rejects.toThrow(TypeError)
    expect(await rows(host, userId)).toEqual([])
  })

  test('a provider of 64 characters fits', async () => {
    const host = await start()
    const { userId } = await person(host)
    await opens(host, userId, { provider: 'é'.repeat(64) })
    expect((await rows(host, userId))[0]?.provider).toBe('é'.repeat(64))
  })

  test('unknown accounts are a NotFoundError; deactivated and pending ones an AccountInactiveError', async () => {
    const host = await start()
    const events = told(host)
    await expect(opens(host, crypto.randomUUID())).rejects.toThrow(NotFoundError)
    await expect(opens(host, 'no id at all')).rejects.toThrow(NotFoundError)
    const banned = await person(host, { isActive: false, activatedAt: new Date(0) })
    const pending = await person(host, { isActive: false, activatedAt: null, emailVerifiedAt: null })
    for (const { userId } of [banned, pending]) await expect(opens(host, userId)).rejects.toThrow(AccountInactiveError)
    expect(events.map(([name, payload]) => [name, (payload as { reason: string }).reason])).toEqual([
      ['login.failed', 'ACCOUNT_INACTIVE'],
      ['login.failed', 'ACCOUNT_INACTIVE'],
    ])
    expect(await rows(host, banned.userId)).toEqual([])
  })

  test('a waiting account is refused, after its second factor, and nothing is written', async () => {
    const host = await start({ settings: { ...mfaSettings, ...approving } })
    const events = told(host)
    const who = await enrolled(host)
    const before = (await rows(host, who.userId)).length
    await putOnList(host, who)
    const lastLogin = (await userOf(host, who.email)).lastLoginAt
    host.clock.advance(60)
    events.splice(0)
    const challenge = await opens(host, who.userId)
    if (challenge.kind !== 'challenge') throw new Error('a challenge')
    expect((await verify(host, challenge.mfaToken, who.app.nextCode())).body.code).toBe('APPROVAL_PENDING')
    const refusal = await opens(host, who.userId, { skipSecondFactor: true }).catch((error) => error)
    expect([refusal.status, refusal.code]).toEqual([403, 'APPROVAL_PENDING'])
    expect(
      events.filter(([name]) => name !== 'challenge').map(([name, payload]) => [name, (payload as { reason: string }).reason]),
    ).toEqual([
      ['login.failed', 'APPROVAL_PENDING'],
      ['login.failed', 'APPROVAL_PENDING'],
    ])
    expect([(await rows(host, who.userId)).length, (await userOf(host, who.email)).lastLoginAt]).toEqual([before, lastLogin])
  })

  test('a login that owes tasks answers them, and the session of the last task is still the one that was asked for', async () => {
    const agreed = new Set<string>()
    const terms = task({ key: 'terms', when: (user) => !agreed.has(user.id), complete: (user) => void agreed.add(user.id) })
    const host = await start({
      settings: mfaSettings,
      options: { loginTasks: [terms, secondFactorTask({ when: (user) => user.isAdmin })] },
    })
    const admin = await person(host, { isAdmin: true })
    const owed = await opens(host, admin.userId, { provider: 'acme-saml' })
    if (owed.kind !== 'tasks') throw new Error('tasks')
    expect(owed.tasks).toEqual(['second_factor', 'terms'])
    const next = await throughFactor(host, owed.taskToken)
    expect(next.body.tasks_required).toEqual(['terms'])
    const done = await post(host, '/tasks/terms', { task_token: next.body.task_token })
    expect([done.status, amrOf(done.body.access_token)]).toEqual([200, ['ext', 'otp']])
    expect((await rows(host, admin.userId))[0]?.provider).toBe('acme-saml')

    agreed.clear()
    const skipped = await opens(host, admin.userId, { skipSecondFactor: true, fresh: false, remember: false })
    if (skipped.kind !== 'tasks') throw new Error('tasks')
    expect(skipped.tasks).toEqual(['terms'])
    const session = await post(host, '/tasks/terms', { task_token: skipped.taskToken })
    expect([session.status, session.body.mfa_required, amrOf(session.body.access_token)]).toEqual([200, false, ['ext']])
    const stored = (await rows(host, admin.userId)).find(({ amr }) => amr === 'ext')
    expect([stored?.authenticated_at, Boolean(stored?.is_persistent)]).toEqual([null, false])
  })

  test('maxSessionsPerUser holds, and the limits of logins do not', async () => {
    const host = await start({
      settings: { maxSessionsPerUser: 2 },
      options: { throttle: { login: { attempts: 1, windowSeconds: 900 } } as never },
    })
    const events = told(host)
    const { userId } = await person(host)
    for (let number = 0; number < 4; number += 1) await opens(host, userId)
    const living = (await rows(host, userId)).filter(({ revoked_at }) => revoked_at === null)
    expect(living).toHaveLength(2)
    expect(events.map(([name]) => name)).toEqual(['login', 'login', 'login', 'session.revoked', 'login', 'session.revoked'])
  })

  test('a deactivation beside two sessions leaves no living session', async () => {
    const host = await start()
    for (let round = 0; round < 5; round += 1) {
      const { userId } = await person(host)
      await Promise.allSettled([opens(host, userId), host.auth.service.deactivate(userId), opens(host, userId)])
      expect((await rows(host, userId)).filter(({ revoked_at }) => revoked_at === null)).toEqual([])
    }
  })

  describe.each([
    { delivery: 'bearer', cookies: [] },
    { delivery: 'cookie', cookies: ['access_token', 'refresh_token', 'auth_device'] },
    { delivery: 'both', cookies: ['access_token', 'refresh_token', 'auth_device'] },
    { delivery: 'session', cookies: ['auth_session', 'auth_device'] },
  ] as const)('auth.with(req, res).openSession in delivery $delivery', ({ delivery, cookies }) => {
    /** The cross-site POST of an identity provider. */
    async function answered(who: (host: LocalHost) => Promise<string>, options: OpenSessionOptions = {}) {
      let userId = ''
      const host = await start({
        settings: { ...mfaSettings, tokenDelivery: delivery },
        host: (app, auth) => {
          app.post('/saml/acs', express.urlencoded(), (req, res, next) => {
            auth
              .with(req, res)
              .openSession(userId, options)
              .then((result) => res.status(203).json(result), next)
          })
          app.use(errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
        },
      })
      userId = await who(host)
      const browser: Browser = host.browser()
      const fromProvider = { Origin: 'https://idp.example.com', 'Sec-Fetch-Site': 'cross-site' }
      return { host, userId, browser, response: await browser.post('/saml/acs').set(fromProvider).type('form').send({ a: 'b' }) }
    }

    test('sets what a login of this delivery sets, and the answer is the host’s', async () => {
      const { host, userId, response, browser } = await answered(async (host) => (await person(host)).userId, { remember: false })
      expect(response.status).toBe(203)
      expect(response.body).toMatchObject({ kind: 'session', userId, amr: ['ext'] })
      expect('accessToken' in response.body).toBe(delivery === 'bearer')
      const lines = ((response.headers['set-cookie'] ?? []) as unknown as string[]).filter((line) => !/Max-Age=0|01 Jan 1970/.test(line))
      expect(lines.map((line) => line.split('=')[0]).filter((name) => cookies.includes(name as never))).toEqual(
        expect.arrayContaining([...cookies]),
      )
      for (const line of lines.filter((line) => /^(refresh_token|auth_session)=/.test(line))) expect(line).not.toMatch(/Max-Age|Expires/i)
      if (delivery === 'bearer') return
      expect(response.headers['cache-control']).toBe('no-store')
      const sessions = await browser.get(`${host.prefix}/sessions`)
      expect([sessions.status, sessions.body.length]).toEqual([200, 1])
    })

    test('an account with a second factor gets a step, and no cookie', async () => {
      const { response } = await answered(async (host) => (await enrolled(host)).userId)
      expect(response.body).toMatchObject({ kind: 'challenge', mfaToken: expect.any(String) })
      expect(response.headers['set-cookie']).toBeUndefined()
    })

    test('a refusal is thrown to the host, and sets no cookie', async () => {
      const { response } = await answered(async () => crypto.randomUUID())
      expect([response.status, response.body.code, response.headers['set-cookie']]).toEqual([404, 'NOT_FOUND', undefined])
    })
  })
})
