import type { ErrorRequestHandler, Request, Response } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { MfaCodeInvalidError, MfaThrottledError, MfaTokenInvalidError, TooManyRequestsError } from '../errors'
import { readRefusal, setRefusalHeaders } from '../http/error-envelope'
import { isForm, readForm } from '../http/json-body'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { refuseForeignForm, refusingCrossSite } from '../http/same-site'
import { sendRedirect } from '../http/send'
import { text, validate } from '../http/validate'
import { sendChallengePage } from '../pages/challenge-page'
import { sendPage } from '../pages/send-page'
import { setLoginCookies } from '../session/delivery'
import { openTokens } from '../session/open-session'
import type { DeliveryLine } from '../session/per-delivery'
import { originOf } from '../session/session-cookie'
import { verifyMfa } from './verify-challenge'

const fields = Joi.object<{ mfa_token: string; code: string }>({ mfa_token: text(4096), code: text(256).allow('') })

/** The form of the challenge page (contract section 13, Challenge): cookies and the success redirect, or the form again. */
export function challengeForm(ctx: AuthContext, { base, delivery }: DeliveryLine): Route[] {
  const target = ctx.settings.oauthSuccessRedirect
  if (delivery !== 'cookie' || target === null) return []
  return [
    {
      method: 'POST',
      path: `${base}/mfa/verify`,
      describes: {
        summary: 'Finish a login with the form of the challenge page',
        form: fields,
        answers: [
          { status: 302, description: 'The session, in two cookies, and on to the success redirect.' },
          { status: 200, description: 'The form again: the code was wrong.', isPage: true },
          { status: 400, description: 'The challenge is over.', isPage: true },
        ],
        refuses: [MfaThrottledError],
        refusals: 'page',
      },
      when: isForm,
      before: [refusingCrossSite((req) => refuseForeignForm(ctx.settings, req))],
      handle: (req, res) => finish(ctx, req, res, target),
      onError: formErrors(ctx),
    },
  ]
}

async function finish(ctx: AuthContext, req: Request, res: Response, target: string): Promise<void> {
  const { mfa_token: mfaToken, code } = validate(fields, await readForm(req, res))
  try {
    const locale = localeOf(req, ctx.settings.defaultLocale)
    setLoginCookies(ctx, res, await verifyMfa(ctx, { mfaToken, code, locale }, openTokens(originOf(ctx, req))))
  } catch (error) {
    if (!(error instanceof MfaCodeInvalidError)) throw error
    return sendChallengePage(ctx, req, res, mfaToken, { isWrong: true })
  }
  sendRedirect(res, target)
}

function formErrors(ctx: AuthContext): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    if (res.headersSent) return next(thrown)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    if (error instanceof MfaTokenInvalidError) sendPage(ctx, req, res, 400, 'challenge_over')
    else sendPage(ctx, req, res, error.status, error instanceof TooManyRequestsError ? 'too_many' : 'trouble')
  }
}
