import Joi from 'joi'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createAuthRouter, createKnexStore } from '../../src'
import { onLocal } from '../local/people'
import { testSecret } from '../support/app'
import { databases } from '../support/databases'
import { linkTemplates, mailbox } from '../support/mailbox'

const [sqlite] = await databases()
if (!sqlite) throw new Error('no database answers')

describe('login by email at boot', () => {
  const { opened } = onLocal(sqlite)
  const boot = (settings: object, options: object = {}) =>
    createAuthRouter({
      settings: { jwtSecret: testSecret, publicUrl: 'https://app.example.test', ...linkTemplates, ...settings },
      store: createKnexStore({ knex: opened().knex }),
      mailer: mailbox(),
      environment: 'test',
      checkTables: false,
      ...options,
    })

  test.each<[wrong: string, settings: object, options: object, sentence: RegExp]>([
    ['no local accounts', { emailLogin: 'code', localAccountsEnabled: false }, {}, /emailLogin .*localAccountsEnabled .*is false/],
    ['links that lead nowhere', { emailLogin: 'link' }, {}, /emailLoginUrlTemplate .*unset.*backendLinks/],
    ['our page with bearer tokens', { emailLogin: 'both', backendLinks: true }, {}, /tokenDelivery other than 'bearer'/],
    [
      'our page without an origin',
      { emailLogin: 'link', backendLinks: true, tokenDelivery: 'session', publicUrl: '' },
      {},
      /publicUrl .*is empty/,
    ],
    ['signup without login by email', { emailLoginSignup: true }, {}, /emailLoginSignup .*needs emailLogin/],
    ['signup switched off', { emailLogin: 'code', emailLoginSignup: true, signupEnabled: false }, {}, /needs emailLogin .*signupEnabled/],
    [
      'a required field (Joi)',
      { emailLogin: 'code', emailLoginSignup: true },
      { signup: { schema: Joi.object({ plan: Joi.string().required() }) } },
      /signup\.schema requires plan/,
    ],
    [
      'a required field (zod)',
      { emailLogin: 'code', emailLoginSignup: true },
      { signup: { schema: z.object({ email: z.string(), plan: z.string(), team: z.string() }) } },
      /signup\.schema requires plan, team/,
    ],
  ])('%s is refused', (_wrong, settings, options, sentence) => {
    expect(() => boot(settings, options)).toThrow(sentence)
  })

  test('a store without the table is refused', () => {
    const store = createKnexStore({ knex: opened().knex, emailLogins: false })
    expect(() => boot({ emailLogin: 'code' }, { store })).toThrow(/emailLogin .*no table for it; wire `emailLogins`/)
  })

  test('what is right boots', () => {
    boot({ emailLogin: 'code' })
    boot({ emailLogin: 'both', backendLinks: true, tokenDelivery: 'cookie' })
    boot({ emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}' })
    const schema = Joi.object({ plan: Joi.string().optional() })
    boot({ emailLogin: 'code', emailLoginSignup: true }, { signup: { schema } })
  })
})
