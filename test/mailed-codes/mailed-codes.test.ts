import express from 'express'
import { describe, expect, test, vi } from 'vitest'
import type { LinkCodePurpose } from '../../src/store/auth-store'
import { bearerOf, newAddress, openAs, otherPassword, password, post, resetLink, sha256, signedIn } from '../local/people'
import { outcome } from '../mfa/people'
import { addUser, userById } from '../social/accounts-at-hand'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { type Asked, ask, byCode, byLink, onCodes, purposes, redeem, send, ways, wrong } from './people'

describe.each(await databases())('codes beside mailed links (30.1), on $name', (database) => {
  const { start } = onCodes(database)

  test.each(purposes)('%s: a code works once at its own route, and at no other (30.1.3, 30.1.5)', async (purpose) => {
    const host = await start()
    const asked = await ask(host, purpose)
    expect(asked.code).toMatch(/^\d{8}$/)
    for (const other of purposes.filter((one) => one !== purpose))
      expect([other, outcome(await redeem(host, asked, other, byCode(asked)))]).toEqual([other, 'INVALID_TOKEN'])
    expect(outcome(await redeem(host, asked, purpose, byCode(asked)))).toBe(200)
    expect(outcome(await redeem(host, asked, purpose, byCode(asked)))).toBe('INVALID_TOKEN')
  })

  test.each(purposes)('%s: a used link ends its code, and a used code its link (30.1.4)', async (purpose) => {
    const host = await start()
    const [one, other] = [await ask(host, purpose), await ask(host, purpose)]
    expect(outcome(await redeem(host, one, purpose, byLink(one)))).toBe(200)
    expect(outcome(await redeem(host, one, purpose, byCode(one)))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, other, purpose, byCode(other)))).toBe(200)
    expect(outcome(await redeem(host, other, purpose, byLink(other)))).toBe('INVALID_TOKEN')
  })

  test.each(purposes)('%s: of code, link and code at once, one is 200 (30.5)', async (purpose) => {
    const host = await start()
    const asked = await ask(host, purpose)
    const answers = await Promise.all([byCode(asked), byLink(asked), byCode(asked)].map((proof) => redeem(host, asked, purpose, proof)))
    expect(answers.map(outcome).sort()).toEqual([200, 'INVALID_TOKEN', 'INVALID_TOKEN'])
  })

  test.each(purposes)('%s: the row has the purpose and the hash of the link, and nothing in plain text (30.1.5)', async (purpose) => {
    const host = await start()
    const { code, email, token } = await ask(host, purpose)
    const [row] = await host.knex('auth_email_logins').where({ email })
    expect(row).toMatchObject({ purpose, token_hash: sha256(token), used_at: null, session_id: null, tries: 0 })
    expect(JSON.stringify([row, await host.knex('auth_user_tokens')])).not.toContain(code)
  })

  test('of nine tries at once, five are compared: the right one among the last is 401, and the link works (30.1.4)', async () => {
    const host = await start()
    const asked = await ask(host, 'PASSWORD_RESET')
    const guesses = Array.from({ length: 9 }, (_, by) =>
      redeem(host, asked, 'PASSWORD_RESET', { ...byCode(asked), code: wrong(asked, by + 1) }),
    )
    expect((await Promise.all(guesses)).map(outcome)).toEqual(Array(9).fill('INVALID_TOKEN'))
    expect((await host.knex('auth_email_logins').where({ email: asked.email }))[0]?.['tries']).toBe(5)
    expect(outcome(await redeem(host, asked, 'PASSWORD_RESET', byCode(asked)))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, asked, 'PASSWORD_RESET', byLink(asked)))).toBe(200)
  })

  test('a new password that the policy refuses gives the try back: after six of them the code still works (30.1.6)', async () => {
    const host = await start()
    const asked = await ask(host, 'PASSWORD_RESET')
    for (let count = 0; count < 6; count++)
      expect(outcome(await redeem(host, asked, 'PASSWORD_RESET', { ...byCode(asked), new_password: 'short' }))).toBe('VALIDATION_ERROR')
    expect((await host.knex('auth_email_logins').where({ email: asked.email }))[0]?.['tries']).toBe(0)
    expect(outcome(await redeem(host, asked, 'PASSWORD_RESET', byCode(asked)))).toBe(200)
  })
})

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('codes beside mailed links: requests and lives', () => {
  const { start } = onCodes(sqlite)

  test.each(purposes)('%s: in a browser the cookie names the request; request_token alone wins over it (30.1.3)', async (purpose) => {
    const host = await start({ settings: { tokenDelivery: 'both' } })
    const asked = await ask(host, purpose)
    const elsewhere = { ...asked, browser: host.browser() }
    expect(outcome(await redeem(host, elsewhere, purpose, { code: asked.code }))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, asked, purpose, { code: asked.code, request_token: 'not one' }))).toBe('INVALID_TOKEN')
    const grouped = `${asked.code.slice(0, 4)} ${asked.code.slice(4)}`
    expect(outcome(await redeem(host, asked, purpose, { code: grouped }))).toBe(200)
  })

  test('with another request_token a code is 401 (30.5)', async () => {
    const host = await start()
    const [one, other] = [await ask(host, 'PASSWORD_RESET'), await ask(host, 'PASSWORD_RESET')]
    expect(outcome(await redeem(host, one, 'PASSWORD_RESET', { code: one.code, request_token: other.requestToken }))).toBe('INVALID_TOKEN')
  })

  test.each(purposes)('%s: a code lives ten minutes, its link longer (30.1.4)', async (purpose) => {
    const host = await start()
    const [late, last] = [await ask(host, purpose), await ask(host, purpose)]
    host.clock.advance(599)
    expect(outcome(await redeem(host, last, purpose, byCode(last)))).toBe(200)
    host.clock.advance(1)
    expect(outcome(await redeem(host, late, purpose, byCode(late)))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, late, purpose, byLink(late)))).toBe(200)
  })

  test('a code ends with its link: a newer link with singleActiveToken, a reset, a deactivation (30.1.4, 30.5)', async () => {
    const host = await start()
    const person = await signedIn(host)
    const reset = {
      path: '/password-reset/request',
      body: { email: person.email },
      email: person.email,
      userId: person.userId,
      headers: {},
    }
    const older = await send(host, 'PASSWORD_RESET', reset)
    const newer = await send(host, 'PASSWORD_RESET', reset)
    expect(outcome(await redeem(host, older, 'PASSWORD_RESET', byCode(older)))).toBe('INVALID_TOKEN')
    const change = await ask(host, 'EMAIL_CHANGE')
    await post(host, '/password-reset/confirm', {
      token: await resetLink(host, (await userById(host.knex, change.userId)).email),
      new_password: otherPassword,
    }).expect(200)
    expect(outcome(await redeem(host, change, 'EMAIL_CHANGE', byCode(change)))).toBe('INVALID_TOKEN')
    await host.auth.service.deactivate(person.userId)
    await host.auth.service.activateUser(person.userId)
    expect(outcome(await redeem(host, newer, 'PASSWORD_RESET', byCode(newer)))).toBe('INVALID_TOKEN')
  })

  test('without singleActiveToken, a newer request of the browser ends the older code and not its link (30.1.4)', async () => {
    const host = await start({ settings: { tokenDelivery: 'session', singleActiveToken: false } })
    const { email, id: userId } = await addUser(host.knex, { email: newAddress() })
    const request = { path: '/password-reset/request', body: { email }, email, userId, headers: {} }
    const older = await send(host, 'PASSWORD_RESET', request)
    await send(host, 'PASSWORD_RESET', request, older.browser)
    expect(outcome(await redeem(host, older, 'PASSWORD_RESET', byCode(older)))).toBe('INVALID_TOKEN')
    const elsewhere = { ...older, browser: host.browser() }
    expect(outcome(await redeem(host, elsewhere, 'PASSWORD_RESET', byLink(older)))).toBe(200)
  })

  test('a request for an address without an account ends the older code too, so that it reveals nothing (30.1.2)', async () => {
    const host = await start({ settings: { tokenDelivery: 'session' } })
    const older = await ask(host, 'PASSWORD_RESET')
    await older.browser.post(`${host.prefix}/password-reset/request`).send({ email: newAddress() }).expect(202)
    expect(outcome(await redeem(host, older, 'PASSWORD_RESET', byCode(older)))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, older, 'PASSWORD_RESET', { code: older.code }))).toBe('INVALID_TOKEN')
  })

  test('a newer request of the browser before the earlier mail is made: that mail has the link alone, and no dead code (30.1.4)', async () => {
    const host = await start({ settings: { tokenDelivery: 'session' }, options: { timingDefence: true } })
    const [earlier, later] = [await addUser(host.knex, { email: newAddress() }), await addUser(host.knex, { email: newAddress() })]
    const browser = host.browser()
    for (const { email } of [earlier, later]) await browser.post('/auth/password-reset/request').send({ email }).expect(202)
    const first = await host.mails.next({ kind: 'password_reset', to: earlier.email })
    expect([first.code, first.url]).toEqual([undefined, expect.any(String)])
    const { code } = await host.mails.next({ kind: 'password_reset', to: later.email })
    const set = await browser.post('/auth/password-reset/confirm').send({ code, new_password: otherPassword })
    expect([set.status, set.body.user_id]).toEqual([200, later.id])
  })

  test.each(purposes)(
    '%s: the mail of an older request of the browser, made last, ends no newer code and link (30.1.4)',
    async (purpose) => {
      let release = () => {}
      const held: Promise<false>[] = []
      const host = await start({
        settings: { tokenDelivery: 'both' },
        options: { refusesEmailLink: () => held.pop() ?? false },
      })
      const { headers, ...first } = await ways[purpose].prepare(host)
      const browser = host.browser()
      let request = { ...first, headers }
      if (purpose === 'ACTIVATION') {
        await send(host, purpose, request, browser)
        request = { ...request, path: '/activation/request', body: { email: first.email } }
      }
      host.clock.advance(1)
      held.push(new Promise((resolve) => (release = () => resolve(false))))
      await browser.post(`${host.prefix}${request.path}`).set(headers).send(request.body).expect(202)
      await vi.waitUntil(() => held.length === 0)
      const newer = await send(host, purpose, request, browser)
      release()
      await host.auth.drain()
      const links = host.mails.mails.filter(({ to, kind }) => to === first.email && kind !== 'notice')
      expect(links).toHaveLength(purpose === 'ACTIVATION' ? 2 : 1) // the older request has no mail: its link would have ended at once
      expect(outcome(await redeem(host, newer, purpose, { code: newer.code }))).toBe(200)
    },
  )

  test('a request before the first mail of a sign-up is made: the mail of the sign-up follows, and its link is evidence in this browser', async () => {
    let release = () => {}
    const held: Promise<false>[] = [new Promise((resolve) => (release = () => resolve(false)))]
    const host = await start({
      settings: { tokenDelivery: 'both', activationBinding: 'strict' },
      options: { refusesEmailLink: () => held.pop() ?? false },
    })
    const [browser, email] = [host.browser(), newAddress()]
    await browser.post('/auth/signup').send({ email, password }).expect(201)
    await vi.waitUntil(() => held.length === 0)
    host.clock.advance(1)
    await browser.post('/auth/activation/request').send({ email }).expect(202)
    await host.mails.next({ kind: 'activation', to: email })
    release()
    await host.auth.drain()
    const [last] = host.mails.mails.filter(({ to, kind }) => to === email && kind === 'activation').slice(-1)
    const token = last && tokenOf(last)
    expect((await browser.post('/auth/cookie/activate').send({ token })).status).toBe(200)
    expect((await post(host, '/login', { email, password })).status).toBe(200)
  })

  test('the cookie keeps five requests, newest first, for ten minutes (30.1.2)', async () => {
    const host = await start({ settings: { tokenDelivery: 'session', cookieSecure: true }, options: { throttle: { links: false } } })
    const browser = host.browser()
    const oldest = await ask(host, 'ACTIVATION', browser)
    let answer = await browser.post(`${host.prefix}/password-reset/request`).send({ email: newAddress() })
    for (let count = 0; count < 4; count++)
      answer = await browser.post(`${host.prefix}/password-reset/request`).send({ email: newAddress() })
    const cookie = setCookieOf(answer, '__Host-mail_code')
    expect(cookie?.attributes).toMatch(/Max-Age=600; Path=\/; .*HttpOnly; Secure; SameSite=Lax/)
    const kept = JSON.parse(Buffer.from(String(cookie?.value.split('.')[0]), 'base64url').toString())
    expect(kept.map(({ purpose }: { purpose: LinkCodePurpose }) => purpose)).toEqual(Array(5).fill('PASSWORD_RESET'))
    expect(outcome(await redeem(host, oldest, 'ACTIVATION', { code: oldest.code }))).toBe('INVALID_TOKEN')
  })

  test.each(purposes)('%s: exactly one of token and code, and a code is a string (30.1.3)', async (purpose) => {
    const host = await start()
    const asked = await ask(host, purpose)
    for (const proof of [{}, { request_token: asked.requestToken }, { ...byCode(asked), ...byLink(asked) }, { code: Number(asked.code) }])
      expect(outcome(await redeem(host, asked, purpose, proof))).toBe('VALIDATION_ERROR')
    expect((await host.knex('auth_email_logins').where({ email: asked.email }))[0]?.['tries']).toBe(0)
    expect(outcome(await redeem(host, asked, purpose, { ...byCode(asked), code: '' }))).toBe('INVALID_TOKEN')
    expect(outcome(await redeem(host, asked, purpose, byCode(asked)))).toBe(200)
  })

  test('/activate/:token takes no code (30.1.3)', async () => {
    const host = await start()
    const asked = await ask(host, 'ACTIVATION')
    expect((await post(host, `/activate/${'x'.repeat(43)}`, byCode(asked))).status).not.toBe(200)
    expect(outcome(await redeem(host, asked, 'ACTIVATION', byCode(asked)))).toBe(200)
  })

  test('the request_token of a sign-up counts as its signup_token, beside the code and beside the link (30.1.8)', async () => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    for (const proof of [byCode, (asked: Asked) => ({ ...byLink(asked), request_token: asked.requestToken })]) {
      const asked = await ask(host, 'ACTIVATION')
      const { body } = await redeem(host, { ...asked, browser: host.browser() }, 'ACTIVATION', proof(asked)).expect(200)
      expect(body.password_required).toBeUndefined()
      await post(host, '/login', { email: asked.email, password }).expect(200)
    }
  })

  test('the request_token of another activation mail is no evidence: with strict binding the code takes over (30.1.8)', async () => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const { email } = await ask(host, 'ACTIVATION')
    const asked = await send(host, 'ACTIVATION', { path: '/activation/request', body: { email }, email, userId: '', headers: {} })
    const { body } = await redeem(host, asked, 'ACTIVATION', byCode(asked)).expect(200)
    expect(body.password_required).toBe(true)
    expect((await post(host, '/login', { email, password })).status).toBe(401)
  })

  test('a reset for a pending account mails an activation with a link alone (30.1.9)', async () => {
    const host = await start()
    const { email } = await ask(host, 'ACTIVATION')
    const { body } = await post(host, '/password-reset/request', { email }).expect(202)
    expect(body.request_token).toEqual(expect.any(String))
    const mail = await host.mails.next({ kind: 'activation', to: email })
    expect(mail.code).toBeUndefined()
    expect(mail.url).not.toBeNull()
  })

  test('a taken address is told without a code (30.1.9)', async () => {
    const host = await start()
    const { email } = await signedIn(host)
    await post(host, '/signup', { email, password }).expect(201)
    expect((await host.mails.next({ to: email })).code).toBeUndefined()
  })

  test('an account that refuses mailed links gets no code (30.1.9)', async () => {
    const host = await start({ options: { refusesEmailLink: () => true } })
    const { email } = await signedIn(host)
    await post(host, '/password-reset/request', { email }).expect(202)
    const newcomer = newAddress()
    await post(host, '/signup', { email: newcomer, password }).expect(201)
    expect(await host.knex('auth_email_logins').whereIn('email', [email, newcomer])).toEqual([])
  })

  test('a hook that may refuse links and does not: the sign-up mail still has its code (30.1.1)', async () => {
    const host = await start({ options: { refusesEmailLink: () => false } })
    const asked = await ask(host, 'ACTIVATION')
    expect(outcome(await redeem(host, asked, 'ACTIVATION', byCode(asked)))).toBe(200)
  })

  test('by the service: the link has the requestToken, and each method takes the code with it', async () => {
    const host = await start()
    const { service } = host.auth
    const codeTo = async (to: string) => (await host.mails.next({ to })).code ?? ''
    const email = newAddress()
    const [user, link] = await service.signUp({ email, password })
    const requestToken = link && typeof link === 'object' ? String(link.requestToken) : ''
    expect(await service.activate({ code: await codeTo(email), requestToken })).toMatchObject({ kind: 'session' })
    const reset = await service.requestPasswordReset(email)
    await service.resetPassword({ code: await codeTo(email), requestToken: String(reset?.requestToken), newPassword: otherPassword })
    await host.mails.next({ kind: 'notice', to: email })
    const to = newAddress()
    const change = await service.requestEmailChange({ userId: user.id, newEmail: to })
    await service.changeEmail({ code: await codeTo(to), requestToken: String(change?.requestToken) })
    const verification = await service.requestEmailVerification(user.id)
    const proof = { code: await codeTo(to), requestToken: String(verification?.requestToken) }
    await expect(service.verifyEmail({ ...proof, code: wrong(proof) })).rejects.toMatchObject({ code: 'INVALID_TOKEN' })
    await expect(service.verifyEmail(proof)).resolves.toMatchObject({ passwordRequired: false })
  })
})

