import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Request } from 'express'
import { describe, expect, test } from 'vitest'
import { InvalidTokenError, TokenExpiredError } from '../../src/core/errors'
import { ownKeys, type TokenKeys } from '../../src/guards/token-keys'
import { rememberedTokens, verifyOnce } from '../../src/guards/verify-once'
import { readJwtKeys } from '../../src/sessions/access-keys'
import { readCredential } from '../../src/sessions/current-auth'
import { testClock } from '../support/clock'
import { claimsAt, makeKey, tokenUnder } from '../support/signing-keys'

const key = makeKey('k', 'ES256')

const withoutProfile = {
  accessTokenIssuer: null,
  accessTokenAudience: null,
  accessTokenClientId: null,
  acceptLegacyAccessTokens: false,
  realm: '',
}

/** A guard's verifier that tells how often a token got past its memory. */
function watched({ remember = 10_000, isCurrent = () => true }: { remember?: number; isCurrent?: TokenKeys['isCurrent'] } = {}) {
  const clock = testClock()
  const own = ownKeys(readJwtKeys([key]))
  let verified = 0
  const find: TokenKeys['find'] = (header) => {
    verified++
    return own.find(header)
  }
  const verify = verifyOnce(
    {
      settings: { ...withoutProfile, rememberedTokens: remember },
      now: clock.now,
      notices: { tell: () => undefined, keep: () => undefined, told: () => [] },
    },
    { find, isCurrent },
  )
  return { clock, verify, verified: () => verified, token: (changes: object = {}) => tokenUnder(key, claimsAt(clock.now(), changes)) }
}

describe('a token that was verified', () => {
  test('is verified twice, and answers the same frozen claims from then on, at once', () => {
    const { verify, verified, token } = watched()
    const given = token()
    verify(given)
    const first = verify(given)
    const again = verify(Buffer.from(given).toString()) // another string of the same text

    expect(verified()).toBe(2)
    expect(again).toBe(first)
    expect(first).not.toBeInstanceOf(Promise)
    const { claims } = first as Exclude<typeof first, Promise<unknown>>
    expect([claims, claims.amr].every(Object.isFrozen)).toBe(true)
    expect(() => (claims.amr as string[]).push('otp')).toThrow(TypeError)
  })

  test('is believed until its exp on each hit, whatever the clock did in between', () => {
    const { clock, verify, token } = watched()
    const given = token({ exp: Math.floor(clock.now().getTime() / 1000) + 900 })
    verify(given)
    verify(given)

    clock.advance(899)
    expect(() => verify(given)).not.toThrow()
    clock.advance(1)
    expect(() => verify(given)).toThrow(TokenExpiredError)
    clock.advance(-3600) // a clock set back
    expect(() => verify(given)).not.toThrow()
    clock.advance(7200) // and forward
    expect(() => verify(given)).toThrow(TokenExpiredError)
  })

  test('a clock that answers no instant expires it', () => {
    const { clock, verify, token } = watched()
    const given = token()
    verify(given)
    verify(given)

    clock.advance(Number.NaN)
    expect(() => verify(given)).toThrow(TokenExpiredError)
    expect(() => verify(token({ exp: 9e9, iat: 1 }))).toThrow(TokenExpiredError)
  })

  test('is remembered by its whole text: one character more, less or other is another token', () => {
    const { verify, verified, token } = watched()
    const given = token()
    verify(given)
    verify(given)

    for (const other of [
      `${given}A`,
      given.slice(0, -1),
      `A${given.slice(1)}`,
      given.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A')),
      '',
    ])
      expect(() => verify(other), other.slice(-4)).toThrow(InvalidTokenError)
    expect(() => verify(given)).not.toThrow()
    expect(verified()).toBeGreaterThan(1)
  })

  test('dies with its key: a key that is not current is looked for again', () => {
    let current = true
    const { verify, verified, token } = watched({ isCurrent: () => current })
    const given = token()
    for (let times = 0; times < 5; times++) verify(given)
    expect(verified()).toBe(2)

    current = false
    for (let times = 0; times < 3; times++) verify(given)
    expect(verified()).toBe(5)
  })

  test('leaves nothing behind when it comes only once: a flood of such takes no memory from those in use', () => {
    const { verify, verified, token } = watched({ remember: 100 })
    const given = token()
    for (let times = 0; times < 3; times++) verify(given)
    expect(verified()).toBe(2)

    for (let count = 0; count < 1_000; count++) verify(token({ sub: `flood ${count}` }))
    expect(verified()).toBe(1_002)
    for (let times = 0; times < 3; times++) verify(given)
    expect(verified()).toBe(1_002) // never pushed out, though it was not asked for meanwhile
  })

  test('is forgotten while more tokens than the limit come again and again, and then verified as if it were new', () => {
    const { verify, verified, token } = watched({ remember: 16 })
    const given = token()
    const others = Array.from({ length: 200 }, (_, count) => token({ sub: `other ${count}` }))
    for (const other of [given, given, ...others.flatMap((one) => [one, one])]) verify(other)

    const before = verified()
    for (let times = 0; times < 3; times++) verify(given)
    expect(verified() - before).toBeGreaterThanOrEqual(1)
    expect(verified() - before).toBeLessThanOrEqual(2)
  })

  test('one that was refused is never remembered, nor is any with rememberedTokens 0', () => {
    const { verify, verified, token } = watched()
    const forged = `${token().slice(0, -8)}AAAAAAAA`
    for (let times = 1; times <= 3; times++) {
      expect(() => verify(forged)).toThrow(InvalidTokenError)
      expect(() => verify(token({ typ: 'mfa' }))).toThrow()
      expect(verified()).toBe(2 * times)
    }

    const off = watched({ remember: 0 })
    const given = off.token()
    for (let times = 1; times <= 3; times++) {
      off.verify(given)
      expect(off.verified()).toBe(times)
    }
  })
})

