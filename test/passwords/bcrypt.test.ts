import bcrypt from 'bcrypt'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, ServiceUnavailableError } from '../../src/core/errors'
import { type BcryptOptions, bcryptHasher } from '../../src/passwords/bcrypt-hasher'
import { argon2idHasher } from '../../src/passwords/password-hasher'
import type { PasswordHasher } from '../../src/passwords/password-types'
import { hidePackages, showPackages } from './hidden-packages'

const password = 'Grüße aus São Paulo'
let imported: string

beforeAll(async () => {
  imported = await bcrypt.hash(password, 4)
})

afterEach(() => {
  showPackages()
  vi.restoreAllMocks()
})

describe('bcryptHasher', () => {
  const quick = () => bcryptHasher({ cost: 10 })

  test('writes $2b$ with cost 12 by default', async () => {
    expect(await bcryptHasher().hash(password)).toMatch(/^\$2b\$12\$[./A-Za-z0-9]{53}$/)
  })

  test('what it wrote verifies and needs no rehash', async () => {
    const hash = await quick().hash(password)
    expect(await quick().verify(hash, password)).toBe(true)
    expect(await quick().verify(hash, password.toLowerCase())).toBe(false)
    expect(quick().needsRehash(hash)).toBe(false)
  })

  test('72 bytes count to the last, in ASCII and in emoji; the 73rd is refused and never ignored', async () => {
    const hasher = quick()
    for (const [whole, other] of [
      [`${'a'.repeat(71)}1`, `${'a'.repeat(71)}2`],
      ['🔑'.repeat(18), `${'🔑'.repeat(17)}🔒`],
    ] as const) {
      const hash = await bcrypt.hash(whole, 4)
      expect(await hasher.verify(hash, whole)).toBe(true)
      expect(await hasher.verify(hash, other)).toBe(false)
      expect(await hasher.verify(hash, `${whole}x`)).toBe(false)
      await expect(hasher.hash(`${whole}x`)).rejects.toMatchObject({ status: 422, details: { rule: 'too_long', max: 72 } })
    }
    expect(hasher.maxPasswordBytes).toBe(72)
  })

  test.each(['a\0a', 'a\0', '\0', 'abc\ud800'])('%j is refused: a NUL or half of a pair would make two passwords one', async (given) => {
    await expect(quick().hash(given)).rejects.toMatchObject({ status: 422, details: { rule: 'malformed' } })
  })

  test('`a`, NUL, `a` does not pass for `a`, though bcrypt itself takes it', async () => {
    const hash = await bcrypt.hash('a', 4)
    expect(await bcrypt.compare('a\0a', hash)).toBe(true)
    expect(await quick().verify(hash, 'a\0a')).toBe(false)
    expect(await quick().verify(hash, 'a')).toBe(true)
  })

  test.each<[string, unknown]>([
    ['nothing', ''],
    ['null', null],
    ['garbage', 'not a hash'],
    ['an argon2 hash', '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b3dWRWJTmaaJObGq0L5Vv2dCGM'],
    ['cost 31, a day of work', '$2b$31$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi'],
    ['cost 16', '$2b$16$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi'],
    ['cost 3', '$2b$03$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi'],
    ['the variant x', '$2x$10$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi'],
    ['a line after it', '$2b$10$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi\n'],
  ])('a stored hash that is %s is false, and bcrypt does not run', async (_, hash) => {
    const run = vi.spyOn(bcrypt, 'compare')
    // wrong types are part of the table: a row may hold anything
    expect(await quick().verify(hash as string, password)).toBe(false)
    expect(quick().unreadable?.(hash as string)).toBe('unknown_format')
    expect(quick().needsRehash(hash as string)).toBe(true)
    expect(run).not.toHaveBeenCalled()
  })

  test('a lower cost needs a rehash, an equal or higher one does not', async () => {
    const at = (cost: number) => `$2b$${cost}$C6UzMDM.H6dfI/f/IKcEe.7OEUE3E2X1u0hHb3PvFqD8p0G1vYdHi`
    expect([10, 11, 12, 13].map((cost) => bcryptHasher().needsRehash(at(cost)))).toEqual([true, true, false, false])
  })

  test('bounded like argon2: past the queue 503, at once', async () => {
    vi.spyOn(bcrypt, 'compare').mockImplementation(() => new Promise(() => {}))
    const hasher = quick()
    const outcomes = Array.from({ length: 70 }, () => hasher.verify(imported, password).catch((error: unknown) => error))
    expect(await Promise.race(outcomes)).toBeInstanceOf(ServiceUnavailableError)
  })

  test.each([9, 16, 12.5, Number.NaN, '12'])('cost %j is refused at construction', (cost) => {
    // wrong on purpose
    expect(() => bcryptHasher({ cost: cost as number })).toThrow('bcryptHasher: cost must be a whole number from 10 to 15.')
  })

  test('an option that does not exist is refused at construction', () => {
    expect(() => bcryptHasher({ rounds: 12 } as BcryptOptions)).toThrow('bcryptHasher has no option "rounds".')
  })

  test('without the package it says what to install', () => {
    hidePackages('bcrypt')
    expect(() => bcryptHasher()).toThrow(ConfigurationError)
    expect(() => bcryptHasher()).toThrow('npm install bcrypt')
  })
})

