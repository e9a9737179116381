import { afterEach, describe, expect, test } from 'vitest'
import { ConfigurationError, createAuthTables, createKnexStore, type HostTables } from '../../src'
import { password, post } from '../local/people'
import { createPeople, PEOPLE } from '../store/host-tables'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { authenticator } from './authenticator'
import { mfaSettings } from './people'

// Contract section 13 (c): without totp columns there is no second factor; without the other optional ones there is.
describe.each(await databases())("a second factor in an existing app's table on $name", (database) => {
  let opened: OpenDatabase
  let mounted: Mounted | undefined
  afterEach(async () => {
    await mounted?.close()
    await opened?.close()
  })

  async function start(tables: HostTables): Promise<Mounted> {
    opened = await database.open()
    await createPeople(opened.knex, database.name)
    await opened.knex.schema.alterTable('people', (table) => {
      table.text('otp_secret')
      table.dateTime('otp_since', { precision: 0 })
      table.integer('otp_step')
    })
    await createAuthTables(opened.knex, tables)
    const store = createKnexStore({ knex: opened.knex, users: tables.users ?? {} })
    mounted = await mount({
      knex: opened.knex,
      settings: { ...mfaSettings, autoActivate: true, oauthEnabled: false },
      options: { store },
    })
    return mounted
  }

  const columns = { ...PEOPLE.users?.columns, name: false } as const
  const withFactor: HostTables = {
    users: { ...PEOPLE.users, columns: { ...columns, totpSecret: 'otp_secret', totpEnabledAt: 'otp_since', totpLastStep: 'otp_step' } },
  }

  test('integer keys, whole seconds and few columns: enrolled, asked for, given, and asked for after a reset', async () => {
    const host = await start(withFactor)
    host.clock.advance(0.777) // more than the column keeps
    const email = 'ana@example.test'
    const signup = await post(host, '/signup', { email, password })
    const { service } = host.auth
    const { user_id: userId } = signup.body
    const { secret } = await service.enrollTotp(userId)
    const app = authenticator(secret, host.clock)
    await service.confirmTotp({ userId, code: app.code() })

    const login = await post(host, '/login', { email, password })
    const verified = await post(host, '/mfa/verify', { mfa_token: login.body.mfa_token, code: app.nextCode() })
    expect([verified.status, verified.body.user_id]).toEqual([200, userId])
    const link = await service.requestPasswordReset(email)
    const reset = await post(host, '/password-reset/confirm', { token: link?.token, new_password: 'nine green bicycles uphill' })
    expect(reset.body.mfa_required).toBe(true)
    expect((await post(host, '/mfa/verify', { mfa_token: reset.body.mfa_token, code: app.nextCode() })).status).toBe(200)
  })

  test('with mfaEnabled and no totp columns boot refuses, and names them', async () => {
    const without: HostTables = { users: { ...PEOPLE.users, columns } }
    await expect(start(without)).rejects.toThrow(ConfigurationError)
    await opened.close()
    await expect(start(without)).rejects.toThrow(
      'mfaEnabled (AUTH_MFA_ENABLED) is true but the users table has no column for totpSecret, totpEnabledAt, totpLastStep; add them or map them.',
    )
  })
})

test('with mfaEnabled a store without recovery codes, and a router without an issuer, do not boot', async () => {
  const [sqlite] = await databases()
  const opened = await sqlite?.open({ memory: true })
  if (!opened) throw new Error('no database answers')
  const { recoveryCodes: _left, ...store } = createKnexStore({ knex: opened.knex })
  const boot = (options: object, settings = {}) => mount({ knex: opened.knex, settings: { ...mfaSettings, ...settings }, options })
  await expect(boot({ store })).rejects.toThrow(/AUTH_MFA_ENABLED.*no recovery codes; wire `recoveryCodes`/)
  await expect(boot({}, { mfaIssuer: null })).rejects.toThrow(/mfaEnabled needs mfaIssuer \(AUTH_MFA_ISSUER\)/)
  for (const mfaSecretKey of ['short', Buffer.alloc(32).toString('base64'), Buffer.from('x'.repeat(31)).toString('base64')])
    await expect(boot({}, { mfaSecretKey })).rejects.toThrow(/AUTH_MFA_SECRET_KEY\) must be 32 random bytes in base64/)
  for (const mfaVerifyWindow of [-1, 3, 0.5, '1.5']) await expect(boot({}, { mfaVerifyWindow })).rejects.toThrow(/AUTH_MFA_VERIFY_WINDOW/)
  for (const mfaRecoveryCodesCount of [1, 51])
    await expect(boot({}, { mfaRecoveryCodesCount })).rejects.toThrow(/AUTH_MFA_RECOVERY_CODES_COUNT/)
  await opened.close()
})
