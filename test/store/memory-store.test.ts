import { describe, expect, test } from 'vitest'
import type { AuthStore, CompleteStore } from '../../src/store/auth-store'
import { storeContract } from '../../src/testing'
import { memoryStore } from './memory-store'

describe('an adapter in memory keeps the contract', () => {
  const store = memoryStore()
  for (const { name, run } of storeContract({ makeStore: async () => store })) test(name, run)
})

describe('an adapter without the optional tables keeps the rest of it', () => {
  const { users, userTokens, transaction } = memoryStore()
  const makeStore = async (): Promise<AuthStore> => ({
    users,
    userTokens,
    transaction: (work, options) =>
      transaction((inside) => work({ users: inside.users, userTokens: inside.userTokens, transaction: inside.transaction }), options),
  })
  const without = ['identities', 'refreshTokens', 'recoveryCodes', 'sessions'] as const
  for (const { name, run } of storeContract({ makeStore, without })) test(name, run)
})

describe('storeContract', () => {
  const failuresOf = async (makeStore: () => Promise<AuthStore>) => {
    const failures: string[] = []
    for (const { name, run } of storeContract({ makeStore })) await run().catch(() => failures.push(name))
    return failures
  }
  const broken = (change: (store: CompleteStore) => Partial<AuthStore>) => async () => {
    const store = memoryStore()
    return { ...store, ...change(store) }
  }

  test('names every case once', () => {
    const names = storeContract({ makeStore: async () => memoryStore() }).map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
  })

  test('a missing table that was not named is a failure, not a pass', async () => {
    const { sessions: _, ...rest } = memoryStore()
    expect(await failuresOf(async () => rest)).toContain('a session is found with its user and slides')
  })

  test.each<[string, (store: CompleteStore) => Partial<AuthStore>, RegExp]>([
    [
      'an email found in other letters',
      ({ users }) => ({ users: { ...users, findByEmail: (email) => users.findByEmail(email.toLowerCase()) } }),
      /byte for byte/,
    ],
    [
      'a token that can be spent twice',
      ({ userTokens }) => ({
        userTokens: {
          ...userTokens,
          consume: async (hash, purpose, at) =>
            (await userTokens.consume(hash, purpose, at)) ??
            userTokens.insert({
              userId: '',
              tokenHash: `${hash}${Math.random()}`,
              purpose,
              payload: null,
              expiresAt: at,
              usedAt: at,
              createdAt: at,
            }),
        },
      }),
      /spent once/,
    ],
    [
      'a login that does not look at the hash',
      ({ users }) => ({
        users: {
          ...users,
          recordLogin: async ({ id }, at, changes) => users.recordLogin((await users.find(id)) ?? { id, hashedPassword: '' }, at, changes),
        },
      }),
      /never brings back a password/,
    ],
    [
      'a superseded token that looks redeemed',
      ({ userTokens }) => ({
        userTokens: { ...userTokens, wasConsumed: async (_id, purpose) => purpose === 'PASSWORD_RESET' },
      }),
      /wasConsumed tells/,
    ],
    [
      'a unit that keeps what was done before a throw',
      (store) => ({ transaction: (work) => work(store) }),
      /a throw inside a unit leaves nothing/,
    ],
    ['a unit that knows no deadline', ({ transaction }) => ({ transaction: (work) => transaction(work) }), /a unit past its deadline/],
    [
      'instants cut to seconds',
      ({ users }) => ({
        users: {
          ...users,
          insert: (user) => users.insert({ ...user, createdAt: new Date(Math.trunc(user.createdAt.getTime() / 1000) * 1000) }),
        },
      }),
      /to the millisecond/,
    ],
    [
      'a revocation that does nothing',
      ({ refreshTokens }) => ({ refreshTokens: { ...refreshTokens, revokeFamily: async () => 1 } }),
      /revokeFamily ends every token/,
    ],
  ])('finds %s', async (_defect, change, name) => {
    expect(await failuresOf(broken(change))).toContainEqual(expect.stringMatching(name))
  })
})
