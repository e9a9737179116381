import { randomBytes } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { describe, expect, test } from 'vitest'
import { base32, findStep, newTotpSecret, stepAt } from '../../src/second-factor/accept-code'

const at = (seconds: number) => new Date(seconds * 1000)

describe('findStep', () => {
  // RFC 6238 appendix B, the rows of SHA-1: eight digits there, of which an authenticator shows the last six.
  test.each([
    [59, '94287082'],
    [1_111_111_109, '07081804'],
    [1_111_111_111, '14050471'],
    [1_234_567_890, '89005924'],
    [2_000_000_000, '69279037'],
    [20_000_000_000, '65353130'],
  ])('RFC 6238: at %i s the code is the last six digits of %s', (seconds, vector) => {
    const secret = base32(Buffer.from('12345678901234567890'))

    expect(findStep(secret, vector.slice(-6), { now: at(seconds), window: 0 })).toBe(Math.floor(seconds / 30))
  })

  test('500 random secrets: what otpauth shows is what we take, and it reads our base32', () => {
    for (let round = 0; round < 500; round++) {
      const secret = newTotpSecret()
      expect(secret).toMatch(/^[A-Z2-7]{32}$/)
      const timestamp = randomBytes(5).readUIntBE(0, 5) * 10 + 600_000 // up to the year 2300
      const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: 30 })
      const now = new Date(timestamp)
      expect(findStep(secret, totp.generate({ timestamp }), { now, window: 0 })).toBe(stepAt(now))
    }
  })

  test('R-090: secrets are 160 random bits, all different', () => {
    const secrets = new Set(Array.from({ length: 200 }, newTotpSecret))
    expect(secrets.size).toBe(200)
    expect(Secret.fromBase32([...secrets][0] ?? '').bytes).toHaveLength(20)
    const letters = new Set([...secrets].join(''))
    expect(letters.size).toBe(32)
  })

  test.each([0, 1, 2])('R-092: with a window of %i, of the codes of -20 to +20 steps exactly those within it are taken', (window) => {
    const secret = newTotpSecret()
    const now = at(1_800_000_015)
    const totp = new TOTP({ secret: Secret.fromBase32(secret), algorithm: 'SHA1', digits: 6, period: 30 })
    const codes = Array.from({ length: 41 }, (_, index) => ({
      offset: index - 20,
      code: totp.generate({ timestamp: now.getTime() + (index - 20) * 30_000 }),
    }))
    const accepted = codes.filter(({ code }) => findStep(secret, code, { now, window }) !== null).map(({ offset }) => offset)

    // Two steps may share a code by chance, once in a million.
    const within = codes.filter(({ offset }) => Math.abs(offset) <= window).map(({ code }) => code)
    expect(accepted).toEqual(codes.filter(({ code }) => within.includes(code)).map(({ offset }) => offset))
    expect(
      codes.filter(({ offset }) => Math.abs(offset) <= window).map(({ code }) => findStep(secret, code, { now, window })),
    ).toHaveLength(2 * window + 1)
  })

  test('R-091: a secret that is empty, short, or no base32 fits no code', () => {
    const now = at(1_800_000_000)
    const secrets = ['', ' ', 'A', 'GEZDGNBV', 'gezdgnbvgy3tqojqgezdgnbvgy3tqojq', '1'.repeat(32), `${'A'.repeat(31)}=`, 'A'.repeat(31)]
    for (const secret of secrets) {
      const ofEmpty = new TOTP({ secret: new Secret({ buffer: new ArrayBuffer(1) }), digits: 6 }).generate({ timestamp: now.getTime() })
      for (const code of ['000000', '123456', ofEmpty]) expect(findStep(secret, code, { now, window: 2 })).toBeNull()
    }
  })
})
