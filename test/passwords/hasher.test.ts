import { createRequire } from 'node:module'
import argon2 from 'argon2'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { AppError, ConfigurationError, ServiceUnavailableError } from '../../src/core/errors'
import { type Argon2idOptions, argon2idHasher } from '../../src/passwords/password-hasher'

// As the hasher sees it: what is spied on must be the object that `require` returns.
const rust = createRequire(import.meta.url)('@node-rs/argon2') as typeof import('@node-rs/argon2')

/** Both engines' verify, so that neither can have run unseen. */
const spies = () => [vi.spyOn(argon2, 'verify'), vi.spyOn(rust, 'verify')]

const password = 'correct horse battery staple'
const salt = 'c29tZXNhbHRzb21lc2FsdA'
const digest = 'RdescudvJCsgt3ub+b3dWRWJTmaaJObGq0L5Vv2dCGM'

afterEach(() => {
  vi.restoreAllMocks()
})

describe('hashing', () => {
  test('R-070 argon2id with m=19456, t=2, p=1 and a salt of 16 bytes is the default', async () => {
    const hash = await argon2idHasher().hash(password)
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  })

  test('two hashes of one password differ and both verify', async () => {
    const hasher = argon2idHasher()
    const [one, other] = await Promise.all([hasher.hash(password), hasher.hash(password)])
    expect(one).not.toBe(other)
    expect(await hasher.verify(one, password)).toBe(true)
    expect(await hasher.verify(other, password)).toBe(true)
  })

  test('the chosen costs are in the hash', async () => {
    const hash = await argon2idHasher({ memoryCost: 7_168, timeCost: 5, parallelism: 2 }).hash(password)
    expect(hash).toContain('$m=7168,t=5,p=2$')
  })
})

describe('verifying', () => {
  test.each(['Correct horse battery staple', `${password} `, ` ${password}`, '', `${password}\0`, password.slice(0, -1)])(
    '%j is another password',
    async (other) => {
      const hasher = argon2idHasher()
      expect(await hasher.verify(await hasher.hash(password), other)).toBe(false)
    },
  )

  test.each(['a'.repeat(73), `${'a'.repeat(200)}ö`, '🔑'.repeat(20), 'a\0b'])(
    'the last character of %j counts: nothing is cut',
    async (long) => {
      const hasher = argon2idHasher()
      const hash = await hasher.hash(long)
      expect(await hasher.verify(hash, long)).toBe(true)
      expect(await hasher.verify(hash, `${[...long].slice(0, -1).join('')}x`)).toBe(false)
    },
  )

  test('hashes of other costs, of argon2i and in the order m,p,t verify', async () => {
    const hasher = argon2idHasher()
    const weaker = await argon2.hash(password, { memoryCost: 1024, timeCost: 2, parallelism: 1 })
    const older = await argon2.hash(password, { memoryCost: 1024, timeCost: 2, parallelism: 1, type: argon2.argon2i })
    expect(await hasher.verify(weaker, password)).toBe(true)
    expect(await hasher.verify(older, password)).toBe(true)
    expect(await hasher.verify(weaker.replace('t=2,p=1', 'p=1,t=2'), password)).toBe(true)
  })

  const unreadable: [string, unknown][] = [
    ['an empty hash', ''],
    ['garbage', 'not a hash'],
    ['null', null],
    ['undefined', undefined],
    ['a number', 7],
    ['a bcrypt hash of cost 31', '$2b$31$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi'],
    ['the beginning of a bcrypt hash', '$2b$12$C6UzMDM.H6dfI'],
    ['a scrypt hash', `$scrypt$ln=16,r=8,p=1$${salt}$${digest}`],
    ['m above 1 GiB', `$argon2id$v=19$m=2097152,t=2,p=1$${salt}$${digest}`],
    ['m just above 1 GiB', `$argon2id$v=19$m=1048577,t=2,p=1$${salt}$${digest}`],
    ['t above 10', `$argon2id$v=19$m=19456,t=11,p=1$${salt}$${digest}`],
    ['p above 8', `$argon2id$v=19$m=19456,t=2,p=9$${salt}$${digest}`],
    ['m beyond any number', `$argon2id$v=19$m=99999999999,t=2,p=1$${salt}$${digest}`],
    ['m given twice', `$argon2id$v=19$m=19456,m=19456,t=2$${salt}$${digest}`],
    ['t of zero', `$argon2id$v=19$m=19456,t=0,p=1$${salt}$${digest}`],
    ['less memory than the lanes need', `$argon2id$v=19$m=8,t=2,p=2$${salt}$${digest}`],
    ['an unknown version', `$argon2id$v=20$m=19456,t=2,p=1$${salt}$${digest}`],
    ['no salt', `$argon2id$v=19$m=19456,t=2,p=1$$${digest}`],
    ['a digest short enough to guess', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$RdescQ`],
    ['a line after it', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${digest}\n`],
    ['ten kilobytes', `$argon2id$v=19$m=19456,t=2,p=1$${salt}$${'A'.repeat(10_000)}`],
  ]

  test.each(unreadable)('%s is false, and argon2 does not run', async (_, hash) => {
    const engines = spies()
    const hasher = argon2idHasher()
    // wrong types are part of the table: a row may hold anything
    expect(await hasher.verify(hash as string, password)).toBe(false)
    expect(hasher.needsRehash(hash as string)).toBe(true)
    expect(hasher.unreadable?.(hash as string)).toBe('unknown_format')
    for (const run of engines) expect(run).not.toHaveBeenCalled()
  })

  test.each([[undefined], [null], [7], [{}], [['a']], ['\ud800']])(
    'a password that is %j is false, and argon2 does not run',
    async (given) => {
      const hasher = argon2idHasher()
      const hash = await hasher.hash(password)
      const engines = spies()
      // wrong on purpose
      expect(await hasher.verify(hash, given as unknown as string)).toBe(false)
      for (const run of engines) expect(run).not.toHaveBeenCalled()
    },
  )

  test('argon2 out of memory is 503, neither a wrong password nor a crash', async () => {
    const hasher = argon2idHasher()
    const hash = await hasher.hash(password)
    for (const run of spies()) run.mockRejectedValue(new Error('Memory allocation error'))
    await expect(hasher.verify(hash, password)).rejects.toMatchObject({ status: 503, details: { retry_after_seconds: 1 } })
  })
})

