import type { Response } from 'express'

/** The responses whose outcome is awaited. For other responses no outcome is stored, because an outcome can hold much memory. */
const awaited = new WeakMap<Response, { outcome?: unknown }>()

/** Makes `setResult` store the outcome of this response. Call this function before the route's handler runs. */
export function awaitOutcome(res: Response): void {
  awaited.set(res, {})
}

/**
 * Notes the result or the error of a route, as the method of `auth.service` would return or throw it. `auth.with(req, res)` then returns
 * this result or throws this error.
 */
export function setResult(res: Response, outcome: unknown): void {
  const slot = awaited.get(res)
  if (slot) slot.outcome = outcome
}

/** Returns the stored outcome; undefined if there is none. */
export function outcomeOf(res: Response): unknown {
  return awaited.get(res)?.outcome
}
