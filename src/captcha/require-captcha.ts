import type { Request } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { CaptchaRequiredError, CaptchaUnavailableError } from '../core/errors'
import { describeError } from '../core/logger'
import { withTimeout } from '../core/with-timeout'
import type { Captcha } from '../http/captcha'
import type { GuardedAction } from '../http/guard-request'

// In milliseconds.
const deadlineMs = 5_000
const longestAnswer = 4_096

export interface CaptchaField {
  captcha?: unknown
}

/** For the body of a route that can ask. Of any type, because a wrong one is no answer. */
export function captchaField({ captcha }: Pick<AuthContext, 'captcha'>): { captcha?: Joi.Schema } {
  return captcha ? { captcha: Joi.any().optional() } : {}
}

/** What a route that can ask refuses. */
export function captchaRefusals({ captcha }: Pick<AuthContext, 'captcha'>) {
  return captcha ? [CaptchaRequiredError, CaptchaUnavailableError] : []
}

const solvedFor = Symbol('the action of the widget')

/** For the page whose form has one widget and two buttons. A client cannot set this mark. */
export function captchaIsFor(req: Request, action: GuardedAction): void {
  Object.defineProperty(req, solvedFor, { value: action })
}

type Asking = Pick<AuthContext, 'captcha' | 'captchaWhen' | 'logger'>

/**
 * Call it after the body was validated, so that a refused body uses up no answer, and before every limit but the route's.
 * @throws CaptchaRequiredError without a right answer; CaptchaUnavailableError if the check is not available
 */
export async function requireCaptcha(ctx: Asking, req: Request, action: GuardedAction, answer: unknown): Promise<void> {
  if (ctx.captcha && (await isCaptchaAsked(ctx, req, action))) await verifyAnswer(ctx, ctx.captcha, req, action, answer)
}

/** For a request that needs an answer whatever `captchaWhen` and `failOpen` say. @throws as `requireCaptcha` */
export async function requirePassedCaptcha(ctx: Asking, req: Request, action: GuardedAction, answer: unknown): Promise<void> {
  if (ctx.captcha) await verifyAnswer(ctx, { ...ctx.captcha, failOpen: false }, req, action, answer)
}

/** A login is asked only if `captchaWhen` says so. If that fails or takes too long, everything is asked. */
export async function isCaptchaAsked({ captcha, captchaWhen, logger }: Asking, req: Request, action: GuardedAction): Promise<boolean> {
  if (!captcha) return false
  if (!captchaWhen) return action !== 'login'
  try {
    const said = (async (): Promise<unknown> => captchaWhen(withoutBody(req), { action }))()
    return (await withTimeout(said, deadlineMs, late)) !== false
  } catch (error) {
    logger.error({ error: describeError(error) }, 'doorward: captchaWhen failed, so the captcha is asked')
    return true
  }
}

/** The answer must not depend on the address: the page is asked before anybody types it. */
function withoutBody(req: Request): Request {
  const presented: Request = Object.create(req)
  return Object.defineProperty(presented, 'body', { value: undefined })
}

async function verifyAnswer(
  { logger }: Asking,
  captcha: Captcha,
  req: Request & { readonly [solvedFor]?: GuardedAction },
  asked: GuardedAction,
  answer: unknown,
): Promise<void> {
  const action = req[solvedFor] ?? asked
  if (typeof answer !== 'string' || answer === '' || answer.length > longestAnswer) throw new CaptchaRequiredError()
  let isRight: unknown
  try {
    const said = (async (): Promise<unknown> => captcha.verify(answer, req, { action }))()
    isRight = await withTimeout(said, deadlineMs, late)
  } catch (error) {
    logger.error({ error: describeError(error) }, `doorward: captcha.verify failed${captcha.failOpen ? ', and the request passed' : ''}`)
    if (captcha.failOpen) return
    throw new CaptchaUnavailableError({ cause: error })
  }
  if (isRight !== true) throw new CaptchaRequiredError()
}

function late(): Error {
  return Object.assign(new Error('the captcha took too long'), { code: 'TIMEOUT' })
}
