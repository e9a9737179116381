import { describe, expect, test } from 'vitest'
import { ask, confirm, wrong } from '../email-login/people'
import { amrOf, bearerOf, type LocalHost, password, post, signedIn } from '../local/people'
import { ageFactor, enrolled, onMfa, outcome } from '../mfa/people'
import { databases } from '../support/databases'

const email = { emailLogin: 'both', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' } as const
const settings = { accessTokenTtlSeconds: 7_200 }

interface SignedIn {
  readonly token: string
  readonly email: string
}

const show = (host: LocalHost, who: { token: string }, code: string) => post(host, '/reauthenticate', { email_code: code }, bearerOf(who))

async function mailedTo(host: LocalHost, who: SignedIn): Promise<string> {
  const answer = await post(host, '/reauthenticate/email', {}, bearerOf(who))
  if (answer.status !== 202) throw new Error(answer.text)
  return (await host.mails.next({ kind: 'email_login', to: who.email })).code ?? ''
}

async function again(host: LocalHost, { email }: SignedIn): Promise<SignedIn> {
  return { email, token: (await post(host, '/login', { email, password })).body.access_token }
}

describe.each(await databases())('confirming by a mailed code, on $name', (database) => {
  const { start } = onMfa(database)

  test('a stale session becomes fresh by the code, once, and its methods say so', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    host.clock.advance(901)
    const refused = await post(host, '/mfa/enroll', {}, bearerOf(member))
    expect(refused.body.details).toEqual({ methods: ['password', 'email'] })
    const code = await mailedTo(host, member)
    expect(code).toMatch(/^\d{8}$/)
    const answer = await show(host, member, ` ${code.slice(0, 4)} ${code.slice(4)} `)

    expect([answer.status, answer.body.refresh_token, amrOf(answer.body.access_token)]).toEqual([200, null, ['pwd', 'email']])
    expect((await post(host, '/mfa/enroll', {}, bearerOf({ token: answer.body.access_token }))).status).toBe(200)
    expect(outcome(await show(host, member, code))).toBe('EMAIL_LOGIN_INVALID')
  })

  test('of many requests with one code at once, one makes fresh', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const code = await mailedTo(host, member)
    const answers = await Promise.all([1, 2, 3, 4].map(() => show(host, member, code)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
  })

  test('a code confirms the session it was mailed for, and no other of the same account', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const other = await again(host, member)
    const code = await mailedTo(host, member)
    expect(outcome(await show(host, other, code))).toBe('EMAIL_LOGIN_INVALID')
    const own = await mailedTo(host, other)
    expect(outcome(await show(host, other, code))).toBe('EMAIL_LOGIN_INVALID')
    expect((await show(host, member, code)).status).toBe(200) // neither the tries nor the mail of the other one ended it
    expect((await show(host, other, own)).status).toBe(200)
  })

  test('a code of a login confirms no session, and a code of a session signs nobody in', async () => {
    const host = await start({ settings: { ...settings, ...email } })
    const member = await signedIn(host)
    const login = await ask(host, member.email)
    expect(outcome(await show(host, member, login.code))).toBe('EMAIL_LOGIN_INVALID')
    const code = await mailedTo(host, member)
    expect(outcome(await show(host, member, login.code))).toBe('EMAIL_LOGIN_INVALID')
    const signIn = (typed: string) => confirm(host, { code: typed, request_token: login.requestToken }, login.browser)
    expect(outcome(await signIn(code))).toBe('EMAIL_LOGIN_INVALID')
    expect((await signIn(login.code)).status).toBe(200)
    expect((await show(host, member, code)).status).toBe(200)
  })

  test('after five wrong tries the code is dead, however right the sixth is', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    const code = await mailedTo(host, member)
    for (const typed of [wrong(code), wrong(code), '', '123', 'x'.repeat(300)])
      expect(outcome(await show(host, member, typed))).toBe('EMAIL_LOGIN_INVALID')
    expect(outcome(await show(host, member, code))).toBe('EMAIL_LOGIN_INVALID')
    expect((await show(host, member, await mailedTo(host, member))).status).toBe(200)
  })

  test('it ends after emailLoginTtlSeconds, and with the next one of its session', async () => {
    const host = await start({ settings: { ...settings, emailLoginTtlSeconds: 60 } })
    const member = await signedIn(host)
    const first = await mailedTo(host, member)
    const second = await mailedTo(host, member)
    expect(outcome(await show(host, member, first))).toBe('EMAIL_LOGIN_INVALID')
    host.clock.advance(60)
    expect(outcome(await show(host, member, second))).toBe('EMAIL_LOGIN_INVALID')
  })

  test('it stands in for no factor that is a day old: none is mailed, and an earlier one is worth nothing', async () => {
    const host = await start({ settings })
    const person = await enrolled(host, {}, { isYoung: true })
    const code = await mailedTo(host, person)
    await ageFactor(host, person)
    expect(outcome(await post(host, '/reauthenticate/email', {}, bearerOf(person)))).toBe('MFA_REQUIRED')
    expect(outcome(await show(host, person, code))).toBe('MFA_REQUIRED')
    expect(outcome(await post(host, '/reauthenticate', { email_code: code, password }, bearerOf(person)))).toBe('MFA_REQUIRED')
    const both = { email_code: code, code: person.app.nextCode() }
    expect((await post(host, '/reauthenticate', both, bearerOf(person))).status).toBe(200)
  })

  test('a reset of the password ends it', async () => {
    const host = await start({ settings })
    const member = await signedIn(host)
    await mailedTo(host, member)
    const link = await host.auth.service.requestPasswordReset(member.email)
    await host.auth.service.resetPassword({ token: link?.token ?? '', newPassword: 'another harbour in the winter' })
    const rows = await host.knex('auth_email_logins').where({ email: member.email })
    expect(rows.map((row) => row.used_at !== null)).toEqual([true])
  })
})

