import type { Request } from 'express'

/** What a request wants. `link`: a mailed link for an activation, a reset or a verification. */
export type GuardedAction = 'signup' | 'login' | 'link' | 'email_login'

/** The host's own check of a request, such as a CAPTCHA. What it throws refuses the request. */
export type GuardRequest = (req: Request, about: { action: GuardedAction }) => void | Promise<void>
