import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { readerOf } from '../http/html/reader'
import { sendRedirect } from '../http/send'
import { keepTasks } from '../sessions/cookies'
import type { LoginOwesTasks } from '../sessions/login'

/** To the page of the first task. `returnTo`: where the browser goes after the last one, if the token does not say it. */
export function leadToTasks(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { taskToken }: Pick<LoginOwesTasks, 'taskToken'>,
  { returnTo = null, redirect = sendRedirect }: { returnTo?: string | null; redirect?: typeof sendRedirect } = {},
): void {
  keepTasks(ctx, res, { taskToken, returnTo })
  redirect(res, readerOf(ctx, req).href('/tasks'))
}
