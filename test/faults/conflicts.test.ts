import BetterSqlite from 'better-sqlite3'
import { afterEach, expect, test } from 'vitest'
import { newAddress, password, post } from '../local/people'
import { mount } from '../support/app'
import { databases } from '../support/databases'
import { linkTemplates, mailbox } from '../support/mailbox'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A host on a SQLite file that another process may hold; the driver, which waits five seconds by itself, gives up at once. */
async function hostOnBusyFile() {
  const [sqlite] = await databases()
  if (!sqlite) throw new Error('SQLite is always there')
  const opened = await sqlite.open()
  closing.push(() => opened.close())
  const impatient = (connection: BetterSqlite.Database, done: (error: null, connection: unknown) => void) => {
    connection.pragma('busy_timeout = 10')
    done(null, connection)
  }
  const mails = mailbox()
  const knex = opened.connect({ min: 1, max: 1, afterCreate: impatient })
  const host = await mount({ knex, settings: linkTemplates, options: { mailer: mails } })
  closing.push(() => host.close())
  const connection = opened.config?.connection as { filename?: string } | undefined // what databases.ts makes for SQLite
  const other = new BetterSqlite(connection?.filename ?? '', { timeout: 0 })
  closing.push(() => other.close())
  const begins: string[] = []
  knex.on('query', ({ sql }: { sql: string }) => void (sql === 'BEGIN IMMEDIATE;' && begins.push(sql)))
  return { ...host, mails, other, begins }
}

test('C23: a signup that loses its first run to another process is answered as if nothing had been: one account, one link, one mail', async () => {
  const host = await hostOnBusyFile()
  const email = newAddress()
  host.other.exec('begin immediate')
  host.knex.once('query-error', () => host.other.exec('rollback'))

  expect((await post(host, '/signup', { email, password })).status).toBe(201)

  expect(host.begins).toHaveLength(2)
  await host.mails.next({ kind: 'activation', to: email })
  expect(await host.knex('auth_users').where({ email })).toHaveLength(1)
  expect(await host.knex('auth_user_tokens')).toHaveLength(1)
  expect(host.mails.mails).toHaveLength(1)
})

test('C23: one that loses every run is 503 with Retry-After after three, with no account and no mail', async () => {
  const host = await hostOnBusyFile()
  host.other.exec('begin immediate')

  const answer = await post(host, '/signup', { email: newAddress(), password })

  expect([answer.status, answer.body.code, answer.headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '1'])
  expect(host.begins).toHaveLength(3)
  host.other.exec('rollback')
  expect(await host.knex('auth_users')).toEqual([])
  expect(host.mails.mails).toEqual([])
})
