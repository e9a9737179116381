import { describe, expect, test } from 'vitest'
import { newPasswordTask } from '../../src'
import { otherPassword } from '../local/people'
import { enrolled } from '../mfa/people'
import { databases } from '../support/databases'
import { onTrust, send, verified } from './people'

/** A column of a host can have whole seconds. SQLite has no such column of ours. */
const wholeSeconds: Readonly<Record<string, string>> = {
  postgres: 'alter table auth_users alter column password_set_at type timestamptz(0)',
  mariadb: 'alter table auth_users modify password_set_at datetime(0) null',
}

describe.each(await databases())('trusted devices where the column of the password’s time has whole seconds, on $name', (database) => {
  const { start } = onTrust(database)

  test.each([100, 450, 700])('a browser that is trusted in the login that sets a new password stays so (at %i ms)', async (offsetMs) => {
    const host = await start({ options: { loginTasks: [newPasswordTask()] } })
    const statement = wholeSeconds[database.name]
    if (statement !== undefined) await host.knex.raw(statement)
    const person = await enrolled(host, { emailVerifiedAt: new Date(0) })
    await host.auth.service.expirePassword(person.userId)
    host.clock.advance(60 + (1_000 - (host.clock.now().getTime() % 1_000) + offsetMs) / 1_000)
    const browser = host.browser()
    const { body } = await verified(browser, person)
    expect(body.tasks_required).toEqual(['new_password'])
    const last = await send(browser, '/tasks/new-password', { task_token: body.task_token, new_password: otherPassword })
    expect([last.status, last.body.device_trusted]).toEqual([200, true])
    const again = await send(browser, '/login', { email: person.email, password: otherPassword })
    expect([again.status, again.body.mfa_required]).toEqual([200, false])
  })
})
