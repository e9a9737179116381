import { describe, expect, test } from 'vitest'
import { createAuthRouter, createKnexStore } from '../../src'
import { type LocalMember, onLocal, post, signedIn } from '../local/people'
import { baseUrl, testSecret } from '../support/app'
import { databases } from '../support/databases'
import { recordQueries } from '../support/record-queries'

/**
 * Statements on the wire, BEGIN and COMMIT included. `joined`: ours inside a
 * transaction of the host's. `replay`: within the grace window; `reuse`: after it, when the session is ended.
 */
const costs = {
  sqlite: { refresh: 1, joined: 1, replay: 2, unknown: 0, reuse: 3 },
  postgres: { refresh: 1, joined: 1, replay: 2, unknown: 0, reuse: 3 },
  mariadb: { refresh: 2, joined: 2, replay: 2, unknown: 0, reuse: 3 },
}

describe.each(await databases())('on $name', (database) => {
  const { start } = onLocal(database)
  const cost = costs[database.name]

  test('a refresh costs one statement on PostgreSQL and SQLite and two on MariaDB, a replay one more, and junk none', async () => {
    const host = await start({ settings: { refreshReuseGraceSeconds: 10 } })
    const statementsOf = async (work: () => Promise<unknown>) => {
      const statements = recordQueries(host.knex)
      await work()
      return statements.stop()
    }
    const refreshed = (token: string, status: number) => async () =>
      expect((await post(host, '/refresh', { refresh_token: token })).status).toBe(status)
    const { refreshToken }: LocalMember = await signedIn(host)

    const refresh = await statementsOf(refreshed(refreshToken, 200))
    const replay = await statementsOf(refreshed(refreshToken, 200))
    const unknown = await statementsOf(refreshed('nobody knows it', 401))
    host.clock.advance(10)
    const reuse = await statementsOf(refreshed(refreshToken, 401))

    const lists = { refresh, replay, unknown, reuse }
    const counts = Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, list.length]))
    const { joined: _, ...expected } = cost
    expect(counts, JSON.stringify(lists, null, 1)).toEqual(expected)
    expect([refresh, replay].map((list) => list.filter((sql) => /^insert/i.test(sql)))).toEqual([[], []])
  })

  test('inside the host’s own transaction it costs the same', async () => {
    const host = await start()
    const { refreshToken, userId } = await signedIn(host)
    const store = createKnexStore({ knex: host.knex })
    const { service, ready } = createAuthRouter({
      settings: { jwtSecret: testSecret, oauthRedirectBaseUrl: baseUrl },
      store,
      environment: 'test',
      logger: host.logs,
      now: host.clock.now,
    })
    await ready() // the look at the tables is over
    const trx = await host.knex.transaction(database.name === 'sqlite' ? {} : { isolationLevel: 'read committed' })
    const statements = recordQueries(host.knex)
    const result = await service.using(store.using(trx)).refresh(refreshToken)
    const count = statements.stop().length
    await trx.commit()

    expect([result.kind, result.userId, count]).toEqual(['session', userId, cost.joined])
  })
})