describe('bcrypt hashes of an imported table, under the default hasher', () => {
  const withPrefix = (prefix: string, hash = imported) => `${prefix}${hash.slice(4)}`

  test.each(['$2a$', '$2b$', '$2y$'])('%s verifies, is wrong for another password, and needs a rehash', async (prefix) => {
    const hasher = argon2idHasher()
    expect(hasher.unreadable?.(withPrefix(prefix))).toBeNull()
    expect(await hasher.verify(withPrefix(prefix), password)).toBe(true)
    expect(await hasher.verify(withPrefix(prefix), 'grüße aus São Paulo')).toBe(false)
    expect(hasher.needsRehash(withPrefix(prefix))).toBe(true)
  })

  test('a $2y$ hash that PHP made verifies', async () => {
    const php = '$2y$07$BCryptRequires22Chrcte/VlQH0piJtjXl.0t1XkA8pw9dMXTpOq' // the example of PHP's manual, password_verify()
    expect(await argon2idHasher().verify(php, 'rasmuslerdorf')).toBe(true)
  })

  test('more than 72 bytes: as in the system that made the hash, the first 72 decide', async () => {
    const hash = await bcrypt.hash('a'.repeat(100), 4)
    const hasher = argon2idHasher()
    expect(await hasher.verify(hash, 'a'.repeat(100))).toBe(true)
    expect(await hasher.verify(hash, `${'a'.repeat(72)}b`)).toBe(true)
    expect(await hasher.verify(hash, 'a'.repeat(71))).toBe(false)
    const upgraded = await hasher.hash('a'.repeat(100))
    expect(await hasher.verify(upgraded, 'a'.repeat(99))).toBe(false)
  })

  test('$2a$: 300 bytes do not pass for the 44 that are left of their length in eight bits', async () => {
    const hash = withPrefix('$2a$', await bcrypt.hash('a'.repeat(44), 4))
    const wrapped = `${'a'.repeat(44)}\0${'b'.repeat(255)}`
    expect(await bcrypt.compare(wrapped, hash)).toBe(true)
    expect(await argon2idHasher().verify(hash, wrapped)).toBe(false)
    expect(await argon2idHasher().verify(hash, `${'a'.repeat(44)}${'b'.repeat(256)}`)).toBe(false)
  })

  test('they go through the same bounded queue', async () => {
    const hasher = argon2idHasher({ concurrency: 1, queue: 0 })
    const running = hasher.hash(password)
    await expect(hasher.verify(imported, password)).rejects.toBeInstanceOf(ServiceUnavailableError)
    await running
  })

  test('without the package such a hash is false and says why, and everything else works', async () => {
    hidePackages('bcrypt')
    const hasher: PasswordHasher = argon2idHasher()
    expect(await hasher.verify(imported, password)).toBe(false)
    expect(hasher.unreadable?.(imported)).toBe('bcrypt_not_installed')
    expect(await hasher.verify(await hasher.hash(password), password)).toBe(true)
  })
})
