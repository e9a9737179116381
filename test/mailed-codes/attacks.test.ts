import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { type LocalHost, newAddress, otherPassword, password, post, settled, signedIn } from '../local/people'
import { outcome } from '../mfa/people'
import { addUser } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { ask, byCode, byLink, onCodes, purposes, redeem, ways, wrong } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

/** Status, names and types of the members, and the cookies with their attributes: what a stranger sees. */
function looks({ status, body, headers }: supertest.Response): unknown {
  const types = Object.fromEntries(
    Object.entries(body as object).map(([name, value]) => [name, value === null ? 'null' : [typeof value, String(value).length]]),
  )
  const cookies = ([headers['set-cookie'] ?? []].flat() as string[])
    .map((line) => line.replace(/=[^;]+/, '=…').replace(/ Expires=[^;]+;/, ''))
    .sort()
  return { status, types, cookies }
}

describe.each(['bearer', 'cookie', 'both', 'session'] as const)('requests reveal no account, in delivery %s', (tokenDelivery) => {
  const { start } = onCodes(sqlite)
  const open = () =>
    start({
      settings: { tokenDelivery, cookieSecure: true },
      options: { refusesEmailLink: ({ name }) => name === 'refused', throttle: { links: false } },
    })

  async function addresses(host: LocalHost): Promise<Record<string, string>> {
    const active = (await signedInOrAdded(host)).email
    const pending = newAddress()
    await post(host, '/signup', { email: pending, password }).expect(201)
    const { email: deactivated } = await addUser(host.knex, { email: newAddress(), isActive: false })
    const { email: refused } = await addUser(host.knex, { email: newAddress(), name: 'refused' })
    return { unknown: newAddress(), active, pending, deactivated, refused }
  }
  const signedInOrAdded = (host: LocalHost) => addUser(host.knex, { email: newAddress() })

  test.each(['/signup', '/activation/request', '/password-reset/request'])(
    '%s: the same status, members, types and cookies for every address (30.1.2, 30.5)',
    async (path) => {
      const host = await open()
      const seen = new Map<string, unknown>()
      for (const [kind, email] of Object.entries(await addresses(host))) {
        const more = path === '/signup' ? { password: otherPassword } : {}
        seen.set(kind, looks(await post(host, path, { email, ...more })))
      }
      const unknown = seen.get('unknown')
      expect(unknown).toMatchObject({ types: { request_token: ['string', expect.any(Number)] } })
      for (const [kind, look] of seen) expect([kind, look]).toEqual([kind, unknown])
      const cookies = JSON.stringify(unknown)
      expect(cookies.includes('__Host-mail_code=…; Max-Age=600')).toBe(tokenDelivery !== 'bearer')
    },
  )
})

