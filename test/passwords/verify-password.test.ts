import bcrypt from 'bcrypt'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ServiceUnavailableError } from '../../src/core/errors'
import { bcryptHasher } from '../../src/passwords/bcrypt-hasher'
import { argon2idHasher, createDummyHash } from '../../src/passwords/password-hasher'
import type { PasswordHasher } from '../../src/passwords/password-types'
import { isUnusablePassword, unusablePassword, verifyPassword } from '../../src/passwords/verify-password'
import { fastHasher } from '../support/fast-hasher'
import { logTap } from '../support/log-tap'
import { hidePackages, showPackages } from './hidden-packages'

const password = 'tuba lagoon velvet'
const failed = { matches: false, needsRehash: false }

/** What verifyPassword needs, and a list of the hashes it had verified. */
function contextOf(hasher: PasswordHasher) {
  const verified: string[] = []
  const watched: PasswordHasher = {
    ...hasher,
    verify: (hash, given) => {
      verified.push(hash)
      return hasher.verify(hash, given)
    },
  }
  return { hasher: watched, dummyHash: createDummyHash(hasher), logger: logTap(), verified }
}

afterEach(showPackages)

describe('a password', () => {
  test('that is right matches; one that is wrong does not; neither is logged', async () => {
    const ctx = contextOf(fastHasher())
    const hash = await ctx.hasher.hash.call(fastHasher(), password)
    expect(await verifyPassword(ctx, hash, password)).toEqual({ matches: true, needsRehash: false })
    expect(await verifyPassword(ctx, hash, `${password} `)).toEqual(failed)
    expect(ctx.verified).toEqual([hash, hash])
    expect(ctx.logger.entries).toEqual([])
  })

  test('needs a rehash only when it matches a weaker hash', async () => {
    const hash = await bcrypt.hash(password, 4)
    const ctx = contextOf(argon2idHasher())
    expect(await verifyPassword(ctx, hash, password)).toEqual({ matches: true, needsRehash: true })
    expect(await verifyPassword(ctx, hash, 'wrong')).toEqual(failed)
  })

  test.each([['yes'], [1], [undefined], [{}]])('does not match because a hasher answers %j: only true is true', async (answer) => {
    const ctx = contextOf({ ...fastHasher(), verify: async () => answer as boolean }) // wrong on purpose
    expect(await verifyPassword(ctx, 'any', password)).toEqual(failed)
  })
})

describe('an address nobody has', () => {
  test('R-073 costs one verify of a hash with current parameters, made once', async () => {
    const hasher = argon2idHasher({ memoryCost: 7_168, timeCost: 5 })
    const made = vi.spyOn(hasher, 'hash')
    const ctx = contextOf(hasher)
    const outcomes = await Promise.all(['a', 'b', 'c'].map((given) => verifyPassword(ctx, null, given)))
    expect(outcomes).toEqual([failed, failed, failed])
    expect(ctx.verified).toEqual(Array(3).fill(expect.stringContaining('$m=7168,t=5,p=1$')))
    expect(new Set(ctx.verified).size).toBe(1)
    expect(made).toHaveBeenCalledTimes(1)
    expect(ctx.logger.entries).toEqual([])
  })

  test('matches no password, not even one the hasher calls right', async () => {
    const ctx = contextOf({ ...fastHasher(), verify: async () => true })
    expect(await verifyPassword(ctx, null, password)).toEqual(failed)
  })

  test('a dummy that could not be made is tried again', async () => {
    const hasher = fastHasher()
    const hash = vi.fn(hasher.hash.bind(hasher)).mockRejectedValueOnce(new Error('no memory'))
    const dummyHash = createDummyHash({ ...hasher, hash })
    await expect(dummyHash()).rejects.toThrow('no memory')
    expect(await dummyHash()).toBe(await dummyHash())
    expect(hash).toHaveBeenCalledTimes(2)
  })
})

describe('an unusable password', () => {
  const makers: [string, () => PasswordHasher][] = [
    ['argon2id', () => argon2idHasher()],
    ['bcrypt', () => bcryptHasher({ cost: 10 })],
    ['a host’s own that believes everything', () => ({ ...fastHasher(), verify: async () => true, needsRehash: () => true })],
  ]

  test.each(makers)('under %s verifies for nobody, costs one verification of the dummy, and no hasher sees it', async (_, make) => {
    const ctx = contextOf(make())
    const unusable = unusablePassword()
    const seen = vi.spyOn(ctx.hasher, 'needsRehash')
    const unreadable = ctx.hasher.unreadable ? vi.spyOn(ctx.hasher, 'unreadable') : null

    for (const given of [unusable, unusable.slice(1), '', password]) expect(await verifyPassword(ctx, unusable, given)).toEqual(failed)

    expect(ctx.verified).toEqual(Array(4).fill(await ctx.dummyHash()))
    expect(seen).not.toHaveBeenCalled()
    if (unreadable) expect(unreadable).not.toHaveBeenCalled()
    expect(ctx.logger.entries).toEqual([])
  })

  test('is 44 characters, new each time, and nothing beside it is one', () => {
    const made = Array.from({ length: 1_000 }, unusablePassword)
    expect(new Set(made).size).toBe(1_000)
    for (const unusable of made) {
      expect(unusable).toMatch(/^![A-Za-z0-9_-]{43}$/)
      expect(isUnusablePassword(unusable)).toBe(true)
    }
    const [some = ''] = made
    for (const other of [some.slice(1), `${some}A`, some.slice(0, -1), ` ${some}`, `${some}\n`, '!', '', null, undefined, 7])
      expect(isUnusablePassword(other), String(other)).toBe(false)
  })
})

