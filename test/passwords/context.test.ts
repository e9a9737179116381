import knex from 'knex'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import type { AuthRouterOptions } from '../../src/options'
import { bcryptHasher } from '../../src/passwords/bcrypt-hasher'
import { checkPassword } from '../../src/passwords/check-password'
import { createContext } from '../../src/router/create-context'
import { createKnexStore } from '../../src/store/knex/knex-store'
import { testSecret } from '../support/app'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { linkTemplates } from '../support/mailbox'

const database = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
afterAll(() => database.destroy())

function boot({ settings, ...options }: Partial<AuthRouterOptions> = {}) {
  const store = createKnexStore({ knex: database })
  return createContext({
    settings: { jwtSecret: testSecret, ...linkTemplates, ...settings },
    store,
    environment: 'test',
    logger: logTap(),
    ...options,
  })
}

const about = { email: 'ada@example.com', name: null }

describe('the policy of a router', () => {
  test('is 12 code points, 1024 bytes and no classes by default', () => {
    expect(boot().passwordPolicy).toEqual({ minLength: 12, maxBytes: 1_024, requireComplexity: false })
  })

  test('comes from the settings, and option by option from passwordPolicy', () => {
    const settings = { jwtSecret: testSecret, passwordMinLength: 15, passwordRequireComplexity: true }
    const passwordPolicy = { maxBytes: 256, minLength: undefined } as unknown as NonNullable<AuthRouterOptions['passwordPolicy']>
    expect(boot({ settings, passwordPolicy }).passwordPolicy).toEqual({ minLength: 15, maxBytes: 256, requireComplexity: true })
  })

  test('keeps the check of an object of a class, with its `this`', async () => {
    class Breaches {
      static rule = 'found_in_breach'
      async check(): Promise<string> {
        return (this.constructor as typeof Breaches).rule
      }
    }
    await expect(checkPassword(boot({ passwordPolicy: new Breaches() }), 'tuba-lagoon-9-velvet', about)).rejects.toMatchObject({
      details: { rule: 'found_in_breach' },
    })
  })

  test('never allows more bytes than the hasher takes whole: 72 with bcryptHasher', async () => {
    const ctx = boot({ passwordHasher: bcryptHasher(), passwordPolicy: { maxBytes: 1_024 } })
    const longest = 'velvet tuba lagoon '.repeat(4).slice(0, 72)
    await checkPassword(ctx, longest, about)
    await expect(checkPassword(ctx, `${longest}x`, about)).rejects.toMatchObject({ status: 422, details: { rule: 'too_long', max: 72 } })
  })

  test('keeps a limit below the hasher’s', () => {
    expect(
      boot({ passwordHasher: { ...fastHasher(), maxPasswordBytes: 72 }, passwordPolicy: { maxBytes: 64 } }).passwordPolicy.maxBytes,
    ).toBe(64)
  })

  test('that no password could satisfy, because of the hasher, stops the boot', () => {
    const take = (maxPasswordBytes: number) => () => boot({ passwordHasher: { ...fastHasher(), maxPasswordBytes } })
    for (const bytes of [11, Number.NaN]) {
      expect(take(bytes), String(bytes)).toThrow(ConfigurationError)
      expect(take(bytes)).toThrow(/maxPasswordBytes must be a number not below passwordMinLength/)
    }
    expect(take(12)().passwordPolicy).toMatchObject({ minLength: 12, maxBytes: 12 })
  })
})
