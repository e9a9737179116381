import { describe, expect, test } from 'vitest'
import { createKnexStore, newPasswordTask, secondFactorTask, task } from '../../src'
import type { UserRecord } from '../../src/store/auth-store'
import { loginAs } from '../../src/testing'
import { approving, codeOf, isPending, putOnList } from '../approval/people'
import { ask, loginTemplate } from '../email-login/people'
import { bearerOf, type LocalHost, newAddress, otherPassword, password, post, resetLink, signedIn } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { mountedRoutes } from '../openapi/document-of'
import { logIn, passkeyOwner, passkeySettings } from '../passkeys/people'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { tokenOf } from '../support/mailbox'
import { undo, undoTokenOf } from '../undo/people'
import { change, codeFor, expired, onTasks, outcome, over, owing, type Person, person, throughDevice, throughFactor } from './people'

/** Section 29: who owes what, and what a step changes. */

const everybody = task({ key: 'everybody', when: () => true, complete() {} })

describe.each(await databases())('the rules of the tasks of a login on $name', (database) => {
  const { start } = onTasks(database)
  const firstTasks = async (host: LocalHost, { email }: Pick<Person, 'email'>) =>
    (await post(host, '/login', { email, password })).body.tasks_required

  test('no factor is owed by an unverified address, nor by an account with an active one; a passkey that was not used spares nobody', async () => {
    const host = await start({ settings: passkeySettings })
    expect(await firstTasks(host, await person(host, { isAdmin: true, emailVerifiedAt: null }))).toEqual([])
    const owner = await passkeyOwner(host)
    await change(host, owner, { isAdmin: true, emailVerifiedAt: new Date(0) })
    expect(await firstTasks(host, owner)).toEqual(['device', 'second_factor'])
    expect((await logIn(host, owner.authenticator)).body.tasks_required).toEqual([])
  })

  test('an account on the waiting list owes nothing: it is refused', async () => {
    const host = await start({ settings: approving, options: { loginTasks: [everybody] } })
    const who = await person(host)
    await putOnList(host, who)
    expect(codeOf(await post(host, '/login', { email: who.email, password }))).toEqual(isPending)
  })

  test('with unknownDevice code alone, only a login by password owes the code, and only of a verified account without a factor', async () => {
    const settings = { unknownDevice: 'code', emailLogin: 'both', ...loginTemplate, ...passkeySettings } as const
    const host = await start({ settings, options: { loginTasks: undefined } as never })
    const owner = await passkeyOwner(host, { changes: { emailVerifiedAt: null } })
    expect(await firstTasks(host, owner)).toEqual([])
    await change(host, owner, { emailVerifiedAt: new Date(0) })
    expect(await firstTasks(host, owner)).toEqual(['device'])
    const { token } = await ask(host, owner.email)
    for (const answer of [
      await logIn(host, owner.authenticator),
      await post(host, '/email-login/confirm', { token }),
      await post(host, '/password-reset/confirm', { token: await resetLink(host, owner.email), new_password: otherPassword }),
    ])
      expect(answer.body).toMatchObject({ tasks_required: [], task_token: null })
    expect((await post(host, '/tasks/new-password', {})).status).toBe(404)
  })

  test('the mail of a device code says that the password was right, when and where, and leads to a new one', async () => {
    const host = await start({ settings: { pagesEnabled: true, tokenDelivery: 'both', publicUrl: 'https://app.example.test' } })
    const who = await person(host, expired)
    const firefox = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'
    await host.browser().post('/auth/login').set('User-Agent', firefox).send({ email: who.email, password }).expect(200)
    const { text, url, code } = await host.mails.next({ kind: 'device_code', to: who.email })
    expect([code, url]).toEqual([expect.stringMatching(/^\d{8}$/), 'https://app.example.test/auth/forgot-password'])
    for (const part of ['Somebody typed the right password', 'Firefox, Windows', '127.0.0.1', 'UTC']) expect(text).toContain(part)
    const [row] = await host.knex('auth_email_logins').where({ email: who.email })
    expect([row.purpose, JSON.stringify(row).includes(String(code))]).toEqual(['DEVICE', false])
  })

  test('only right passwords count against the mails with device codes', async () => {
    const throttle = { login: false, mail: { deviceCodes: [{ attempts: 1, windowSeconds: 3_600 }] } } as const
    const host = await start({ options: { throttle } })
    const who = await person(host, expired)
    for (let guess = 0; guess < 3; guess += 1) await post(host, '/login', { email: who.email, password: otherPassword })
    expect((await throughDevice(host, who, await owing(host, who))).status).toBe(200)
  })

  test('a live session goes on: a refresh and a reauthentication ask for no task', async () => {
    const host = await start({ options: { loginTasks: [everybody, secondFactorTask({ when: () => true })] } })
    const who = await person(host)
    const { accessToken, refreshToken } = await loginAs(host.auth, { id: who.userId })
    const confirmed = await post(host, '/reauthenticate', { password, refresh_token: refreshToken }, bearerOf({ token: accessToken }))
    expect([confirmed.status, confirmed.body.access_token]).toEqual([200, expect.any(String)])
    const refreshed = await post(host, '/refresh', { refresh_token: confirmed.body.refresh_token ?? refreshToken })
    expect([refreshed.status, refreshed.body.access_token]).toEqual([200, expect.any(String)])
    expect((await owing(host, who)).tasks_required).toEqual(['device', 'second_factor', 'everybody'])
  })

  test('each route exists only if a configured task can need it', async () => {
    const routesWith = async (options: object, settings: object = {}) => {
      const { auth } = await start({ options, settings })
      return mountedRoutes(auth).flatMap((route) => (route.startsWith('post /tasks/') ? [route.slice('post /tasks/'.length)] : []))
    }
    const device = ['device', 'device/resend']
    expect(await routesWith({ loginTasks: [everybody] })).toEqual(['everybody'])
    expect((await routesWith({ loginTasks: [newPasswordTask()] })).sort()).toEqual([...device, 'new-password'])
    const factor = await routesWith({ loginTasks: [secondFactorTask({ when: () => true })] })
    expect(factor.sort()).toEqual([...device, 'second-factor/confirm', 'second-factor/enroll'])
    expect((await routesWith({ loginTasks: undefined }, { unknownDevice: 'code' })).sort()).toEqual(device)
  })

  test('a wrong body is 422 before a wrong token is 401, and that before another task is 409; no refusal counts a try or ends the token', async () => {
    const host = await start()
    const who = await person(host, { ...expired, isAdmin: true })
    const { task_token } = await owing(host, who)
    expect((await post(host, '/tasks/device', { task_token: 'nothing' })).status).toBe(422)
    expect(outcome(await post(host, '/tasks/new-password', { task_token: 'nothing', new_password: 'short' }))).toEqual(over)
    expect(outcome(await post(host, '/tasks/new-password', { task_token, new_password: 'short' }))).toEqual([409, 'CONFLICT'])
    expect(await host.knex('auth_email_logins').where({ email: who.email }).first('tries')).toEqual({ tries: 0 })
    expect((await post(host, '/tasks/device', { task_token, code: await codeFor(host, who) })).status).toBe(200)
    await post(host, '/tasks/device', { task_token, code: '00000000' }) // used
    expect(await host.knex('auth_email_logins').where({ email: who.email }).first('tries')).toEqual({ tries: 1 })
  })

  test('the cookie of the tasks ends with the 15 minutes of the first answer', async () => {
    const host = await start({ settings: { tokenDelivery: 'cookie' } })
    const who = await person(host, expired)
    const browser = host.browser()
    const first = await browser.post('/auth/login').send({ email: who.email, password })
    host.clock.advance(300)
    const second = await browser.post('/auth/tasks/device').send({ task_token: first.body.task_token, code: await codeFor(host, who) })
    expect(setCookieOf(second, 'login_tasks')?.attributes).toMatch(/^Max-Age=600;/)
  })

  test('the events of a login with tasks: once what it owes, each step, and the login at the end', async () => {
    const host = await start()
    const who = await person(host, { ...expired, name: 'asked' })
    const events: unknown[] = []
    for (const name of ['login', 'task.required', 'task.done', 'password.changed'] as const)
      host.auth.events.on(name, (payload) => events.push([name, payload]))
    const second = await throughDevice(host, who, await owing(host, who))
    const third = await post(host, '/tasks/new-password', { task_token: second.body.task_token, new_password: otherPassword })
    await post(host, '/tasks/terms-of-use', { task_token: third.body.task_token, accept: true }).expect(200)
    const { userId } = who
    expect(events).toEqual([
      ['task.required', { userId, tasks: ['device', 'new_password', 'terms_of_use'] }],
      ['task.done', { userId, task: 'device' }],
      ['password.changed', { userId, by: 'change' }],
      ['task.done', { userId, task: 'new_password' }],
      ['task.done', { userId, task: 'terms_of_use' }],
      ['login', { userId, amr: ['pwd', 'email'] }],
    ])
  })

  test.each(['new_password', 'second_factor'] as const)(
    '%s is a change of a way in: it ends every session, and its notice has the link that undoes it',
    async (owes) => {
      const host = await start()
      const who = await person(host, owes === 'new_password' ? expired : { isAdmin: true })
      const { refreshToken } = await loginAs(host.auth, { id: who.userId })
      const enrolled: unknown[] = []
      host.auth.events.on('mfa.enrolled', (payload) => enrolled.push(payload))
      const { task_token } = (await throughDevice(host, who, await owing(host, who))).body
      const done =
        owes === 'new_password'
          ? await post(host, '/tasks/new-password', { task_token, new_password: otherPassword })
          : await throughFactor(host, task_token)
      expect([done.status, done.body.tasks_required]).toEqual([200, []])
      expect((await post(host, '/refresh', { refresh_token: refreshToken })).status).toBe(401)
      expect(enrolled).toEqual(owes === 'second_factor' ? [{ userId: who.userId }] : [])
      const row = await host.knex('auth_sessions').where({ user_id: who.userId, revoked_at: null }).first('amr', 'authenticated_at')
      expect(row).toEqual(
        owes === 'new_password'
          ? { amr: 'pwd email', authenticated_at: expect.anything() }
          : { amr: 'pwd email otp', authenticated_at: null },
      )
      await undo(host, await undoTokenOf(host, who.email)).expect(200)
      expect((await post(host, '/refresh', { refresh_token: done.body.refresh_token })).status).toBe(401)
      if (owes === 'second_factor')
        expect(await host.knex('auth_users').where({ id: who.userId }).first('totp_enabled_at')).toEqual({ totp_enabled_at: null })
    },
  )

  test('the eleventh change of a day is 429, and leaves the token valid', async () => {
    const host = await start()
    const who = await person(host)
    for (let count = 0; count < 10; count += 1) {
      const [currentPassword, newPassword] = [`${password} ${count || ''}`.trim(), `${password} ${count + 1}`]
      await host.auth.service.changePassword({ userId: who.userId, currentPassword, newPassword })
    }
    await change(host, who, { ...expired, hashedPassword: await host.hasher.hash(password) })
    const { task_token } = (await throughDevice(host, who, await owing(host, who))).body
    const set = () => post(host, '/tasks/new-password', { task_token, new_password: otherPassword })
    expect(outcome(await set())).toEqual([429, 'TOO_MANY_REQUESTS'])
    expect(outcome(await set())).toEqual([429, 'TOO_MANY_REQUESTS'])
  })

  test('wrong codes for a new factor are 401, then 429, and leave the token valid', async () => {
    const host = await start({ options: { throttle: { login: false, mfa: { attempts: 2, windowSeconds: 60 } } } })
    const admin = await person(host, { isAdmin: true })
    const { task_token } = (await throughDevice(host, admin, await owing(host, admin))).body
    const { secret } = (await post(host, '/tasks/second-factor/enroll', { task_token })).body
    const confirm = (code: string) => post(host, '/tasks/second-factor/confirm', { task_token, code })
    for (let guess = 0; guess < 2; guess += 1) expect(outcome(await confirm('wrong'))).toEqual([401, 'MFA_CODE_INVALID'])
    expect(outcome(await confirm('wrong'))).toEqual([429, 'MFA_THROTTLED'])
    host.clock.advance(60)
    expect((await confirm(authenticator(secret, host.clock).code())).status).toBe(200)
  })

  const complete: Record<string, Partial<UserRecord>> = { address: { email: newAddress() }, name: { name: 'After' } }
  test.each(Object.keys(complete))(
    'complete() gets the body without the token, and the next token is of the account with its new %s',
    async (what) => {
      const seen: unknown[] = []
      const first = task({
        key: 'first',
        when: () => true,
        async complete({ id }, body, store, { trx }) {
          seen.push(body, typeof trx)
          await store.users.update(id, what === 'address' ? { email: `${database.name}-${newAddress()}` } : { name: 'After' })
        },
      })
      const host = await start({ options: { loginTasks: [first, everybody] } })
      const { task_token } = await owing(host, await person(host))
      const { body } = await post(host, '/tasks/first', { task_token, note: 'mine' })
      expect(body.tasks_required).toEqual(['everybody'])
      expect((await post(host, '/tasks/everybody', { task_token: body.task_token })).body.tasks_required).toEqual([])
      expect(seen).toEqual([{ note: 'mine' }, 'function'])
    },
  )

  test('an expiry sets the column and revokes the sessions; with keepSessions they stay', async () => {
    const host = await start()
    const who = await signedIn(host)
    const users = createKnexStore({ knex: host.knex }).users
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    expect((await users.find(who.userId))?.passwordExpiredAt).toEqual(host.clock.now())
    expect((await post(host, '/refresh', { refresh_token: who.refreshToken })).status).toBe(200)
    await host.auth.service.expirePassword(who.userId)
    expect(await host.knex('auth_sessions').where({ user_id: who.userId, revoked_at: null })).toEqual([])
  })

  test('an expired password does not stand for the session that asked for another address', async () => {
    const host = await start()
    const who = await signedIn(host)
    const to = newAddress()
    await post(host, '/email-change/request', { new_email: to, current_password: password }, bearerOf(who)).expect(202)
    const token = tokenOf(await host.mails.next({ kind: 'email_change', to }))
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    expect(outcome(await post(host, '/email-change/confirm', { token, password }))).toEqual([401, 'UNAUTHORIZED'])
    expect((await post(host, '/email-change/confirm', { token }, bearerOf(who))).status).toBe(200)
  })

  const ends: Record<string, (host: LocalHost, who: Person, tokens: { token: string; refreshToken: string }) => PromiseLike<unknown>> = {
    'revoke-others': (host, _, { token, refreshToken }) =>
      post(host, '/sessions/revoke-others', { refresh_token: refreshToken }, bearerOf({ token })).expect(204),
    'a change of the password by the owner': (host, _, { token, refreshToken }) =>
      post(
        host,
        '/password-change',
        { current_password: password, new_password: otherPassword, refresh_token: refreshToken },
        bearerOf({ token }),
      ),
    'a factor that the owner switches on': async (host, { userId }) => {
      const { secret } = await host.auth.service.enrollTotp(userId)
      await host.auth.service.confirmTotp({ userId, amr: ['pwd'], code: authenticator(secret, host.clock).code() })
    },
  }
  test.each(Object.keys(ends))('a task token after %s is over', async (name) => {
    const host = await start({ options: { loginTasks: [everybody] } })
    const who = await person(host)
    const { accessToken: token, refreshToken } = await loginAs(host.auth, { id: who.userId })
    const { task_token } = await owing(host, who)
    await ends[name]?.(host, who, { token, refreshToken })
    expect(outcome(await post(host, '/tasks/everybody', { task_token }))).toEqual(over)
  })
})
