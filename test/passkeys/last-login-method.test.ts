import { expect, test } from 'vitest'
import { bearerOf, type LocalHost, type LocalOptions } from '../local/people'
import { databases } from '../support/databases'
import { onPasskeys, passkeyOwner } from './people'

const [database] = await databases()
if (!database) throw new Error('no database')
const { start } = onPasskeys(database)
const keepsLast = { oauthKeepLastLoginMethod: true }
const unusable = `!${'x'.repeat(43)}`
const byEmail = { emailLogin: 'code' } as const

/** Whether somebody without a password may remove the only passkey. */
async function removal({ settings = {}, ...options }: LocalOptions = {}, changes: object = {}): Promise<unknown> {
  const host: LocalHost = await start({ settings: { ...keepsLast, ...settings }, ...options })
  const owner = await passkeyOwner(host)
  await host
    .knex('auth_users')
    .where({ id: owner.userId })
    .update({ hashed_password: unusable, ...changes })
  const answer = await host.browser().delete(`${host.prefix}/passkeys/${owner.passkeyId}`).set(bearerOf(owner))
  return [answer.status, answer.body.code]
}

test('the last passkey stays where nothing else signs in; a proven address does where people sign in by email', async () => {
  expect(await removal()).toEqual([409, 'LAST_LOGIN_METHOD'])
  expect(await removal({ settings: byEmail })).toEqual([204, undefined])
})

test('an address that nobody has proven, or that may get no link, is no way in', async () => {
  expect(await removal({ settings: byEmail }, { email_verified_at: null })).toEqual([409, 'LAST_LOGIN_METHOD'])
  expect(await removal({ settings: byEmail, options: { refusesEmailLink: () => true } })).toEqual([409, 'LAST_LOGIN_METHOD'])
})