describe('attacks on mailed codes', () => {
  const { start } = onCodes(sqlite)

  test('a wrong code with passwords that contain the owner’s name: the answers of an unknown address (30.1.6, 30.5)', async () => {
    const host = await start()
    const { email } = await signedIn(host, { name: 'Bartholomew' })
    const requestFor = async (address: string) =>
      (await post(host, '/password-reset/request', { email: address })).body.request_token as string
    const unknown = await requestFor(newAddress())
    const known = await requestFor(email)
    await host.mails.next({ kind: 'password_reset', to: email })
    for (const new_password of ['Bartholomew and the harbour', email, 'short', otherPassword]) {
      const [one, other] = await Promise.all(
        [unknown, known].map((request_token) => post(host, '/password-reset/confirm', { code: '00000000', request_token, new_password })),
      )
      expect(one?.status).toBe(401)
      expect([other?.status, other?.body]).toEqual([one?.status, one?.body])
    }
  })

  test('a request for which nothing was mailed never works, and a new address with a taken one neither (30.1.2)', async () => {
    const host = await start()
    const { body } = await post(host, '/password-reset/request', { email: newAddress() }).expect(202)
    const stranger = { browser: host.browser(), headers: {} }
    const proof = { code: '12345678', request_token: body.request_token }
    for (const purpose of purposes)
      expect([purpose, outcome(await redeem(host, stranger, purpose, proof))]).toEqual([purpose, 'INVALID_TOKEN'])
  })

  test('mails beyond the limit have neither code nor row: that request_token never works (30.1.2)', async () => {
    const host = await start({ options: { throttle: { links: false, mail: { attempts: 1, windowSeconds: 3_600 } } } })
    const asked = await ask(host, 'ACTIVATION')
    await post(host, '/activation/request', { email: asked.email }).expect(202)
    await settled(host)
    expect(await host.knex('auth_email_logins').where({ email: asked.email })).toHaveLength(1)
  })

  test.each(purposes)('%s: the link’s token at login by email is 401, and the code stays invisible there (30.1.5)', async (purpose) => {
    const host = await start({ settings: { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } })
    const asked = await ask(host, purpose)
    for (const proof of [byLink(asked), byCode(asked)])
      expect(outcome(await post(host, '/email-login/confirm', proof))).toBe('EMAIL_LOGIN_INVALID')
    const login = await post(host, '/email-login/request', { email: asked.email })
    expect(outcome(await redeem(host, asked, purpose, { code: asked.code, request_token: login.body.request_token }))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, asked, purpose, byCode(asked)))).toBe(200)
  })

  test('five open codes of other purposes take no room from logins by email (30.1.5)', async () => {
    const host = await start({
      settings: { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}', singleActiveToken: false },
      options: { throttle: { links: false, mail: false } },
    })
    const { email } = await signedIn(host)
    const login = await post(host, '/email-login/request', { email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    for (let count = 0; count < 6; count++) {
      await post(host, '/password-reset/request', { email })
      await host.mails.next({ kind: 'password_reset', to: email })
    }
    await post(host, '/email-login/confirm', { code, request_token: login.body.request_token }).expect(200)
  })

  test('a reset by code ends in the second-factor step if a factor is active (30.1.9)', async () => {
    const host = await start({ settings: { mfaEnabled: true, mfaIssuer: 'Test' } })
    const asked = await ask(host, 'PASSWORD_RESET')
    await host
      .knex('auth_users')
      .where({ id: asked.userId })
      .update({ totp_secret: 'JBSWY3DPEHPK3PXP', totp_enabled_at: host.clock.now().getTime() })
    const { body } = await redeem(host, asked, 'PASSWORD_RESET', byCode(asked)).expect(200)
    expect(body).toMatchObject({ mfa_required: true, access_token: null })
  })

  test('an attacker who signed up does not get in by the owner’s code: another browser needs the binding (30.1.8)', async () => {
    const host = await start({ settings: { activationBinding: 'strict', tokenDelivery: 'session' } })
    const attacker = await ask(host, 'ACTIVATION')
    const owner = host.browser()
    await owner.post(`${host.prefix}/activation/request`).send({ email: attacker.email }).expect(202)
    const mail = await host.mails.next({ kind: 'activation', to: attacker.email })
    expect(outcome(await redeem(host, attacker, 'ACTIVATION', { code: mail.code }))).toBe('INVALID_TOKEN')
    const { body } = await redeem(host, { browser: owner, headers: {} }, 'ACTIVATION', { code: mail.code }).expect(200)
    expect(body.password_required).toBe(true)
    expect((await post(host, '/login', { email: attacker.email, password })).status).toBe(401)
  })
})

describe('what mailed codes cost, and what they leave alone', () => {
  const { start } = onCodes(sqlite)

  test.each(purposes)('%s: one insert a mail, and at most three statements a try (30.5)', async (purpose) => {
    const statements = async (mailedCodes: 'off' | 'both') => {
      const host = await start({ settings: { mailedCodes } })
      const request = await ways[purpose].prepare(host)
      const recording = recordQueries(host.knex)
      await host.browser().post(`${host.prefix}${request.path}`).set(request.headers).send(request.body)
      await host.mails.next({ to: request.email })
      await new Promise((resolve) => setTimeout(resolve, 20))
      return recording.stop()
    }
    const [off, both] = [await statements('off'), await statements('both')]
    expect(both.filter((sql) => sql.includes('auth_email_logins'))).toEqual([expect.stringMatching(/^insert into/)])
    expect(both.length).toBe(off.length + 1)

    const host = await start()
    const asked = await ask(host, purpose)
    for (const code of [wrong(asked), asked.code]) {
      const recording = recordQueries(host.knex)
      await redeem(host, asked, purpose, { ...byCode(asked), code })
      expect(
        recording.stop().filter((sql) => sql.includes('auth_email_logins') && !/^update.*`used_at`/.test(sql)).length,
      ).toBeLessThanOrEqual(3)
    }
  })

  test('no response waits until the code of an earlier request has ended: its time would show whether that address has an account', async () => {
    const host = await start({ settings: { tokenDelivery: 'session' }, options: { timingDefence: true } })
    const earlier = await ask(host, 'PASSWORD_RESET')
    const recording = recordQueries(host.knex)
    await earlier.browser.post('/auth/password-reset/request').send({ email: newAddress() }).expect(202)
    expect(recording.stop().filter((sql) => sql.includes('auth_email_logins'))).toEqual([])
    await host.auth.drain()
    expect(outcome(await redeem(host, earlier, 'PASSWORD_RESET', byCode(earlier)))).toBe('INVALID_TOKEN')
  })

  test.each(purposes)('%s: off, no answer has request_token, no mail a code, and a body needs the token (30.1.1)', async (purpose) => {
    const host = await start({ settings: { mailedCodes: 'off', tokenDelivery: 'both' } })
    const asked = await ask(host, purpose)
    expect([asked.requestToken, asked.code]).toEqual([undefined, ''])
    expect(outcome(await redeem(host, asked, purpose, { code: '12345678' }))).toBe('VALIDATION_ERROR')
    expect(outcome(await redeem(host, asked, purpose, byLink(asked)))).toBe(200)
  })
})
