import argon2 from 'argon2'
import { afterEach, describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import { whenInstalled } from '../../src/passwords/optional-package'
import { argon2idHasher, loadArgon2 } from '../../src/passwords/password-hasher'
import { hidePackages, showPackages } from './hidden-packages'

const password = 'pão de queijo 🧀 \0 café'
const cheap = { memoryCost: 1_024, timeCost: 2, parallelism: 1 }

/** With @node-rs/argon2, and without. */
function eachWay<T>(make: () => T): [rust: T, native: T] {
  const rust = make()
  hidePackages('@node-rs/argon2')
  const native = make()
  showPackages()
  return [rust, native]
}

const hashers = () => eachWay(() => argon2idHasher())
const engines = () => eachWay(loadArgon2)

afterEach(showPackages)

test('@node-rs/argon2 does the work where it is installed, argon2 where it is not', () => {
  const [rust, native] = hashers()
  expect(rust.engine).toBe('@node-rs/argon2')
  expect(native.engine).toBe('argon2')
})

test('where neither runs, on a platform without a binary say, the refusal says what to do, and keeps the reason', () => {
  hidePackages('@node-rs/argon2', 'argon2')

  expect(() => argon2idHasher()).toThrow(ConfigurationError)
  expect(() => argon2idHasher()).toThrow(/npm rebuild argon2.*@node-rs\/argon2.*passwordHasher/)
  expect(() => argon2idHasher()).toThrow(expect.objectContaining({ cause: expect.objectContaining({ code: 'MODULE_NOT_FOUND' }) }))
})

test('what either engine hashed verifies with the other, needs no rehash, and looks the same', async () => {
  const both = hashers()
  for (const hash of await Promise.all(both.map((hasher) => hasher.hash(password)))) {
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    for (const hasher of both) {
      expect(await hasher.verify(hash, password)).toBe(true)
      expect(await hasher.verify(hash, `${password} `)).toBe(false)
      expect(hasher.needsRehash(hash)).toBe(false)
    }
  }
})

describe('with both engines', () => {
  test.each([
    ['argon2d', 16],
    ['argon2d', 19],
    ['argon2i', 16],
    ['argon2i', 19],
    ['argon2id', 16],
  ] as const)('a stored %s hash of version %d verifies, and needs a rehash', async (variant, version) => {
    const hash = await argon2.hash(password, { ...cheap, type: argon2[variant], version })
    for (const hasher of hashers()) {
      expect(await hasher.verify(hash, password)).toBe(true)
      expect(await hasher.verify(hash, 'another password')).toBe(false)
      expect(hasher.needsRehash(hash)).toBe(true)
    }
  })

  test('the order m,p,t that argon2 0.45 writes, several lanes, short salts and long digests verify', async () => {
    const lanes = await argon2.hash(password, { ...cheap, parallelism: 2 })
    const odd = await argon2.hash(password, { ...cheap, salt: Buffer.alloc(9, 7), hashLength: 64 })
    for (const hasher of hashers()) {
      expect(await hasher.verify(lanes.replace('t=2,p=2', 'p=2,t=2'), password)).toBe(true)
      expect(await hasher.verify(odd, password)).toBe(true)
    }
  })

  test('a digest with stray bits at its end is a wrong password, not an outage', async () => {
    const stray = '$argon2id$v=19$m=1024,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB'
    for (const hasher of hashers()) expect(await hasher.verify(stray, password)).toBe(false)
  })

  test('R-070 a planted m=2097152 is refused at once', async () => {
    const planted = '$argon2id$v=19$m=2097152,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$RdescudvJCsgt3ub+b3dWRWJTmaaJObGq0L5Vv2dCGM'
    for (const hasher of hashers()) {
      const began = process.cpuUsage()
      expect(await hasher.verify(planted, password)).toBe(false)
      expect(process.cpuUsage(began).user).toBeLessThan(250_000) // microseconds; argon2 itself would burn seconds
    }
  })

  test.each([64, 72, 73, 200])('R-071 two passwords of %d characters that differ only in the last are two passwords', async (length) => {
    const shared = 'k'.repeat(length - 1)
    for (const engine of engines()) {
      const hash = await engine.hash(`${shared}1`, cheap)
      expect(await engine.verify(hash, `${shared}1`)).toBe(true)
      expect(await engine.verify(hash, `${shared}2`)).toBe(false)
    }
  })

  test('R-071 half of a surrogate pair is neither hashed nor verified: all of them would be one password', async () => {
    for (const hasher of hashers()) {
      await expect(hasher.hash('abc\ud800')).rejects.toMatchObject({ status: 422, details: { rule: 'malformed' } })
      expect(await hasher.verify(await hasher.hash('abc\ufffd'), 'abc\ud800')).toBe(false)
    }
  })
})

describe('a package that is optional', () => {
  const loading = (error: unknown) => () => {
    throw error
  }
  const missing = (sentence: string) => loading(Object.assign(new Error(sentence), { code: 'MODULE_NOT_FOUND' }))

  test.each([
    "Cannot find module 'bcrypt'\nRequire stack:\n- /app/index.js",
    "doorward tried to access bcrypt (a peer dependency) but it isn't provided by your application.",
  ])('is not there: %j', (sentence) => {
    expect(whenInstalled('bcrypt', missing(sentence))).toBeNull()
  })

  test.each([
    [
      'one of its own packages is missing',
      missing("Cannot find module 'node-gyp-build'\nRequire stack:\n- /app/node_modules/bcrypt/bcrypt.js"),
    ],
    ['one of its own files is missing', missing("Cannot find module './bcrypt'")],
    ['a package whose name begins like it is missing', missing("Cannot find module 'bcrypt-linux-x64'")],
    ['its binary is broken', loading(new Error('bcrypt: invalid ELF header'))],
    ['it throws nothing in particular', loading(null)],
  ])('is there and does not load, because %s: that is said, and not taken for absence', (_, load) => {
    expect(() => whenInstalled('bcrypt', load)).toThrow(ConfigurationError)
    expect(() => whenInstalled('bcrypt', load)).toThrow('The package bcrypt is installed but does not load')
  })
})
