import { describe, expect, test } from 'vitest'
import type { AuthStore } from '../../src/store/auth-store'
import { storeContract } from '../../src/testing'
import { memoryStore } from './memory-store'

describe('an adapter in memory keeps the contract', () => {
  const store = memoryStore()
  const rules = { readOnly: false, private: false }
  const withFields = memoryStore(
    new Map([
      ['one', rules],
      ['other', rules],
    ]),
  )
  const hostFields = { makeStore: async () => withFields, names: ['one', 'other'] } as const
  for (const { name, run } of storeContract({ makeStore: async () => store, hostFields })) test(name, run)
})

describe('an adapter without the optional tables keeps the rest of it', () => {
  const { users, userTokens, transaction } = memoryStore()
  const makeStore = async (): Promise<AuthStore> => ({
    users,
    userTokens,
    transaction: (work, options) =>
      transaction((inside) => work({ users: inside.users, userTokens: inside.userTokens, transaction: inside.transaction }), options),
  })
  const without = ['identities', 'recoveryCodes', 'passkeys', 'sessions', 'emailLogins'] as const
  for (const { name, run } of storeContract({ makeStore, without })) test(name, run)
})

describe('storeContract', () => {
  const failuresOf = async (makeStore: () => Promise<AuthStore>) => {
    const failures: string[] = []
    for (const { name, run } of storeContract({ makeStore })) await run().catch(() => failures.push(name))
    return failures
  }

  test('names every case once', () => {
    const names = storeContract({ makeStore: async () => memoryStore() }).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  test('a missing table that was not named is a failure, not a pass', async () => {
    const { sessions: _, ...rest } = memoryStore()
    expect(await failuresOf(async () => rest)).toContain('touch slides a living session once')
  })
})