describe('a change of address by code (30.1.7)', () => {
  const { start } = onCodes(sqlite)
  const tries = async (host: Awaited<ReturnType<typeof start>>, { email }: Asked) =>
    (await host.knex('auth_email_logins').where({ email }))[0]?.['tries']

  test('without the session that asked it is 401, with the password too, and no try is counted', async () => {
    const host = await start()
    const asked = await ask(host, 'EMAIL_CHANGE')
    const other = bearerOf(await openAs(host, asked.userId))
    for (const headers of [{}, other]) {
      for (const more of [{}, { password }])
        expect(outcome(await redeem(host, { ...asked, headers }, 'EMAIL_CHANGE', { ...byCode(asked), ...more }))).toBe('UNAUTHORIZED')
    }
    expect(await tries(host, asked)).toBe(0)
    expect(outcome(await redeem(host, asked, 'EMAIL_CHANGE', byCode(asked)))).toBe(200)
    expect((await userById(host.knex, asked.userId)).email).toBe(asked.email)
  })

  test('after the session that asked has ended it is 401 INVALID_TOKEN (25.3.1)', async () => {
    const host = await start()
    const asked = await ask(host, 'EMAIL_CHANGE')
    await host.auth.service.revokeSessions(asked.userId)
    const other = bearerOf(await openAs(host, asked.userId))
    expect(outcome(await redeem(host, { ...asked, headers: other }, 'EMAIL_CHANGE', byCode(asked)))).toBe('INVALID_TOKEN')
  })

  test('a taken address answers as a free one, also from another session', async () => {
    const host = await start()
    const owner = await signedIn(host)
    const free = await ask(host, 'EMAIL_CHANGE')
    const { headers, path } = await ways.EMAIL_CHANGE.prepare(host)
    const { body } = await post(host, path, { new_email: owner.email }, headers).expect(202)
    const taken = { code: '12345678', request_token: body.request_token }
    const [own, foreign] = [
      { browser: host.browser(), headers },
      { browser: host.browser(), headers: {} },
    ]
    expect(outcome(await redeem(host, own, 'EMAIL_CHANGE', taken))).toBe(
      outcome(await redeem(host, free, 'EMAIL_CHANGE', { ...byCode(free), code: wrong(free) })),
    )
    expect(outcome(await redeem(host, foreign, 'EMAIL_CHANGE', taken))).toBe('UNAUTHORIZED')
  })
})