describe('needsRehash', () => {
  const hasher = argon2idHasher({ memoryCost: 19_456, timeCost: 3 })
  test.each([
    ['$argon2id$v=19$m=19456,t=3,p=1', false],
    ['$argon2id$v=19$m=65536,t=4,p=4', false],
    ['$argon2id$v=19$m=19455,t=3,p=1', true],
    ['$argon2id$v=19$m=19456,t=2,p=1', true],
    ['$argon2id$v=16$m=19456,t=3,p=1', true],
    ['$argon2i$v=19$m=19456,t=3,p=1', true],
  ])('of %s is %j: true when the hash is weaker than what is made now', (head, expected) => {
    expect(hasher.needsRehash(`${head}$${salt}$${digest}`)).toBe(expected)
  })

  test('a short salt or digest is weaker', () => {
    expect(hasher.needsRehash(`$argon2id$v=19$m=19456,t=3,p=1$c29tZXNhbHQ$${digest}`)).toBe(true)
    expect(hasher.needsRehash(`$argon2id$v=19$m=19456,t=3,p=1$${salt}$${digest.slice(0, 22)}`)).toBe(true)
  })

  test('a hash just made needs none', async () => {
    expect(hasher.needsRehash(await hasher.hash(password))).toBe(false)
  })
})

describe('the bounded queue', () => {
  test('R-076 past it: 503 SERVICE_UNAVAILABLE with Retry-After, at once, and later calls succeed again', async () => {
    const hasher = argon2idHasher({ concurrency: 1, queue: 2 })
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, () => hasher.hash(password)))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'])
    for (const outcome of outcomes.slice(3)) {
      const reason: unknown = outcome.status === 'rejected' && outcome.reason
      expect(reason).toBeInstanceOf(ServiceUnavailableError)
      expect(reason instanceof AppError && reason.details).toEqual({ retry_after_seconds: 1 })
    }
    expect(await hasher.hash(password)).toMatch(/^\$argon2id/)
  })

  test('hash and verify share one queue', async () => {
    const hasher = argon2idHasher({ concurrency: 1, queue: 0 })
    const hash = await hasher.hash(password)
    const running = hasher.hash(password)
    await expect(hasher.verify(hash, password)).rejects.toBeInstanceOf(ServiceUnavailableError)
    await running
  })
})

describe('options', () => {
  const bad: Record<string, unknown>[] = [
    { memoryCost: 7_167 },
    { memoryCost: 1_048_577 },
    { memoryCost: '19456' },
    { timeCost: 0 },
    { timeCost: 11 },
    { timeCost: 2.5 },
    { parallelism: 0 },
    { parallelism: 9 },
    { concurrency: 0 },
    { concurrency: Number.NaN },
    { queue: -1 },
    { queue: Number.POSITIVE_INFINITY },
    { memoryCost: 19_456, timeCost: 1 },
    { memoryCost: 7_168, timeCost: 4 },
    { memory: 19_456 },
    { constructor: 1 },
  ]
  test.each(bad)('%j are refused at construction', (options) => {
    // wrong on purpose
    expect(() => argon2idHasher(options as Argon2idOptions)).toThrow(ConfigurationError)
  })

  test.each([{}, { memoryCost: 47_104, timeCost: 1 }, { memoryCost: 7_168, timeCost: 5 }, { queue: 0 }, { concurrency: 4 }])(
    '%j are accepted',
    (options) => {
      expect(() => argon2idHasher(options)).not.toThrow()
    },
  )
})
