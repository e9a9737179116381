import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFakeProvider } from '../../src/testing'
import { ensureBuilt } from '../package/built-package'
import { mustBe, openConnection, requestText } from './lib/connection.mjs'
import { meetPeople } from './lib/honest-people.mjs'
import { createSchema, hasPostgres } from './lib/postgres-schema.mjs'
import { byHand, doorward, newPerson } from './lib/products.mjs'
import { checkSocial, first, ping, runProduct, signUpSomebody } from './lib/run-product.mjs'
import { type Server, startServer } from './lib/start-server.mjs'

describe('the servers of the benches', () => {
  let provider: Server

  beforeAll(async () => {
    ensureBuilt()
    provider = await startServer('provider.mjs')
  })
  afterAll(() => provider.stop())

  test.each([doorward, byHand])(
    '$name lets the right person in and keeps the wrong one out, by password and from the provider',
    async (product) => {
      const running = await runProduct(product, 1, { BENCH_PROVIDER: provider.origin })
      try {
        await ping(first(running.connections))
        await signUpSomebody(running)
        await checkSocial(running)
      } finally {
        await running.stop()
      }
    },
    60_000,
  )

  test('doorward on the pool of an app lets the right person in and keeps the wrong one out', async () => {
    const schema = (await hasPostgres()) ? await createSchema() : null
    for (const database of schema ? [{}, schema.environment] : [{}]) {
      const running = await runProduct(doorward, 1, { BENCH_KNEX_ON: '1', ...database })
      await signUpSomebody(running).finally(() => running.stop())
    }
    await schema?.drop()
  }, 60_000)

  test.each(['0', '1'])(
    'the one of login transactions counts them (prepared: %s)',
    async (prepared) => {
      const schema = (await hasPostgres()) ? await createSchema() : null
      const server = await startServer('login-store.mjs', { environment: { BENCH_PREPARED: prepared, ...schema?.environment } })
      const connection = await openConnection(server.origin)
      const { body } = mustBe(200, await connection.ask(requestText('/logins?milliseconds=100')))
      expect(JSON.parse(body)).toEqual({ perSecond: expect.any(Number), cpuMicros: expect.any(Number) })
      expect(JSON.parse(body).perSecond).toBeGreaterThan(0)
      connection.close()
      await server.stop()
      await schema?.drop()
    },
    60_000,
  )

  test('the one of the attacks lets three people in each second, until their provider is away', async () => {
    const corp = await startFakeProvider()
    const server = await startServer('attacked.mjs', { environment: { BENCH_PROVIDER: JSON.stringify(corp.oidcOptions()) } })
    try {
      const letCome = await meetPeople(server.origin, corp)
      expect(await letCome(performance.now() + 1_500)).toMatchObject({ tries: 6, successes: 6, failures: [] })
      corp.on('token', (_request, response) => void response.destroy())
      expect(await letCome(performance.now() + 500)).toMatchObject({ tries: 3, successes: 2 })
    } finally {
      await server.stop()
      await corp.close()
    }
  }, 60_000)

  test.each(['driver', 'knex'])(
    'the hand-written refresh through the %s rotates, and a token that comes again ends its session',
    async (through) => {
      const schema = (await hasPostgres()) ? await createSchema() : null
      for (const database of schema ? [{}, schema.environment] : [{}]) {
        const server = await startServer('refresh-by-hand.mjs', { environment: { BENCH_THROUGH: through, ...database } })
        const connection = await openConnection(server.origin)
        try {
          const post = (path: string, json: object) => connection.ask(requestText(`/auth/${path}`, { json }))
          const pairOf = ({ body }: { body: string }) => JSON.parse(body) as { user_id: string; refresh_token: string } // what it answers
          const first = pairOf(mustBe(201, await post('signup', newPerson())))
          const second = pairOf(mustBe(200, await post('refresh', first)))
          const third = pairOf(mustBe(200, await post('refresh', second)))
          expect(new Set([first, second, third].map(({ refresh_token }) => refresh_token)).size).toBe(3)
          expect(third.user_id).toBe(first.user_id)
          for (const refused of [{ refresh_token: 'nobody knows it' }, { refresh_token: `${third.refresh_token}x` }])
            mustBe(401, await post('refresh', refused))
          const fourth = pairOf(mustBe(200, await post('refresh', third)))
          for (const refused of [first, fourth]) mustBe(401, await post('refresh', refused))
        } finally {
          connection.close()
          await server.stop()
        }
      }
      await schema?.drop()
    },
    60_000,
  )
})
