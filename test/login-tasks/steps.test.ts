import { describe, expect, test } from 'vitest'
import { amrOf, otherPassword, password, post } from '../local/people'
import { databases } from '../support/databases'
import { change, expired, onTasks, outcome, owing, person, throughDevice, throughFactor } from './people'

describe.each(await databases())('a login with tasks on $name', (database) => {
  const { start } = onTasks(database)

  test('an administrator without a factor types the mailed code, then sets up a factor, and is signed in', async () => {
    const host = await start()
    const admin = await person(host, { isAdmin: true })
    const first = await post(host, '/login', { email: admin.email, password })
    expect([first.status, first.body]).toEqual([
      200,
      {
        user_id: admin.userId,
        access_token: null,
        refresh_token: null,
        mfa_required: false,
        mfa_token: null,
        tasks_required: ['device', 'second_factor'],
        task_token: expect.any(String),
      },
    ])
    const second = await throughDevice(host, admin, first.body)
    expect(second.body.tasks_required).toEqual(['second_factor'])
    const third = await throughFactor(host, second.body.task_token)
    expect(outcome(third)).toEqual([200, undefined])
    expect(third.body).toMatchObject({ tasks_required: [], task_token: null })
    expect(amrOf(third.body.access_token)).toEqual(['pwd', 'email', 'otp'])
  })

  test('an expired password is replaced, and only then a session begins', async () => {
    const host = await start()
    const who = await person(host, expired)
    const first = await owing(host, who)
    expect(first.tasks_required).toEqual(['device', 'new_password'])
    const second = await throughDevice(host, who, first)
    const task = { task_token: second.body.task_token }
    const same = await post(host, '/tasks/new-password', { ...task, new_password: password })
    expect([same.status, same.body.details.rule]).toEqual([422, 'unchanged'])
    const third = await post(host, '/tasks/new-password', { ...task, new_password: otherPassword })
    expect(amrOf(third.body.access_token)).toEqual(['pwd', 'email'])
    expect(outcome(await post(host, '/login', { email: who.email, password }))).toEqual([401, 'UNAUTHORIZED'])
    const again = await post(host, '/login', { email: who.email, password: otherPassword })
    expect(again.body.tasks_required).toEqual([])
  })

  test('a task of the host comes last, and what it refuses leaves the token valid', async () => {
    const host = await start()
    const who = await person(host, { name: 'asked' })
    const first = await owing(host, who)
    expect(first.tasks_required).toEqual(['terms_of_use'])
    expect((await post(host, '/tasks/terms-of-use', { task_token: first.task_token, accept: false })).status).toBe(500)
    const done = await post(host, '/tasks/terms-of-use', { task_token: first.task_token, accept: true })
    expect(done.body.tasks_required).toEqual([])
    expect(amrOf(done.body.access_token)).toEqual(['pwd'])
    await change(host, who, { isAdmin: false })
    expect((await post(host, '/login', { email: who.email, password })).body.access_token).toEqual(expect.any(String))
  })
})