describe('a stored hash that cannot be read', () => {
  const rows: [string, unknown][] = [
    ['empty', ''],
    ['undefined', undefined],
    ['a number', 7],
    ['garbage', 'not a hash'],
    ['argon2 of 2 GiB', '$argon2id$v=19$m=2097152,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b3dWRWJTmaaJObGq0L5Vv2dCGM'],
    ['half a bcrypt hash', '$2b$12$C6UzMDM.H6dfI'],
  ]

  test.each(rows)('%s: a failed login that costs what any other does, logged without the value', async (_, row) => {
    const ctx = contextOf(argon2idHasher())
    const dummy = await ctx.dummyHash()
    expect(await verifyPassword(ctx, row as string, password)).toEqual(failed) // a row may hold anything
    expect(ctx.verified).toEqual([dummy])
    expect(ctx.logger.entries).toEqual([
      {
        level: 'error',
        fields: { reason: 'unknown_format' },
        message: 'doorward: a stored password hash cannot be read; the person must reset the password',
      },
    ])
  })

  test('bcrypt where it is not installed: a failed login of the same cost, and one warning for all of them', async () => {
    const hash = await bcrypt.hash(password, 4)
    hidePackages('bcrypt')
    const ctx = contextOf(argon2idHasher())
    expect(await verifyPassword(ctx, hash, password)).toEqual(failed)
    expect(await verifyPassword(ctx, hash, password)).toEqual(failed)
    expect(ctx.verified).toEqual(Array(2).fill(await ctx.dummyHash()))
    expect(ctx.logger.entries).toEqual([expect.objectContaining({ level: 'warn', message: expect.stringContaining('npm install bcrypt') })])
    expect(ctx.logger.text()).not.toContain(hash)
  })
})

describe('a hasher that throws', () => {
  const broken = (): never => {
    throw new TypeError(`cannot read canary-hash for ${password}`)
  }

  test.each<[string, Partial<PasswordHasher>]>([
    ['in verify', { verify: async () => broken() }],
    ['in verify, before its first await', { verify: broken }],
    ['in needsRehash', { needsRehash: broken }],
    ['in unreadable', { unreadable: broken }],
  ])('%s is a failed login, logged, never an error', async (_, part) => {
    const ctx = contextOf({ ...fastHasher(), ...part })
    const hash = await fastHasher().hash(password)
    expect(await verifyPassword(ctx, hash, password)).toEqual(failed)
    expect(ctx.logger.entries).toEqual([
      {
        level: 'error',
        fields: { error: expect.objectContaining({ name: 'TypeError' }) },
        message: 'doorward: the password hasher failed; the login counts as failed',
      },
    ])
    expect(ctx.logger.text()).not.toContain(password)
    expect(ctx.logger.text()).not.toContain('canary')
  })

  test('on one hash at once still spends the time of a verify', async () => {
    const hasher = fastHasher()
    const ctx = contextOf({ ...hasher, verify: async (hash, given) => (hash === 'garbage' ? broken() : hasher.verify(hash, given)) })
    expect(await verifyPassword(ctx, 'garbage', password)).toEqual(failed)
    expect(ctx.verified).toEqual(['garbage', await ctx.dummyHash()])
  })

  test('while the dummy is made is a failed login, logged', async () => {
    const ctx = contextOf({ ...fastHasher(), hash: broken })
    expect(await verifyPassword(ctx, null, password)).toEqual(failed)
    expect(ctx.logger.entries).toHaveLength(1)
  })

  test('because it is busy is 503, for an address nobody has too, and nothing is logged', async () => {
    const hasher = argon2idHasher({ concurrency: 1, queue: 0 })
    const ctx = contextOf(hasher)
    const hash = await ctx.dummyHash()
    const running = hasher.hash(password)
    await expect(verifyPassword(ctx, hash, password)).rejects.toBeInstanceOf(ServiceUnavailableError)
    await expect(verifyPassword(ctx, null, password)).rejects.toBeInstanceOf(ServiceUnavailableError)
    expect(ctx.logger.entries).toEqual([])
    await running
  })
})
