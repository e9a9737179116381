import type { Request } from 'express'

/** The purpose of a request. `link` requests a mailed link for an activation, a reset or a verification. */
export type GuardedAction = 'signup' | 'login' | 'link' | 'email_login'

/** The host's own check of a request, such as a CAPTCHA. If the function throws, the library rejects the request. */
export type GuardRequest = (req: Request, about: { action: GuardedAction }) => void | Promise<void>
