import { describe, expect, test } from 'vitest'
import { createKnexStore, purgeExpired } from '../../src'
import { ForbiddenError } from '../../src/core/errors'
import { amrOf, pending } from '../local/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { sendRaw } from '../support/send-raw'
import { ask, confirm, newAddress, onEmailLogin, person, request, userOf, wrong } from './people'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

const invalid = { status: 401, code: 'EMAIL_LOGIN_INVALID' }

function refusal({ status, body }: { status: number; body: { code?: string } }) {
  return { status, code: body.code }
}

describe.each(await databases())('login by email, on $name', (database) => {
  const { start } = onEmailLogin(database)

  test('the link signs in, in any browser, once; and spends the code', async () => {
    const host = await start()
    const { id, email } = await person(host)
    const { token, code, browser } = await ask(host, email)
    const answer = await confirm(host, { token })

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ user_id: id, expires_at: expect.any(String), mfa_required: false })
    expect(setCookieOf(answer, 'auth_session')).not.toBeNull()
    expect(refusal(await confirm(host, { token }))).toEqual(invalid)
    expect(refusal(await confirm(host, { code }, browser))).toEqual(invalid)
    expect((await userOf(host, email)).lastLoginAt).toEqual(host.clock.now())
  })

  test('the code signs in, in the browser that asked, typed in its groups or not; and spends the link', async () => {
    const host = await start()
    const { id, email } = await person(host)
    const { token, code, browser } = await ask(host, email)
    expect(code).toMatch(/^\d{8}$/)
    expect(refusal(await confirm(host, { code }))).toEqual(invalid)
    const answer = await confirm(host, { code: ` ${code.slice(0, 4)} ${code.slice(4)}` }, browser)

    expect([answer.status, answer.body.user_id]).toEqual([200, id])
    expect(refusal(await confirm(host, { token }))).toEqual(invalid)
    expect(refusal(await confirm(host, { code }, browser))).toEqual(invalid)
  })

  test('after five tries a code is dead, and the link still works', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token, code, browser } = await ask(host, email)
    for (let tries = 0; tries < 5; tries++) expect(refusal(await confirm(host, { code: wrong(code) }, browser))).toEqual(invalid)

    expect(refusal(await confirm(host, { code }, browser))).toEqual(invalid)
    expect((await confirm(host, { token })).status).toBe(200)
  })

  test('link and code end after emailLoginTtlSeconds, and their rows are purged', async () => {
    const host = await start({ settings: { emailLoginTtlSeconds: 60 } })
    const { email } = await person(host)
    const { token, code, browser } = await ask(host, email)
    host.clock.advance(60)

    expect(refusal(await confirm(host, { token }))).toEqual(invalid)
    expect(refusal(await confirm(host, { code }, browser))).toEqual(invalid)
    await purgeExpired(createKnexStore({ knex: host.knex }), { before: host.clock.now() })
    expect(await host.knex('auth_email_logins').where({ email })).toEqual([])
  })

  test('emailLoginSignup: the confirmation makes the account, active and proven, and the host hears of it', async () => {
    const seen: unknown[] = []
    const host = await start({
      settings: { emailLoginSignup: true },
      options: { signup: { onSignup: (user, body, _store, unit) => void seen.push([user.email, body, unit.isRepeat]) } },
    })
    const events: unknown[] = []
    host.auth.events.on('signup', (payload) => events.push(payload))
    const email = newAddress()
    const { token } = await ask(host, email)
    expect(await createKnexStore({ knex: host.knex }).users.findByEmail(email)).toBeNull()
    const answer = await confirm(host, { token })

    const user = await userOf(host, email)
    expect([answer.status, answer.body.user_id]).toEqual([200, user.id])
    expect(user).toMatchObject({ isActive: true, emailVerifiedAt: host.clock.now(), passwordSetAt: null, name: null })
    expect(seen).toEqual([[email, {}, false]])
    expect(events).toEqual([{ userId: user.id, by: 'email' }])
  })

  test('24.2: at the first proof the account is taken over; at a later one nothing is removed', async () => {
    const host = await start()
    const squatted = await person(host, { emailVerifiedAt: null, hashedPassword: await host.hasher.hash('a password of a stranger') })
    const first = await confirm(host, { token: (await ask(host, squatted.email)).token })
    expect([first.status, first.body.password_required]).toEqual([200, true])
    expect((await userOf(host, squatted.email)).passwordSetAt).toBeNull()

    const owner = await person(host, { hashedPassword: await host.hasher.hash('the password of the owner') })
    const later = await confirm(host, { token: (await ask(host, owner.email)).token })
    expect([later.status, later.body.password_required]).toEqual([200, undefined])
    expect((await userOf(host, owner.email)).hashedPassword).toBe(owner.hashedPassword)
  })

  test('24.2: an account that waits for its activation has it by the first login by email', async () => {
    const host = await start()
    const waiting = await pending(host)
    const { token } = await ask(host, waiting.email)
    const answer = await confirm(host, { token })

    expect([answer.status, answer.body.password_required]).toEqual([200, true])
    expect(await userOf(host, waiting.email)).toMatchObject({ isActive: true, emailVerifiedAt: host.clock.now() })
  })
})

