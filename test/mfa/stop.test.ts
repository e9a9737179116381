import { describe, expect, test, vi } from 'vitest'
import { type CounterStore, memoryCounters } from '../../src'
import { type LocalHost, otherPassword, password, post, resetLink } from '../local/people'
import { cookiePair } from '../social/redirect-steps'
import { testClock } from '../support/clock'
import { databases } from '../support/databases'
import { challengeOf, type EnrolledMember, enrolled, onMfa, outcome } from './people'

const unhurried = { login: false, links: false, mail: false, routes: false } as const
const day = 86_400

interface Shown {
  cookie?: string
  previous_token?: string
}

describe.each(await databases())('wrong codes on $name', (database) => {
  const { start } = onMfa(database)
  const open = () => start({ settings: { tokenDelivery: 'both' }, options: { throttle: unhurried } })

  /** The same with a counter store of the host's. `loses`: it answers, and does not count. */
  async function openShared(loses: (key: string) => unknown): Promise<LocalHost> {
    const clocks = [testClock()]
    const shared = memoryCounters({ now: () => clocks.at(-1)?.now().getTime() ?? 0 })
    const counters: CounterStore = {
      increment: async (key, seconds, limit) => (loses(key) ? { count: 1, resetSeconds: seconds } : shared.increment(key, seconds, limit)),
      decrement: async (key) => void (loses(key) || (await shared.decrement(key))),
      reset: async (key) => void (loses(key) || (await shared.reset(key))),
    }
    const host = await start({ settings: { tokenDelivery: 'both' }, options: { throttle: { ...unhurried, counters } } })
    clocks.push(host.clock)
    return host
  }

  /** Signed in in a browser that is known since. */
  async function atHome(host: LocalHost): Promise<EnrolledMember & { cookie: string }> {
    const person = await enrolled(host)
    const login = await post(host, '/cookie/mfa/verify', { mfa_token: await challengeOf(host, person), code: person.app.nextCode() })
    return { ...person, cookie: cookiePair(login, 'auth_device') ?? '' }
  }

  async function type(host: LocalHost, person: EnrolledMember, code: unknown, { cookie, ...presented }: Shown = {}) {
    const body = { mfa_token: await challengeOf(host, person), code, ...presented }
    return outcome(await post(host, '/cookie/mfa/verify', body, cookie === undefined ? {} : { Cookie: cookie }))
  }

  const wrongRecoveryCode = ({ recoveryCodes: [first = ''] }: EnrolledMember) =>
    first.replace(/./, (letter) => (letter === '7' ? '6' : '7'))

  /** Somebody who knows the password types wrong codes, as fast as the limit allows. */
  async function attack(host: LocalHost, person: EnrolledMember, count = 20): Promise<void> {
    for (let typed = 0; typed < count; typed++) {
      if (typed > 0 && typed % 5 === 0) host.clock.advance(900)
      expect(await type(host, person, '000000')).toBe('MFA_CODE_INVALID')
    }
    host.clock.advance(900)
  }

  test('the owner is told at the third wrong one since the last right one, once', async () => {
    const host = await open()
    const person = await atHome(host)
    const subject = 'Somebody entered wrong codes for your account'
    const told = () => host.mails.mails.filter((mail) => mail.to === person.email && mail.subject === subject)
    await type(host, person, '000000')
    await type(host, person, wrongRecoveryCode(person))
    expect(told()).toHaveLength(0)
    await type(host, person, '000000', { cookie: person.cookie })
    await type(host, person, '000000')
    await vi.waitFor(() => expect(told()).toHaveLength(1))
    expect(await type(host, person, person.app.nextCode())).toBe(200)
    for (let typed = 0; typed < 3; typed++) await type(host, person, '000000')
    await vi.waitFor(() => expect(told()).toHaveLength(2))
  })

  test('X16: after twenty wrong codes TOTP is refused for 24 hours, and afterwards all counts begin anew', async () => {
    const host = await open()
    const person = await atHome(host)
    await attack(host, person, 19)
    expect(await type(host, person, '000000')).toBe('MFA_CODE_INVALID')
    host.clock.advance(900)
    const refused = await post(host, '/mfa/verify', { mfa_token: await challengeOf(host, person), code: person.app.nextCode() })
    expect([refused.status, refused.body.code, refused.body.details]).toEqual([429, 'MFA_THROTTLED', { retry_after_seconds: day - 930 }])
    host.clock.advance(day - 961) // the next code is of 30 seconds later
    expect(await type(host, person, person.app.nextCode())).toBe('MFA_THROTTLED')
    host.clock.advance(1)
    expect(await type(host, person, '000000'), 'one more does not stop it again').toBe('MFA_CODE_INVALID')
    expect(await type(host, person, person.app.nextCode())).toBe(200)
  })

  test('the twentieth wrong code costs a shared store one statement more than the one before', async () => {
    const asked: string[] = []
    const host = await openShared((key) => void asked.push(key))
    const person = await enrolled(host)
    await attack(host, person, 18)
    const costOfNext = async () => {
      asked.length = 0
      expect(await type(host, person, '000000')).toBe('MFA_CODE_INVALID')
      return asked.length
    }
    const nineteenth = await costOfNext()
    expect(await costOfNext()).toBe(nineteenth + 1)
  })

  test('a process that dies before it writes the stop leaves a stop of one day, from the next code on', async () => {
    let isDead = false
    const host = await openShared((key) => isDead && key.startsWith('mfa:stopped'))
    const person = await enrolled(host)
    await attack(host, person, 19)
    isDead = true
    expect(await type(host, person, '000000')).toBe('MFA_CODE_INVALID')
    isDead = false
    host.clock.advance(5 * 900)
    expect(await type(host, person, person.app.nextCode())).toBe('MFA_THROTTLED')
    host.clock.advance(day - 31)
    expect(await type(host, person, person.app.nextCode())).toBe('MFA_THROTTLED')
    host.clock.advance(1)
    expect(await type(host, person, person.app.nextCode())).toBe(200)
  })

  test.each(['the cookie', 'previous_token'])('X16: the owner gets in from a known device by %s, and strangers stay out', async (by) => {
    const host = await open()
    const person = await atHome(host)
    const presented = by === 'the cookie' ? { cookie: person.cookie } : { previous_token: person.refreshToken }
    await attack(host, person)
    expect(await type(host, person, person.app.nextCode(), presented)).toBe(200)
    expect(await type(host, person, person.app.nextCode())).toBe('MFA_THROTTLED')
  })

  test('X16: a known device has five TOTP and five recovery codes of its own; then it counts as a stranger', async () => {
    const host = await open()
    const person = await atHome(host)
    await attack(host, person)
    const { cookie } = person
    for (let typed = 0; typed < 5; typed++) expect(await type(host, person, '000000', { cookie })).toBe('MFA_CODE_INVALID')
    expect(await type(host, person, person.app.nextCode(), { cookie })).toBe('MFA_THROTTLED')
    for (let typed = 0; typed < 10; typed++)
      expect(await type(host, person, wrongRecoveryCode(person), { cookie })).toBe('MFA_CODE_INVALID') // five, and five as a stranger
    expect(await type(host, person, person.recoveryCodes[1], { cookie })).toBe('MFA_THROTTLED')
    host.clock.advance(900)
    expect(await type(host, person, person.recoveryCodes[1], { cookie })).toBe(200)
  })

  test('X16: recovery codes have a limit of their own, five per 900 seconds', async () => {
    const host = await open()
    const person = await atHome(host)
    for (let typed = 0; typed < 5; typed++) expect(await type(host, person, '000000')).toBe('MFA_CODE_INVALID')
    expect(await type(host, person, '000000')).toBe('MFA_THROTTLED')
    for (let typed = 0; typed < 5; typed++) expect(await type(host, person, wrongRecoveryCode(person))).toBe('MFA_CODE_INVALID')
    expect(await type(host, person, person.recoveryCodes[0])).toBe('MFA_THROTTLED')
    host.clock.advance(900)
    expect(await type(host, person, person.recoveryCodes[0])).toBe(200)
  })

  const ends: Record<string, (host: LocalHost, person: EnrolledMember) => Promise<unknown>> = {
    'a right recovery code': (host, person) => type(host, person, person.recoveryCodes[0]),
    'a change of the password': (host, { userId }) =>
      host.auth.service.changePassword({ userId, amr: ['pwd', 'otp'], currentPassword: password, newPassword: otherPassword }),
    'a reset of the password': async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: otherPassword }),
  }

  test.each(Object.keys(ends))('X16: the stop ends by %s, and all counts begin anew', async (what) => {
    const host = await open()
    const person = await atHome(host)
    await attack(host, person)
    await ends[what]?.(host, person)
    const chosen = what.includes('password') ? otherPassword : password
    const challenge = async () => (await post(host, '/login', { email: person.email, password: chosen })).body.mfa_token
    for (let typed = 0; typed < 4; typed++)
      expect(outcome(await post(host, '/mfa/verify', { mfa_token: await challenge(), code: '000000' }))).toBe('MFA_CODE_INVALID')
    expect((await post(host, '/mfa/verify', { mfa_token: await challenge(), code: person.app.nextCode() })).status).toBe(200)
  })

  test('X16: reset-mfa forgets them, also for the factor that is set up next', async () => {
    const host = await open()
    const person = await atHome(host)
    await attack(host, person)
    await host.auth.service.resetMfa(person.userId)
    const { secret } = await host.auth.service.enrollTotp(person.userId)
    const { authenticator } = await import('./authenticator')
    const app = authenticator(secret, host.clock)
    await host.auth.service.confirmTotp({ userId: person.userId, amr: ['pwd'], code: app.code() })
    expect(await type(host, { ...person, app }, app.nextCode())).toBe(200)
  })
})
