import { describe, expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { loginAs } from '../../src/testing'
import { bearerOf, isAlive, mailsTo, newAddress, otherPassword, password, post, signedIn, userOf } from '../local/people'
import { addUser } from '../social/accounts-at-hand'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { mailbox } from '../support/mailbox'
import { authenticator } from './authenticator'
import { ageFactor, challengeOf, type EnrolledMember, enrolled, guess, onMfa, outcome, signedInAgain, verify } from './people'

describe.each(await databases())('what a code allows, on $name', (database) => {
  const { start, opened } = onMfa(database)

  test.each([true, false])(
    'an account born by a provider has no password to show; the table has password_set_at: %j',
    async (hasColumn) => {
      const store = createKnexStore({ knex: opened().knex, ...(!hasColumn && { users: { columns: { passwordSetAt: false as const } } }) })
      const host = await start({ options: { store } })
      const { body } = await signIn(host, host.browser(), { profile: newPerson() })
      const step = (path: string, sent: object, token = body.access_token) => post(host, path, sent, bearerOf({ token }))

      const started = await step('/mfa/enroll', {})
      expect(started.status, started.text).toBe(200)
      const app = authenticator(started.body.secret, host.clock)
      const confirmed = await step('/mfa/confirm', { code: app.code() })
      expect(confirmed.status, confirmed.text).toBe(200)
      expect((await step('/mfa/disable', { code: app.nextCode() }, confirmed.body.access_token)).status).toBe(204)
    },
  )

  test('R-114: disable takes password and code, takes the factor and its recovery codes off, and ends every session but the one shown', async () => {
    const host = await start()
    const kept = await enrolled(host)
    const other = await signedInAgain(host, kept)
    const disable = (body: object) => post(host, '/mfa/disable', body, bearerOf(kept))
    const code = kept.app.nextCode()
    expect(outcome(await disable({ code }))).toBe('UNAUTHORIZED')
    expect(outcome(await disable({ code, password: 'wrong' }))).toBe('UNAUTHORIZED')
    expect(outcome(await disable({ code: kept.app.code(9), password }))).toBe('MFA_CODE_INVALID')
    expect((await disable({ code, password, refresh_token: kept.refreshToken })).status).toBe(204)

    expect(await userOf(host, kept.email)).toMatchObject({ totpSecret: null, totpEnabledAt: null, totpLastStep: null })
    expect(await host.knex('auth_recovery_codes').where({ user_id: kept.userId })).toEqual([])
    expect([await isAlive(host, kept.refreshToken), await isAlive(host, other.refreshToken)]).toEqual([true, false])
    expect((await post(host, '/login', { email: kept.email, password })).body.mfa_required).toBe(false)
    expect(outcome(await disable({ code, password }))).toBe('MFA_NOT_ENROLLED')
  })

  test('a password change by code: a new password, and every session ends but the one shown', async () => {
    const host = await start()
    const kept = await enrolled(host)
    const other = await signedInAgain(host, kept)
    const link = await host.auth.service.requestPasswordReset(kept.email)
    const change = { code: kept.app.nextCode(), new_password: otherPassword, refresh_token: kept.refreshToken }
    expect((await post(host, '/password-change/mfa', change, bearerOf(kept))).status).toBe(204)

    expect([await isAlive(host, kept.refreshToken), await isAlive(host, other.refreshToken)]).toEqual([true, false])
    expect(outcome(await post(host, '/login', { email: kept.email, password }))).toBe('UNAUTHORIZED')
    expect((await post(host, '/login', { email: kept.email, password: otherPassword })).body.mfa_required).toBe(true)
    expect(outcome(await post(host, '/password-reset/confirm', { token: link?.token, new_password: password }))).toBe('INVALID_TOKEN')
  })
})

describe('what a code allows, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('an account whose password was generated has none to show, at disable', async () => {
    const host = await start()
    const user = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password), passwordSetAt: null })
    const { service } = host.auth
    const { secret } = await service.enrollTotp(user.id)
    const app = authenticator(secret, host.clock)
    const session = await service.confirmTotp({ userId: user.id, amr: ['ext'], code: app.code() })
    expect(session).toMatchObject({ amr: ['ext', 'otp'] })
    const { accessToken: token } = await loginAs(host.auth, { id: user.id })
    expect((await post(host, '/mfa/disable', { code: app.nextCode() }, bearerOf({ token }))).status).toBe(204)
  })

  test('a new password that the policy refuses costs no code and no attempt', async () => {
    const host = await start({ options: { throttle: { mfa: { attempts: 1, windowSeconds: 900 } } } })
    const person = await enrolled(host)
    const code = person.app.nextCode()
    const change = (new_password: string) => post(host, '/password-change/mfa', { code, new_password }, bearerOf(person))
    const refused = await change('short')
    expect([refused.status, refused.body.details]).toEqual([422, { rule: 'too_short', min: 12, message: expect.any(String) }])
    expect((await change(otherPassword)).status).toBe(204)
  })

  test('with mfaEnabled off /password-change/mfa is there: 422 without a factor, and an enrolled account’s code is still checked', async () => {
    const on = await start()
    const person = await enrolled(on)
    const off = await start({ settings: { mfaEnabled: false } })
    const member = await post(off, '/login', {
      email: (await addUser(off.knex, { email: newAddress(), hashedPassword: await off.hasher.hash(password) })).email,
      password,
    })
    const unenrolled = await guess(off, '/password-change/mfa', { token: member.body.access_token }, '123456')

    expect([unenrolled.status, unenrolled.body.code]).toEqual([422, 'MFA_NOT_ENROLLED'])
    expect(outcome(await guess(off, '/password-change/mfa', person, person.app.code(9)))).toBe('MFA_CODE_INVALID')
    expect((await guess(off, '/password-change/mfa', person, person.app.nextCode())).status).toBe(204)
  })

  test('/password-change is 403 MFA_REQUIRED for a session that has not shown the factor, and goes through for one that has', async () => {
    const host = await start()
    const person = await enrolled(host)
    const off = await start({ settings: { mfaEnabled: false } })
    const plain = (await post(off, '/login', { email: person.email, password })).body.access_token
    const change = (token: string) =>
      post(host, '/password-change', { current_password: password, new_password: otherPassword }, bearerOf({ token }))

    const refused = await change(plain)
    expect([refused.status, refused.body.code]).toEqual([403, 'MFA_REQUIRED'])
    expect((await change(person.token)).status).toBe(204)
  })

  test('in cookies the session that goes on is the one whose cookie came along', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie' } })
    const person = await enrolled(host)
    const browsers = [host.browser(), host.browser()] as const
    for (const browser of browsers) {
      const { body } = await browser.post('/auth/login').send({ email: person.email, password })
      await browser.post('/auth/mfa/verify').send({ mfa_token: body.mfa_token, code: person.app.nextCode() })
    }
    const change = { code: person.app.nextCode(), new_password: otherPassword }
    expect((await browsers[0].post('/auth/password-change/mfa').send(change)).status).toBe(204)
    expect((await browsers[1].post('/auth/refresh')).status).toBe(401)
    expect((await browsers[0].post('/auth/refresh')).status).toBe(200)
    const disable = { code: person.app.nextCode(), password: otherPassword }
    expect((await browsers[0].post('/auth/mfa/disable').send(disable)).status).toBe(204)
    expect((await browsers[0].post('/auth/refresh')).status).toBe(200)
  })

  test('from another site the cookie’s routes are refused', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie' } })
    const browser = host.browser()
    for (const path of ['enroll', 'confirm', 'verify', 'disable', 'recovery-codes']) {
      const cookie = { Origin: 'https://evil.example.test', Cookie: `access_token=${(await enrolled(host)).token}` }
      expect([path, outcome(await browser.post(`/auth/mfa/${path}`).set(cookie).send({}))]).toEqual([path, 'CSRF_VALIDATION_FAILED'])
    }
  })

  test('the owner hears of each: mails, and events with an id and nothing else', async () => {
    const mails = mailbox()
    const host = await start({ options: { mailer: mails, throttle: { mail: false } } })
    const told: unknown[] = []
    for (const name of ['mfa.enrolled', 'mfa.disabled', 'mfa.failed'] as const)
      host.auth.events.on(name, (payload) => told.push([name, payload]))
    const person: EnrolledMember = await enrolled(host)
    const { userId } = person
    await verify(host, await challengeOf(host, person), '000000')
    await guess(host, '/mfa/recovery-codes', person, person.app.nextCode())
    await guess(host, '/mfa/disable', person, person.app.nextCode())

    expect(told).toEqual([
      ['mfa.enrolled', { userId }],
      ['mfa.failed', { userId }],
      ['mfa.disabled', { userId }],
    ])
    await expect.poll(() => mails.mails.length).toBe(3)
    const subjects = mails.mails.map(({ kind, to, subject }) => [kind, to, subject])
    const notice = (subject: RegExp) => ['notice', person.email, expect.stringMatching(subject)]
    expect(subjects).toEqual([notice(/second|two/i), notice(/recovery codes/i), notice(/second|two/i)])
    expect(mailsTo(host, person.email)).toEqual([])
    expect(mails.mails.map(({ text, html }) => text + html).join()).not.toContain(person.secret)
  })

  test('what the owner hears of the factor is in the language of the request', async () => {
    const mails = mailbox()
    const host = await start({ options: { mailer: mails, throttle: { mail: false } } })
    const member = await signedIn(host)
    const ask = (path: string, body: object) => post(host, `${path}?lang=pt-BR`, body, bearerOf(member))
    const { body: enrolment } = await ask('/mfa/enroll', {})
    const app = authenticator(enrolment.secret, host.clock)
    const [first, second] = enrolment.recovery_codes as string[]
    const { body: pair } = await ask('/mfa/confirm', { code: app.code() })
    member.token = pair.access_token
    await ageFactor(host, member)
    await ask('/mfa/verify', { mfa_token: await challengeOf(host, member), code: first })
    await ask('/password-change/mfa', { code: second, new_password: password })
    await ask('/mfa/recovery-codes', { code: app.nextCode() })
    await ask('/mfa/disable', { code: app.nextCode(), password })

    await expect.poll(() => mails.mails.length).toBe(5)
    expect(mails.mails.map(({ locale }) => locale)).toEqual(Array(5).fill('pt-BR'))
  })
})
