import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Response } from 'express'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { PasswordHasher } from '../../src'
import type { AuthContext } from '../../src/context'
import { startDelayMs } from '../../src/core/background'
import { InvalidCredentialsError, ServiceUnavailableError } from '../../src/core/errors'
import { withFixedResponseTime } from '../../src/http/fixed-response-time'
import { mfaSettings } from '../mfa/people'
import type { Mounted } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { linkTemplates, mailbox } from '../support/mailbox'
import { mountedRoutes } from '../support/mounted-routes'

const start = appPerTest()
const password = 'a quiet harbour in winter'
const gridMs = 300
const settings = { ...linkTemplates, ...mfaSettings, timingGridMilliseconds: gridMs }
const options = { timingDefence: true, throttle: { links: false, login: false, signup: false, mail: false } } as const

async function timed(host: Mounted, path: string, body: object, type = 'application/json') {
  const begun = performance.now()
  const { status, body: answer } = await host.browser().post(`/auth${path}`).type(type).send(body)
  return { status, code: answer.code, ms: performance.now() - begun }
}

/** Waits in a queue, and then works for as long as its hash says. */
function slowHasher(queueMs: () => number): PasswordHasher {
  return {
    async hash(_password, { onBegin } = {}) {
      await sleep(queueMs())
      onBegin?.()
      return 'cost:20'
    },
    async verify(hash, _password, { onBegin } = {}) {
      await sleep(queueMs())
      onBegin?.()
      await sleep(Number(hash.slice('cost:'.length)))
      return false
    },
    needsRehash: () => false,
  }
}

/** Every delivery, server-side sessions, and the form of the challenge page. */
const everyRoute = { ...settings, tokenDelivery: 'both', oauthSuccessRedirect: 'https://app.example.test/in' } as const
const failing: Record<string, object> = {
  '/signup': { email: 'new@example.test', password },
  '/cookie/signup': { email: 'newer@example.test', password },
  '/login': { email: 'nobody@example.test', password },
  '/cookie/login': { email: 'nobody@example.test', password },
  '/session/login': { email: 'nobody@example.test', password },
  '/mfa/verify': { mfa_token: 'no challenge', code: '123456' },
  '/cookie/mfa/verify': { mfa_token: 'no challenge', code: '123456' },
  '/session/mfa/verify': { mfa_token: 'no challenge', code: '123456' },
}

