import { createHash } from 'node:crypto'
import type { Request, RequestHandler } from 'express'
import { clientOf, networkOf, networkTimes } from '../core/client-key'
import { type AppErrorOptions, TooManyRequestsError } from '../core/errors'
import { type EventEmitter, eventDigest } from '../core/events'
import type { Keys } from '../core/keys'
import { describeStep } from '../http/description'
import { step } from '../http/routes'
import { inFlight, type Patience, withLocalFallback } from './local-fallback'
import type { CounterStore, RateLimit, RateLimits, SubjectRateLimits } from './rate-limit'

/**
 * Counts an attempt before the expensive check, so that parallel requests cannot exceed the limit. If `rateLimit` is false, there is no limit.
 * If the store fails, this process counts (`withLocalFallback`).
 *
 * @throws the given error if the limit is exceeded, with `details.retry_after_seconds` (a whole number, at least 1)
 */
export async function attempt(
  counters: CounterStore,
  rateLimit: RateLimit | false,
  key: string,
  Exhausted: new (options: AppErrorOptions) => TooManyRequestsError,
): Promise<void> {
  if (rateLimit === false) return
  const guarded = withLocalFallback(counters)
  const { count, resetSeconds } = await guarded.increment(key, rateLimit.windowSeconds, rateLimit.attempts)
  if (count <= rateLimit.attempts) return
  // The function takes a rejected attempt back. Otherwise many parallel logins would lock a person out, even if all of them had the right
  // password.
  await guarded.decrement(key)
  throw new Exhausted({ details: { retry_after_seconds: Math.max(1, Math.ceil(resetSeconds)) } })
}

/** Takes back only the attempt of this caller. */
export async function giveBack(counters: CounterStore, rateLimit: RateLimit | false, key: string): Promise<void> {
  if (rateLimit !== false) await withLocalFallback(counters).decrement(key)
}

/** Resets the counter of a key, but keeps the attempts that are still running. A running attempt may still fail. */
export async function clear(counters: CounterStore, rateLimit: RateLimit | false, key: string, inFlight = 0): Promise<void> {
  if (rateLimit === false) return
  const guarded = withLocalFallback(counters)
  await guarded.reset(key)
  for (let left = inFlight; left > 0; left--) await guarded.increment(key, rateLimit.windowSeconds, rateLimit.attempts)
}

/** Returns a key of fixed length without personal data: `login:email` and an address become `login:email:<SHA-256>`. */
export function counterKey(limitName: string, subject: string): string {
  return `${limitName}:${createHash('sha256').update(subject, 'utf8').digest('base64url')}`
}

/** An attempt that was counted before its password or code is checked. The attempt is in progress until one of these methods is called. */
export interface CountedAttempt {
  /** The attempt failed and stays counted. */
  keep(): Promise<void>
  /** The attempt did not fail. Only this attempt is taken back. */
  giveBack(): Promise<void>
  /** The attempt succeeded. The count of the key is reset. */
  clear(): Promise<void>
}

interface AttemptOf {
  readonly name: string
  readonly subject: string
  readonly rateLimit: RateLimit | false
}

const nothing = async () => undefined
const unlimited: CountedAttempt = { keep: nothing, giveBack: nothing, clear: nothing }

/**
 * Counts an attempt against a rate limit before the password or code is checked, so that many requests at once cannot exceed the limit. If
 * attempts in progress fill the limit, the request waits for these attempts, because they may succeed. The request does not wait for
 * attempts of another process. Those attempts count until they end.
 * @throws the error of `Exhausted`, with details.retry_after_seconds; ServiceUnavailableError after two seconds, or if too many requests
 *   wait
 */
export async function countAttempt(
  ctx: LimitContext,
  { name, subject, rateLimit }: AttemptOf,
  Exhausted: Exhausted,
  patience: Patience = { endsAt: null },
): Promise<CountedAttempt> {
  if (rateLimit === false) return unlimited
  const key = counterKey(name, subject)
  const flight = inFlight(ctx.counters, key)
  for (let hasWaited = false; ; hasWaited = true) {
    flight.ask()
    try {
      await attempt(ctx.counters, rateLimit, key, Exhausted)
    } catch (error) {
      const othersMayEnd = flight.refuse()
      if (!othersMayEnd || !(error instanceof TooManyRequestsError)) throw error
      await flight.wait(patience)
      continue
    }
    flight.grant(hasWaited)
    return endingOnce({
      keep: () => flight.end(nothing),
      giveBack: () => flight.end(() => giveBack(ctx.counters, rateLimit, key)),
      clear: () => flight.end((others) => clear(ctx.counters, rateLimit, key, others)),
    })
  }
}

/**
 * The longest time that an attempt can be in progress, in milliseconds. A handler has less time (`http/routes.ts`). If an attempt takes
 * longer, for example in a host's hasher, the attempt counts as failed.
 */
const longestMs = 60_000

function endingOnce({ keep, giveBack, clear }: CountedAttempt): CountedAttempt {
  let isOver = false
  const once = (end: () => Promise<void>) => async () => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    await end()
  }
  const timer = setTimeout(once(keep), longestMs)
  timer.unref()
  return { keep: once(keep), giveBack: once(giveBack), clear: once(clear) }
}

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

interface LimitContext {
  readonly counters: CounterStore
  readonly events: EventEmitter
  readonly keys: Keys
}

type Exhausted = new (options: AppErrorOptions) => TooManyRequestsError

/** An attempt that was counted before its password or code is checked. */
export interface TakenUnit {
  /** The attempt did not fail. Only this attempt is taken back. */
  giveBack(): Promise<void>
  /** The attempt succeeded. The count of the key is reset. */
  clear(): Promise<void>
}

