import { afterEach, describe, expect, test, vi } from 'vitest'
import { ValidationError } from '../../src/core/errors'
import { checkPassword, isListed } from '../../src/passwords/check-password'
import type { PasswordPolicy } from '../../src/passwords/password-types'
import { logTap } from '../support/log-tap'

const about = { email: 'maria.silva+shop@example.com', name: 'Maria José da Silva' }
const good = 'tuba-lagoon-9-velvet'

/** The details of the refusal, or null. */
async function refusal(
  password: string,
  passwordPolicy: PasswordPolicy = {},
  logger = logTap(),
  of: { email: string; name: string | null } = about,
): Promise<unknown> {
  try {
    await checkPassword({ passwordPolicy, logger }, password, of)
    return null
  } catch (error) {
    expect(error).toBeInstanceOf(ValidationError)
    return error instanceof ValidationError && error.details
  }
}

afterEach(() => {
  vi.useRealTimers()
})

describe('length', () => {
  test('R-072 the least is counted in code points, an emoji being one', async () => {
    expect(await refusal('🦆🦆🐢🐸🦊🐨', { minLength: 7 })).toEqual({ rule: 'too_short', min: 7 })
    expect(await refusal('🦆🦆🐢🐸🦊🐨🐼', { minLength: 7 })).toBeNull()
    expect(await refusal('tuba-lagoon')).toEqual({ rule: 'too_short', min: 12 })
    expect(await refusal('tuba-lagoons')).toBeNull()
    expect(await refusal('')).toEqual({ rule: 'too_short', min: 12 })
  })

  test('R-072 the most is counted in bytes of UTF-8', async () => {
    const varied = (bytes: number) =>
      'lagoon-tuba-velvet '
        .repeat(60)
        .slice(0, bytes - 1)
        .concat('!')
    expect(await refusal(varied(1_024))).toBeNull()
    expect(await refusal(varied(1_025))).toEqual({ rule: 'too_long', max: 1_024 })
    expect(await refusal(`${varied(70)}é`, { maxBytes: 72 })).toBeNull()
    expect(await refusal(`${varied(71)}é`, { maxBytes: 72 })).toEqual({ rule: 'too_long', max: 72 })
  })

  test('R-072 64 characters and more are welcome, NUL, blanks and emoji too', async () => {
    expect(await refusal('velvet tuba lagoon '.repeat(4))).toBeNull()
    expect(await refusal(' tuba\0lagoon\t🦆 ')).toBeNull()
  })

  test('half of a surrogate pair is malformed, whatever else is wrong', async () => {
    expect(await refusal(`${good}\ud83e`)).toEqual({ rule: 'malformed' })
    expect(await refusal('\udd86')).toEqual({ rule: 'malformed' })
  })
})

describe('requireComplexity', () => {
  const requireComplexity = true

  test.each([
    ['tuba lagoon velvet', ['upper', 'digit']],
    ['TUBA-LAGOON-9', ['lower']],
    ['TubaLagoon9Velvet', ['special']],
    ['739 151 682 394', ['lower', 'upper']],
    ['猫が好きです本当に好きです', ['lower', 'upper', 'digit', 'special']],
  ])('%j misses %j', async (password, missing) => {
    expect(await refusal(password, { requireComplexity })).toEqual({ rule: 'missing_classes', missing })
    expect(await refusal(password)).toBeNull()
  })

  test.each(['Tuba-lagoon-9', 'Ñandú ágil ٣ veces', 'TubaLagoon9🦆'])('%j holds each class', async (password) => {
    expect(await refusal(password, { requireComplexity })).toBeNull()
  })
})

describe('too_common', () => {
  const policy = { minLength: 8 }

  test('R-072 the list is the package’s 49,233', () => {
    expect(['123456', 'password', 'qazwsxedcrfv', 'leavemealone'].every(isListed)).toBe(true)
    expect(isListed(good)).toBe(false)
  })

  test.each([
    ['on the list', 'password1234'],
    ['on the list in other letters', 'PassWord1234'],
    ['on the list in full-width letters', 'ｐａｓｓｗｏｒｄ1234'],
    ['on the list but for digits', 'iloveyou123456'],
    ['on the list but for digits and signs', 'Liverpool!2024!!'],
    ['counting', '1234567890123'],
    ['one character', 'aaaaaaaaaaaa'],
    ['one group of characters', 'abc!abc!abc!abc!'],
    ['a common word over and over', 'letmeinletmein'],
    ['and with digits', 'letmeinletmein42'],
    ['the address', 'maria.silva+shop@example.com'],
    ['the local part', 'maria.silva+shop'],
    ['the local part without its signs, and a year', 'mariasilvashop2024'],
    ['a part of the local part, and a date', 'Silva31121999'],
    ['the name', 'maria josé da silva'],
    ['the name without blanks, and a sign', 'MariaJoséDaSilva!'],
    ['a part of the name, twice', 'joséjosé'],
  ])('%s: %j', async (_, password) => {
    expect(await refusal(password, policy)).toEqual({ rule: 'too_common' })
  })

  test.each([
    ['a listed word in front of other words', 'password-lagoon-tuba'],
    ['a listed word and nine digits', 'leavemealone739151682'],
    ['a listed word behind others', 'lagoon-dragon'],
    ['the name among other words', 'lagoon maria tuba'],
    ['emoji, two of them alike', '🦆🦆🐢🐸🦊🐨🐼🦉'],
    ['a part that is short enough to be anywhere (da)', 'da73915168'],
  ])('not %s: %j', async (_, password) => {
    expect(await refusal(password, policy)).toBeNull()
  })

  test('a short local part refuses nothing but itself in the whole address', async () => {
    const short = { email: 'al@ex.org', name: null }
    expect(await refusal('al7391516', policy, logTap(), short)).toBeNull()
    expect(await refusal('al@ex.org', policy, logTap(), short)).toEqual({ rule: 'too_common' })
  })

  test('the longest input takes no time to judge', async () => {
    const began = process.cpuUsage() // time on the clock is the neighbours' too
    await refusal(`${'ab'.repeat(2_047)}c!`, { maxBytes: 4_096 }, logTap(), {
      email: `${'a.'.repeat(150)}@example.com`,
      name: 'a '.repeat(60),
    })
    expect(process.cpuUsage(began).user).toBeLessThan(250_000) // microseconds
  })
})

