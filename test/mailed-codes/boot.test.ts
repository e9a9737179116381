import { describe, expect, test } from 'vitest'
import { type AuthRouterOptions, createAuthRouter, createKnexStore } from '../../src'
import { onLocal } from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { linkTemplates, mailbox } from '../support/mailbox'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('mailedCodes at boot (30.1.1)', () => {
  const { opened } = onLocal(sqlite)
  const boot = (settings: object, { tables = {}, ...options }: { tables?: object; mailer?: undefined } = {}) =>
    createAuthRouter({
      settings: { jwtSecret: testSecret, publicUrl: 'https://app.example.test', ...linkTemplates, ...settings },
      store: createKnexStore({ knex: opened().knex, ...tables }),
      mailer: mailbox(),
      environment: 'test',
      checkTables: false,
      ...options,
    } as AuthRouterOptions)
  const withoutPurpose = { emailLogins: { table: 'logins' } }

  test.each<[wrong: string, options: object, sentence: RegExp]>([
    ['without a mailer', { mailer: undefined }, /mailedCodes \(AUTH_MAILED_CODES\) is 'both' but there is no mailer/],
    ['without the table', { tables: { emailLogins: false } }, /no table `emailLogins`/],
    ['without the column', { tables: withoutPurpose }, /no column `emailLogins\.purpose`/],
    ['with the column switched off', { tables: { emailLogins: { columns: { purpose: false } } } }, /no column `emailLogins\.purpose`/],
  ])("'both' is refused %s", (_wrong, options, sentence) => {
    expect(() => boot({ mailedCodes: 'both' }, options)).toThrow(sentence)
    expect(() => boot({ mailedCodes: 'off' }, options)).not.toThrow()
  })

  test.each(['link', 'on', true])('the value %s is refused', (mailedCodes) => {
    expect(() => boot({ mailedCodes })).toThrow(/mailedCodes/)
  })

  test.each([{ attempts: 0, windowSeconds: 1 }, { attempts: 1 }, true, 'off'])('throttle.codes %o is refused', (codes) => {
    expect(() => boot({ mailedCodes: 'both' }, { throttle: { codes } } as object)).toThrow(/throttle\.codes/)
  })

  test('with the default tables and with a mapped column it boots', () => {
    boot({ mailedCodes: 'both' })
    boot({ mailedCodes: 'both' }, { tables: { emailLogins: { table: 'logins', columns: { purpose: 'why' } } } })
  })
})