describe('login by email', () => {
  const { start } = onEmailLogin(sqlite)

  test('in each delivery it opens what a login opens, with amr email', async () => {
    for (const tokenDelivery of ['bearer', 'cookie', 'both'] as const) {
      const host = await start({ settings: { tokenDelivery } })
      const { email } = await person(host)
      const asked = await ask(host, email)
      if (tokenDelivery === 'cookie') {
        const answer = await confirm(host, { code: asked.code }, asked.browser)
        expect([answer.status, answer.body.access_token]).toEqual([200, null])
        expect(amrOf(setCookieOf(answer, 'access_token')?.value ?? '')).toEqual(['email'])
        continue
      }
      const { code, requestToken: request_token } = asked
      // The cookie says nothing where tokens stand in bodies.
      expect(refusal(await confirm(host, { code }, asked.browser))).toEqual(invalid)
      const answer = await confirm(host, { code, request_token })
      expect([answer.status, amrOf(answer.body.access_token)]).toEqual([200, ['email']])
    }
  })

  test('delivery both: the cookie route takes the code by the cookie, and sets the cookies', async () => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const { email } = await person(host)
    const browser = host.browser()
    await browser.post('/auth/cookie/email-login/request').send({ email })
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const answer = await browser.post('/auth/cookie/email-login/confirm').send({ code })

    expect([answer.status, answer.body.access_token]).toEqual([200, null])
    expect(setCookieOf(answer, 'refresh_token')).not.toBeNull()
  })

  test('a second factor is asked for as ever', async () => {
    const host = await start({ settings: { mfaEnabled: true, mfaIssuer: 'Acme' } })
    const { email } = await person(host, { totpSecret: 'JBSWY3DPEHPK3PXP', totpEnabledAt: host.clock.now() })
    const answer = await confirm(host, { token: (await ask(host, email)).token })

    expect(answer.body).toEqual({ user_id: expect.any(String), mfa_required: true, mfa_token: expect.any(String) })
    expect(setCookieOf(answer, 'auth_session')).toBeNull()
  })

  test('exactly one of token and code: else 422, and nothing is counted', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token, code, browser } = await ask(host, email)
    expect((await confirm(host, {}, browser)).status).toBe(422)
    expect((await confirm(host, { token, code }, browser)).status).toBe(422)
    expect((await confirm(host, { token: 5 }, browser)).status).toBe(422)
    const [row] = await host.knex('auth_email_logins').where({ email })
    expect(row.tries).toBe(0)
  })

  test('whatever is no code is a wrong code, and junk is no token', async () => {
    const host = await start()
    const { email } = await person(host)
    const { browser } = await ask(host, email)
    for (const code of ['', 'x', '1'.repeat(500), '\0'])
      expect(refusal(await confirm(host, { code }, browser)), JSON.stringify(code)).toEqual(invalid)
    for (const token of ['x', 'A'.repeat(43)]) expect(refusal(await confirm(host, { token }))).toEqual(invalid)
    expect(refusal(await confirm(host, { code: '12345678' }))).toEqual(invalid)
  })

  test('known, unknown, closed and refusing addresses get one 202, byte for byte but for the random token', async () => {
    const host = await start({ options: { refusesEmailLink: ({ email }) => email.startsWith('refusing') } })
    const closed = await person(host)
    await host.auth.service.deactivate(closed.id)
    const addresses = [
      (await person(host)).email,
      newAddress(),
      closed.email,
      (await person(host, { email: `refusing-${newAddress()}` })).email,
    ]
    const answers = []
    for (const email of addresses) {
      const body = JSON.stringify({ email })
      const answer = await sendRaw(host.app, { path: '/auth/email-login/request', headers: { 'Content-Type': 'application/json' }, body })
      const { date: _date, 'set-cookie': cookies, ...headers } = answer.headers as Record<string, unknown>
      const { request_token: token, ...rest } = answer.body as Record<string, string>
      const shape = String(cookies)
        .replace(/=[^;]*/, ({ length }) => `=${length}`)
        .replace(/Expires=[^;]*/, '')
      answers.push(JSON.stringify([answer.status, headers, rest, token?.length, shape]))
    }
    expect(new Set(answers).size, answers.join('\n')).toBe(1)
    expect(answers[0]).toContain('202')
  })

  test('who gets which mail: a link, that there is no account, or nothing', async () => {
    const host = await start({ options: { refusesEmailLink: ({ email }) => email.startsWith('refusing') } })
    const told: unknown[] = []
    host.auth.events.on('email_login.requested', ({ userId }) => told.push(userId))
    const [known, unknown] = [await person(host), newAddress()]
    const closed = await person(host)
    await host.auth.service.deactivate(closed.id)
    const refusing = await person(host, { email: `refusing-${newAddress()}` })
    for (const email of [refusing.email, closed.email, unknown, unknown, known.email]) await request(host, email)
    await host.mails.next({ kind: 'email_login', to: known.email })
    const notice = await host.mails.next({ kind: 'notice', to: unknown })

    expect(notice.subject).toBe('There is no account with this address')
    expect(notice.text).toContain('you can sign up with this address')
    expect(host.mails.mails.map(({ to, kind }) => [to, kind])).toEqual([
      [unknown, 'notice'],
      [known.email, 'email_login'],
    ])
    await expect.poll(() => told).toEqual([refusing.id, closed.id, null, null, known.id])
  })

  test('emailLoginSilent: an address without an account gets nothing', async () => {
    const host = await start({ settings: { emailLoginSilent: true } })
    const { email } = await person(host)
    await request(host, newAddress())
    await ask(host, email)
    expect(host.mails.mails).toHaveLength(1)
  })

  test('return_to comes back in the browser that asked alone; a foreign one is 422', async () => {
    const host = await start()
    const { email } = await person(host)
    const [here, there] = [await ask(host, email, { body: { return_to: '/orders?page=2' } }), host.browser()]
    const other = await confirm(host, { token: here.token }, there)
    expect([other.status, other.body.return_to]).toEqual([200, undefined])

    const again = await ask(host, email, { body: { return_to: '/orders?page=2' } })
    const answer = await confirm(host, { token: again.token }, again.browser)
    expect([answer.status, answer.body.return_to]).toEqual([200, '/orders?page=2'])
    const foreign = await request(host, email, { body: { return_to: 'https://evil.example' } })
    expect([foreign.status, foreign.body.details.errors]).toEqual([422, [{ path: 'return_to', rule: 'string.uri' }]])
  })

  test('a `signup.admit` that throws a refusal is a no: no link is mailed, and the log calls it no failure', async () => {
    const admit = () => {
      throw new ForbiddenError()
    }
    const host = await start({ settings: { emailLoginSignup: true }, options: { signup: { admit } } })
    const email = newAddress()
    expect((await request(host, email)).status).toBe(202)
    const mail = await host.mails.next({ to: email })
    expect([mail.kind, mail.text.includes('you can sign up')]).toEqual(['notice', false])
    expect(host.logs.entries.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('any other error of `signup.admit` is told in the log', async () => {
    const admit = () => {
      throw new Error('the list of invitations is away')
    }
    const host = await start({ settings: { emailLoginSignup: true }, options: { signup: { admit } } })
    expect((await request(host, newAddress())).status).toBe(202)
    await expect.poll(() => host.logs.entries.filter(({ level }) => level === 'error').length).toBe(1)
  })

  test('guardRequest is asked with action email_login, before any mail', async () => {
    const seen: unknown[] = []
    const host = await start({ options: { guardRequest: (req, about) => void seen.push([req.body.email, about]) } })
    const { email } = await person(host)
    await ask(host, email)
    expect(seen).toEqual([[email, { action: 'email_login' }]])
  })

  test('the cookie is under a MAC, HttpOnly, and as long as the code; one that was made up is none', async () => {
    const host = await start()
    const { email } = await person(host)
    const answer = await request(host, email)
    const cookie = setCookieOf(answer, 'email_login')
    expect(cookie?.attributes).toMatch(/Max-Age=600; Path=\/auth;.*HttpOnly; SameSite=Lax/)
    const { code } = await host.mails.next({ kind: 'email_login', to: email })
    const forged = await host.browser().post('/auth/email-login/confirm').set('Cookie', `email_login=x${cookie?.value}`).send({ code })
    expect(refusal(forged)).toEqual(invalid)
  })

  test('a cross-site form can neither ask nor confirm', async () => {
    const host = await start()
    const { email } = await person(host)
    const { token } = await ask(host, email)
    for (const [path, body] of [
      ['request', { email }],
      ['confirm', { token }],
    ] as const) {
      const answer = await host.browser().post(`/auth/email-login/${path}`).set('Origin', 'https://evil.example').send(body)
      expect([answer.status, answer.body.code], path).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    }
    expect((await confirm(host, { token })).status).toBe(200)
  })

  test('codes are stored under a key: no plain hash of the digits stands in the table', async () => {
    const { createHash } = await import('node:crypto')
    const host = await start()
    const { email } = await person(host)
    const { code, token } = await ask(host, email)
    const row = JSON.stringify(await host.knex('auth_email_logins').where({ email }))
    const plain = ['sha256', 'sha1', 'md5'].map((name) => createHash(name).update(code).digest('hex'))
    for (const secret of [code, token, ...plain]) expect(row).not.toContain(secret)
    expect(row).toContain(createHash('sha256').update(token).digest('hex'))
  })

  test('reset, deactivation and undo end what was mailed', async () => {
    const host = await start()
    const { id, email } = await person(host)
    const { token } = await ask(host, email)
    await host.auth.service.resetPassword({
      token: (await host.auth.service.requestPasswordReset(email))?.token ?? '',
      newPassword: 'nine green bicycles uphill',
    })
    expect(refusal(await confirm(host, { token }))).toEqual(invalid)
    const again = await ask(host, email)
    await host.auth.service.deactivate(id)
    await host.auth.service.activateUser(id)
    expect(refusal(await confirm(host, { token: again.token }))).toEqual(invalid)
  })

  test('the service does the same without HTTP', async () => {
    const host = await start()
    const { id, email } = await person(host)
    const { service } = host.auth
    const { requestToken, code, url } = await service.requestEmailLogin(email)
    expect(url).toMatch(/^https:\/\/app\.example\.test\/in\/[\w-]{43}$/)
    expect(await service.confirmEmailLogin({ code: code ?? '', requestToken })).toMatchObject({
      kind: 'session',
      userId: id,
      amr: ['email'],
    })
    expect(await service.requestEmailLogin(newAddress())).toEqual({
      requestToken: expect.any(String),
      url: null,
      code: null,
      expiresAt: null,
    })
  })

  test('login.failed tells of a wrong code, without the address', async () => {
    const host = await start()
    const told: unknown[] = []
    host.auth.events.on('login.failed', (payload) => told.push(payload))
    const { email } = await person(host)
    const { code, browser } = await ask(host, email)
    await confirm(host, { code: wrong(code) }, browser)
    expect(told).toEqual([expect.objectContaining({ reason: 'EMAIL_LOGIN_INVALID', clientKey: expect.any(String) })])
    expect(JSON.stringify(told)).not.toContain(email)
  })
})
