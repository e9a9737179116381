import type { Request } from 'express'

/** The purpose of a request. `link`: a mailed link for an activation, a reset or a verification. */
export type GuardedAction = 'signup' | 'login' | 'link' | 'email_login'

/** The host's own check of a request, such as a CAPTCHA. If it throws, the request is rejected. */
export type GuardRequest = (req: Request, about: { action: GuardedAction }) => void | Promise<void>
