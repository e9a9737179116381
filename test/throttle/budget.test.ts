import { describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/errors'
import { type BudgetPairInput, resolveBudgets } from '../../src/throttle/budget'

const fallback = { email: { attempts: 5, windowSeconds: 900 }, client: { attempts: 20, windowSeconds: 900 } }
const two = { attempts: 2, windowSeconds: 10 }

function resolve(given: unknown) {
  return resolveBudgets('throttle.login', given as BudgetPairInput, fallback) // wrong shapes are part of what is tested
}

describe('a pair of budgets', () => {
  test.each<[string, unknown, object]>([
    ['left out: the defaults', undefined, fallback],
    ['empty: the defaults', {}, fallback],
    ['false: none', false, { email: false, client: false }],
    ['one for both', two, { email: two, client: two }],
    ['one each', { email: two, client: { attempts: 3, windowSeconds: 7 } }, { email: two, client: { attempts: 3, windowSeconds: 7 } }],
    ['one of them', { client: two }, { email: fallback.email, client: two }],
    ['one of them, the other undefined', { email: undefined, client: two }, { email: fallback.email, client: two }],
    ['none for the address', { email: false, client: two }, { email: false, client: two }],
  ])('%s', (_what, given, expected) => {
    const pair = resolve(given)
    expect(pair).toEqual(expected)
    expect([pair, pair.email, pair.client].every(Object.isFrozen)).toBe(true)
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
    [{ attempts: 5 }, 'throttle.login.email'],
    [{ windowSeconds: 5 }, 'throttle.login.email'],
    [{ attempts: 0, windowSeconds: 5 }, 'throttle.login.email'],
    [{ attempts: 1.5, windowSeconds: 5 }, 'throttle.login.email'],
    [{ attempts: '5', windowSeconds: 5 }, 'throttle.login.email'],
    [{ attempts: Number.POSITIVE_INFINITY, windowSeconds: 5 }, 'throttle.login.email'],
    [{ email: two, client: true }, 'throttle.login.client'],
    [{ email: {}, client: two }, 'throttle.login.email'],
    [{ client: { attempts: 5, windowSeconds: -1 } }, 'throttle.login.client'],
    [{ client: { attempts: 5, windowSeconds: Number.NaN } }, 'throttle.login.client'],
  ])('%j is refused, by the name of the option', (given, named) => {
    expect(() => resolve(given)).toThrow(ConfigurationError)
    expect(() => resolve(given)).toThrow(`Option ${named} must be`)
  })
})
