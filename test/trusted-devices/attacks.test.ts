import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { type LocalHost, otherPassword } from '../local/people'
import { enrolled } from '../mfa/people'
import { setCookieOf } from '../support/app'
import { sentAnyway } from '../support/cookie-check'
import { databases } from '../support/databases'
import { isTrusted, login, onTrust, send, trusting, trustRows, verified } from './people'

describe.each(await databases())('attacks on trusted devices on $name', (database) => {
  const { start } = onTrust(database)

  /** A login by password with exactly this cookie. */
  const withCookie = (host: LocalHost, person: { email: string }, ...values: string[]) =>
    login(host.browser(), person)
      .set('Cookie', values.map((value) => `auth_trust=${encodeURIComponent(value)}`).join('; '))
      .set(sentAnyway('an attacker writes the header'))

  const trustedValue = async (host: LocalHost) => {
    const person = await enrolled(host)
    const value = setCookieOf(await verified(host.browser(), person), 'auth_trust')?.value ?? ''
    return { person, value }
  }

  test('attack: a foreign, changed or doubled auth_trust asks for the second factor', async () => {
    const host = await start()
    const [{ person, value }, other] = [await trustedValue(host), await trustedValue(host)]
    const asks = async (...values: string[]) => (await withCookie(host, person, ...values)).body.mfa_required
    expect(await asks(value)).toBe(false)

    const [body = '', end = '', mac = ''] = value.split('.')
    const [entry] = JSON.parse(Buffer.from(body, 'base64url').toString()) as { token: string }[]
    const forged = Buffer.from(JSON.stringify([{ ...entry, token: 'a'.repeat(43) }])).toString('base64url')
    const longer = String(Number(end) + 60)
    const byOwnKey = createHmac('sha256', 'a key of the attacker').update(body).digest('base64url')
    const changed = [
      [forged, end, mac].join('.'),
      [body, longer, mac].join('.'),
      [body, end, byOwnKey].join('.'),
      [body, end].join('.'),
      `${value}x`,
      entry?.token ?? '',
      '[]',
    ]
    for (const one of [other.value, ...changed]) expect([one, await asks(one)]).toEqual([one, true])
    expect(await asks(value, other.value)).toBe(true)
    expect(await asks(other.value, value)).toBe(true)
  })

  test('attack: the value of one account is no trust of another, even under one cookie of one browser', async () => {
    const host = await start()
    const [one, other] = [await trusting(host), await trusting(host)]
    await host.knex('auth_trusted_devices').where({ user_id: other.userId }).update({ user_id: one.userId })
    expect(await isTrusted(other.browser, other)).toBe(false)
  })

  test('attack: a trust without the password is 401, and uses nothing', async () => {
    const host = await start()
    const person = await trusting(host)
    const answer = await send(person.browser, '/login', { email: person.email, password: 'a wrong one, no doubt' })
    expect([answer.status, answer.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect((await trustRows(host, person.userId))[0]?.last_used_at).toBeNull()
  })

  test('attack: an expired password is not shortened', async () => {
    const host = await start()
    const person = await trusting(host)
    const at = host.clock.now()
    await host
      .knex('auth_users')
      .where({ id: person.userId })
      .update({ password_expired_at: database.name === 'sqlite' ? at.getTime() : at })
    expect(await isTrusted(person.browser, person)).toBe(false)
  })

  test('attack: at /reauthenticate, and with a code that makes a change final, trust_device trusts nothing', async () => {
    const host = await start()
    const person = await enrolled(host)
    const browser = host.browser()
    await verified(browser, person, { body: {} })
    const final = [
      await send(browser, '/reauthenticate', { code: person.app.nextCode(), trust_device: true }),
      await send(browser, '/mfa/recovery-codes', { code: person.app.nextCode(), trust_device: true }),
      await send(browser, '/password-change/mfa', { code: person.app.nextCode(), new_password: otherPassword, trust_device: true }),
    ]
    for (const answer of final) {
      expect([answer.status < 300, 'device_trusted' in Object(answer.body)]).toEqual([true, false])
      expect(setCookieOf(answer, 'auth_trust')).toBeNull()
    }
    expect(await trustRows(host, person.userId)).toEqual([])
  })

  test('attack: a phishing proxy adds trust_device; the owner gets a notice, ends its session, and the trust ends', async () => {
    const host = await start()
    const person = await enrolled(host, { emailVerifiedAt: new Date(0) })
    const proxy = host.browser()
    expect((await verified(proxy, person)).body.device_trusted).toBe(true)
    const notices = () => host.mails.mails.filter(({ to, subject }) => to === person.email && subject.includes('trusted'))
    await expect.poll(() => notices().length).toBe(1)

    const owner = host.browser()
    await verified(owner, person, { body: {} })
    const { body: sessions } = await owner.get('/auth/sessions')
    const [row] = await trustRows(host, person.userId)
    const ofProxy = sessions.find(({ id }: { id: string }) => id === row?.session_id)
    expect((await owner.delete(`/auth/sessions/${ofProxy.id}`)).status).toBe(204)
    expect(await trustRows(host, person.userId)).toEqual([])
    expect(await isTrusted(proxy, person)).toBe(false)
  })

  test('attack: a stolen database has no value that a browser could send', async () => {
    const host = await start()
    const { person, value } = await trustedValue(host)
    const [entry] = JSON.parse(Buffer.from(value.split('.')[0] ?? '', 'base64url').toString()) as { token: string }[]
    expect(JSON.stringify(await trustRows(host, person.userId))).not.toContain(entry?.token)
  })
})
