import { describe, expect, test } from 'vitest'
import { createKnexStore, newPasswordTask, secondFactorTask, task } from '../../src'
import { mfaSettings } from '../mfa/people'
import { databases } from '../support/databases'
import { onTasks } from './people'

const host = (key: string) => task({ key, when: () => true, complete() {} })
const factor = secondFactorTask({ when: () => true })

describe.each((await databases()).slice(0, 1))('what boot refuses of login tasks', (database) => {
  const { start, opened } = onTasks(database)

  test.each(['Terms', '1st', '', 'a'.repeat(41), 'terms-of-use', 'device', 'second_factor', 'new_password'])('the key %j', async (key) => {
    await expect(start({ options: { loginTasks: [host(key)] } })).rejects.toThrow('Option loginTasks')
  })

  test.each([
    ['a key twice', [host('terms'), host('terms')]],
    ['two second factors', [factor, factor]],
    ['two new passwords', [newPasswordTask(), newPasswordTask()]],
    ['another object', [{ key: 'terms' }]],
    ['no list', {}],
  ])('%s', async (_, loginTasks) => {
    await expect(start({ options: { loginTasks } as never })).rejects.toThrow('Option loginTasks')
  })

  test('more keys than the cookie of a login can hold, and no fewer', async () => {
    const keys = (last: string) => [...Array.from({ length: 6 }, (_, index) => `${index}`.padStart(40, 'k')), last].map(host)
    await expect(start({ options: { loginTasks: keys('a'.repeat(38)) } })).resolves.toBeDefined()
    await expect(start({ options: { loginTasks: keys('a'.repeat(39)) } })).rejects.toThrow(
      "Option loginTasks has keys of 301 characters as a JSON array; a login's cookie has room for 300, so shorten the keys.",
    )
  })

  test('secondFactorTask without mfaEnabled', async () => {
    await expect(start({ settings: { mfaEnabled: false }, options: { loginTasks: [factor] } })).rejects.toThrow(
      'mfaEnabled (AUTH_MFA_ENABLED)',
    )
  })

  test('newPasswordTask without passwords, and without its column', async () => {
    const loginTasks = [newPasswordTask()]
    await expect(start({ settings: { passwordLogin: false }, options: { loginTasks } })).rejects.toThrow(
      'passwordLogin (AUTH_PASSWORD_LOGIN)',
    )
    const store = createKnexStore({ knex: opened().knex, users: { columns: { passwordExpiredAt: false } } as never })
    await expect(start({ options: { loginTasks, store } })).rejects.toThrow('`password_expired_at`')
  })

  test.each([
    ['secondFactorTask', {}, { loginTasks: [factor] }],
    ['newPasswordTask', {}, { loginTasks: [newPasswordTask()] }],
    ['unknownDevice', { unknownDevice: 'code' }, {}],
  ] as const)('%s without a mailer, the column purpose or the column of verified addresses', async (name, settings, options) => {
    const given = { loginTasks: undefined, ...options } as never
    await expect(start({ links: 'shown', settings, options: given })).rejects.toThrow(new RegExp(`${name}.*mailer`))
    const unnamed = createKnexStore({ knex: opened().knex, emailLogins: { columns: { purpose: false } } as never })
    await expect(start({ settings, options: { ...(given as object), store: unnamed } })).rejects.toThrow(new RegExp(`${name}.*purpose`))
    const unverified = createKnexStore({
      knex: opened().knex,
      users: { columns: { emailVerifiedAt: false, passwordExpiredAt: 'password_expired_at' } } as never,
    })
    await expect(start({ settings, options: { ...(given as object), store: unverified } })).rejects.toThrow(
      new RegExp(`${name}.*email_verified_at`),
    )
  })

  test('a notice about new devices with tokens in bodies alone', async () => {
    await expect(start({ settings: { ...mfaSettings, unknownDevice: 'notice' } })).rejects.toThrow('unknownDevice (AUTH_UNKNOWN_DEVICE)')
  })
})
