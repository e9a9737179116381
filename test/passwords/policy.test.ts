import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ConfigurationError } from '../../src/errors'
import { generatePassword } from '../../src/passwords/policy'

const classes = [/[a-z]/, /[A-Z]/, /[0-9]/, /[^a-zA-Z0-9]/]

test('a generated password satisfies any policy that leaves room for 128 bits', () => {
  const policies = fc.record({
    minLength: fc.option(fc.integer({ min: 0, max: 128 }), { nil: undefined }),
    maxBytes: fc.option(fc.integer({ min: 128, max: 4_096 }), { nil: undefined }),
    requireComplexity: fc.boolean(),
  })
  fc.assert(
    fc.property(policies, ({ minLength, maxBytes, requireComplexity }) => {
      const password = generatePassword({
        ...(minLength === undefined ? {} : { minLength }),
        ...(maxBytes === undefined ? {} : { maxBytes }),
        requireComplexity,
      })
      expect([...password].length).toBeGreaterThanOrEqual(Math.max(20, minLength ?? 0))
      expect(Buffer.byteLength(password)).toBeLessThanOrEqual(maxBytes ?? Number.POSITIVE_INFINITY)
      for (const characterClass of classes) expect(password).toMatch(characterClass)
    }),
  )
})

test('every required class is guaranteed, in thousands of draws', () => {
  for (let round = 0; round < 5_000; round++) {
    const password = generatePassword({ minLength: 12, maxBytes: 20, requireComplexity: true })
    expect(classes.every((characterClass) => characterClass.test(password))).toBe(true)
  }
})

test('it fits into the 72 bytes of bcrypt', () => {
  expect(Buffer.byteLength(generatePassword({ minLength: 64, maxBytes: 72 }))).toBe(64)
})

test('a policy without room for 128 bits, or none at all, is refused', () => {
  for (const policy of [
    { maxBytes: 19 },
    { minLength: 30, maxBytes: 29 },
    { maxBytes: Number.NaN },
    { minLength: Number.NaN },
    { minLength: 24.5 },
    { minLength: Number.POSITIVE_INFINITY },
  ]) {
    expect(() => generatePassword(policy)).toThrow(ConfigurationError)
  }
})

test('no two are alike, and every visible character turns up everywhere about equally often', () => {
  const draws = 20_000
  const passwords = Array.from({ length: draws }, () => generatePassword())
  expect(new Set(passwords).size).toBe(draws)
  const counts = new Map<string, number>()
  for (const character of passwords.join('')) counts.set(character, (counts.get(character) ?? 0) + 1)
  expect(counts.size).toBe(94)

  // Drawn again until every class is there: within a class, each character is equally likely (chi-square far out in the tail).
  for (const characterClass of classes) {
    const ofClass = [...counts].filter(([character]) => characterClass.test(character)).map(([, count]) => count)
    const expected = ofClass.reduce((sum, count) => sum + count) / ofClass.length
    const chiSquare = ofClass.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    expect(chiSquare).toBeLessThan(ofClass.length + 7 * Math.sqrt(2 * ofClass.length))
  }

  // No place is reserved for a class: digits are as frequent at the start as at the end.
  const digitsAt = (place: number) => passwords.filter((password) => /[0-9]/.test(password.charAt(place))).length
  expect(Math.abs(digitsAt(0) - digitsAt(23))).toBeLessThan(6 * Math.sqrt(draws * 0.11 * 2))
})
