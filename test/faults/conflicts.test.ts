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

const reachable = await databases()
for (const postgres of reachable.filter(({ name }) => name === 'postgres')) {
  /** A host whose first transactions that insert an account lose to another one. */
  async function hostThatLoses(times: number) {
    const opened = await postgres.open()
    closing.push(() => opened.close())
    const mails = mailbox()
    const host = await mount({ knex: opened.knex, settings: linkTemplates, options: { mailer: mails } })
    closing.push(() => host.close())
    await opened.knex.raw('create sequence runs') // which no rollback turns back
    await opened.knex.raw(`create function lose() returns trigger as $$ begin
      if nextval('runs') <= ${times} then raise exception using errcode = '40001'; end if;
      return new;
    end $$ language plpgsql`)
    await opened.knex.raw('create trigger lose after insert on auth_users for each row execute function lose()')
    const runs = async () => Number((await opened.knex.raw('select last_value from runs')).rows[0].last_value)
    return { ...host, mails, runs }
  }

  test('C23: a signup that loses its first run to another process is answered as if nothing had been: one account, one link, one mail', async () => {
    const host = await hostThatLoses(1)
    const email = newAddress()

    expect((await post(host, '/signup', { email, password })).status).toBe(201)

    expect(await host.runs()).toBe(2)
    await host.mails.next({ kind: 'activation', to: email })
    expect(await host.knex('auth_users').where({ email })).toHaveLength(1)
    expect(await host.knex('auth_user_tokens')).toHaveLength(1)
    expect(host.mails.mails).toHaveLength(1)
  })

  test('C23: one that loses every run is 503 with Retry-After after three, with no account and no mail', async () => {
    const host = await hostThatLoses(9)

    const answer = await post(host, '/signup', { email: newAddress(), password })

    expect([answer.status, answer.body.code, answer.headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '1'])
    expect(await host.runs()).toBe(3)
    expect(await host.knex('auth_users')).toEqual([])
    expect(host.mails.mails).toEqual([])
  })
}

test('a signup that waits for a SQLite file longer than the driver does is 503 after one wait, with no account and no mail', async () => {
  const [sqlite] = reachable
  if (!sqlite) throw new Error('SQLite is always there')
  const opened = await sqlite.open()
  closing.push(() => opened.close())
  const impatient = (connection: BetterSqlite.Database, done: (error: null, connection: unknown) => void) => {
    connection.pragma('busy_timeout = 10') // the driver waits five seconds by itself
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
  other.exec('begin immediate')

  const answer = await post(host, '/signup', { email: newAddress(), password })

  expect([answer.status, answer.body.code, answer.headers['retry-after']]).toEqual([503, 'SERVICE_UNAVAILABLE', '1'])
  expect(begins).toHaveLength(1)
  other.exec('rollback')
  expect(await knex('auth_users')).toEqual([])
  expect(mails.mails).toEqual([])
})
