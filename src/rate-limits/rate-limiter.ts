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

/**
 * An attempt that was counted before its password or code is checked. Call exactly one of the methods, once. An attempt that is never ended
 * stays counted.
 */
export interface CountedAttempt {
  /** The counts of the key start anew, except where the limit says otherwise. */
  succeed(): Promise<void>
  /** The attempt stays counted. */
  fail(): Promise<void>
  /** Takes only this attempt back: an overload or an error of the server is no failed guess. */
  release(): Promise<void>
}

/** A rate limit that an attempt counts against. */
export interface AppliedLimit {
  /** The first part of the counter's key, for example `login:email`. */
  readonly name: string
  /** What is counted, for example an address. It is hashed. */
  readonly subject: string
  /** False: no limit. */
  readonly rateLimit: RateLimit | false
  /** True: a success takes back only its own attempt, because the other attempts of this subject may concern other accounts. */
  readonly staysCounted?: boolean
}

interface LimitContext {
  readonly counters: CounterStore
  readonly events: EventEmitter
  readonly keys: Keys
}

type Exhausted = new (options: AppErrorOptions) => TooManyRequestsError

interface BeginOptions {
  /** The error if a limit is reached. Default TooManyRequestsError. */
  readonly Exhausted?: Exhausted
  /**
   * True: if attempts in progress fill the limit, the request waits for them, because they may succeed. It does not wait for attempts of
   * another process, which count until they end.
   */
  readonly waits?: boolean
  /** False: a refusal emits no event, because the caller counts against other limits then. Default true. */
  readonly isTold?: boolean
}

/**
 * Counts an attempt against each of the limits, in their order, before it is checked, so that many requests at once cannot exceed a limit.
 * If a limit is reached, nothing stays counted, and `throttled` is emitted.
 * @throws the error of `Exhausted`, with details.retry_after_seconds; with `waits`, ServiceUnavailableError after two seconds, or if too many
 *   requests wait
 */
export async function countAttempt(
  ctx: LimitContext,
  limits: readonly AppliedLimit[],
  { Exhausted = TooManyRequestsError, waits = false, isTold = true }: BeginOptions = {},
): Promise<CountedAttempt> {
  const patience: Patience = { endsAt: null }
  const counted: CountedAttempt[] = []
  try {
    for (const limit of limits) counted.push(await (waits ? countWaiting(ctx, limit, Exhausted, patience) : count(ctx, limit, Exhausted)))
  } catch (error) {
    const refused = limits[counted.length]
    if (isTold && refused && error instanceof TooManyRequestsError) tellRefusal(ctx, refused, error)
    await Promise.all(counted.map((one) => one.release()))
    throw error
  }
  const each = (end: keyof CountedAttempt) => async () => void (await Promise.all(counted.map((one) => one[end]())))
  return { succeed: each('succeed'), fail: each('fail'), release: each('release') }
}

/** Counts like `countAttempt`, without the event. Returns null if a limit is reached. */
export async function tryToCount(
  ctx: LimitContext,
  limits: readonly AppliedLimit[],
  options: BeginOptions = {},
): Promise<CountedAttempt | null> {
  try {
    return await countAttempt(ctx, limits, { ...options, isTold: false })
  } catch (error) {
    if (error instanceof TooManyRequestsError) return null
    throw error
  }
}

const nothing = async () => undefined
const uncounted: CountedAttempt = { succeed: nothing, fail: nothing, release: nothing }

async function count({ counters }: LimitContext, limit: AppliedLimit, Exhausted: Exhausted): Promise<CountedAttempt> {
  const { rateLimit } = limit
  if (rateLimit === false) return uncounted
  const key = counterKey(limit.name, limit.subject)
  await attempt(counters, rateLimit, key, Exhausted)
  const release = () => giveBack(counters, rateLimit, key)
  return { succeed: limit.staysCounted ? release : () => clear(counters, rateLimit, key), fail: nothing, release }
}

async function countWaiting(
  { counters }: LimitContext,
  { name, subject, rateLimit, staysCounted }: AppliedLimit,
  Exhausted: Exhausted,
  patience: Patience,
): Promise<CountedAttempt> {
  if (rateLimit === false) return uncounted
  const key = counterKey(name, subject)
  const flight = inFlight(counters, key)
  for (let hasWaited = false; ; hasWaited = true) {
    flight.ask()
    try {
      await attempt(counters, rateLimit, key, Exhausted)
    } catch (error) {
      const othersMayEnd = flight.refuse()
      if (!othersMayEnd || !(error instanceof TooManyRequestsError)) throw error
      await flight.wait(patience)
      continue
    }
    flight.grant(hasWaited)
    const release = () => flight.end(() => giveBack(counters, rateLimit, key))
    return endingOnce({
      succeed: staysCounted ? release : () => flight.end((others) => clear(counters, rateLimit, key, others)),
      fail: () => flight.end(nothing),
      release,
    })
  }
}

