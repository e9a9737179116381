import type { Knex } from 'knex'
import { describe, expect, test } from 'vitest'
import { createHttpClient, type HttpClient } from '../../src/core/http-client'
import { type Mounted, signIn } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'
import { addUser } from './accounts-at-hand'
import { bearer, begin, callBack, newPerson, onDatabase } from './redirect-steps'

describe.each(await databases())('on $name', (database) => {
  // One connection for everything: whoever holds it while waiting for something else would hang here.
  const { start } = onDatabase(database, { pool: { min: 1, max: 1 } })
  // Two statements more at the end of a unit, and two at its start if it does not begin with a guarded change. The user and the identity are
  // two statements.
  const [threeMore, fiveMore] = database.name === 'sqlite' ? [3, 5] : [0, 0]
  // SET TRANSACTION before BEGIN, and no write that returns rows: recordLogin holds two rows, then stamps them.
  // And a query that counts the person's sessions, which elsewhere the insert returns.
  const knownMore = database.name === 'mariadb' ? 3 : threeMore
  const newMore = database.name === 'mariadb' ? 1 : fiveMore

  /** Every statement of the callback as it went over the wire, BEGIN and COMMIT included. */
  async function statementsOf(host: Mounted, profile: Record<string, unknown>): Promise<string[]> {
    const { query, cookie } = await begin(host, { profile })
    const statements = recordQueries(host.knex)
    const response = await callBack(host, query, { cookie })
    expect(response.status, response.text).toBe(200)
    return statements.stop()
  }

  test('a callback of a known identity costs at most 5 database round trips, three more on SQLite and MariaDB', async () => {
    const host = await start()
    const person = newPerson()
    await signIn(host, host.browser(), { profile: person })
    const statements = await statementsOf(host, person)
    expect(
      statements.some((sql) => /^begin/i.test(sql)),
      statements.join('\n'),
    ).toBe(true)
    expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(5 + knownMore)
  })

  test('a callback of a new identity costs at most 8 database round trips, five more on SQLite, one on MariaDB', async () => {
    const host = await start()
    const statements = await statementsOf(host, newPerson())
    expect(
      statements.some((sql) => /^commit/i.test(sql)),
      statements.join('\n'),
    ).toBe(true)
    expect(statements.length, statements.join('\n')).toBeLessThanOrEqual(8 + newMore)
  })

  test('login, a refused callback and the bearer guard ask the database nothing', async () => {
    const host = await start({ host: (app, auth) => app.get('/guarded', auth.guards.requireAuth(), (_req, res) => void res.json({})) })
    const response = await signIn(host, host.browser(), { profile: newPerson() })
    const { query, cookie } = await begin(host)
    const statements = recordQueries(host.knex)
    await begin(host)
    await callBack(host, 'error=access_denied')
    await callBack(host, { ...query, state: 'bad' }, { cookie })
    expect((await host.browser().get('/guarded').set(bearer(response))).status).toBe(200)
    expect(statements.stop()).toEqual([])
  })

  /** What runs meanwhile gets the only connection, so nobody else holds it. */
  async function askMeanwhile(knex: Knex, seen: string[], when: string): Promise<void> {
    expect(knex.client.pool.numUsed()).toBe(0)
    await knex.raw('select 1')
    seen.push(when)
  }

  function askingHttpClient(knex: () => Knex, seen: string[]): HttpClient {
    const inner = createHttpClient()
    return async (url, request) => {
      await askMeanwhile(knex(), seen, new URL(url).pathname)
      const response = await inner(url, request)
      await askMeanwhile(knex(), seen, new URL(url).pathname)
      return response
    }
  }

  test('C24: no connection and no transaction is held while the provider is asked', async () => {
    const seen: string[] = []
    const host: Mounted = await start({
      settings: { oauthLinkByVerifiedEmail: true },
      providers: { corp: { httpClient: askingHttpClient(() => host.knex, seen) } },
    })
    const person = newPerson()

    expect((await signIn(host, host.browser(), { profile: person })).status).toBe(200)
    expect(seen).toEqual(['/token', '/token', '/jwks', '/jwks', '/userinfo', '/userinfo'])
    seen.length = 0
    expect((await signIn(host, host.browser(), { profile: person })).status).toBe(200)
    expect(seen).toEqual(['/token', '/token', '/userinfo', '/userinfo'])
    seen.length = 0
    const unproven = await addUser(host.knex, { emailVerifiedAt: null })
    expect((await signIn(host, host.browser(), { profile: newPerson({ email: unproven.email }) })).body.user_id).toBe(unproven.id)
    expect(seen).toEqual(['/token', '/token', '/userinfo', '/userinfo'])
  })

  test('C24: ten people at once get through a pool of one', async () => {
    const host = await start()
    const responses = await Promise.all(Array.from({ length: 10 }, () => signIn(host, host.browser(), { profile: newPerson() })))
    expect(responses.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect(host.knex.client.pool.numUsed()).toBe(0)
  })
})
