import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { openSecret, sealSecret } from '../../src/second-factor/secret-box'
import { userOf } from '../local/people'
import { databases } from '../support/databases'
import { challengeOf, enrolled, onMfa, outcome, verify } from './people'

const key = () => randomBytes(32).toString('base64')

describe('R-090: a TOTP secret at rest', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start, opened } = onMfa(sqlite)

  test('with mfaSecretKey no table holds a secret, a code or a recovery code', async () => {
    const host = await start()
    const person = await enrolled(host)
    const tables = ['auth_users', 'auth_user_tokens', 'auth_recovery_codes', 'auth_sessions', 'auth_identities']
    const dump = JSON.stringify(await Promise.all(tables.map((table) => opened().knex(table))))
    const { totpSecret } = await userOf(host, person.email)

    expect(totpSecret).toMatch(/^v1\.[\w-]{16}\.[\w-]{43}\.[\w-]{22}$/)
    expect(dump).toContain(String(totpSecret))
    for (const secret of [person.secret, ...person.recoveryCodes]) expect(dump).not.toContain(secret)
    for (const { message, fields } of host.logs.entries) expect(message + JSON.stringify(fields)).not.toContain(person.secret)
  })

  test('two accounts’ ciphertexts swapped: both fail closed; put back, both open', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const people = [await enrolled(host), await enrolled(host)] as const
    const sealed = [(await userOf(host, people[0].email)).totpSecret, (await userOf(host, people[1].email)).totpSecret]
    const put = async (secrets: (string | null | undefined)[]) => {
      for (const [index, { userId }] of people.entries())
        await host.knex('auth_users').where({ id: userId }).update({ totp_secret: secrets[index] })
    }
    await put([...sealed].reverse())
    host.clock.advance(30)
    for (const me of people)
      for (const { app } of people) expect(outcome(await verify(host, await challengeOf(host, me), app.code()))).toBe('MFA_CODE_INVALID')
    await put(sealed)
    for (const person of people) expect((await verify(host, await challengeOf(host, person), person.app.code())).status).toBe(200)
  })

  test('a key is rotated by putting the new one in front; without the old one what it sealed stays closed', async () => {
    const [oldKey, newKey] = [key(), key()]
    const before = await start({ settings: { mfaSecretKey: oldKey } })
    const [person, other] = [await enrolled(before), await enrolled(before)]
    const outcomeAt = async (mfaSecretKey: string | null, { app, email }: typeof person) => {
      const host = await start({ settings: { mfaSecretKey } })
      app.nextCode() // moves the clock that it shows
      host.clock.advance((before.clock.now().getTime() - host.clock.now().getTime()) / 1000)
      return outcome(await verify(host, await challengeOf(host, { email }), app.code()))
    }
    expect(await outcomeAt(`${newKey},${oldKey}`, person)).toBe(200)
    expect(await outcomeAt(newKey, person)).toBe('MFA_CODE_INVALID')
    expect(await outcomeAt(null, person)).toBe('MFA_CODE_INVALID')
    expect(await outcomeAt(`${oldKey}, ${newKey}`, other)).toBe(200)
    const rotated = await enrolled(await start({ settings: { mfaSecretKey: `${newKey},${oldKey}` } }))
    expect(openSecret([Buffer.from(newKey, 'base64')], rotated.userId, String((await userOf(before, rotated.email)).totpSecret))).toBe(
      rotated.secret,
    )
  })

  test('without a key it is stored as it is, boot warns, and it still works once a key is set', async () => {
    const plain = await start({ settings: { mfaSecretKey: null } })
    const warning = 'doorward: TOTP secrets are stored unencrypted; set mfaSecretKey (AUTH_MFA_SECRET_KEY) to encrypt them.'
    expect(plain.logs.entries.filter(({ level, message }) => level === 'warn' && message === warning)).toHaveLength(1)
    const person = await enrolled(plain)
    expect((await userOf(plain, person.email)).totpSecret).toBe(person.secret)

    const keyed = await start()
    keyed.clock.advance(30)
    expect((await verify(keyed, await challengeOf(keyed, person), person.app.nextCode())).status).toBe(200)
    expect(keyed.logs.text()).not.toContain('TOTP secrets are stored unencrypted')
  })

  test('the same secret is sealed differently each time, and whatever was changed stays closed', () => {
    const keys = [randomBytes(32)]
    const sealed = sealSecret(keys, 'ana', 'A'.repeat(32))
    expect(sealSecret(keys, 'ana', 'A'.repeat(32))).not.toBe(sealed)
    expect(openSecret(keys, 'ana', sealed)).toBe('A'.repeat(32))
    const [version, nonce = '', box = '', tag = ''] = sealed.split('.')
    const flip = (part: string) => (part.startsWith('A') ? 'B' : 'A') + part.slice(1)
    const broken = [
      [version, flip(nonce), box, tag],
      [version, nonce, flip(box), tag],
      [version, nonce, box, flip(tag)],
      [version, nonce, box, tag.slice(0, 6)], // a short tag would be quicker to guess
      [version, nonce, box],
      [version, nonce, box, tag, ''],
      [version, '', '', ''],
    ]
    for (const parts of broken) expect(openSecret(keys, 'ana', parts.join('.'))).toBeNull()
    expect(openSecret(keys, 'bob', sealed)).toBeNull()
    expect(openSecret([], 'ana', sealed)).toBeNull()
  })

  test('R-091: a row whose secret is empty, short or not to be read opens to no code, and says nothing of it', async () => {
    const host = await start({ options: { throttle: { mfa: false } } })
    const person = await enrolled(host)
    for (const totp_secret of ['', 'A', 'v1', 'v1...', 'not base32 at all', null]) {
      await host.knex('auth_users').where({ id: person.userId }).update({ totp_secret })
      for (const code of ['000000', person.app.nextCode()])
        expect([totp_secret, outcome(await verify(host, await challengeOf(host, person), code))]).toEqual([totp_secret, 'MFA_CODE_INVALID'])
    }
    expect((await verify(host, await challengeOf(host, person), person.recoveryCodes[0])).status).toBe(200)
  })
})
