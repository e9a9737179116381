import { ConfigurationError } from '../errors'
import type { Budget } from './counter-store'

/** What one address may use, and what one client may. */
export interface BudgetPair {
  readonly email: Budget | false
  readonly client: Budget | false
}

/** One budget for both, one for each (left out: the default), or none. */
export type BudgetPairInput = Budget | { email?: Budget | false; client?: Budget | false } | false

/**
 * A budget as the host gave it, checked and frozen; the default when it gave none; `false` turns it off.
 *
 * @throws ConfigurationError naming the option.
 */
export function resolveBudget(option: string, given: Budget | false | undefined, fallback: Budget): Budget | false {
  if (given === false) return false
  const { attempts, windowSeconds } = given ?? fallback
  if (isWhole(attempts) && attempts <= 1_000_000 && isWhole(windowSeconds) && windowSeconds <= 31_536_000) {
    return Object.freeze({ attempts, windowSeconds })
  }
  throw new ConfigurationError(`Option ${option} must be false or { attempts, windowSeconds }, whole numbers of at least 1.`)
}

/** @throws ConfigurationError naming the option. */
export function resolveBudgets(
  option: string,
  given: BudgetPairInput | undefined,
  fallback: { email: Budget; client: Budget },
): BudgetPair {
  const { email, client } = perSubject(option, given)
  return Object.freeze({
    email: resolveBudget(`${option}.email`, email, fallback.email),
    client: resolveBudget(`${option}.client`, client, fallback.client),
  })
}

function perSubject(
  option: string,
  given: BudgetPairInput = {},
): { email?: Budget | false | undefined; client?: Budget | false | undefined } {
  if (given === false) return { email: false, client: false }
  if (typeof given !== 'object' || given === null) throw new ConfigurationError(refusal(option))
  if (isBudget(given)) return { email: given, client: given }
  if (Object.keys(given).some((name) => name !== 'email' && name !== 'client')) throw new ConfigurationError(refusal(option))
  return given
}

function isBudget(given: object): given is Budget {
  return 'attempts' in given || 'windowSeconds' in given
}

function refusal(option: string): string {
  return `Option ${option} must be false, { attempts, windowSeconds }, or { email, client } with one of these each.`
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1
}
