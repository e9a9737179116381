import type { Response } from 'express'

const outcomes = new WeakMap<Response, unknown>()

/** Stores the result of a response, as the service would return or throw it. `auth.with(req, res)` returns it to the host instead of a body. */
export function noteOutcome(res: Response, outcome: unknown): void {
  outcomes.set(res, outcome)
}

/** Returns the stored result. Undefined: there is none. */
export function outcomeOf(res: Response): unknown {
  return outcomes.get(res)
}
