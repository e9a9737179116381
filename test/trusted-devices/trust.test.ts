import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { type LocalHost, post, sha256 } from '../local/people'
import { enrolled } from '../mfa/people'
import { age, ownerWithFactor } from '../passkeys/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { type Delivery, dayMs, deliveries, isTrusted, login, onTrust, send, trust, trusting, trustRows, verified } from './people'

const cookieOf = (response: Parameters<typeof setCookieOf>[0]) => setCookieOf(response, 'auth_trust')
const sealed = (value: string) =>
  JSON.parse(Buffer.from(value.split('.')[0] ?? '', 'base64url').toString()) as { token: string; end: number }[]
const trustMails = ({ mails }: LocalHost, email: string) =>
  mails.mails.filter(({ to, subject }) => to === email && subject === 'A browser is now trusted for your account')

describe.each(await databases())('trusted devices on $name', (database) => {
  const { start } = onTrust(database)

  for (const [tokenDelivery, base] of Object.entries(deliveries) as [Delivery, string][]) {
    test(`in delivery ${tokenDelivery}, a code with trust_device makes the next login by password one step, and only in this browser`, async () => {
      const host = await start({ settings: { tokenDelivery } })
      const person = await trusting(host, { base })
      const answer = await login(person.browser, person, base)
      expect([answer.status, answer.body.mfa_required, 'device_trusted' in answer.body]).toEqual([200, false, false])
      expect(await isTrusted(host.browser(), person, base)).toBe(false)
      expect(await trustRows(host, person.userId)).toHaveLength(1)
    })
  }

  test('in every delivery with cookies, /session/mfa/verify trusts the browser, and /session/login uses the trust', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const person = await enrolled(host)
    const browser = host.browser()
    const answer = await verified(browser, person, { base: '/session' })
    expect([answer.status, answer.body]).toEqual([200, { user_id: person.userId, expires_at: expect.any(String), device_trusted: true }])
    expect(cookieOf(answer)).not.toBeNull()
    const next = await login(browser, person, '/session')
    expect(next.body).toEqual({ user_id: person.userId, expires_at: expect.any(String) })
  })

  test('the session of a trusted login has amr pwd, is not fresh and has no second factor, until a code confirms it', async () => {
    const host = await start({ host: (app, auth) => app.get('/strict', auth.guards.requireMfa(), (_req, res) => void res.json({})) })
    const person = await trusting(host)
    await login(person.browser, person)
    const [row] = await trustRows(host, person.userId)
    const [session] = await host.knex('auth_sessions').where({ id: row?.session_id })
    expect([session?.amr, session?.authenticated_at]).toEqual(['pwd', null])
    expect((await person.browser.get('/strict')).status).toBe(403)
    const change = () => send(person.browser, '/email-change/request', { new_email: 'new@example.test' })
    expect((await change()).body.code).toMatch(/^(REAUTHENTICATION|MFA)_REQUIRED$/)
    const wrong = await send(person.browser, '/reauthenticate', { password: 'a quiet harbour in winter' })
    expect(wrong.body.code).toBe('MFA_REQUIRED')
    expect((await send(person.browser, '/reauthenticate', { code: person.app.nextCode() })).status).toBe(200)
    expect((await change()).status).toBe(202)
    expect((await person.browser.get('/strict')).status).toBe(200)
  })

  test('the access token of a trusted login has auth_time 0', async () => {
    const host = await start()
    const person = await trusting(host)
    const answer = await login(person.browser, person)
    const token = setCookieOf(answer, 'access_token')?.value ?? ''
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect([claims.amr, claims.auth_time]).toEqual([['pwd'], 0])
  })

  test('the row has a hash, the session and the name of the browser; a use moves the session and the time alone', async () => {
    const host = await start()
    const person = await enrolled(host)
    const browser = host.browser()
    const answer = await trust(browser, person)
    const { token } = sealed(cookieOf(answer)?.value ?? '')[0] ?? { token: '' }
    const [made] = await trustRows(host, person.userId)
    expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    expect(made).toMatchObject({ token_hash: sha256(token), name: 'Firefox, Linux', last_used_at: null })
    host.clock.advance(60)
    expect(cookieOf(await login(browser, person))).toBeNull()
    const [used] = await trustRows(host, person.userId)
    expect(used?.session_id).not.toBe(made?.session_id)
    expect(used?.last_used_at).not.toBeNull()
    expect({ ...used, session_id: '', last_used_at: null }).toEqual({ ...made, session_id: '' })
  })

  test('the trust ends after its days, and a use does not extend it', async () => {
    const host = await start()
    const person = await trusting(host)
    host.clock.advance(29 * 86_400)
    expect(await isTrusted(person.browser, person)).toBe(true)
    host.clock.advance(86_399 - 60)
    expect(await isTrusted(person.browser, person)).toBe(true)
    host.clock.advance(120)
    expect(await isTrusted(person.browser, person)).toBe(false)
  })

  test('a row whose end is past is no trust, whatever the cookie says', async () => {
    const host = await start()
    const person = await trusting(host)
    const at = host.clock.now()
    const past = database.name === 'sqlite' ? at.getTime() : at
    await host.knex('auth_trusted_devices').where({ user_id: person.userId }).update({ ends_at: past })
    expect(await isTrusted(person.browser, person)).toBe(false)
  })

  test('a browser without the cookie never asks the table; one with it costs one read and one update', async () => {
    const host = await start()
    const person = await trusting(host)
    const ofTable = async (browser = host.browser()) => {
      const recorded = recordQueries(host.knex)
      await login(browser, person)
      return recorded
        .stop()
        .filter((sql) => sql.includes('auth_trusted_devices'))
        .map((sql) => sql.split(' ')[0])
    }
    expect(await ofTable()).toEqual([])
    expect(await ofTable(person.browser)).toEqual(['select', 'update'])
    const other = await enrolled(host)
    const recorded = recordQueries(host.knex)
    await login(person.browser, other)
    expect(recorded.stop().filter((sql) => sql.includes('auth_trusted_devices'))).toEqual([])
  })

  test('two logins at once in a trusted browser are both one step', async () => {
    const host = await start()
    const person = await trusting(host)
    const answers = await Promise.all([1, 2, 3].map(() => login(person.browser, person)))
    expect(answers.map(({ status, body }) => [status, body.mfa_required])).toEqual([1, 2, 3].map(() => [200, false]))
    expect(await trustRows(host, person.userId)).toHaveLength(1)
  })

  test('a passkey in the second step trusts the browser; a young one signs in and trusts nothing', async () => {
    const host = await start()
    for (const isYoung of [false, true]) {
      const person = await ownerWithFactor(host)
      await age(host, person.passkeyId, isYoung ? 0 : 2)
      const browser = host.browser()
      const { body: challenge } = await login(browser, person)
      const { body: options } = await send(browser, '/mfa/passkey/options', { mfa_token: challenge.mfa_token })
      const proof = { credential: person.authenticator.get(options), challenge_token: options.challenge_token }
      const answer = await send(browser, '/mfa/verify', { mfa_token: challenge.mfa_token, trust_device: true, ...proof })
      expect([answer.status, answer.body.device_trusted]).toEqual([200, !isYoung])
      expect(await trustRows(host, person.userId)).toHaveLength(isYoung ? 0 : 1)
      expect(await isTrusted(browser, person)).toBe(!isYoung)
    }
  })

  test('attack: a recovery code or a young factor signs in and trusts nothing', async () => {
    const host = await start()
    const old = await enrolled(host)
    const young = await enrolled(host, {}, { isYoung: true })
    const [one, other] = [host.browser(), host.browser()]
    const byRecovery = await verified(one, old, { body: { trust_device: true, code: old.recoveryCodes[0] } })
    const byYoung = await verified(other, young)
    for (const answer of [byRecovery, byYoung]) {
      expect([answer.status, answer.body.device_trusted]).toEqual([200, false])
      expect(cookieOf(answer)).toBeNull()
    }
    expect(await trustRows(host, old.userId)).toEqual([])
    expect(await trustRows(host, young.userId)).toEqual([])
    expect([await isTrusted(one, old), await isTrusted(other, young)]).toEqual([false, false])
  })

  test('without trust_device, nothing is trusted, and the answer says so', async () => {
    const host = await start()
    const person = await enrolled(host)
    for (const body of [{}, { trust_device: false }]) {
      const answer = await verified(host.browser(), person, { body })
      expect([answer.status, answer.body.device_trusted, cookieOf(answer)]).toEqual([200, false, null])
    }
    expect(await trustRows(host, person.userId)).toEqual([])
  })

  test('a wrong code trusts nothing', async () => {
    const host = await start()
    const person = await enrolled(host)
    const answer = await verified(host.browser(), person, { body: { trust_device: true, code: '000000' } })
    expect([answer.status, cookieOf(answer), await trustRows(host, person.userId)]).toEqual([401, null, []])
  })

  test('tokens in the body of delivery both ignore trust_device, and their answer has no member for it', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const person = await enrolled(host)
    const answer = await verified(host.browser(), person)
    expect([answer.status, 'device_trusted' in answer.body, cookieOf(answer)]).toEqual([200, false, null])
    expect(await trustRows(host, person.userId)).toEqual([])
  })

  test('off, as it is by default, the body is ignored, the answer has no member, and the table is never asked', async () => {
    const host = await start({ settings: { trustedDeviceDays: 0 } })
    const person = await enrolled(host)
    const browser = host.browser()
    const recorded = recordQueries(host.knex)
    const answer = await verified(browser, person)
    expect([answer.status, 'device_trusted' in answer.body, cookieOf(answer)]).toEqual([200, false, null])
    await host.auth.service.revokeSessions(person.userId)
    expect((await post(host, '/trusted-devices')).status).toBe(404)
    expect(recorded.stop().filter((sql) => sql.includes('trusted_devices'))).toEqual([])
  })

  test('one cookie holds ten accounts, newest first, until the last of them ends; the eleventh drops the oldest', async () => {
    const host = await start()
    const browser = host.browser()
    const people = []
    let last = ''
    for (let count = 0; count < 11; count++) {
      const person = await enrolled(host)
      const answer = await trust(browser, person)
      const { value = '', attributes = '' } = cookieOf(answer) ?? {}
      expect(attributes).toMatch(/^Max-Age=2592000; Path=\/; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
      people.push(person)
      last = value
    }
    expect(last.length).toBeLessThan(4_000)
    const ends = sealed(last).map(({ end }) => end)
    expect(ends).toEqual(ends.toSorted((one, other) => other - one))
    expect(ends).toHaveLength(10)
    const [first, second] = people
    expect([first && (await isTrusted(browser, first)), second && (await isTrusted(browser, second))]).toEqual([false, true])
  })

  test('a second trust of the same browser replaces the first', async () => {
    const host = await start({ settings: { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } })
    const person = await trusting(host)
    const { url } = await host.auth.service.requestEmailLogin(person.email)
    const first = await send(person.browser, '/email-login/confirm', { token: url?.split('/').at(-1) })
    const again = { mfa_token: first.body.mfa_token, code: person.app.nextCode(), trust_device: true }
    expect((await send(person.browser, '/mfa/verify', again)).body.device_trusted).toBe(true)
    expect(await trustRows(host, person.userId)).toHaveLength(1)
    expect(await isTrusted(person.browser, person)).toBe(true)
  })

  test('the owner is told once, by an event and a notice with time, browser and address, and no name of a client', async () => {
    const host = await start()
    const told: string[] = []
    host.auth.events.on('device.trusted', ({ userId }) => told.push(userId))
    const person = await trusting(host)
    await login(person.browser, person)
    expect(told).toEqual([person.userId])
    await expect.poll(() => trustMails(host, person.email).length).toBe(1)
    const [mail] = trustMails(host, person.email)
    expect(mail?.text).toMatch(/- Time: .+ UTC\n- Browser: Firefox, Linux\n- IP address: 127\.0\.0\.1\n/)
  })

  test('with our pages, the notice links to the page of the devices', async () => {
    const host = await start({ settings: { pagesEnabled: true } })
    const person = await trusting(host)
    await expect.poll(() => trustMails(host, person.email).length).toBe(1)
    expect(trustMails(host, person.email)[0]?.text).toContain('See your devices:\nhttps://app.example.test/auth/account/devices\n')
  })

  test('a trust is not made if the host’s claims fail, because its session is revoked', async () => {
    let fails = false
    const accessTokenClaims = () => {
      if (fails) throw new Error('down')
      return {}
    }
    const host = await start({ options: { accessTokenClaims } })
    const person = await enrolled(host)
    fails = true
    const answer = await verified(host.browser(), person)
    expect([answer.status, cookieOf(answer), await trustRows(host, person.userId)]).toEqual([503, null, []])
  })

  test('purgeExpired deletes rows that have ended, and no others', async () => {
    const host = await start()
    const [ended, alive] = [await trusting(host), await trusting(host)]
    const past = new Date(host.clock.now().getTime() - dayMs)
    await host
      .knex('auth_trusted_devices')
      .where({ user_id: ended.userId })
      .update({ ends_at: database.name === 'sqlite' ? past.getTime() : past })
    const deleted = await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now() })
    expect(deleted['trustedDevices']).toBeGreaterThanOrEqual(1)
    expect([await trustRows(host, ended.userId), (await trustRows(host, alive.userId)).length]).toEqual([[], 1])
  })
})