describe('the grid of answers', () => {
  test('30.1.2: with mailedCodes, every route that takes a code is on it too, so that its time reveals no account', async () => {
    const paths = ['/activate', '/password-reset/confirm', '/email-verify/confirm', '/email-change/confirm']
    await start({ settings: { ...everyRoute, mailedCodes: 'both' }, options: { ...options, mailer: mailbox() } })
    const hiding = (mountedRoutes.at(-1) ?? []).filter(({ hidesAccount, path }) => hidesAccount && paths.some((one) => path.endsWith(one)))
    expect(new Set(hiding.map(({ path }) => path.replace('/cookie', '')))).toEqual(new Set(paths))
  })

  test('30.1.11: so is a wrong code in the form of an activation, which is no request to such a route', async () => {
    const pages = { tokenDelivery: 'cookie', pagesEnabled: true, mailedCodes: 'both', publicUrl: 'https://app.example.test' } as const
    const host = await start({ settings: { ...settings, ...pages }, options: { ...options, mailer: mailbox() } })
    const browser = host.browser()
    const send = (path: string, fields: object) =>
      browser.post(path).set('Origin', 'https://app.example.test').set('Sec-Fetch-Site', 'same-origin').type('form').send(fields)
    await send('/auth/signup', { email: 'form@example.test', password }).expect(303)
    const begun = performance.now()
    expect((await send('/auth/activate', { code: '00000000' })).status).toBe(400)
    expect(performance.now() - begun).toBeGreaterThanOrEqual(gridMs - 5)
  })

  test('24.4: every mounted login, signup and second step is on it: the declared routes are the answered ones', async () => {
    const host = await start({ settings: everyRoute, options: { ...options, mailer: mailbox() } })
    const routes = mountedRoutes.at(-1) ?? []
    const meant = routes.filter(({ method, path }) => method === 'POST' && /^(\/cookie|\/session)?\/(login|signup|mfa\/verify)$/.test(path))
    expect([...new Set(meant.map(({ path }) => path))].sort()).toEqual(Object.keys(failing).sort())
    expect(meant.filter(({ hidesAccount }) => !hidesAccount)).toEqual([])
    expect(routes.filter(({ hidesAccount }) => hidesAccount)).toEqual(meant)
    expect(meant.filter(({ when }) => when)).toHaveLength(1)

    const answers = await Promise.all(Object.entries(failing).map(([path, body]) => timed(host, path, body)))
    const form = await timed(host, '/cookie/mfa/verify', { mfa_token: 'no challenge', code: '123456' }, 'form')
    expect([...answers, form].map(({ status }) => status)).toEqual([201, 201, 401, 401, 401, 401, 401, 401, 400])
    for (const { ms } of [...answers, form]) expect(ms).toBeGreaterThanOrEqual(gridMs)
  })

  test('it is counted from the arrival: a queue moves it, what a look-up or a hash takes does not', async () => {
    let queueMs = 300
    const host = await start({
      settings: { ...settings, timingGridMilliseconds: 1_000 },
      options: { ...options, mailer: mailbox(), passwordHasher: slowHasher(() => queueMs) },
    })
    for (const [email, cost] of [
      ['quick@example.test', 'cost:5'],
      ['imported@example.test', 'cost:300'],
    ]) {
      await timed(host, '/signup', { email: String(email), password })
      await host.knex('auth_users').where({ email }).update({ hashed_password: cost, is_active: true })
    }
    await timed(host, '/login', { email: 'warm@example.test', password }) // the dummy hash is made
    for (const email of ['nobody@example.test', 'quick@example.test', 'imported@example.test']) {
      const { status, ms } = await timed(host, '/login', { email, password })
      expect([status, ms >= 1_300, ms < 2_300]).toEqual([401, true, true])
    }
    queueMs = 0
    const { ms } = await timed(host, '/login', { email: 'imported@example.test', password })
    expect([ms >= 1_000, ms < 1_300]).toEqual([true, true])
  })

  test('what says nothing about an account comes at once: 422, 429, 503 and a finished login', async () => {
    const host = await start({
      settings: { ...settings, timingGridMilliseconds: 5_000, autoActivate: true },
      options: { ...options, throttle: { login: { attempts: 1, windowSeconds: 900 }, signup: { attempts: 1, windowSeconds: 900 } } },
    })
    await host.auth.service.signUp({ email: 'ana@example.test', password })
    const at = async (path: string, body: object) => {
      const { status, code, ms } = await timed(host, path, body)
      return [status, code, ms < 2_500]
    }
    expect(await at('/login', { email: 'ana@example.test', password })).toEqual([200, undefined, true])
    expect(await at('/login', { email: 'ana@example.test' })).toEqual([422, 'VALIDATION_ERROR', true])
    expect(await at('/signup', { email: 'bob@example.test', password: 'short' })).toEqual([422, 'VALIDATION_ERROR', true])
    await timed(host, '/signup', { email: 'bob@example.test', password }) // the one attempt: a refused body is none
    expect(await at('/signup', { email: 'cleo@example.test', password })).toEqual([429, 'SIGNUP_THROTTLED', true])
    host.hasher.verify = () => Promise.reject(new ServiceUnavailableError())
    expect(await at('/login', { email: 'ana@example.test', password })).toEqual([503, 'SERVICE_UNAVAILABLE', true])
    host.hasher.verify = async () => false
    void timed(host, '/login', { email: 'ana@example.test', password }).catch(() => undefined) // the one attempt, whose answer waits
    await sleep(200)
    expect(await at('/login', { email: 'ana@example.test', password })).toEqual([429, 'LOGIN_THROTTLED', true])
  })

  test('the service is never held back; nor is a router of tests that does not ask for it, or one with the grid at 0', async () => {
    const login = { email: 'nobody@example.test', password }
    const slow = { ...settings, timingGridMilliseconds: 5_000 }
    const [defended, inTests, off] = await Promise.all([
      start({ settings: slow, options: { ...options, mailer: mailbox() } }),
      start({ settings: slow }),
      start({ settings: { ...settings, timingGridMilliseconds: 0 }, options: { ...options, mailer: mailbox() } }),
    ])
    const begun = performance.now()
    await expect(defended.auth.service.logIn(login)).rejects.toThrow(InvalidCredentialsError)
    await timed(inTests, '/login', login)
    await timed(off, '/login', login)
    expect(performance.now() - begun).toBeLessThan(4_000)
  })

  test('a client that hung up is waited for by nobody', async () => {
    const held = withFixedResponseTime({ gridMs: 60_000, hasher: {} } as AuthContext, {
      method: 'POST',
      path: '/login',
      describes: { summary: '', answers: [] },
      handle: async (): Promise<void> => {
        throw new InvalidCredentialsError()
      },
    })
    const res = Object.assign(new EventEmitter(), { closed: false })
    const handled = Promise.resolve(held.handle({} as never, res as unknown as Response)).catch((error: unknown) => error)
    await sleep(20)
    expect(res.listenerCount('close')).toBe(1)
    Object.assign(res, { closed: true }).emit('close')
    expect(await handled).toBeInstanceOf(InvalidCredentialsError)
    expect(res.listenerCount('close')).toBe(0)
    await expect(Promise.resolve(held.handle({} as never, res as unknown as Response))).rejects.toThrow(InvalidCredentialsError)
  })

  test('timingDefence: false is refused outside of environment test', async () => {
    await expect(start({ settings, options: { environment: 'development', timingDefence: false } })).rejects.toThrow(
      "timingDefence: false is for environment 'test' alone",
    )
  })
})

test('24.4: the work after a request for a link begins 200 to 2,000 ms later, known address or not; drain begins it at once', async () => {
  const [least, most] = startDelayMs
  const delays: number[] = []
  const realSetTimeout = globalThis.setTimeout
  // Whoever waits as long as background work does is let in by `drain` alone, however slow this machine is.
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((begin: () => void, ms = 0) => {
    const isDelay = ms >= least && ms <= most
    if (isDelay) delays.push(ms)
    return realSetTimeout(begin, isDelay ? 3_600_000 : ms)
  }) as typeof setTimeout)
  onTestFinished(() => spy.mockRestore())

  const mails = mailbox()
  const host = await start({ settings: { ...settings, timingGridMilliseconds: 0 }, options: { ...options, mailer: mails } })
  await timed(host, '/signup', { email: 'ana@example.test', password })
  const ofSignup = delays.length
  await timed(host, '/activation/request', { email: 'ana@example.test' })
  const ofKnown = delays.length - ofSignup
  await timed(host, '/activation/request', { email: 'nobody@example.test' })
  const ofUnknown = delays.length - ofSignup - ofKnown
  expect([ofSignup, ofKnown, ofUnknown]).toEqual([1, 1, 1])
  expect(mails.mails).toHaveLength(0)

  await host.auth.drain()
  expect(mails.mails.map(({ to }) => to)).toEqual(['ana@example.test', 'ana@example.test'])
})
