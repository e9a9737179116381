import { setImmediate as immediate } from 'node:timers/promises'
import type { Request, Response } from 'express'
import type Joi from 'joi'
import type { AuthContext } from '../context'
import { AppError, ServiceUnavailableError, TooManyRequestsError } from '../errors'
import { readJsonBody } from '../http/json-body'
import type { Route } from '../http/routes'
import { validate } from '../http/validate'
import type { PasswordHasher } from '../passwords/password-hasher'

/** Sends the answer; called on the grid. */
type HeldAnswer = () => void

/** `undefined`: the answer was sent. */
type Answering = Promise<HeldAnswer | undefined> | Promise<void>

type GridRoute<Handle> = Omit<Route, 'handle' | 'isOnGrid'> & { readonly handle: Handle }

/**
 * A route that tells by its time nothing about an account. What the handler throws, and the answer that it returns as a function, is
 * sent at the next multiple of `timingGridMilliseconds`, counted from the request's arrival and moved by its wait in the hash queue. A
 * handler that sends its answer itself sends it at once: a finished login waits for nothing.
 *
 * The handler's `ctx` shadows the outer one: its hasher tells this file when the hash of the request began.
 */
export function onGrid(ctx: AuthContext, route: GridRoute<(ctx: AuthContext, req: Request, res: Response) => Answering>): Route {
  return {
    ...route,
    isOnGrid: true,
    handle: async (req, res) => {
      const { signal, forget } = hangUp(res)
      const clock = requestClock(signal)
      let answer: HeldAnswer | undefined
      try {
        answer = (await route.handle({ ...ctx, hasher: clock.watch(ctx.hasher) }, req, res).finally(forget)) ?? undefined
      } catch (error) {
        if (!comesAtOnce(error, clock)) await nextMultiple(res, clock, ctx.gridMs)
        throw error
      }
      if (!answer) return
      await nextMultiple(res, clock, ctx.gridMs)
      answer()
    },
  }
}

/** The same for a JSON body, which is validated before the handler sees it; its refusal comes at once. */
export function bodyOnGrid<T>(
  ctx: AuthContext,
  route: GridRoute<(ctx: AuthContext, req: Request, res: Response, body: T) => Answering> & { body: Joi.ObjectSchema<T> },
): Route {
  return onGrid(ctx, {
    ...route,
    handle: async (ctx, req, res) => (await route.handle(ctx, req, res, validate(route.body, await readJsonBody(req, res)))) ?? undefined,
  })
}

/** Aborts when the client hangs up: nobody hashes for a connection that is gone. */
function hangUp(res: Response): { signal: AbortSignal; forget: () => void } {
  const gone = new AbortController()
  const abort = () => gone.abort()
  if (res.closed) abort()
  else res.once('close', abort)
  return { signal: gone.signal, forget: () => void res.off('close', abort) }
}

/** By the real clock: a test's own stands still. */
interface RequestClock {
  /** Whether a hash was asked for, so that an account may have been looked at. */
  hasHashed(): boolean
  /** Where the grid begins. */
  start(): number
  watch(hasher: PasswordHasher): PasswordHasher
}

function requestClock(signal: AbortSignal): RequestClock {
  const arrivedAt = performance.now()
  let askedAt: number | null = null
  let begunAt: number | null = null
  const onBegin = () => {
    begunAt ??= performance.now()
  }
  const asked = () => {
    askedAt ??= performance.now()
    return { onBegin, signal }
  }
  return {
    hasHashed: () => askedAt !== null,
    // What was looked up before the hash takes its own time, which is part of the grid's first step: only the wait in the queue moves it.
    start: () => arrivedAt + (askedAt === null || begunAt === null ? 0 : begunAt - askedAt),
    watch: (hasher) => ({
      // Method by method: the hasher may be an object of a class.
      ...(hasher.hashLength !== undefined && { hashLength: hasher.hashLength }),
      ...(hasher.maxPasswordBytes !== undefined && { maxPasswordBytes: hasher.maxPasswordBytes }),
      ...(hasher.unreadable && { unreadable: (hash: string) => hasher.unreadable?.(hash) ?? null }),
      hash: (password) => hasher.hash(password, asked()),
      verify: (hash, password) => hasher.verify(hash, password, asked()),
      needsRehash: (hash) => hasher.needsRehash(hash),
    }),
  }
}

/** Refusals that are the same for every account: too many, too busy, and a body that was refused before any hash. */
function comesAtOnce(error: unknown, clock: RequestClock): boolean {
  if (error instanceof TooManyRequestsError || error instanceof ServiceUnavailableError) return true
  return error instanceof AppError && atOnce.has(error.status) && !clock.hasHashed()
}

/** What is wrong with the body itself. */
const atOnce: ReadonlySet<number> = new Set([400, 413, 415, 422])

/** Resolves then, or as soon as the client has hung up: nobody waits for a connection that is gone. */
async function nextMultiple(res: Response, clock: RequestClock, gridMs: number): Promise<void> {
  if (gridMs === 0) return
  const start = clock.start()
  const end = start + gridMs * Math.ceil((performance.now() - start) / gridMs)
  await untilTimeOrClose(res, end)
  // A timer may come a fraction early, and by how much depends on the work before it.
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
