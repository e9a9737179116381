import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { ConfigurationError, sealer } from '../src'
import { openSecret, sealSecret } from '../src/second-factor/secret-box'

const key = () => randomBytes(32).toString('base64')

describe('sealer(key)', () => {
  test.each(['', 'token', 'ünï\u0000cödé 🗝', 'x'.repeat(100_000)])('opens what it sealed', (text) => {
    const { seal, open } = sealer(key())
    expect(open(seal(text))).toBe(text)
  })

  test('the same text is sealed differently each time, and nothing of it shows', () => {
    const { seal } = sealer(key())
    const [one, other] = [seal('a provider token'), seal('a provider token')]
    expect(one).not.toBe(other)
    expect(one).toMatch(/^v1\.[\w-]{16}\.[\w-]+\.[\w-]{22}$/)
    expect(Buffer.from(one.split('.')[2] ?? '', 'base64url').toString()).not.toContain('token')
  })

  test('with several keys the first seals and all open; without its key a text stays closed', () => {
    const [oldKey, newKey] = [key(), key()]
    const sealed = sealer(oldKey).seal('x')
    const both = sealer(`${newKey}, ${oldKey}`)
    expect(both.open(sealed)).toBe('x')
    expect(sealer(newKey).open(both.seal('y'))).toBe('y')
    expect(() => sealer(newKey).open(sealed)).toThrow(/no key can decrypt/)
    expect(() => sealer(oldKey).open(both.seal('y'))).toThrow(/no key can decrypt/)
  })

  test('what was changed, cut or never sealed is refused, and the error repeats nothing of it', () => {
    const { seal, open } = sealer(key())
    const sealed = seal('canary')
    const [mark, nonce, text = '', tag] = sealed.split('.')
    const flipped = `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`
    const wrong = [
      [mark, nonce, flipped, tag].join('.'),
      sealed.slice(0, -4),
      `${sealed}.x`,
      `v2${sealed.slice(2)}`,
      'v1...',
      'canary',
      '',
      null,
      7,
    ]
    for (const given of wrong) {
      expect(() => open(given as string)).toThrow(/^sealer: /)
      expect(() => open(given as string)).not.toThrow(/canary/)
    }
  })

  test('a TOTP secret under the same key is nothing to it, and the other way round', () => {
    const secretKey = key()
    const keys = [Buffer.from(secretKey, 'base64')]
    const { seal, open } = sealer(secretKey)
    expect(() => open(sealSecret(keys, 'ana', 'x'))).toThrow()
    expect(openSecret(keys, 'ana', seal('x'))).toBeNull()
  })

  test.each(['', 'short', randomBytes(31).toString('base64'), 'A'.repeat(43), `${key()},`, undefined, 7])(
    'the key %j is refused',
    (wrong) => {
      expect(() => sealer(wrong as string)).toThrow(ConfigurationError)
      if (typeof wrong === 'string' && wrong.length > 5)
        expect(() => sealer(wrong)).not.toThrow(new RegExp(wrong.slice(0, 10).replace(/\W/g, '.')))
    },
  )

  test('printing it shows no key', async () => {
    const { inspect } = await import('node:util')
    const secretKey = key()
    expect(inspect(sealer(secretKey), { depth: 9, showHidden: true })).not.toContain(secretKey.slice(0, 20))
  })
})