/**
 * Counts an attempt against a rate limit before the attempt is checked, so that many requests at once cannot exceed the limit. `subject` is
 * hashed. If the limit is reached, the function emits an event.
 * @throws the error of `Exhausted`, with details.retry_after_seconds
 */
export async function takeUnit(
  ctx: LimitContext,
  rateLimit: RateLimit | false,
  [name, subject]: readonly [name: string, subject: string],
  Exhausted: Exhausted = TooManyRequestsError,
): Promise<TakenUnit> {
  if (rateLimit === false) return uncounted
  const key = counterKey(name, subject)
  await tellRefusal(ctx, { name, subject }, () => attempt(ctx.counters, rateLimit, key, Exhausted))
  return { giveBack: () => giveBack(ctx.counters, rateLimit, key), clear: () => clear(ctx.counters, rateLimit, key) }
}

const uncounted: TakenUnit = { giveBack: async () => undefined, clear: async () => undefined }

/** Emits `throttled` if `take` throws TooManyRequestsError. */
async function tellRefusal<T>(ctx: LimitContext, { name, subject }: { name: string; subject: string }, take: () => Promise<T>): Promise<T> {
  try {
    return await take()
  } catch (error) {
    if (error instanceof TooManyRequestsError) {
      const retryAfterSeconds = Number(error.details['retry_after_seconds'])
      tellThrottled(ctx, { code: error.code, route: routeOf(name), key: counterKey(name, subject), retryAfterSeconds })
    }
    throw error
  }
}

/** Returns the route in the name of a limit: `oauth_callback` for `route:oauth_callback`, and `login` for `login:client`. */
function routeOf(name: string): string {
  const [first = '', second = ''] = name.split(':')
  return first === 'route' ? second : first
}

/**
 * Counts an attempt against a client's rate limit, before the request is handled. An IPv6 client is a /64 network. The /48 network of an
 * IPv6 client counts too, with ten times the limit. Otherwise a customer with a whole /48 network would count as 65,536 clients.
 * @param client `clientOf(req)`; null: nothing is counted, because the address cannot be read
 * @throws the error of `Exhausted`, with details.retry_after_seconds; in that case nothing is counted
 */
export async function takeClientUnit(
  ctx: LimitContext,
  rateLimit: RateLimit | false,
  [name, client]: readonly [name: string, client: string | null],
  Exhausted?: Exhausted,
): Promise<TakenUnit> {
  if (client === null) return uncounted
  const own = await takeUnit(ctx, rateLimit, [name, client], Exhausted)
  const network = networkOf(client)
  if (network === null || rateLimit === false) return own
  try {
    // The network is counted after the client. A rejected client therefore does not use up the limit of its network.
    const shared = await takeUnit(ctx, { ...rateLimit, attempts: rateLimit.attempts * networkTimes }, [name, network], Exhausted)
    return both(own, shared)
  } catch (error) {
    await own.giveBack()
    throw error
  }
}

function both(one: TakenUnit, other: TakenUnit): TakenUnit {
  return {
    giveBack: async () => void (await Promise.all([one.giveBack(), other.giveBack()])),
    // The attempts of the network's other clients stay counted.
    clear: async () => void (await Promise.all([one.clear(), other.giveBack()])),
  }
}

interface ChangeContext extends LimitContext {
  readonly rateLimits: Pick<RateLimits, 'changes'>
  readonly mailQueue: object | null
}

/**
 * Counts a change of the ways to log in. An account may make ten changes a day. The notices of these changes have no rate limit, because
 * other mails could use up such a limit, and the owner would get no notice. The limit of the changes also limits the number of notices.
 * Call the function before the change. If the change does not happen, call `giveBack()`. Without a mailer nothing is counted, because no
 * notice is sent.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function takeChange(ctx: ChangeContext, { id }: { id: string }): Promise<TakenUnit> {
  return takeUnit(ctx, ctx.mailQueue ? ctx.rateLimits.changes : false, ['change:account', id])
}

/** A request that a rate limit rejected. */
interface ThrottledRequest {
  code: string
  /** The name of the rate limit or of its route. */
  route: string
  /** The key of the counter. */
  key: string
  retryAfterSeconds: number
}

/** Emits `throttled` for a rejected request. The event has a digest of the counter's key, because the key names a client or an account. */
export function tellThrottled(ctx: { readonly events: EventEmitter; readonly keys: Keys }, { key, ...refused }: ThrottledRequest): void {
  ctx.events.emit('throttled', { ...refused, keyDigest: eventDigest(ctx.keys, 'counter', key) })
}

interface RouteContext extends LimitContext {
  readonly rateLimits: Pick<RateLimits, 'routes'>
}

/** Limits the requests of one client to one route. The same route below `/cookie` shares the limit. Default: 60 requests in 60 seconds. */
export function routeRateLimit(ctx: RouteContext, route: string): RequestHandler {
  return describeStep(
    step((req) => takeRouteUnit(ctx, route, req)),
    { refuses: [TooManyRequestsError], limit: route },
  )
}

/**
 * Counts the request like `routeRateLimit`. Returns false if the client exceeded the limit. The caller then does less work and does not reject
 * the request.
 */
export async function isWithinRouteRateLimit(ctx: RouteContext, route: string, req: Request): Promise<boolean> {
  try {
    await takeRouteUnit(ctx, route, req)
    return true
  } catch (error) {
    if (error instanceof TooManyRequestsError) return false
    throw error
  }
}

/**
 * Counts a request of one client to one route.
 * @throws TooManyRequestsError if the client exceeded the limit
 */
export async function takeRouteUnit(ctx: RouteContext, route: string, req: Request): Promise<void> {
  await takeClientUnit(ctx, ctx.rateLimits.routes, [`route:${route}`, clientOf(req)])
}