describe('the memory', () => {
  test.each([1, 2, 3, 10, 1_000])('of %i tokens never holds more, under any flood', (limit) => {
    const remembered = rememberedTokens<number>(limit)
    let most = 0
    for (let count = 0; count < 10 * limit; count++) {
      remembered.keep(`token ${count}`, count)
      remembered.find(`token ${count % limit}`)
      most = Math.max(most, remembered.size)
      expect(remembered.find(`token ${count}`)).toBe(count)
    }
    expect(most).toBeLessThanOrEqual(limit)
    expect(most).toBeGreaterThanOrEqual(limit / 2)
  })

  test('keeps what is asked for while a flood of others passes through', () => {
    const remembered = rememberedTokens<string>(100)
    remembered.keep('in use', 'kept')
    remembered.keep('forgotten', 'kept')
    for (let count = 0; count < 10_000; count++) {
      remembered.keep(`flood ${count}`, 'x')
      if (count % 20 === 0) expect(remembered.find('in use')).toBe('kept')
    }
    expect(remembered.find('forgotten')).toBeUndefined()
  })

  test('holds nothing with limit 0, and no token of more than 2,048 characters', () => {
    const off = rememberedTokens<number>(0)
    off.keep('a', 1)
    const on = rememberedTokens<number>(10)
    on.keep('a'.repeat(2_048), 1)
    on.keep('b'.repeat(2_049), 1)

    expect([off.size, off.find('a'), on.size]).toEqual([0, undefined, 1])
  })

  test('takes at most 4 KiB for a token, however large the header it was cut out of', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void // only there with the flag
    const [entries, now] = [1_000, new Date('2026-03-01T12:00:00.000Z')]
    const longest = claimsAt(now, { email: `${'x'.repeat(300)}@example.test`, sub: 's'.repeat(64) })
    const [one] = [tokenUnder(makeKey('rsa', 'RS256'), longest)]
    const remembered = rememberedTokens<object>(2 * entries)
    const delivery = { tokenDelivery: 'both', accessCookieName: 'access_token', sessionCookieName: 'sid' } as const
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed
    }

    const before = heap()
    for (let count = 0; count < entries; count++) {
      const cookie = Buffer.from(`access_token=${count}.${one}; rest=${'y'.repeat(12_000)}`).toString('latin1')
      const headers =
        count % 2 === 0
          ? { cookie }
          : { authorization: Buffer.from(`Bearer${' '.repeat(count % 4 === 1 ? 1 : 12_000)}${count}.${one}`).toString('latin1') }
      const req = { headers, rawHeaders: [] as string[] } as unknown as Request // all that is read of it
      remembered.keep(String(readCredential({ settings: delivery }, req)?.token), {
        auth: { claims: JSON.parse(JSON.stringify(longest)), user: null },
      })
    }
    const each = (heap() - before) / entries

    expect(remembered.size).toBe(entries)
    expect(each).toBeGreaterThan(500)
    expect(each).toBeLessThan(4_096)
  })
})
