import { describe, expect, test } from 'vitest'
import { bearerOf, password, post, signedIn, userOf } from '../local/people'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { ageFactor, challengeOf, codeRoutes, enrolled, guess, onMfa, outcome, refusal, signedInAgain, verify, wrongCode } from './people'

describe.each(await databases())('a code, on $name', (database) => {
  const { start } = onMfa(database)

  test('R-093: a code is accepted once, over all routes, and none of a step before it', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const member = await signedIn(host)
    const { secret } = await host.auth.service.enrollTotp(member.userId)
    const app = authenticator(secret, host.clock)
    const confirmed = await post(host, '/mfa/confirm', { code: app.code() }, bearerOf(member))
    await ageFactor(host, member)
    const person = { ...member, token: String(confirmed.body.access_token) }

    const refuseEverywhere = async (code: string) => {
      expect(refusal(await verify(host, await challengeOf(host, person), code))).toEqual(wrongCode)
      for (const path of codeRoutes) expect([path, ...refusal(await guess(host, path, person, code))]).toEqual([path, ...wrongCode])
    }
    await refuseEverywhere(app.code()) // by confirm
    const [earlier, used] = [app.code(0), app.code(1)]
    expect((await verify(host, await challengeOf(host, person), used)).status).toBe(200) // a clock half a minute ahead
    const { totpLastStep } = await userOf(host, person.email)
    await refuseEverywhere(used)
    await refuseEverywhere(earlier)
    expect((await userOf(host, person.email)).totpLastStep).toBe(totpLastStep)
    host.clock.advance(60)
    expect((await guess(host, '/mfa/recovery-codes', person, app.code())).status).toBe(200)
    await refuseEverywhere(app.code())
    expect((await userOf(host, person.email)).totpLastStep).toBe(Number(totpLastStep) + 1)
  })
})

describe('a code, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('R-091: is six digits as a string; any other string is a wrong code, whatever its length and characters; what is no string is 422', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const person = await enrolled(host)
    const token = await challengeOf(host, person)
    const code = person.app.nextCode()
    const texts = [
      '',
      ' ',
      '-',
      code.slice(1),
      `0${code}`,
      `+${code.slice(1)}`,
      `${code}x`,
      `x${code}`,
      `${code}.0`,
      `0x${code}`,
      '٠١٢٣٤٥',
      `${code}\0`,
      `${code}\ud800`,
      'x'.repeat(257),
      'A'.repeat(10_000),
    ]
    for (const text of texts) expect([text, ...refusal(await verify(host, token, text))]).toEqual([text, ...wrongCode])
    for (const value of [Number(code), [code], { code }, true, null, undefined])
      expect([value, outcome(await verify(host, token, value))]).toEqual([value, 'VALIDATION_ERROR'])

    expect((await verify(host, token, ` ${code.slice(0, 3)} -${code.slice(3)}\t`)).status).toBe(200)
  })

  test('R-091: with the leading nought of 072814, +72814 and 72814 are not it', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const person = await enrolled(host)
    for (let steps = 0; !person.app.nextCode().startsWith('0'); steps++) if (steps > 2_000) throw new Error('no such code came')
    const code = person.app.code()
    const token = await challengeOf(host, person)
    for (const text of [`+${code.slice(1)}`, code.slice(1), `${code.slice(1)}x`])
      expect(refusal(await verify(host, token, text))).toEqual(wrongCode)
    expect((await verify(host, token, code)).status).toBe(200)
  })

  test.each([0, 1, 2])('R-092: mfaVerifyWindow %i: the steps that verify takes', async (mfaVerifyWindow) => {
    const host = await start({ settings: { mfaVerifyWindow }, options: { throttle: { mfa: false } } })
    const person = await enrolled(host)
    host.clock.advance(3_000)
    const token = await challengeOf(host, person)
    const taken: number[] = []
    for (let steps = -4; steps <= 4; steps++) {
      await host.knex('auth_users').where({ id: person.userId }).update({ totp_last_step: null })
      await host.knex('auth_user_tokens').where({ user_id: person.userId }).delete()
      if ((await verify(host, token, person.app.code(steps))).status === 200) taken.push(steps)
    }
    expect(taken).toEqual([-2, -1, 0, 1, 2].filter((steps) => Math.abs(steps) <= mfaVerifyWindow))
  })

  test('a wrong code is 401 "invalid MFA code" on every route that takes one, and changes nothing', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const person = await signedInAgain(host, await enrolled(host))
    const before = await userOf(host, person.email)
    const wrong = person.app.code(9)
    for (const path of codeRoutes) expect([path, ...refusal(await guess(host, path, person, wrong))]).toEqual([path, ...wrongCode])

    expect(await userOf(host, person.email)).toEqual(before)
    expect((await post(host, '/login', { email: person.email, password })).body.mfa_required).toBe(true)
    const codes = await host.knex('auth_recovery_codes').where({ user_id: person.userId, used_at: null })
    expect(codes).toHaveLength(person.recoveryCodes.length)
  })

  test('an account without a factor is told 422 MFA_NOT_ENROLLED, and an anonymous request 401', async () => {
    const host = await start()
    const member = await signedIn(host)
    for (const path of codeRoutes) {
      expect(refusal(await guess(host, path, member, '123456')).filter((part) => typeof part !== 'object')).toEqual([
        422,
        expect.any(String),
        'MFA_NOT_ENROLLED',
      ])
      expect((await guess(host, path, { token: 'none' }, '123456')).status).toBe(401)
    }
  })
})
