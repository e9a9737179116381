import { setImmediate as immediate } from 'node:timers/promises'
import type { Request, Response } from 'express'
import type Joi from 'joi'
import { clientOf, queueNetwork } from '../core/client-key'
import { AppError, ServiceUnavailableError, TooManyRequestsError } from '../core/errors'
import type { HashOptions, PasswordHasher } from '../passwords/password-types'
import { readJsonBody, takingRefreshTokenHeader, validate } from './input'
import type { Route } from './routes'

type HeldAnswer = () => void

/** `undefined`: the handler has already sent the response. */
type Answering = Promise<HeldAnswer | undefined> | Promise<void>

interface FixedTimeContext {
  /** In milliseconds, for responses about an account. 0: at once. */
  readonly gridMs: number
  readonly hasher: PasswordHasher
}

type FixedTimeRoute<Handle> = Omit<Route, 'handle' | 'hidesAccount'> & { readonly handle: Handle }

/**
 * The response time must reveal nothing about an account. The route sends the returned response, or an error, at the next multiple of
 * `timingGridMilliseconds`. The time starts when the request arrives, without the wait in the hash queue. A response that the handler
 * itself sends, such as after a login, is not delayed.
 * The handler must use the `ctx` that it gets, because its hasher reports when the hash of the request started.
 */
export function withFixedResponseTime<Context extends FixedTimeContext>(
  ctx: Context,
  route: FixedTimeRoute<(ctx: Context, req: Request, res: Response) => Answering>,
): Route {
  return {
    ...route,
    hidesAccount: true,
    handle: async (req, res) => {
      const { done: answer, clock } = await timed(ctx, req, res, async (ctx) => (await route.handle(ctx, req, res)) ?? undefined)
      if (!answer) return
      await nextMultiple(res, clock, ctx.gridMs)
      answer()
    },
  }
}

/** For the form of a page, whose work is no route: an error about an account is thrown at the next multiple, a result is returned at once. */
export async function withFixedErrorTime<T, Context extends FixedTimeContext>(
  ctx: Context,
  req: Request,
  res: Response,
  work: (ctx: Context) => Promise<T>,
): Promise<T> {
  return (await timed(ctx, req, res, work)).done
}

async function timed<T, Context extends FixedTimeContext>(
  ctx: Context,
  req: Request,
  res: Response,
  work: (ctx: Context) => Promise<T>,
): Promise<{ done: T; clock: RequestClock }> {
  const { signal, forget } = hangUp(res)
  const clock = requestClock({ signal, network: queueNetwork(clientOf(req)) })
  try {
    return { done: await work({ ...ctx, hasher: clock.watch(ctx.hasher) }).finally(forget), clock }
  } catch (error) {
    if (!comesAtOnce(error, clock)) await nextMultiple(res, clock, ctx.gridMs)
    throw error
  }
}

/** For a JSON body, which it validates before the handler runs. A validation error has no delay. */
export function bodyWithFixedResponseTime<T, Context extends FixedTimeContext>(
  ctx: Context,
  route: FixedTimeRoute<(ctx: Context, req: Request, res: Response, body: T) => Answering> & { body: Joi.ObjectSchema<T> },
): Route {
  const withHeader = takingRefreshTokenHeader(route.body)
  return withFixedResponseTime(ctx, {
    ...route,
    handle: async (ctx, req, res) => {
      const body = validate(route.body, withHeader(req, await readJsonBody(req, res)))
      return (await route.handle(ctx, req, res, body)) ?? undefined
    },
  })
}

/** If the client disconnects, the server computes no hash for that client. */
function hangUp(res: Response): { signal: AbortSignal; forget: () => void } {
  const gone = new AbortController()
  const abort = () => gone.abort()
  if (res.closed) abort()
  else res.once('close', abort)
  return { signal: gone.signal, forget: () => void res.off('close', abort) }
}

/** The real clock, because a test can stop the clock of `ctx`. */
interface RequestClock {
  /** True if a hash was requested. The handler may then have read an account. */
  hasHashed(): boolean
  start(): number
  watch(hasher: PasswordHasher): PasswordHasher
}

function requestClock(turn: HashOptions): RequestClock {
  const arrivedAt = performance.now()
  let askedAt: number | null = null
  let begunAt: number | null = null
  const onBegin = () => {
    begunAt ??= performance.now()
  }
  const asked = (options: HashOptions = {}) => {
    askedAt ??= performance.now()
    return { ...turn, ...options, onBegin }
  }
  return {
    hasHashed: () => askedAt !== null,
    // Only the wait in the hash queue moves the start. The time of queries before the hash still counts.
    start: () => arrivedAt + (askedAt === null || begunAt === null ? 0 : begunAt - askedAt),
    watch: (hasher) => ({
      // The hasher can be an instance of a class, so an object spread would lose its methods.
      ...(hasher.hashLength !== undefined && { hashLength: hasher.hashLength }),
      ...(hasher.maxPasswordBytes !== undefined && { maxPasswordBytes: hasher.maxPasswordBytes }),
      ...(hasher.unreadable && { unreadable: (hash: string) => hasher.unreadable?.(hash) ?? null }),
      hash: (password, options) => hasher.hash(password, asked(options)),
      verify: (hash, password, options) => hasher.verify(hash, password, asked(options)),
      needsRehash: (hash) => hasher.needsRehash(hash),
    }),
  }
}

/** These errors do not depend on the account: rate limits, overload, and invalid bodies before any hash. */
function comesAtOnce(error: unknown, clock: RequestClock): boolean {
  if (error instanceof TooManyRequestsError || error instanceof ServiceUnavailableError) return true
  return error instanceof AppError && atOnce.has(error.status) && !clock.hasHashed()
}

const atOnce: ReadonlySet<number> = new Set([400, 413, 415, 422])

/** Also resolves when the client disconnects. */
async function nextMultiple(res: Response, clock: RequestClock, gridMs: number): Promise<void> {
  if (gridMs === 0) return
  const start = clock.start()
  const end = start + gridMs * Math.ceil((performance.now() - start) / gridMs)
  await untilTimeOrClose(res, end)
  // A timer can fire slightly early, by a time that depends on the work before the timer. So this loop waits for the exact end.
  while (performance.now() < end && !res.closed) await immediate()
}

function untilTimeOrClose(res: Response, end: number): Promise<void> {
  return new Promise((resolve) => {
    if (res.closed) return resolve()
    const timer = setTimeout(done, Math.max(0, end - performance.now()))
    timer.unref()
    res.once('close', done)
    function done(): void {
      clearTimeout(timer)
      res.off('close', done)
      resolve()
    }
  })
}
