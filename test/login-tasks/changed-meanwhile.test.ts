import { describe, expect, test } from 'vitest'
import { newPasswordTask, secondFactorTask, task } from '../../src'
import { otherPassword, password, post } from '../local/people'
import { enrolled } from '../mfa/people'
import { loginOptions, passkeyOwner, passkeySettings } from '../passkeys/people'
import { databases } from '../support/databases'
import { change, onTasks, outcome, over, owing, person, terms } from './people'

describe.each(await databases())('what changes around the tasks of a login on $name', (database) => {
  const { start } = onTasks(database)

  test('a second revocation in the same millisecond also ends the tokens that were issued between the two', async () => {
    const host = await start()
    const who = await person(host, { name: 'asked' })
    await host.auth.service.revokeSessions(who.userId)
    const { task_token } = await owing(host, who)
    await host.auth.service.revokeSessions(who.userId)
    expect(outcome(await post(host, '/tasks/terms-of-use', { task_token, accept: true }))).toEqual(over)
    const again = await owing(host, who)
    expect((await post(host, '/tasks/terms-of-use', { task_token: again.task_token, accept: true })).status).toBe(200)
  })

  test('a login by a passkey that was removed meanwhile begins no session', async () => {
    const host = await start({ settings: passkeySettings })
    const who = await passkeyOwner(host)
    await change(host, who, { name: 'asked' })
    const options = await loginOptions(host)
    const proof = { credential: who.authenticator.get(options), challenge_token: options.challenge_token }
    const { body } = await post(host, '/passkeys/login', proof)
    expect(body.tasks_required).toEqual(['terms_of_use'])
    const [passkey] = await host.auth.service.listPasskeys(who.userId)
    await host.auth.service.removePasskey(who.userId, String(passkey?.id))
    expect(outcome(await post(host, '/tasks/terms-of-use', { task_token: body.task_token, accept: true }))).toEqual(over)
  })

  test('a factor of the time before the second step was switched off spares nobody the code for an unknown device', async () => {
    const host = await start({ settings: { mfaEnabled: false, unknownDevice: 'code' }, options: { loginTasks: [terms] } })
    const who = await person(host, { totpEnabledAt: new Date(0), totpSecret: 'JBSWY3DPEHPK3PXP' })
    expect((await owing(host, who)).tasks_required).toEqual(['device'])
  })

  test('a login by auth.service owes no device, also if the account changes while the host is asked', async () => {
    let asked = 0
    const when = async ({ id }: { id: string }) => {
      asked += 1
      if (asked === 1) await change(host, { userId: id }, { name: 'Another Name' })
      return true
    }
    const host = await start({ options: { loginTasks: [secondFactorTask({ when })] } })
    const who = await person(host)
    const login = await host.auth.service.logIn({ email: who.email, password })
    expect([login.kind === 'tasks' && login.tasks, asked]).toEqual([['second_factor'], 2])
  })

  test('a login whose sessions were all revoked while the host was asked begins none, and says so as every login', async () => {
    let change = async (): Promise<unknown> => undefined
    const when = async () => {
      await change()
      return false
    }
    const host = await start({ options: { loginTasks: [task({ key: 'terms', when, complete() {} })] } })
    const member = await enrolled(host)
    const { body } = await post(host, '/login', { email: member.email, password })
    const [code] = member.recoveryCodes
    change = () => host.auth.service.revokeSessions(member.userId)
    expect(outcome(await post(host, '/mfa/verify', { mfa_token: body.mfa_token, code }))).toEqual([401, 'UNAUTHORIZED'])
    expect(await host.knex('auth_sessions').where({ user_id: member.userId, revoked_at: null })).toEqual([])
  })

  test('tasks that end all sessions do not make a known browser a new one', async () => {
    const host = await start({
      settings: { tokenDelivery: 'cookie', unknownDevice: 'notice' },
      options: { loginTasks: [newPasswordTask(), secondFactorTask({ when: (user) => user.isAdmin }), terms] },
    })
    const who = await person(host)
    const browser = host.browser()
    await browser.post('/auth/login').send({ email: who.email, password })
    await host.auth.service.expirePassword(who.userId, { keepSessions: true })
    await change(host, who, { name: 'asked' })
    const told: unknown[] = []
    host.auth.events.on('login.new_device', (payload) => told.push(payload))
    const first = await browser.post('/auth/login').send({ email: who.email, password })
    expect(first.body.tasks_required).toEqual(['new_password', 'terms_of_use'])
    const renewed = { task_token: first.body.task_token, new_password: otherPassword }
    const second = await browser.post('/auth/tasks/new-password').send(renewed)
    const last = await browser.post('/auth/tasks/terms-of-use').send({ task_token: second.body.task_token, accept: true })
    expect([last.status, last.body.tasks_required, told]).toEqual([200, [], []])
  })
})
