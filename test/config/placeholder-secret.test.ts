import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { isPlaceholderSecret } from '../../src/core/config/settings-schema'

const placeholders = [
  'changeme'.repeat(4),
  'changeme'.repeat(12),
  `${'changeme'.repeat(4)}1`,
  'a'.repeat(64),
  '0'.repeat(32),
  'ab'.repeat(32),
  '0123456789abcdef'.repeat(2),
  'Kx7-pQ2_mZ9!wT4e'.repeat(2),
  'abcdefghijklmnopqrstuvwxyz012345',
  'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789',
  '12345678901234567890123456789012',
  '98765432109876543210987654321098',
  'secret'.repeat(6),
  'your-secret-key-please-change-it-in-production',
  'your_jwt_secret_here_at_least_32_characters',
  'super-secret-jwt-signing-key-change-me-123',
  'this-is-a-very-long-secret-key-for-jwt!!',
  'SuperSecretKeyThatMustBeChangedInProduction',
  'replace-me-with-a-random-string-of-32-bytes',
  'please-replace-this-default-password-2024',
  'your-256-bit-secret-your-256-bit-secret',
  'insecure-dev-secret-do-not-use-in-production',
  'CHANGE_ME_CHANGE_ME_CHANGE_ME_CHANGE_ME_',
  '01'.repeat(40),
]

test.each(placeholders)('%s is a placeholder', (secret) => {
  expect(secret.length).toBeGreaterThanOrEqual(32)
  expect(isPlaceholderSecret(secret)).toBe(true)
})

test('a random secret of 32 bytes is none, in hex, base64 and base64url', () => {
  for (let round = 0; round < 5_000; round++) {
    const bytes = randomBytes(32)
    for (const encoding of ['hex', 'base64', 'base64url'] as const) expect(isPlaceholderSecret(bytes.toString(encoding))).toBe(false)
  }
})

test('words drawn by dice are none', () => {
  expect(isPlaceholderSecret('outlast glacier swab morphine untold quartz fifty grunt')).toBe(false)
  expect(isPlaceholderSecret('Não-é-fácil adivinhar: 7 capivaras @ Três Lagoas')).toBe(false)
})