describe('confirming by a mailed code, further', async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  const { start } = onMfa(sqlite)

  test('nothing is mailed to an address that nobody has proven, nor to an account that takes no mailed links', async () => {
    const refusing = { isSet: false }
    const host = await start({ settings, options: { refusesEmailLink: () => refusing.isSet } })
    const member = await signedIn(host)
    const code = await mailedTo(host, member)
    refusing.isSet = true
    expect(outcome(await post(host, '/reauthenticate/email', {}, bearerOf(member)))).toBe('EMAIL_LINK_FORBIDDEN')
    expect(outcome(await show(host, member, code))).toBe('EMAIL_LOGIN_INVALID')
    refusing.isSet = false
    await host.knex('auth_users').where({ id: member.userId }).update({ email_verified_at: null })
    expect(outcome(await post(host, '/reauthenticate/email', {}, bearerOf(member)))).toBe('EMAIL_NOT_VERIFIED')
    host.clock.advance(901)
    expect((await post(host, '/password/first', {}, bearerOf(member))).body.details).toEqual({ methods: ['password'] })
  })

  test('a host is asked about mailed links outside of every transaction: one connection is enough', async () => {
    const heldConnections: number[] = []
    const host: LocalHost = await start({
      settings,
      options: {
        refusesEmailLink: () => {
          heldConnections.push(host.knex.client.pool.numUsed())
          return false
        },
      },
    })
    const member = await signedIn(host)
    const other = await again(host, member)
    await post(host, '/mfa/enroll', {}, bearerOf(member))
    heldConnections.length = 0

    const refused = await post(host, '/mfa/confirm', { code: '000000' }, bearerOf(other))
    expect(outcome(refused)).toBe('REAUTHENTICATION_REQUIRED')
    expect(refused.body.details).toEqual({ methods: ['password', 'email'] })
    expect(heldConnections).toEqual([0])
  })

  test('past the mails of an address the answer is the same, nothing is sent, and the earlier code stays', async () => {
    const host = await start({ settings, options: { throttle: { mail: { links: [{ attempts: 1, windowSeconds: 3_600 }] } } } })
    const member = await signedIn(host)
    const codes = [await mailedTo(host, member)]
    const asked = await post(host, '/reauthenticate/email', {}, bearerOf(member))
    expect(asked.status).toBe(202)
    expect(await host.knex('auth_email_logins').where({ email: member.email })).toHaveLength(1)
    expect((await show(host, member, codes[0] ?? '')).status).toBe(200)
  })

  test('requests count against throttle.links', async () => {
    const host = await start({ settings, options: { throttle: { mail: false, links: { attempts: 2, windowSeconds: 900 } } } })
    const member = await signedIn(host)
    const statuses = []
    for (let count = 0; count < 3; count++) statuses.push((await post(host, '/reauthenticate/email', {}, bearerOf(member))).status)
    expect(statuses).toEqual([202, 202, 429])
  })

  test('delivery session, and the service: a code of the one is good in the other', async () => {
    const host = await start({ settings: { tokenDelivery: 'session' } })
    const { email } = await signedIn({ ...host })
    const browser = host.browser()
    expect((await browser.post(`${host.prefix}/login`).send({ email, password })).status).toBe(200)
    const asked = await browser.post(`${host.prefix}/reauthenticate/email`).send({})
    expect(asked.status).toBe(202)
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const answer = await browser.post(`${host.prefix}/reauthenticate`).send({ email_code: code })
    expect([answer.status, answer.body.mfa_required]).toEqual([200, false])
  })

  test('auth.service mails and takes a code; another account’s session is INVALID_TOKEN', async () => {
    const host = await start({ settings })
    const [member, stranger] = [await signedIn(host), await signedIn(host)]
    const { id: sessionId } = await host.knex('auth_sessions').where({ user_id: member.userId }).first()
    const { service } = host.auth
    const issued = await service.requestConfirmationCode(member.userId, sessionId)
    const { code } = await host.mails.next({ kind: 'email_login', to: member.email })
    expect(issued?.code).toBe(code)
    await expect(service.requestConfirmationCode(stranger.userId, sessionId)).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
    await expect(service.reauthenticate({ userId: member.userId, sessionId, emailCode: code })).resolves.toMatchObject({ kind: 'session' })
  })
})
