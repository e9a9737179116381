import type { SubjectBudgets } from '../throttle/budget'
import { networkOf, networkTimes } from '../throttle/client-key'
import type { Budget } from '../throttle/counter-store'
import type { Patience } from './in-flight'
import { type Attempt, type AttemptOf, takeAttempt, unlimited } from './take-attempt'
import { type Exhausted, type LimitContext, type TakenUnit, takeUnit, tellRefusal } from './take-unit'

/**
 * Who is counted: a known address and an unknown one alike. `client` null: called without HTTP, only the address is counted. `email` null:
 * the request names none, only the client is counted.
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
  /** Of an IPv6 client's /48, ten times as many as of its own /64. */
  readonly network: Taken
}

/** Takes one unit of each, or none of them: of the client, of its network, of the client for this address, and of the address. */
export async function takeUnits(ctx: LimitContext, budgets: SubjectBudgets, subjects: Subjects): Promise<void> {
  await takeOfEach<TakenUnit>(budgets, subjects, ({ name, subject, budget }) => takeUnit(ctx, budget, [name, subject]))
}

/** The same of attempts, which count as in flight until they end. */
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
      // After the client's own: what is refused there takes nothing from its neighbours.
      network: await take('client', client && networkOf(client), own && { ...own, attempts: own.attempts * networkTimes }),
      pair: await take('pair', client && email && `${client} ${email}`), // a client's key holds no space
      email: await take('email', email),
    }
  } catch (error) {
    await Promise.all(taken.map((one) => one.giveBack()))
    throw error
  }
}
