import { describe, expect, test } from 'vitest'
import { newPasswordTask, secondFactorTask, task } from '../../src'
import { loginAs } from '../../src/testing'
import { ask, loginTemplate } from '../email-login/people'
import { bearerOf, newAddress, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { challengeOf, enrolled, verify } from '../mfa/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { anotherPassword, changePassword, undo, undoTokenOf } from '../undo/people'
import { change, codeFor, expired, type Owing, onTasks, outcome, over, owing, type Person, person, throughDevice } from './people'

/** The login still has to set a new password. */
async function owesPassword(host: Awaited<ReturnType<ReturnType<typeof onTasks>['start']>>): Promise<Person & Owing> {
  const who = await person(host, expired)
  const { body } = await throughDevice(host, who, await owing(host, who))
  return { ...who, ...body }
}

describe.each(await databases())('attacks on the tasks of a login on $name', (database) => {
  const { start } = onTasks(database)

  test('the password of an administrator without a factor, in an unknown browser, sets up no factor', async () => {
    const host = await start()
    const admin = await person(host, { isAdmin: true })
    const { tasks_required, task_token } = await owing(host, admin)
    expect(tasks_required).toEqual(['device', 'second_factor'])
    expect(outcome(await post(host, '/tasks/second-factor/enroll', { task_token }))).toEqual([409, 'CONFLICT'])
    expect(outcome(await post(host, '/tasks/second-factor/confirm', { task_token, code: '123456' }))).toEqual([409, 'CONFLICT'])
    expect(await host.knex('auth_users').where({ id: admin.userId }).first('totp_secret')).toEqual({ totp_secret: null })
    expect((await post(host, '/tasks/device', { task_token, code: await codeFor(host, admin) })).status).toBe(200)
  })

  test('a leaked and expired password, in an unknown browser, sets no new password', async () => {
    const host = await start()
    const who = await person(host, expired)
    const { tasks_required, task_token } = await owing(host, who)
    expect(tasks_required).toEqual(['device', 'new_password'])
    expect(outcome(await post(host, '/tasks/new-password', { task_token, new_password: otherPassword }))).toEqual([409, 'CONFLICT'])
    expect((await owing(host, who)).tasks_required).toEqual(['device', 'new_password'])
  })

  test('an expired password of an address that nobody verified is a wrong password in an unknown browser', async () => {
    let asked = 0
    const when = () => {
      asked += 1
      return true
    }
    const host = await start({ options: { loginTasks: [newPasswordTask(), task({ key: 'terms', when, complete() {} })] } })
    const who = await person(host, { ...expired, emailVerifiedAt: null })
    const wrong = await post(host, '/login', { email: who.email, password: 'no password of anybody' })
    const right = await post(host, '/login', { email: who.email, password })
    expect([right.status, right.body, asked]).toEqual([401, wrong.body, 0])
    const known = await host.auth.service.logIn({ email: who.email, password })
    expect([known.kind === 'tasks' && known.tasks, asked]).toEqual([['new_password', 'terms'], 1])
    const token = await resetLink(host, who.email)
    const reset = await post(host, '/password-reset/confirm', { token, new_password: otherPassword })
    expect(reset.body.tasks_required).toEqual(['terms'])
  })

  test('an expired password confirms nothing: reauthentication, a change of the password or address, evidence', async () => {
    const host = await start()
    const who = await person(host, { emailVerifiedAt: null })
    const { accessToken, refreshToken } = await loginAs(host.auth, { id: who.userId })
    const bearer = bearerOf({ token: accessToken })
    const { body } = await post(host, '/email-change/request', { new_email: newAddress(), current_password: password }, bearer)
    expect(body.code).toBeUndefined()
    const verification = await host.auth.service.requestEmailVerification(who.userId)
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    const wrong = [401, 'UNAUTHORIZED']
    expect(outcome(await post(host, '/reauthenticate', { password, refresh_token: refreshToken }, bearer))).toEqual(wrong)
    const passwords = { current_password: password, new_password: otherPassword }
    expect(outcome(await post(host, '/password-change', { ...passwords, refresh_token: refreshToken }, bearer))).toEqual(wrong)
    const token = String(verification?.token)
    expect(outcome(await post(host, '/email-verify/confirm', { token, password }))).toEqual(wrong)
  })

  test('of two task tokens of one account that set a password at once, one succeeds, and the password of the other signs nobody in', async () => {
    const host = await start({ settings: { passwordMinLength: 8 } })
    const first = await owesPassword(host)
    host.clock.advance(1)
    const { body: second } = await throughDevice(host, first, await owing(host, first))
    const choices = ['a first choice of words', 'a second choice of words']
    const answers = await Promise.all(
      [first.task_token, second.task_token].map((task_token, index) =>
        post(host, '/tasks/new-password', { task_token, new_password: choices[index] }),
      ),
    )
    expect(answers.map(outcome).sort()).toEqual([[200, undefined], over])
    const signsIn = await Promise.all(choices.map((choice) => post(host, '/login', { email: first.email, password: choice })))
    expect(signsIn.map(({ status }) => status)).toEqual(answers.map(({ status }) => status))
  })

  test('one task token is good for one step, and of two at once one succeeds', async () => {
    const host = await start()
    const { task_token } = await owesPassword(host)
    const set = () => post(host, '/tasks/new-password', { task_token, new_password: otherPassword })
    expect((await Promise.all([set(), set(), set()])).map(outcome).sort()).toEqual([[200, undefined], over, over])
    expect(outcome(await set())).toEqual(over)
  })

  const ends: Record<string, (host: Awaited<ReturnType<typeof start>>, who: Person) => Promise<unknown>> = {
    'a reset': async (host, { email }) =>
      post(host, '/password-reset/confirm', { token: await resetLink(host, email), new_password: 'a third choice of words' }),
    'a deactivation and activation': async (host, { userId }) => {
      await host.auth.service.deactivate(userId)
      await host.auth.service.activateUser(userId)
    },
    'a changed address': (host, who) => change(host, who, { email: newAddress() }),
    'a changed password': async (host, who) => change(host, who, { hashedPassword: await host.hasher.hash('another one of these') }),
    'revoke-sessions': (host, { userId }) => host.auth.service.revokeSessions(userId),
    'a logout everywhere': async (host, { userId }) =>
      host.auth.service.logOut((await loginAs(host.auth, { id: userId })).refreshToken, { allSessions: true }),
    'a deactivation': (host, { userId }) => host.auth.service.deactivate(userId),
    'another expiry by an administrator': async (host, { userId }) => {
      const admin = await enrolled(host)
      await change(host, admin, { isAdmin: true })
      const { body } = await verify(host, await challengeOf(host, admin), admin.app.nextCode())
      await post(host, `/admin/users/${userId}/expire-password`, {}, bearerOf({ token: body.access_token })).expect(204)
    },
  }
  test.each(Object.keys(ends))('a task token after %s is over, and counts nothing', async (name) => {
    const host = await start()
    const who = await owesPassword(host)
    await ends[name]?.(host, who)
    expect(outcome(await post(host, '/tasks/new-password', { task_token: who.task_token, new_password: otherPassword }))).toEqual(over)
  })

  test('a task token that a thief got by a password of his own is over after the undo', async () => {
    const host = await start()
    const owner = await signedIn(host, { emailVerifiedAt: new Date(0) })
    await changePassword(host, owner).expect(204)
    await change(host, owner, { name: 'asked' })
    const { body: thief } = await post(host, '/login', { email: owner.email, password: anotherPassword })
    expect(thief.tasks_required).toEqual(['terms_of_use'])
    await undo(host, await undoTokenOf(host, owner.email)).expect(200)
    expect(outcome(await post(host, '/tasks/terms-of-use', { task_token: thief.task_token, accept: true }))).toEqual(over)
  })

  test('a task token of the person who signed up with an address of another is over when its owner verifies it', async () => {
    const host = await start({ settings: { emailLogin: 'both', ...loginTemplate } })
    const who = await person(host, { name: 'asked', emailVerifiedAt: null })
    const planted = await owing(host, who)
    const { token } = await ask(host, who.email)
    const owner = await post(host, '/email-login/confirm', { token })
    expect([owner.status, owner.body.tasks_required]).toEqual([200, ['terms_of_use']])
    expect(outcome(await post(host, '/tasks/terms-of-use', { task_token: planted.task_token, accept: true }))).toEqual(over)
    expect((await post(host, '/tasks/terms-of-use', { task_token: owner.body.task_token, accept: true })).status).toBe(200)
  })

  test('a code is right for ten minutes; the login goes on with another one', async () => {
    const host = await start()
    const who = await person(host, expired)
    const { task_token } = await owing(host, who)
    const code = await codeFor(host, who)
    host.clock.advance(600)
    expect(outcome(await post(host, '/tasks/device', { task_token, code }))).toEqual([401, 'EMAIL_LOGIN_INVALID'])
    const { body: resent } = await post(host, '/tasks/device/resend', { task_token })
    expect((await throughDevice(host, who, resent)).status).toBe(200)
    const later = await owing(host, who)
    const inTime = await codeFor(host, who)
    host.clock.advance(599)
    expect((await post(host, '/tasks/device', { task_token: later.task_token, code: inTime })).status).toBe(200)
  })

  test('a token lives 15 minutes from the first answer, and no step extends it', async () => {
    const host = await start()
    const who = await person(host, expired)
    const first = await owing(host, who)
    host.clock.advance(300)
    const { body } = await throughDevice(host, who, first)
    host.clock.advance(599)
    const set = () => post(host, '/tasks/new-password', { task_token: body.task_token, new_password: 'short' })
    expect((await set()).status).toBe(422)
    host.clock.advance(1)
    expect(outcome(await set())).toEqual(over)
  })

  test('a task token is no access, refresh or second-factor token, and these are no task tokens', async () => {
    const host = await start()
    const { task_token } = await owing(host, await person(host, { isAdmin: true }))
    const member = await enrolled(host, { emailVerifiedAt: new Date(0) })
    const mfa = await post(host, '/login', { email: member.email, password })
    expect((await post(host, '/password-change', {}, bearerOf({ token: task_token }))).status).toBe(401)
    expect((await post(host, '/refresh', { refresh_token: task_token })).status).toBe(401)
    expect((await post(host, '/mfa/verify', { mfa_token: task_token, code: member.app.nextCode() })).status).toBe(401)
    for (const token of [member.token, member.refreshToken, mfa.body.mfa_token, `${task_token}x`, 'nothing'])
      expect(outcome(await post(host, '/tasks/device', { task_token: token, code: '12345678' }))).toEqual(over)
  })

  test('19 wrong codes at once, then the right one: only five are compared', async () => {
    const host = await start()
    const admin = await person(host, { isAdmin: true })
    const { task_token } = await owing(host, admin)
    const code = await codeFor(host, admin)
    const wrong = String((Number(code) + 1) % 100_000_000).padStart(8, '0')
    const tries = await Promise.all(Array.from({ length: 19 }, () => post(host, '/tasks/device', { task_token, code: wrong })))
    expect(new Set(tries.map(({ body }) => body.code))).toEqual(new Set(['EMAIL_LOGIN_INVALID']))
    expect(outcome(await post(host, '/tasks/device', { task_token, code }))).toEqual([401, 'EMAIL_LOGIN_INVALID'])
  })

  test('a code of another login, or of a login by email, is a wrong code; and a device code signs nobody in by email', async () => {
    const host = await start({ settings: { emailLogin: 'code' } })
    const admin = await person(host, { isAdmin: true })
    const first = await owing(host, admin)
    const firstCode = await codeFor(host, admin)
    const second = await owing(host, admin)
    const secondCode = await codeFor(host, admin)
    const { body: requested } = await post(host, '/email-login/request', { email: admin.email })
    const mailed = await host.mails.next({ kind: 'email_login', to: admin.email })
    for (const code of [secondCode, String(mailed.code)])
      expect(outcome(await post(host, '/tasks/device', { task_token: first.task_token, code }))).toEqual([401, 'EMAIL_LOGIN_INVALID'])
    const confirm = { code: firstCode, request_token: requested.request_token }
    expect(outcome(await post(host, '/email-login/confirm', confirm))).toEqual([401, 'EMAIL_LOGIN_INVALID'])
    expect((await post(host, '/tasks/device', { task_token: second.task_token, code: secondCode })).status).toBe(200)
  })

  test('requests for logins by email do not use up the mails with device codes, nor end the codes', async () => {
    const host = await start({ settings: { emailLogin: 'code' } })
    const admin = await person(host, { isAdmin: true })
    const { task_token } = await owing(host, admin)
    const code = await codeFor(host, admin)
    for (let request = 0; request < 8; request += 1) await post(host, '/email-login/request', { email: admin.email })
    const again = await owing(host, admin)
    expect(await codeFor(host, admin)).toMatch(/^\d{8}$/)
    expect((await post(host, '/tasks/device', { task_token, code })).status).toBe(200)
    expect(again.tasks_required).toEqual(['device', 'second_factor'])
  })

  test('past the limit of mails the login answers the same, and asking again is 429', async () => {
    const throttle = { login: false, mail: { deviceCodes: [{ attempts: 2, windowSeconds: 3_600 }] } } as const
    const host = await start({ options: { throttle } })
    const admin = await person(host, { isAdmin: true })
    await owing(host, admin)
    await owing(host, admin)
    const third = await owing(host, admin)
    expect(third.tasks_required).toEqual(['device', 'second_factor'])
    expect(host.mails.mails.filter(({ kind, to }) => kind === 'device_code' && to === admin.email)).toHaveLength(2)
    const rows = await host.knex('auth_email_logins').where({ email: admin.email }).orderBy('created_at')
    expect(rows.map(({ used_at }) => used_at === null).sort()).toEqual([false, true, true]) // nobody can guess the third
    expect(outcome(await post(host, '/tasks/device/resend', { task_token: third.task_token }))).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(outcome(await post(host, '/tasks/device', { task_token: third.task_token, code: '00000000' }))).toEqual([
      401,
      'EMAIL_LOGIN_INVALID',
    ])
  })

  test('a code that was asked for again ends the old code and the old token', async () => {
    const host = await start()
    const admin = await person(host, { isAdmin: true })
    const { task_token: old } = await owing(host, admin)
    const oldCode = await codeFor(host, admin)
    const { body } = await post(host, '/tasks/device/resend', { task_token: old })
    const code = await codeFor(host, admin)
    expect(outcome(await post(host, '/tasks/device', { task_token: old, code }))).toEqual(over)
    if (code !== oldCode)
      expect(outcome(await post(host, '/tasks/device', { task_token: body.task_token, code: oldCode }))).toEqual([
        401,
        'EMAIL_LOGIN_INVALID',
      ])
    expect((await post(host, '/tasks/device', { task_token: body.task_token, code })).body.tasks_required).toEqual(['second_factor'])
  })

  test('a factor that another session or login began is not this login’s to confirm', async () => {
    const host = await start({ options: { loginTasks: [secondFactorTask({ when: () => true })] } })
    const who = await person(host)
    const [first, second] = [await throughDevice(host, who, await owing(host, who)), await throughDevice(host, who, await owing(host, who))]
    const tokens = [first.body.task_token, second.body.task_token]
    expect(outcome(await post(host, '/tasks/second-factor/confirm', { task_token: tokens[0], code: '123456' }))).toEqual([
      422,
      'MFA_NOT_ENROLLED',
    ])
    await post(host, '/tasks/second-factor/enroll', { task_token: tokens[0] })
    const { body } = await post(host, '/tasks/second-factor/enroll', { task_token: tokens[1] })
    const code = authenticator(body.secret, host.clock).code()
    expect(outcome(await post(host, '/tasks/second-factor/confirm', { task_token: tokens[0], code }))).toEqual([422, 'MFA_NOT_ENROLLED'])
    const { accessToken, refreshToken } = await loginAs(host.auth, { id: who.userId })
    const bySession = await post(host, '/mfa/confirm', { code, refresh_token: refreshToken }, bearerOf({ token: accessToken }))
    expect(bySession.status).toBe(403)
    expect((await post(host, '/tasks/second-factor/confirm', { task_token: tokens[1], code })).status).toBe(200)
  })

  test('the cookie of the tasks is no token for the JSON routes, and an answer with tasks sets no session cookie', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie' } })
    const admin = await person(host, { isAdmin: true })
    const browser = host.browser()
    const first = await browser.post('/auth/login').send({ email: admin.email, password })
    expect(setCookieOf(first, 'login_tasks')?.attributes).toMatch(/Max-Age=900.*HttpOnly/)
    expect((first.headers['set-cookie'] as unknown as string[]).map((line) => line.split('=')[0])).toEqual(['login_tasks'])
    expect((await browser.post('/auth/tasks/device').send({ code: await codeFor(host, admin) })).status).toBe(422)
  })

  test('nothing differs before the password is right', async () => {
    const host = await start()
    const [admin, plain] = [await person(host, { isAdmin: true, ...expired }), await person(host)]
    const answers = await Promise.all(
      [admin.email, plain.email, newAddress()].map((email) => post(host, '/login', { email, password: 'no password of anybody' })),
    )
    expect(new Set(answers.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1)
  })

  test('a known device owes no code, and its new password does not make it unknown', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie', unknownDevice: 'code' } })
    const who = await person(host)
    const browser = host.browser()
    const first = await browser.post('/auth/login').send({ email: who.email, password })
    expect(first.body.tasks_required).toEqual(['device'])
    const { body } = await browser.post('/auth/tasks/device').send({ task_token: first.body.task_token, code: await codeFor(host, who) })
    expect(body).toMatchObject({ tasks_required: [], task_token: null })
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    await change(host, who, { isAdmin: true })
    const again = await browser.post('/auth/login').send({ email: who.email, password })
    expect(again.body.tasks_required).toEqual(['new_password', 'second_factor'])
    const renewed = { task_token: again.body.task_token, new_password: otherPassword }
    expect((await browser.post('/auth/tasks/new-password').send(renewed)).body.tasks_required).toEqual(['second_factor'])
  })

  test('expiring a password needs the task', async () => {
    const host = await start({ options: { loginTasks: [] } })
    await expect(host.auth.service.expirePassword('x')).rejects.toThrow('newPasswordTask()')
    expect(newPasswordTask()).toEqual({ kind: 'new_password' })
  })
})
