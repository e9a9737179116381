import { afterAll, beforeAll, describe, test } from 'vitest'
import { ensureBuilt } from '../package/built-package'
import { byHand, doorward } from './lib/products.mjs'
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
})
