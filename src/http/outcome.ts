import type { Response } from 'express'

const outcomes = new WeakMap<Response, unknown>()

/** Notes what an answer is about, as the service would return or throw it: `auth.with(req, res)` hands it to the host, in the place of a body. */
export function noteOutcome(res: Response, outcome: unknown): void {
  outcomes.set(res, outcome)
}

/** Undefined: nothing was noted. */
export function outcomeOf(res: Response): unknown {
  return outcomes.get(res)
}
