import type supertest from 'supertest'
import { describe, expect, test } from 'vitest'
import { task } from '../../src'
import { ask, loginTemplate } from '../email-login/people'
import { type LocalHost, pending, post } from '../local/people'
import { appSettings, browse, exchange, nativeApp } from '../oauth-code/apps'
import { newPerson } from '../social/redirect-steps'
import { signIn } from '../support/app'
import { databases } from '../support/databases'
import { onTasks, type Person, person } from './people'

const provider = (email: string) => newPerson({ email, email_verified: true })

/** The first verification of an address by somebody who shows no evidence of the sign-up. */
const ways: Readonly<Record<string, (host: LocalHost, who: Person & { link: string }) => PromiseLike<supertest.Response>>> = {
  'an activation': (host, { link }) => post(host, '/activate', { token: link }),
  'a login by email': async (host, { email }) => post(host, '/email-login/confirm', { token: (await ask(host, email)).token }),
  'a login by a provider': (host, { email }) => signIn(host, host.browser(), { profile: provider(email) }),
  'an app’s login by a provider': async (host, { email }) =>
    exchange(host, await browse(host, { redirectTo: nativeApp, profile: provider(email) })),
}

describe.each(await databases())('a login that takes the account over on $name', (database) => {
  const { start } = onTasks(database)
  const settings = {
    activationBinding: 'strict',
    emailLogin: 'both',
    oauthLinkByVerifiedEmail: true,
    ...loginTemplate,
    ...appSettings,
  } as const

  test.each(Object.entries(ways))('%s says that the account has no password, with tasks between or without', async (_name, verify) => {
    for (const loginTasks of [
      [task({ key: 'terms', when: () => true, complete() {} }), task({ key: 'more', when: () => true, complete() {} })],
      [task({ key: 'terms', when: () => false, complete() {} })],
    ]) {
      const host = await start({ settings, options: { loginTasks } })
      let { status, body } = await verify(host, await pending(host))
      for (const key of [...body.tasks_required]) {
        expect(body.password_required).toBe(undefined)
        ;({ status, body } = await post(host, `/tasks/${key}`, { task_token: body.task_token }))
      }
      expect([status, body.tasks_required, body.access_token, body.password_required]).toEqual([200, [], expect.any(String), true])
    }
  })

  test('a login by somebody who verified before says nothing of a password', async () => {
    const host = await start({ settings, options: { loginTasks: [task({ key: 'terms', when: () => true, complete() {} })] } })
    const who = await person(host)
    const { body } = await post(host, '/email-login/confirm', { token: (await ask(host, who.email)).token })
    const last = await post(host, '/tasks/terms', { task_token: body.task_token })
    expect([last.status, last.body.password_required]).toEqual([200, undefined])
  })
})
