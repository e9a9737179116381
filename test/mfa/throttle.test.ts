import { describe, expect, test, vi } from 'vitest'
import { createKnexStore } from '../../src'
import * as totp from '../../src/second-factor/accept-code'
import { bearerOf, password, post } from '../local/people'
import { databases } from '../support/databases'
import { faultyStore } from '../support/faulty-store'
import { challengeOf, codeRoutes, enrolled, guess, onMfa, outcome, signedInAgain, verify } from './people'

vi.mock('../../src/second-factor/accept-code', async (original) => {
  const real = await original<typeof totp>()
  return { ...real, findStep: vi.fn(real.findStep) }
})

describe('MFA_THROTTLED', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start, opened } = onMfa(sqlite)

  test('R-094: five wrong codes per 900 seconds and account, over every route together; then a right one is 429 too', async () => {
    const host = await start()
    const person = await signedInAgain(host, await enrolled(host))
    const throttled: unknown[] = []
    host.auth.events.on('throttled', (payload) => throttled.push(payload))
    expect(outcome(await verify(host, await challengeOf(host, person), '000000'))).toBe('MFA_CODE_INVALID')
    for (const path of codeRoutes) expect(outcome(await guess(host, path, person, '000000'))).toBe('MFA_CODE_INVALID')
    expect(outcome(await verify(host, await challengeOf(host, person), 'no code at all'))).toBe('MFA_CODE_INVALID')

    const token = await challengeOf(host, person) // a new login gives nothing back
    const code = person.app.code(1)
    const refused = await verify(host, token, code)
    expect([refused.status, refused.body.code]).toEqual([429, 'MFA_THROTTLED'])
    expect(refused.headers['retry-after']).toBe(String(refused.body.details.retry_after_seconds))
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(890)
    for (const path of codeRoutes) expect([path, outcome(await guess(host, path, person, code))]).toEqual([path, 'MFA_THROTTLED'])
    expect(throttled).toEqual(
      Array(4).fill({ code: 'MFA_THROTTLED', route: 'mfa', keyDigest: expect.any(String), retryAfterSeconds: expect.any(Number) }),
    )

    host.clock.advance(900)
    expect((await verify(host, await challengeOf(host, person), person.app.code())).status).toBe(200)
  })

  test('R-094: it is the account’s budget: another account is not held back, and a success clears what was wrong', async () => {
    const host = await start()
    const [one, other] = [await enrolled(host), await enrolled(host)]
    const wrong = async (times: number) => {
      for (let count = 0; count < times; count++)
        expect(outcome(await verify(host, await challengeOf(host, one), '000000'))).toBe('MFA_CODE_INVALID')
    }
    await wrong(4)
    expect((await verify(host, await challengeOf(host, one), one.app.nextCode())).status).toBe(200)
    await wrong(5)
    expect(outcome(await verify(host, await challengeOf(host, one), one.app.nextCode()))).toBe('MFA_THROTTLED')
    expect((await verify(host, await challengeOf(host, other), other.app.nextCode())).status).toBe(200)
  })

  test('R-094, C11: of 200 guesses at once, each with a challenge of its own, at most five are looked at', async () => {
    const host = await start({ options: { throttle: { login: false } } })
    const person = await enrolled(host)
    const tokens = await Promise.all(Array.from({ length: 40 }, () => challengeOf(host, person)))
    const spy = vi.mocked(totp.findStep)
    spy.mockClear()
    const guesses = Array.from({ length: 200 }, (_, index) => verify(host, tokens[index % 40], String(index).padStart(6, '0')))
    const outcomes = (await Promise.all(guesses)).map(outcome)

    expect(spy.mock.calls.length).toBeLessThanOrEqual(5)
    expect(outcomes.filter((code) => code === 'MFA_CODE_INVALID')).toHaveLength(5)
    expect(outcomes.filter((code) => code === 'MFA_THROTTLED')).toHaveLength(195)
  })

  test('what was no guess costs nothing: a dead challenge, and a store that breaks', async () => {
    const { store, ...faulty } = faultyStore(createKnexStore({ knex: opened().knex }))
    const host = await start({ options: { store, throttle: { mfa: { attempts: 1, windowSeconds: 900 } } } })
    const person = await enrolled(host)
    const token = await challengeOf(host, person)
    faulty.break('users.lock', () => {
      throw new Error('the disk is gone')
    })
    for (const again of [1, 2, 3]) expect([again, (await verify(host, token, '000000')).status]).toEqual([again, 500])
    faulty.break(null)
    expect(outcome(await verify(host, 'no.such.token', '000000'))).toBe('MFA_TOKEN_INVALID')
    expect((await verify(host, token, person.app.nextCode())).status).toBe(200)
    for (const again of [1, 2])
      expect([again, outcome(await verify(host, token, person.app.nextCode()))]).toEqual([again, 'MFA_TOKEN_INVALID'])
    expect(outcome(await verify(host, await challengeOf(host, person), '000000'))).toBe('MFA_CODE_INVALID')
    expect(outcome(await verify(host, await challengeOf(host, person), '000000'))).toBe('MFA_THROTTLED')
  })

  test('a wrong password at disable is no wrong code', async () => {
    const host = await start({ options: { throttle: { mfa: { attempts: 1, windowSeconds: 900 } } } })
    const person = await enrolled(host)
    const disable = (given: string) => post(host, '/mfa/disable', { password: given, code: person.app.code(1) }, bearerOf(person))
    for (const again of [1, 2]) expect([again, outcome(await disable('wrong'))]).toEqual([again, 'UNAUTHORIZED'])
    expect((await disable(password)).status).toBe(204)
  })
})
