import { ConfigurationError } from '../errors'
import type { Budget } from './counter-store'

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

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 1
}
