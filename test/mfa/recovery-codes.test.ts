import { describe, expect, test } from 'vitest'
import { amrOf, bearerOf, post } from '../local/people'
import { databases } from '../support/databases'
import { challengeOf, enrolled, guess, onMfa, outcome, refusal, verify, wrongCode } from './people'

describe.each(await databases())('recovery codes, on $name', (database) => {
  const { start } = onMfa(database)

  test('R-098: each is good once, in any spelling; the session’s methods are the first step’s and otp', async () => {
    const host = await start()
    const person = await enrolled(host)
    const [code = '', other = ''] = person.recoveryCodes
    const spelled = code.toLowerCase().replaceAll('-', ' ')
    const response = await verify(host, await challengeOf(host, person), spelled)
    expect([response.status, amrOf(response.body.access_token)]).toEqual([200, ['pwd', 'otp']])

    for (const again of [code, spelled]) expect(refusal(await verify(host, await challengeOf(host, person), again))).toEqual(wrongCode)
    expect((await verify(host, await challengeOf(host, person), other.replaceAll('-', ''))).status).toBe(200)
  })

  test('R-098: of twenty requests with one code at once, one is in; with one challenge each', async () => {
    const host = await start({ options: { throttle: { mfa: false, login: false } } })
    const person = await enrolled(host)
    const tokens = await Promise.all(Array.from({ length: 20 }, () => challengeOf(host, person)))
    const answers = await Promise.all(tokens.map((token) => verify(host, token, person.recoveryCodes[0])))

    expect(answers.map(outcome).sort()).toEqual([200, ...Array(19).fill('MFA_CODE_INVALID')])
    expect(await host.knex('auth_recovery_codes').where({ user_id: person.userId }).whereNotNull('used_at')).toHaveLength(1)
  })

  test('R-098: a new set kills the old one, and is answered once', async () => {
    const host = await start()
    const person = await enrolled(host)
    const { status, body } = await guess(host, '/mfa/recovery-codes', person, person.app.nextCode())
    expect([status, Object.keys(body), body.recovery_codes.length]).toEqual([200, ['recovery_codes'], person.recoveryCodes.length])
    expect(body.recovery_codes.filter((code: string) => person.recoveryCodes.includes(code))).toEqual([])

    expect(refusal(await verify(host, await challengeOf(host, person), person.recoveryCodes[0]))).toEqual(wrongCode)
    expect((await verify(host, await challengeOf(host, person), body.recovery_codes[0])).status).toBe(200)
  })
})

describe('recovery codes, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('R-098: they are stored as SHA-256 with their user only, and no other account’s code is taken', async () => {
    const host = await start()
    const [one, other] = [await enrolled(host), await enrolled(host)]
    const rows = await host.knex('auth_recovery_codes')
    expect(rows.map(({ code_hash }) => code_hash)).toEqual(rows.map(() => expect.stringMatching(/^[0-9a-f]{64}$/)))
    const dump = JSON.stringify(rows).toUpperCase()
    // Twelve of its characters, since five may well stand in a hash.
    const partsOf = (code: string) => [code.slice(0, 12), code.replaceAll('-', '').slice(0, 12), code.slice(-12)]
    for (const part of [...one.recoveryCodes, ...other.recoveryCodes].flatMap(partsOf)) expect(dump).not.toContain(part)

    expect(refusal(await verify(host, await challengeOf(host, one), other.recoveryCodes[0]))).toEqual(wrongCode)
    // Not even as another's row: the hash is of the user too.
    await host.knex('auth_recovery_codes').where({ user_id: one.userId }).delete()
    await host.knex('auth_recovery_codes').where({ user_id: other.userId }).update({ user_id: one.userId })
    expect(refusal(await verify(host, await challengeOf(host, one), other.recoveryCodes[0]))).toEqual(wrongCode)
  })

  test('R-098, 24.3: wherever one is used, observers and the owner are told, by one mail of one change', async () => {
    const host = await start()
    const person = await enrolled(host)
    const told: string[] = []
    host.auth.events.on('recovery_code.used', ({ userId }) => told.push(userId))
    const mails = () => host.mails.mails.filter(({ to }) => to === person.email)
    const [first, second, third] = person.recoveryCodes
    expect((await verify(host, await challengeOf(host, person), first)).status).toBe(200)
    expect((await guess(host, '/password-change/mfa', person, second)).status).toBeLessThan(300)
    const renewed = await guess(host, '/mfa/recovery-codes', person, third)
    const [code] = renewed.body.recovery_codes
    await post(host, '/mfa/disable', { password: 'nine green bicycles uphill', code }, bearerOf(person)).expect(204)

    expect(told).toEqual(Array(4).fill(person.userId))
    await expect.poll(() => mails().length).toBeGreaterThanOrEqual(5)
    const saysCode = 'This change was confirmed with a recovery code.'
    expect(mails().map(({ subject, text }) => [subject, text.includes(saysCode)])).toEqual([
      ['Two-step verification is on', false],
      ['A recovery code was used', false],
      ['Your password was changed', true],
      ['You have new recovery codes', true],
      ['Two-step verification is off', true],
    ])
  })

  test('a TOTP code is not told as a recovery code', async () => {
    const host = await start()
    const person = await enrolled(host)
    const told: string[] = []
    host.auth.events.on('recovery_code.used', ({ userId }) => told.push(userId))
    await verify(host, await challengeOf(host, person), person.app.nextCode())
    expect(told).toEqual([])
  })
})
