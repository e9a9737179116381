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
  const budget: unknown = given ?? fallback // a host without types may have passed anything
  if (!isBudget(budget))
    throw new ConfigurationError(`Option ${option} must be false or { attempts, windowSeconds }, whole numbers of at least 1.`)
  return Object.freeze({ attempts: budget.attempts, windowSeconds: budget.windowSeconds })
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
  if (hasOnly(given, ['email', 'client'])) return given
  if (hasOnly(given, ['attempts', 'windowSeconds'])) return { email: given, client: given }
  throw new ConfigurationError(refusal(option))
}

function isBudget(given: unknown): given is Budget {
  if (!hasOnly<Partial<Budget>>(given, ['attempts', 'windowSeconds'])) return false
  const { attempts, windowSeconds } = given
  return isWhole(attempts) && attempts <= 1_000_000 && isWhole(windowSeconds) && windowSeconds <= 31_536_000
}

/** An object with these names and no other: a typo must not switch a protection off in silence. */
function hasOnly<T extends object>(given: unknown, names: readonly (keyof T & string)[]): given is T {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return false
  return Object.keys(given).every((name) => names.some((known) => known === name))
}

function refusal(option: string): string {
  return `Option ${option} must be false, { attempts, windowSeconds }, or { email, client } with one of these each.`
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1
}
