import type { Response } from 'express'

const outcomes = new WeakMap<Response, unknown>()

/**
 * Stores the result or the error of a route, as the method of `auth.service` would return or throw it. `auth.with(req, res)` then returns
 * this result or throws this error.
 */
export function noteOutcome(res: Response, outcome: unknown): void {
  outcomes.set(res, outcome)
}

/** Returns the stored result; undefined if there is none. */
export function outcomeOf(res: Response): unknown {
  return outcomes.get(res)
}