/**
 * The longest time that an attempt can be in progress, in milliseconds. A handler has less time (`http/routes.ts`). If an attempt takes
 * longer, for example in a host's hasher, the attempt counts as failed.
 */
const longestMs = 60_000

function endingOnce({ succeed, fail, release }: CountedAttempt): CountedAttempt {
  let isOver = false
  const once = (end: () => Promise<void>) => async () => {
    if (isOver) return
    isOver = true
    clearTimeout(timer)
    await end()
  }
  const timer = setTimeout(once(fail), longestMs)
  timer.unref()
  return { succeed: once(succeed), fail: once(fail), release: once(release) }
}

/**
 * Returns the limits of a client. An IPv6 client is a /64 network. Its /48 network counts too, with ten times the limit. Otherwise a customer
 * with a whole /48 network would count as 65,536 clients.
 * @param client `clientOf(req)`; null: nothing is counted, because the address cannot be read
 */
export function limitsOfClient(name: string, client: string | null, rateLimit: RateLimit | false): AppliedLimit[] {
  if (client === null) return []
  const network = networkOf(client)
  const own = { name, subject: client, rateLimit }
  if (network === null || rateLimit === false) return [own]
  // The network is counted after the client. A rejected client therefore does not use up the limit of its network.
  const ofNetwork = { ...rateLimit, attempts: rateLimit.attempts * networkTimes }
  return [own, { name, subject: network, rateLimit: ofNetwork, staysCounted: true }]
}

/**
 * Returns the limits of an attempt that names an address: the client, its network, the client with this address, and the address. An address
 * counts even if it has no account. A success leaves the other failures of the client counted. Otherwise an attacker could log in to their
 * own account to get more guesses.
 * @param about.client null: a call without HTTP, or a client whose address cannot be read
 * @param about.email null: a request without an address
 */
export function limitsOfSubjects(
  { client: ofClient, pair, email: ofAddress }: SubjectRateLimits,
  { name, email, client }: { name: string; email: string | null; client: string | null },
): AppliedLimit[] {
  return [
    ...limitsOfClient(`${name}:client`, client, ofClient).map((limit) => ({ ...limit, staysCounted: true })),
    // The space separates the two parts, because a client's key contains no space.
    ...(client !== null && email !== null ? [{ name: `${name}:pair`, subject: `${client} ${email}`, rateLimit: pair }] : []),
    ...(email === null ? [] : [{ name: `${name}:email`, subject: email, rateLimit: ofAddress }]),
  ]
}

interface ChangeContext extends LimitContext {
  readonly rateLimits: Pick<RateLimits, 'changes'>
  readonly mailQueue: object | null
  readonly writesOutbox: boolean
}

/**
 * Counts a change of the ways to log in. An account may make ten changes a day. The notices of these changes have no rate limit, because
 * other mails could use up such a limit, and the owner would get no notice. The limit of the changes also limits the number of notices.
 * Call the function before the change. If the change does not happen, call `release()`. Without a mailer and an outbox nothing is
 * counted, because no notice is sent and no row is written.
 * @throws TooManyRequestsError with details.retry_after_seconds
 */
export function beginChange(ctx: ChangeContext, { id }: { id: string }): Promise<CountedAttempt> {
  return countAttempt(ctx, [
    { name: 'change:account', subject: id, rateLimit: ctx.mailQueue || ctx.writesOutbox ? ctx.rateLimits.changes : false },
  ])
}

function tellRefusal(ctx: LimitContext, { name, subject }: AppliedLimit, { code, details }: TooManyRequestsError): void {
  const retryAfterSeconds = Number(details['retry_after_seconds'])
  tellThrottled(ctx, { code, route: routeOf(name), key: counterKey(name, subject), retryAfterSeconds })
}

/** Returns the route in the name of a limit: `oauth_callback` for `route:oauth_callback`, and `login` for `login:client`. */
function routeOf(name: string): string {
  const [first = '', second = ''] = name.split(':')
  return first === 'route' ? second : first
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
    step((req) => countRequest(ctx, route, req)),
    { refuses: [TooManyRequestsError], limit: route },
  )
}

/**
 * Counts the request like `routeRateLimit`. Returns false if the client exceeded the limit. The caller then does less work and does not reject
 * the request.
 */
export async function isWithinRouteRateLimit(ctx: RouteContext, route: string, req: Request): Promise<boolean> {
  try {
    await countRequest(ctx, route, req)
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
export async function countRequest(ctx: RouteContext, route: string, req: Request): Promise<void> {
  await countAttempt(ctx, limitsOfClient(`route:${route}`, clientOf(req), ctx.rateLimits.routes))
}
