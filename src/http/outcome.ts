import type { Response } from 'express'

const outcomes = new WeakMap<Response, unknown>()

/** Stores the result of a response in the form of the service. `auth.with(req, res)` returns or throws this result instead of a body. */
export function noteOutcome(res: Response, outcome: unknown): void {
  outcomes.set(res, outcome)
}

/** Returns the stored result; undefined if there is none. */
export function outcomeOf(res: Response): unknown {
  return outcomes.get(res)
}
