import type { SubjectBudgets } from '../throttle/budget'
import { networkOf, networkTimes } from '../throttle/client-key'
import type { Budget } from '../throttle/counter-store'
import type { Patience } from './in-flight'
import { type Attempt, type AttemptOf, takeAttempt, unlimited } from './take-attempt'
import { type Exhausted, type LimitContext, type TakenUnit, takeUnit, tellRefusal } from './take-unit'

/**
 * What is counted. An address counts whether it has an account or not. `client` is null for calls without HTTP: then only the address
 * counts. `email` is null if the request names no address: then only the client counts.
 */
interface Subjects {
  readonly name: string
  readonly email: string | null
  readonly client: string | null
}

interface OfEach<Taken> {
  readonly pair: Taken
  readonly email: Taken
  readonly client: Taken
  /** The /48 of an IPv6 client, with ten times the limit of its own /64. */
  readonly network: Taken
}

/**
 * Counts one attempt against all of these rate limits, or against none: the client, its network, the client for this address, and the
 * address.
 */
export async function takeUnits(ctx: LimitContext, budgets: SubjectBudgets, subjects: Subjects): Promise<void> {
  await takeOfEach<TakenUnit>(budgets, subjects, ({ name, subject, budget }) => takeUnit(ctx, budget, [name, subject]))
}

/** Like `takeUnits`, for attempts that are in progress until they end. */
export function takeAttempts(
  ctx: LimitContext,
  budgets: SubjectBudgets,
  subjects: Subjects,
  Exhausted: Exhausted,
): Promise<OfEach<Attempt>> {
  const patience: Patience = { endsAt: null }
  return takeOfEach(budgets, subjects, (about) => tellRefusal(ctx, about, () => takeAttempt(ctx, about, Exhausted, patience)))
}

async function takeOfEach<Taken extends TakenUnit>(
  budgets: SubjectBudgets,
  { name, email, client }: Subjects,
  takeOne: (about: AttemptOf) => Promise<Taken>,
): Promise<OfEach<Taken | typeof unlimited>> {
  const taken: Taken[] = []
  const take = async (kind: keyof SubjectBudgets, subject: string | null, budget: Budget | false = budgets[kind]) => {
    if (subject === null) return unlimited
    const one = await takeOne({ name: `${name}:${kind}`, subject, budget })
    taken.push(one)
    return one
  }
  const { client: own } = budgets
  try {
    return {
      client: await take('client', client),
      // After the client's own limit, so that a refused client does not use up the limit of its network.
      network: await take('client', client && networkOf(client), own && { ...own, attempts: own.attempts * networkTimes }),
      pair: await take('pair', client && email && `${client} ${email}`), // a client's key contains no space
      email: await take('email', email),
    }
  } catch (error) {
    await Promise.all(taken.map((one) => one.giveBack()))
    throw error
  }
}
