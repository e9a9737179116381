import { describe, expect, test } from 'vitest'
import { ConfigurationError, createAuthRouter } from '../../src'
import type { AuthStore } from '../../src/store/auth-store'
import { recheckedStore } from '../../src/store/rechecked-store'
import { testSecret } from '../support/app'
import { AT, newUser, newUserToken } from './contract'
import { memoryStore } from './memory-store'

describe('R-069: what an adapter answers to the verbs of local accounts is compared with what was asked', () => {
  async function answering(change: Partial<AuthStore['users']> & Partial<AuthStore['userTokens']>) {
    const real = memoryStore()
    const user = await real.users.insert(newUser({ hashedPassword: 'AbC' }))
    const careless = { ...real, users: { ...real.users, ...change }, userTokens: { ...real.userTokens, ...change } }
    const reports: string[] = []
    return { user, reports, store: recheckedStore(careless, (verb) => reports.push(verb)) }
  }

  test.each<[string, Partial<ReturnType<typeof newUser>> & { id?: string }]>([
    ['of somebody else', { id: 'another' }],
    ['with another hash', { hashedPassword: 'abc' }],
    ['of an inactive user', { isActive: false }],
  ])('a recorded login %s is none', async (_what, near) => {
    const { store, user, reports } = await answering({ recordLogin: async () => ({ ...user, ...near }) })
    expect(await store.users.recordLogin(user, AT)).toBeNull()
    expect(reports).toEqual(['users.recordLogin'])
  })

  test('a recorded login that kept the old hash instead of the new one is none', async () => {
    const { store, user, reports } = await answering({ recordLogin: async () => user })
    expect(await store.users.recordLogin(user, AT)).toEqual(user)
    expect(await store.users.recordLogin(user, AT, { hashedPassword: 'rehashed' })).toBeNull()
    expect(reports).toEqual(['users.recordLogin'])
  })

  test('a token of another hash is not found', async () => {
    const token = { ...newUserToken('u', { tokenHash: 'AbC' }), id: 't' }
    const { store, reports } = await answering({ find: async () => token as never }) // of users it is not asked here
    expect(await store.userTokens.find('AbC')).toEqual(token)
    expect(await store.userTokens.find('abc')).toBeNull()
    expect(reports).toEqual(['userTokens.find'])
  })
})

const silent = { info() {}, warn() {}, error() {} }

test.each([
  ['users', 'recordLogin'],
  ['userTokens', 'find'],
  ['userTokens', 'consumeAllForUser'],
  ['userTokens', 'listOpen'],
  ['userTokens', 'wasConsumed'],
] as const)('an adapter without %s.%s is refused at boot', (table, verb) => {
  const real = memoryStore()
  const boot = (store: AuthStore) => createAuthRouter({ settings: { jwtSecret: testSecret }, store, environment: 'test', logger: silent })
  expect(() => boot({ ...real, [table]: { ...real[table], [verb]: undefined } })).toThrow(ConfigurationError)
  expect(() => boot(real)).not.toThrow(/Option store/)
})