describe('mailed codes by auth.with(req, res)', () => {
  const { start } = onCodes(sqlite)

  test.each(['bearer', 'session'] as const)('delivery %s: a host’s own forms ask for the code and redeem it', async (tokenDelivery) => {
    const host = await start({
      settings: { tokenDelivery, cookieSecure: true },
      host(app, auth) {
        app.post(
          '/forgot',
          express.json(),
          async (req, res) => void res.json(await auth.with(req, res).requestPasswordReset(req.body.email)),
        )
        app.post('/reset', express.json(), async (req, res) => {
          const { userId } = await auth.with(req, res).resetPassword({ ...req.body, newPassword: otherPassword })
          res.json({ userId })
        })
        app.post('/sign-up', express.json(), async (req, res) => void res.json(await auth.with(req, res).signUp({ ...req.body, password })))
        app.post('/activate', express.json(), async (req, res) => {
          const { userId } = await auth.with(req, res).activate(req.body)
          res.json({ userId })
        })
      },
    })
    const browser = host.browser()
    const email = newAddress()
    const proofOf = async (answer: { body: { requestToken?: string } }) => {
      const { code } = await host.mails.next({ to: email })
      return tokenDelivery === 'bearer' ? { code, requestToken: answer.body.requestToken } : { code }
    }
    const signedUp = await browser.post('/sign-up').send({ email }).expect(200)
    const { body } = await browser
      .post('/activate')
      .send(await proofOf(signedUp))
      .expect(200)
    const forgot = await browser.post('/forgot').send({ email }).expect(200)
    expect(forgot.body).toEqual({ url: null, requestToken: expect.any(String) })
    const reset = await browser
      .post('/reset')
      .send(await proofOf(forgot))
      .expect(200)
    expect(reset.body.userId).toBe(body.userId)
    expect((await post(host, '/login', { email, password: otherPassword })).status).toBe(200)
  })
})
