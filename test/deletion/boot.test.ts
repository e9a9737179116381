import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConfigurationError, createAuthRouter, createKnexStore } from '../../src'
import { databases, type OpenDatabase } from '../support/databases'
import { mailbox } from '../support/mailbox'

let opened: OpenDatabase

beforeAll(async () => {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('no database answers')
  opened = await sqlite.open()
})
afterAll(() => opened.close())

function boot(settings: object, { users, lacks, ...options }: { users?: object; lacks?: string; mailer?: object } = {}) {
  const store = createKnexStore({ knex: opened.knex, ...(users && { users }) })
  const wrapped = { ...store, users: { ...store.users, ...(lacks && { [lacks]: undefined }) } }
  return createAuthRouter({
    settings: { jwtSecret: 'a test secret of forty characters, or so', publicUrl: 'https://app.example.test', ...settings },
    store: wrapped,
    environment: 'test',
    checkTables: false,
    ...options,
  } as Parameters<typeof createAuthRouter>[0])
}

const columns = (changes: object) => ({ users: { columns: { deletionRequestedAt: 'deletion_requested_at', ...changes } } })

test('soft without a column would delete at once, so boot refuses it and names the column', () => {
  expect(() => boot({ accountDeletion: 'soft' }, { users: { table: 'people' } })).toThrow(/no column for deletion_requested_at/)
  expect(() => boot({ accountDeletion: 'soft' }, columns({ emailVerifiedAt: false }))).toThrow(/no column for email_verified_at/)
  expect(() => boot({ accountDeletion: 'soft' }, columns({}))).not.toThrow()
  expect(() => boot({ accountDeletion: 'immediate' }, { users: { table: 'people' } })).not.toThrow()
})

test('an adapter that cannot delete is refused with the missing method', () => {
  expect(() => boot({ accountDeletion: 'immediate' }, { lacks: 'delete' })).toThrow(ConfigurationError)
  expect(() => boot({ accountDeletion: 'immediate' }, { lacks: 'delete' })).toThrow(/no delete\(\)/)
  expect(() => boot({ accountDeletion: 'soft' }, { lacks: 'listDeletions' })).toThrow(/no listDeletions\(\)/)
  expect(() => boot({}, { lacks: 'delete' })).not.toThrow()
})

test('a mailed way back needs an address', () => {
  const mailer = mailbox()
  const templates = Object.fromEntries(
    ['activation', 'passwordReset', 'emailVerification', 'emailChange', 'undo'].map((name) => [
      `${name}UrlTemplate`,
      'https://app.example.test/{token}',
    ]),
  )
  expect(() => boot({ accountDeletion: 'soft', publicUrl: '', ...templates }, { mailer })).toThrow(/accountRestoreUrlTemplate/)
  const accountRestoreUrlTemplate = 'https://app.example.test/back/{token}'
  expect(() => boot({ accountDeletion: 'soft', publicUrl: '', ...templates, accountRestoreUrlTemplate }, { mailer })).not.toThrow()
})