describe('the host’s check', () => {
  const withCheck = (check: NonNullable<PasswordPolicy['check']>) => ({ check })

  test('is asked last, with the password and whose it is, and names its rule', async () => {
    const check = vi.fn(async () => 'found_in_breach')
    expect(await refusal('short', withCheck(check))).toMatchObject({ rule: 'too_short' })
    expect(await refusal('password1234', withCheck(check))).toMatchObject({ rule: 'too_common' })
    expect(check).not.toHaveBeenCalled()
    expect(await refusal(good, withCheck(check))).toEqual({ rule: 'found_in_breach' })
    expect(check).toHaveBeenCalledExactlyOnceWith(good, about)
  })

  test('null, or nothing, accepts', async () => {
    expect(
      await refusal(
        good,
        withCheck(async () => null),
      ),
    ).toBeNull()
    expect(await refusal(good, withCheck((async () => {}) as unknown as NonNullable<PasswordPolicy['check']>))).toBeNull()
  })

  test.each<[string, unknown]>([
    ['the password', 'Lagoon9Tuba9'],
    ['a name that holds it', 'bad_lagoon9tuba9'],
    ['a sentence', 'This password is bad.'],
    ['65 characters', 'r'.repeat(65)],
    ['markup', '<b>bad</b>'],
    ['an empty string', ''],
    ['a boolean', false],
    ['an object', { rule: 'x' }],
  ])('an answer that is %s refuses as `refused`', async (_, answer) => {
    expect(
      await refusal(
        'Lagoon9Tuba9',
        withCheck(async () => answer as string),
      ),
    ).toEqual({ rule: 'refused' }) // wrong on purpose
  })

  test.each<[string, NonNullable<PasswordPolicy['check']>]>([
    ['rejects', async (password) => Promise.reject(new Error(`no answer for ${password}`))],
    [
      'throws at once',
      (password) => {
        throw new Error(`no answer for ${password}`)
      },
    ],
  ])('a check that %s accepts, and the log says so without the password', async (_, check) => {
    const logger = logTap()
    expect(await refusal(good, { check }, logger)).toBeNull()
    expect(logger.entries.map(({ level, message }) => [level, message])).toEqual([
      ['warn', 'doorward: passwordPolicy.check failed; the password was accepted without it'],
    ])
    expect(logger.text()).not.toContain(good)
    expect(logger.text()).not.toContain(about.email)
  })

  test('R-072 a check that is silent for 3 seconds accepts; its late refusal or error changes nothing', async () => {
    vi.useFakeTimers()
    const logger = logTap()
    let fail: (error: Error) => void = () => {}
    const checked = refusal(
      good,
      withCheck(
        () =>
          new Promise((_, reject) => {
            fail = reject
          }),
      ),
      logger,
    )
    let settled = false
    void checked.finally(() => {
      settled = true
    })

    await vi.advanceTimersByTimeAsync(2_999)
    expect(settled).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await checked).toBeNull()
    fail(new Error('too late'))
    await vi.advanceTimersByTimeAsync(1)
    expect(logger.entries).toEqual([
      expect.objectContaining({ level: 'warn', fields: { error: expect.objectContaining({ code: 'TIMEOUT' }) } }),
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a check that answers leaves no timer behind', async () => {
    vi.useFakeTimers()
    await refusal(
      good,
      withCheck(async () => null),
    )
    expect(vi.getTimerCount()).toBe(0)
  })
})

test('no refusal repeats the password, or how long it is', async () => {
  const policy = { requireComplexity: true, maxBytes: 64 }
  for (const password of ['kumquat', 'kumquat'.repeat(12), 'kumquatkumquat', `kumquat\ud800`]) {
    const details = JSON.stringify(await refusal(password, policy))
    expect(details).toMatch(/^\{"rule":"/)
    expect(details).not.toContain('kumquat')
    expect(details).not.toContain(String(password.length))
  }
})
