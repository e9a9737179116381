import { describe, expect, test } from 'vitest'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, post, signedIn } from '../local/people'
import { userById } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { authenticator } from './authenticator'
import { challengeOf, type EnrolledMember, enrolled, onMfa, outcome, verify } from './people'

const uses: Readonly<Record<string, (host: LocalHost, person: EnrolledMember, code: string) => Promise<unknown>>> = {
  'POST /mfa/verify': async (host, person, code) => verify(host, await challengeOf(host, person), code),
  'POST /reauthenticate': (host, person, code) => post(host, '/reauthenticate', { code }, bearerOf(person)),
  'POST /mfa/recovery-codes': (host, person, code) => post(host, '/mfa/recovery-codes', { code }, bearerOf(person)),
  'POST /mfa/enroll, to replace': (host, person, code) => post(host, '/mfa/enroll', { code }, bearerOf(person)),
  'POST /password-change/mfa': (host, person, code) =>
    post(host, '/password-change/mfa', { new_password: otherPassword, code }, bearerOf(person)),
  'a final POST /password-change': (host, person, code) =>
    post(host, '/password-change', { current_password: password, new_password: otherPassword, code }, bearerOf(person)),
  'a final POST /email-change/request': (host, person, code) =>
    post(host, '/email-change/request', { new_email: newAddress(), code }, bearerOf(person)),
}

const statusOf = (answer: unknown) => (answer as { status: number }).status
const storedSecret = async (host: LocalHost, { userId }: { userId: string }) => (await userById(host.knex, userId)).totpSecret

describe.each(await databases())('a TOTP secret that is stored as plain text, on $name', (database) => {
  const { start } = onMfa(database)

  test.each(Object.entries(uses))('%s encrypts it with a right code, and a wrong code encrypts nothing (25.4.5)', async (_name, use) => {
    const old = await start({ settings: { mfaSecretKey: null } })
    const person = await enrolled(old)
    expect(await storedSecret(old, person)).toBe(person.secret)
    const plain = await use(old, person, person.app.nextCode())
    expect([statusOf(plain) < 300, await storedSecret(old, person)]).toEqual([true, person.secret])

    const host = await start()
    const again = await enrolled(host)
    await host.knex('auth_users').where({ id: again.userId }).update({ totp_secret: again.secret })
    const wrong = await use(host, again, '000000')
    expect([outcome(wrong as never), await storedSecret(host, again)]).toEqual(['MFA_CODE_INVALID', again.secret])

    const right = await use(host, again, again.app.nextCode())
    expect(statusOf(right)).toBeLessThan(300)
    expect(await storedSecret(host, again)).toMatch(/^v1\./)
    const undoRows = await host.knex('auth_user_tokens').where({ user_id: again.userId, purpose: 'UNDO' }).select('payload')
    expect(undoRows.filter(({ payload }) => payload.includes(again.secret))).toEqual([])
  })

  test('POST /mfa/disable leaves no plain secret in the undo row (25.4.5)', async () => {
    const host = await start()
    const person = await enrolled(host)
    await host.knex('auth_users').where({ id: person.userId }).update({ totp_secret: person.secret })
    await post(host, '/mfa/disable', { password, code: person.app.nextCode() }, bearerOf(person)).expect(204)
    const rows = await host.knex('auth_user_tokens').where({ user_id: person.userId, purpose: 'UNDO' }).select('payload')
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.filter(({ payload }) => payload.includes(person.secret))).toEqual([])
  })

  test('POST /mfa/confirm encrypts a first secret and a replacement that were begun before the key was set (25.4.5)', async () => {
    const [old, host] = [await start({ settings: { mfaSecretKey: null } }), await start()]
    const member = await signedIn(old)
    const first = (await post(old, '/mfa/enroll', {}, bearerOf(member)).expect(200)).body.secret
    await post(host, '/mfa/confirm', { code: authenticator(first, host.clock).code() }, bearerOf(member)).expect(200)
    expect(await storedSecret(host, member)).toMatch(/^v1\./)

    const person = await enrolled(old)
    const { body } = await post(old, '/mfa/enroll', { code: person.app.nextCode() }, bearerOf(person)).expect(200)
    await post(host, '/mfa/confirm', { code: '000000' }, bearerOf(person)).expect(401)
    expect(await storedSecret(host, person)).toBe(person.secret)
    await post(host, '/mfa/confirm', { code: authenticator(body.secret, old.clock).code() }, bearerOf(person)).expect(200)
    expect(await storedSecret(host, person)).toMatch(/^v1\./)
  })
})
