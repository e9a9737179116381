import { networkOf, networkTimes } from '../core/client-key'
import type { RateLimit } from './counter-store'
import type { Patience } from './in-flight'
import type { SubjectRateLimits } from './rate-limit'
import { type AttemptOf, type CountedAttempt, countAttempt, unlimited } from './take-attempt'
import { type Exhausted, type LimitContext, type TakenUnit, takeUnit, tellRefusal } from './take-unit'

/**
 * The subjects of a rate limit. An address counts even if it has no account. If `client` is null (a call without HTTP, or a client whose address
 * cannot be read), only the address counts. If `email` is null (a request without an address), only the client counts.
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
  /** The /48 network of an IPv6 client, with ten times the limit of the client's /64 network. */
  readonly network: Taken
}

/**
 * Counts an attempt against four rate limits: the client, its network, the client with this address, and the address. If a limit is
 * reached, nothing is counted.
 */
export async function takeUnits(ctx: LimitContext, rateLimits: SubjectRateLimits, subjects: Subjects): Promise<void> {
  await takeOfEach<TakenUnit>(rateLimits, subjects, ({ name, subject, rateLimit }) => takeUnit(ctx, rateLimit, [name, subject]))
}

/** Like `takeUnits`, but the attempts stay in progress until the caller ends them. */
export function takeAttempts(
  ctx: LimitContext,
  rateLimits: SubjectRateLimits,
  subjects: Subjects,
  Exhausted: Exhausted,
): Promise<OfEach<CountedAttempt>> {
  const patience: Patience = { endsAt: null }
  return takeOfEach(rateLimits, subjects, (about) => tellRefusal(ctx, about, () => countAttempt(ctx, about, Exhausted, patience)))
}

async function takeOfEach<Taken extends TakenUnit>(
  rateLimits: SubjectRateLimits,
  { name, email, client }: Subjects,
  takeOne: (about: AttemptOf) => Promise<Taken>,
): Promise<OfEach<Taken | typeof unlimited>> {
  const taken: Taken[] = []
  const take = async (kind: keyof SubjectRateLimits, subject: string | null, rateLimit: RateLimit | false = rateLimits[kind]) => {
    if (subject === null) return unlimited
    const one = await takeOne({ name: `${name}:${kind}`, subject, rateLimit })
    taken.push(one)
    return one
  }
  const { client: own } = rateLimits
  try {
    return {
      client: await take('client', client),
      // The network is counted after the client. A rejected client therefore does not use up the limit of its network.
      network: await take('client', client && networkOf(client), own && { ...own, attempts: own.attempts * networkTimes }),
      // The space separates the two parts, because a client's key contains no space.
      pair: await take('pair', client && email && `${client} ${email}`),
      email: await take('email', email),
    }
  } catch (error) {
    await Promise.all(taken.map((one) => one.giveBack()))
    throw error
  }
}
