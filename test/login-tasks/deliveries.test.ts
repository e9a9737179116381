import { describe, expect, test, vi } from 'vitest'
import { createKnexStore, newPasswordTask, secondFactorTask, task } from '../../src'
import type { AuthContext } from '../../src/context'
import { loginTasksOf } from '../../src/login-tasks/login-task'
import { askTasks } from '../../src/login-tasks/tasks-owed'
import { loginAs } from '../../src/testing'
import { otherPassword, password, post } from '../local/people'
import { authenticator } from '../mfa/authenticator'
import { enrolled } from '../mfa/people'
import { appSettings, browse, exchange } from '../oauth-code/apps'
import { userRecord } from '../social/accounts-at-hand'
import { setCookieOf } from '../support/app'
import { databases } from '../support/databases'
import { logTap } from '../support/log-tap'
import { recordQueries } from '../support/record-queries'
import { codeFor, expired, onTasks, outcome, over, owing, person, terms, throughDevice, throughFactor } from './people'

const owesNothing = [secondFactorTask({ when: () => false }), newPasswordTask(), task({ key: 'terms', when: () => false, complete() {} })]

describe.each(await databases())('what a login with tasks answers, asks and costs on $name', (database) => {
  const { start } = onTasks(database)

  test.each([
    ['cookie', '', { access_token: null, refresh_token: null, mfa_required: false, mfa_token: null }],
    ['both', '/cookie', { access_token: null, refresh_token: null, mfa_required: false, mfa_token: null }],
    ['session', '', { expires_at: null, mfa_required: false }],
    ['bearer', '/session', { expires_at: null, mfa_required: false }],
    ['both', '/session', { expires_at: null, mfa_required: false }],
  ] as const)(
    'delivery %s at %s/login answers the tasks, and the session in its cookie at the end',
    async (tokenDelivery, base, members) => {
      const host = await start({ settings: { tokenDelivery } })
      const who = await person(host, expired)
      const browser = host.browser()
      const first = await browser.post(`/auth${base}/login`).send({ email: who.email, password })
      expect(first.body).toEqual({
        user_id: who.userId,
        ...members,
        tasks_required: ['device', 'new_password'],
        task_token: expect.any(String),
      })
      expect(setCookieOf(first, 'login_tasks')).not.toBeNull()
      const resent = await browser.post(`/auth${base}/tasks/device/resend`).send({ task_token: first.body.task_token })
      await codeFor(host, who)
      const code = await codeFor(host, who)
      const second = await browser.post(`/auth${base}/tasks/device`).send({ task_token: resent.body.task_token, code })
      expect(second.body.tasks_required).toEqual(['new_password'])
      const set = { task_token: second.body.task_token, new_password: otherPassword }
      const third = await browser.post(`/auth${base}/tasks/new-password`).send(set)
      expect(outcome(third)).toEqual([200, undefined])
      expect(third.body).toMatchObject({ tasks_required: [], task_token: null })
      expect(setCookieOf(third, 'login_tasks')?.attributes).toContain('1970')
      const cookie = base === '/session' || tokenDelivery === 'session' ? 'auth_session' : 'refresh_token'
      expect(third.headers['set-cookie']?.toString()).toContain(`${cookie}=`)
      const again = await browser.post(`/auth${base}/login`).send({ email: who.email, password: otherPassword })
      expect(again.body.tasks_required).toEqual([]) // a known device
    },
  )

  test.each([
    ['cookie', '', ['access_token', 'refresh_token']],
    ['both', '/cookie', ['access_token', 'refresh_token']],
    ['session', '', ['auth_session']],
    ['bearer', '/session', ['auth_session']],
  ] as const)(
    'delivery %s at %s/login with remember: false, through every task: the browser forgets the session when it closes',
    async (tokenDelivery, base, names) => {
      const host = await start({ settings: { tokenDelivery } })
      const lastAnswer = async (remember: boolean | undefined) => {
        const who = await person(host, { ...expired, isAdmin: true })
        const browser = host.browser()
        const send = (path: string, body: object) => browser.post(`/auth${base}${path}`).send(body)
        const first = await send('/login', { email: who.email, password, ...(remember !== undefined && { remember }) })
        const second = await send('/tasks/device', { task_token: first.body.task_token, code: await codeFor(host, who) })
        const third = await send('/tasks/new-password', { task_token: second.body.task_token, new_password: otherPassword })
        const { task_token } = third.body
        const { body } = await send('/tasks/second-factor/enroll', { task_token })
        return send('/tasks/second-factor/confirm', { task_token, code: authenticator(body.secret, host.clock).code() })
      }
      const [kept, forgotten] = [await lastAnswer(undefined), await lastAnswer(false)]
      for (const name of names) {
        const lasts = [kept, forgotten].map((answer) => setCookieOf(answer, name)?.attributes.includes('Max-Age'))
        expect([name, ...lasts]).toEqual([name, true, false])
      }
    },
  )

  test.each([
    ['cookie', '/login'],
    ['bearer', '/login'],
    ['session', '/login'],
    ['both', '/session/login'],
  ] as const)('delivery %s at %s: a second-factor step owes nothing yet, and says so', async (tokenDelivery, path) => {
    const host = await start({ settings: { tokenDelivery }, options: { loginTasks: [terms] } })
    const who = await person(host, { name: 'asked', totpEnabledAt: new Date(0), totpSecret: 'JBSWY3DPEHPK3PXP' })
    const { status, body } = await host.browser().post(`/auth${path}`).send({ email: who.email, password })
    expect([status, body]).toMatchObject([
      200,
      { user_id: who.userId, mfa_required: true, mfa_token: expect.any(String), tasks_required: [], task_token: null },
    ])
  })

  test('in a store without sessions, a login does every task, and what would revoke all sessions ends it', async () => {
    const { knex } = await start()
    const host = await start({ options: { store: createKnexStore({ knex, sessions: false }) } })
    const who = await person(host, { ...expired, isAdmin: true, name: 'asked' })
    const first = await owing(host, who)
    expect(first.tasks_required).toEqual(['device', 'new_password', 'second_factor', 'terms_of_use'])
    const { body: second } = await throughDevice(host, who, first)
    const { body: third } = await post(host, '/tasks/new-password', { task_token: second.task_token, new_password: otherPassword })
    const { body: fourth } = await throughFactor(host, third.task_token)
    const last = { task_token: fourth.task_token, accept: true }
    const { body } = await post(host, '/tasks/terms-of-use', last)
    expect(body).toMatchObject({ access_token: expect.any(String), refresh_token: expect.any(String), tasks_required: [] })
    expect((await post(host, '/refresh', { refresh_token: body.refresh_token })).status).toBe(200)
    expect(outcome(await post(host, '/tasks/terms-of-use', last))).toEqual(over)

    const other = await person(host, expired)
    const { body: open } = await throughDevice(host, other, await owing(host, other))
    await host.auth.service.expirePassword(other.userId)
    expect(outcome(await post(host, '/tasks/new-password', { task_token: open.task_token, new_password: otherPassword }))).toEqual(over)
  })

  test('the cookie routes refuse another site, after the limit and before the body', async () => {
    const host = await start({
      settings: { tokenDelivery: 'cookie' },
      options: { throttle: { routes: { attempts: 1, windowSeconds: 60 } } },
    })
    const send = () => host.browser().post('/auth/tasks/device').set('Origin', 'https://evil.example').send({})
    expect(outcome(await send())).toEqual([403, 'CSRF_VALIDATION_FAILED'])
    expect(outcome(await send())).toEqual([429, 'TOO_MANY_REQUESTS'])
  })

  test('auth.with owes a code for the device, a method of the service does not', async () => {
    const host = await start({
      settings: { tokenDelivery: 'session' },
      host: (app, auth) => {
        app.post('/in', async (req, res) => res.json(await auth.with(req, res).logIn(req.query as never)))
      },
    })
    const who = await person(host, expired)
    const bound = await host.browser().post('/in').query({ email: who.email, password })
    expect(bound.body).toEqual({ kind: 'tasks', userId: who.userId, tasks: ['device', 'new_password'], taskToken: expect.any(String) })
    const { service } = host.auth
    const login = await service.logIn({ email: who.email, password })
    expect(login).toEqual({ kind: 'tasks', userId: who.userId, tasks: ['new_password'], taskToken: expect.any(String) })
    if (login.kind !== 'tasks') return
    expect(await service.setNewPassword({ taskToken: login.taskToken, newPassword: otherPassword })).toMatchObject({
      kind: 'session',
      amr: ['pwd'],
    })
  })

  test('the service does every task', async () => {
    const host = await start()
    const who = await person(host, { isAdmin: true, name: 'asked' })
    const { service } = host.auth
    const first = await service.logIn({ email: who.email, password })
    if (first.kind !== 'tasks') throw new Error('the login owes tasks')
    const { secret } = await service.beginSecondFactor({ taskToken: first.taskToken })
    const { authenticator } = await import('../mfa/authenticator')
    const second = await service.finishSecondFactor({ taskToken: first.taskToken, code: authenticator(secret, host.clock).code() })
    if (second.kind !== 'tasks') throw new Error('the login still owes a task')
    expect(second.tasks).toEqual(['terms_of_use'])
    const last = await service.completeTask('terms_of_use', { taskToken: second.taskToken, body: { accept: true } })
    expect(last).toMatchObject({ kind: 'session', amr: ['pwd', 'otp'] })
    await expect(service.completeTask('nothing', { taskToken: second.taskToken })).rejects.toThrow('no task with the key "nothing"')
  })

  test('without tasks no answer has their members', async () => {
    const host = await start({ options: { loginTasks: undefined } as never })
    const who = await person(host, expired)
    const { body } = await post(host, '/login', { email: who.email, password })
    expect(Object.keys(body).filter((name) => name.startsWith('task'))).toEqual([])
    expect((await post(host, '/tasks/device', {})).status).toBe(404)
  })

  test('a login that owes nothing costs no statement more than one without tasks', async () => {
    const cost = async (loginTasks: typeof owesNothing | undefined) => {
      const host = await start({ options: { loginTasks, throttle: { login: false, routes: false } } as never })
      const who = await person(host)
      await post(host, '/login', { email: who.email, password })
      const recorded = recordQueries(host.knex)
      await post(host, '/login', { email: who.email, password })
      return recorded.stop().length
    }
    expect(await cost(owesNothing)).toBe(await cost(undefined))
  })

  test('when() runs outside of a transaction; if it throws or hangs, no session begins', async () => {
    const inTransaction: boolean[] = []
    let mood: 'yes' | 'throws' = 'yes'
    const when = async () => {
      inTransaction.push(host.knex.client.pool.numUsed() > 0)
      if (mood === 'throws') throw new Error('a reason of the host')
      return true
    }
    const host: Awaited<ReturnType<typeof start>> = await start({ options: { loginTasks: [task({ key: 'terms', when, complete() {} })] } })
    const who = await person(host)
    expect((await owing(host, who)).tasks_required).toEqual(['terms'])
    mood = 'throws'
    expect(outcome(await post(host, '/login', { email: who.email, password }))).toEqual([503, 'SERVICE_UNAVAILABLE'])
    expect(await host.knex('auth_sessions').where({ user_id: who.userId })).toEqual([])
    expect(new Set(inTransaction)).toEqual(new Set([false]))
    expect(host.logs.entries.map(({ fields }) => fields)).toContainEqual(expect.objectContaining({ task: 'terms' }))
  })

  test('when() has five seconds', async () => {
    const [logger, ctx] = [logTap(), { settings: { mfaEnabled: true } }]
    const tasks = loginTasksOf([task({ key: 'terms', when: () => new Promise(() => undefined), complete() {} })], false)
    vi.useFakeTimers()
    try {
      const asked = askTasks({ ...ctx, loginTasks: tasks, logger } as unknown as AuthContext, userRecord(), { amr: ['pwd'] })
      const settled = vi.fn()
      asked.then(({ taskAnswers }) => settled(taskAnswers?.owed))
      await vi.advanceTimersByTimeAsync(4_999)
      expect(settled).not.toHaveBeenCalled()
      await vi.advanceTimersByTimeAsync(1)
      expect(settled).toHaveBeenCalledWith(expect.objectContaining({ status: 503, code: 'SERVICE_UNAVAILABLE' }))
      expect(logger.entries[0]?.fields).toMatchObject({ task: 'terms', error: { message: expect.stringContaining('took too long') } })
    } finally {
      vi.useRealTimers()
    }
  })

  test('before the right code of the second step, no when() is asked; its failure is 503 then and does not use the code up', async () => {
    let [asked, fails] = [0, false]
    const inTransaction: boolean[] = []
    const when = () => {
      asked += 1
      inTransaction.push(host.knex.client.pool.numUsed() > 0)
      if (fails) throw new Error('a reason of the host')
      return false
    }
    const host: Awaited<ReturnType<typeof start>> = await start({ options: { loginTasks: [task({ key: 'terms', when, complete() {} })] } })
    const member = await enrolled(host)
    ;[asked, fails] = [0, true]
    const first = await post(host, '/login', { email: member.email, password })
    expect([first.status, first.body.mfa_required, asked]).toEqual([200, true, 0])
    const { mfa_token } = first.body
    const code = member.app.nextCode()
    for (const wrong of ['000000', 'ABCDE-ABCDE-ABCDE-ABCDE-ABCDE', ''])
      expect(outcome(await post(host, '/mfa/verify', { mfa_token, code: wrong }))).toEqual([401, 'MFA_CODE_INVALID'])
    expect(asked).toBe(0)
    expect(outcome(await post(host, '/mfa/verify', { mfa_token, code }))).toEqual([503, 'SERVICE_UNAVAILABLE'])
    fails = false
    const again = await post(host, '/mfa/verify', { mfa_token, code })
    expect([again.status, again.body.tasks_required, asked]).toEqual([200, [], 2])
    const used = await post(host, '/login', { email: member.email, password })
    expect((await post(host, '/mfa/verify', { mfa_token: used.body.mfa_token, code })).status).toBe(401)
    expect(asked).toBe(2)
    const [recovery] = member.recoveryCodes
    const byRecovery = await post(host, '/mfa/verify', { mfa_token: used.body.mfa_token, code: recovery })
    expect([byRecovery.status, byRecovery.body.tasks_required, asked]).toEqual([200, [], 3])
    expect(new Set(inTransaction)).toEqual(new Set([false]))
  })

  test('a login by code that owes nothing costs no statement more than one without tasks', async () => {
    const cost = async (loginTasks: typeof owesNothing | undefined) => {
      const host = await start({ options: { loginTasks } as never })
      const member = await enrolled(host, { emailVerifiedAt: new Date(0) })
      const step = async () => {
        const { body } = await post(host, '/login', { email: member.email, password })
        const recorded = recordQueries(host.knex)
        await post(host, '/mfa/verify', { mfa_token: body.mfa_token, code: member.app.nextCode() })
        return recorded.stop().length
      }
      await step()
      return step()
    }
    expect(await cost(owesNothing)).toBe(await cost(undefined))
  })

  test('a wrong code_verifier asks no when(), nor a code that was used', async () => {
    let asked = 0
    const when = () => {
      asked += 1
      return false
    }
    const host = await start({
      settings: appSettings,
      options: { loginTasks: [task({ key: 'terms', when, complete() {} })] },
    })
    const wrong = await browse(host)
    expect(outcome(await exchange(host, { ...wrong, verifier: 'x'.repeat(43) }))).toEqual([401, 'OAUTH_CODE_INVALID'])
    expect(asked).toBe(0)
    const right = await browse(host)
    expect((await exchange(host, right)).body.tasks_required).toEqual([])
    expect(asked).toBe(1)
    expect(outcome(await exchange(host, right))).toEqual([401, 'OAUTH_CODE_INVALID'])
    expect(asked).toBe(1)
  })

  test('what complete() throws rolls back everything, also what it wrote', async () => {
    const { ValidationError } = (await import('../../src')).errors
    const terms = task({
      key: 'terms',
      when: () => true,
      async complete(user, body, store) {
        await store.users.update(user.id, { name: 'written' })
        if (body['accept'] !== true) throw new ValidationError()
      },
    })
    const host = await start({ options: { loginTasks: [terms] } })
    const who = await person(host)
    const { task_token } = await owing(host, who)
    expect(outcome(await post(host, '/tasks/terms', { task_token }))).toEqual([422, 'VALIDATION_ERROR'])
    expect(await host.knex('auth_users').where({ id: who.userId }).first('name')).not.toEqual({ name: 'written' })
    const done = await post(host, '/tasks/terms', { task_token, accept: true })
    expect(done.body).toMatchObject({ tasks_required: [], access_token: expect.any(String) }) // a task that was done is not asked again
    expect(await host.knex('auth_users').where({ id: who.userId }).first('name')).toEqual({ name: 'written' })
  })

  test('a refresh owes nothing, and an expiry revokes the sessions unless it keeps them', async () => {
    const host = await start()
    const who = await person(host)
    const [kept, ended] = [await loginAs(host.auth, { id: who.userId }), await loginAs(host.auth, { id: who.userId })]
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    expect((await post(host, '/refresh', { refresh_token: kept.refreshToken })).status).toBe(200)
    await host.auth.service.expirePassword(who.userId)
    expect((await post(host, '/refresh', { refresh_token: ended.refreshToken })).status).toBe(401)
    expect((await host.mails.next({ to: who.email })).subject).toBe('Choose a new password at your next sign-in')
  })

  test('a session after a device code is fresh, one after an enrolment is not', async () => {
    const host = await start({ settings: { unknownDevice: 'code' } })
    const who = await person(host)
    const told: string[] = []
    host.auth.events.on('login.new_device', ({ userId }) => told.push(userId))
    const { body } = await throughDevice(host, who, await owing(host, who))
    const row = await host.knex('auth_sessions').where({ user_id: who.userId }).first('amr', 'authenticated_at')
    expect([row.amr, row.authenticated_at]).toEqual(['pwd email', expect.anything()])
    expect([body.tasks_required, told]).toEqual([[], [who.userId]])
    expect(host.mails.mails.filter(({ to, subject }) => to === who.email && subject.includes('new device'))).toEqual([])
  })
})
