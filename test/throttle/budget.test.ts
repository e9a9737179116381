import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/core/errors'
import { resolveMailRateLimits, resolveRateLimits, type SubjectBudgetsInput } from '../../src/rate-limits/rate-limit'

const fallback = {
  pair: { attempts: 5, windowSeconds: 900 },
  email: { attempts: 50, windowSeconds: 900 },
  client: { attempts: 100, windowSeconds: 900 },
}
const two = { attempts: 2, windowSeconds: 10 }

function resolve(given: unknown) {
  return resolveRateLimits('throttle.login', given as SubjectBudgetsInput, fallback, { plain: 'pair' }) // wrong shapes are part of what is tested
}

describe('budgets whose plain one is that of the pair', () => {
  test.each<[string, unknown, object]>([
    ['left out: the defaults', undefined, fallback],
    ['empty: the defaults', {}, fallback],
    ['false: none', false, { pair: false, email: false, client: false }],
    ['a plain one: of the pair, the defaults for the others', two, { ...fallback, pair: two }],
    [
      'one each',
      { pair: two, email: { attempts: 3, windowSeconds: 7 } },
      { ...fallback, pair: two, email: { attempts: 3, windowSeconds: 7 } },
    ],
    ['one of them', { client: two }, { ...fallback, client: two }],
    ['one of them, the other undefined', { email: undefined, client: two }, { ...fallback, client: two }],
    ['none for the address', { email: false, client: two }, { ...fallback, email: false, client: two }],
  ])('%s', (_what, given, expected) => {
    const rateLimits = resolve(given)
    expect(rateLimits).toEqual(expected)
    expect([rateLimits, rateLimits.pair, rateLimits.email, rateLimits.client].every(Object.isFrozen)).toBe(true)
  })

  test.each<[unknown, string]>([
    [null, 'throttle.login'],
    [true, 'throttle.login'],
    [5, 'throttle.login'],
    ['off', 'throttle.login'],
    [[], 'throttle.login'],
    [{ mail: two }, 'throttle.login'],
    [{ email: two, clients: two }, 'throttle.login'],
    [{ ...two, email: two }, 'throttle.login'],
    [{ ...two, window: 5 }, 'throttle.login'],
    [{ attempts: 5 }, 'throttle.login.pair'],
    [{ windowSeconds: 5 }, 'throttle.login.pair'],
    [{ attempts: 0, windowSeconds: 5 }, 'throttle.login.pair'],
    [{ attempts: 1.5, windowSeconds: 5 }, 'throttle.login.pair'],
    [{ attempts: '5', windowSeconds: 5 }, 'throttle.login.pair'],
    [{ attempts: Number.POSITIVE_INFINITY, windowSeconds: 5 }, 'throttle.login.pair'],
    [{ email: two, client: true }, 'throttle.login.client'],
    [{ email: {}, client: two }, 'throttle.login.email'],
    [{ client: { attempts: 5, windowSeconds: -1 } }, 'throttle.login.client'],
    [{ client: { attempts: 5, windowSeconds: Number.NaN } }, 'throttle.login.client'],
  ])('%j is refused, by the name of the option', (given, named) => {
    expect(() => resolve(given)).toThrow(ConfigurationError)
    expect(() => resolve(given)).toThrow(`Option ${named} must be`)
  })
})

test('where no budget is named for it, a plain one is that of all three', () => {
  expect(resolveRateLimits('throttle.links', two, fallback)).toEqual({ pair: two, email: two, client: two })
  expect(resolveRateLimits('throttle.links', { pair: two }, fallback)).toEqual({ ...fallback, pair: two })
})

describe('budgets of mail', () => {
  const usual = {
    links: [
      { attempts: 5, windowSeconds: 3_600 },
      { attempts: 20, windowSeconds: 86_400 },
    ],
    notices: { attempts: 20, windowSeconds: 86_400 },
    strangers: { attempts: 1, windowSeconds: 86_400 },
    deviceCodes: [
      { attempts: 5, windowSeconds: 3_600 },
      { attempts: 20, windowSeconds: 86_400 },
    ],
  }

  test.each<[string, Parameters<typeof resolveMailRateLimits>[1], object]>([
    ['left out: the defaults', undefined, usual],
    ['false: none', false, { links: [], notices: false, strangers: false, deviceCodes: [] }],
    ['a plain one is that of the links', two, { ...usual, links: [two] }],
    ['no limit of links', { links: false }, { ...usual, links: [] }],
    ['some of them', { links: [two, two], strangers: false }, { ...usual, links: [two, two], strangers: false }],
  ])('%s', (_what, given, expected) => {
    const rateLimits = resolveMailRateLimits('throttle.mail', given)
    expect(rateLimits).toEqual(expected)
    expect([rateLimits, rateLimits.links].every(Object.isFrozen)).toBe(true)
  })

  test.each<[unknown, string]>([
    [null, 'throttle.mail'],
    [5, 'throttle.mail'],
    [{ link: [two] }, 'throttle.mail'],
    [{ links: two }, 'throttle.mail.links'],
    [{ links: [two, { attempts: 0, windowSeconds: 1 }] }, 'throttle.mail.links[1]'],
    [{ links: [null] }, 'throttle.mail.links[0]'],
    [{ notices: true }, 'throttle.mail.notices'],
    [{ strangers: { attempts: 1 } }, 'throttle.mail.strangers'],
    [{ attempts: 1 }, 'throttle.mail.links[0]'],
  ])('%j is refused, by the name of the option', (given, named) => {
    expect(() => resolveMailRateLimits('throttle.mail', given as never)).toThrow(`Option ${named} must be`)
  })
})
