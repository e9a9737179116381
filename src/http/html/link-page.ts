import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import {
  ApprovalPendingError,
  CsrfValidationFailedError,
  EmailLinkForbiddenError,
  EmailLoginInvalidError,
  EmailTakenError,
  InvalidCredentialsError,
  InvalidTokenError,
  InvitationRequiredError,
  PasskeyRejectedError,
  TooManyRequestsError,
  UnauthorizedError,
  ValidationError,
} from '../../core/errors'
import type { LinkPageName, PageInput } from '../../core/templates'
import type { TextKey } from '../../core/texts/phrase-book'
import { anyRefusal } from '../../passwords/check-password'
import type { Refusal } from '../description'
import { readRefusal, setRefusalHeaders } from '../error-envelope'
import { isForm, readForm } from '../input'
import { type Locale, localeOf } from '../locale'
import type { Route } from '../routes'
import { refuseCrossSite, refusingCrossSite } from '../same-site'
import { sendSeeOther } from '../send'
import { type PageContext, readerOf } from './reader'
import { sendPage } from './send-page'

export interface LinkPage {
  /** Ends in `/:token`. */
  path: string
  summary: string
  before: readonly RequestHandler[]
  /** Besides the errors of an invalid link. */
  refuses?: readonly Refusal[]
  form: LinkPageName
  done: LinkPageName
  /** Throws the errors of `redeem`, but does not use the link, because mail scanners open links too. */
  look(token: string, visit: LinkVisit): Promise<FormNeeds>
  /** Null: the page `done`. */
  redeem(click: LinkClick): Promise<PageAfter | null>
  /** Another route handles JSON on the same path. */
  sharesPath?: boolean
  formTargets?: readonly string[]
}

/** A page with a list of texts, or the token for the page where the person chooses a new password. */
export type PageAfter =
  | { readonly page: LinkPageName; readonly items?: readonly string[]; readonly hasLoginLink?: boolean }
  | { readonly resetToken: string }
  /** Sends the response itself. */
  | { readonly answer: () => void }

export interface LinkVisit {
  readonly locale: Locale
  readonly req: Request
}

export interface LinkClick extends LinkVisit {
  readonly token: string
  readonly fields: unknown
  readonly res: Response
}

export interface FormNeeds {
  readonly password?: PageInput['password']
  readonly passkey?: PageInput['passkey']
  readonly account?: PageInput['account']
  readonly items?: readonly string[]
  readonly problem?: TextKey
  /** Default true. */
  readonly hasLoginLink?: boolean
}

/** GET changes nothing, and POST redeems the link. A page sets no cookie, and contains no access token and no refresh token. */
export function linkPage(
  ctx: PageContext,
  { path, summary, before, form, refuses = [], done, look, redeem, sharesPath, formTargets = [] }: LinkPage,
): Route[] {
  const onError = pageErrors(ctx)
  const visitOf = (req: Request): LinkVisit => ({ req, locale: localeOf(ctx, req) })
  const describes = { summary, answers: [], refuses: [EmailLinkForbiddenError, ...refuses], isPage: true } as const
  return [
    {
      method: 'GET',
      path,
      describes,
      before,
      handle: async (req, res) => {
        const visit = visitOf(req)
        const { problem, ...needs } = await look(tokenOf(req), visit)
        const why = problem === undefined ? null : ctx.texts.say(visit.locale, problem)
        sendPage(ctx, req, res, 200, form, { ...needs, problem: why, formTargets })
      },
      onError,
    },
    {
      method: 'POST',
      path,
      describes,
      before: ctx.settings.pagesEnabled ? [...before, refusingCrossSite((req) => refuseCrossSite(ctx, req))] : before,
      ...(sharesPath && { when: isForm }),
      handle: async (req, res) => {
        const sent = await readForm(req, res)
        const click = { ...visitOf(req), token: tokenOf(req), fields: sent, res }
        try {
          const after = (await redeem(click)) ?? { page: done }
          if ('answer' in after) return after.answer()
          if ('resetToken' in after) return sendSeeOther(res, readerOf(ctx, req).href(`/password-reset/${after.resetToken}`))
          sendPage(ctx, req, res, 200, after.page, after)
        } catch (error) {
          if (!(error instanceof ValidationError) && !isWrongProof(error)) throw error
          // The link is still valid, because the service checks the password policy and the old password before it invalidates the link.
          const { problem, ...needs } = await look(click.token, click)
          const why = whyOf(ctx, click.locale, error, problem)
          sendPage(ctx, req, res, 400, form, { ...needs, problem: why, formTargets })
        }
      },
      onError,
    },
  ]
}

/** Or the form needs the password and it is missing. */
function isWrongProof(error: unknown): error is UnauthorizedError | PasskeyRejectedError {
  if (error instanceof InvalidCredentialsError || error instanceof PasskeyRejectedError) return true
  return error instanceof UnauthorizedError && error.code === UnauthorizedError.code
}

function tokenOf(req: Request): string {
  return String(req.params['token'])
}

/** First a problem that the person cannot fix, then a broken rule of the new password, then a wrong old password. */
function whyOf(
  ctx: PageContext,
  locale: Locale,
  error: ValidationError | UnauthorizedError | PasskeyRejectedError,
  problem?: TextKey,
): string {
  if (error instanceof PasskeyRejectedError) return ctx.texts.say(locale, 'passkey.rejected')
  if (problem === undefined && error instanceof ValidationError) return ctx.texts.read(locale, error.explains ?? anyRefusal)
  return ctx.texts.say(locale, problem ?? 'confirm.wrong_password')
}

/** The log contains the error code. */
function pageErrors(ctx: PageContext): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    // A POST request that does not send a form gets the JSON error envelope.
    if (res.headersSent || (req.method === 'POST' && !isForm(req))) return next(thrown)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    if (error instanceof InvitationRequiredError)
      return sendPage(ctx, req, res, 403, 'trouble', { problem: readerOf(ctx, req).read(InvitationRequiredError.detail) })
    if (error instanceof CsrfValidationFailedError)
      return sendPage(ctx, req, res, 403, 'trouble', { problem: readerOf(ctx, req).text('problem.other_site') })
    if (error instanceof InvalidTokenError || error instanceof EmailLoginInvalidError) sendPage(ctx, req, res, 400, 'link_invalid')
    else if (error instanceof ApprovalPendingError) sendPage(ctx, req, res, 403, 'approval_pending', { hasLoginLink: false })
    else if (error instanceof EmailLinkForbiddenError) sendPage(ctx, req, res, 403, 'link_refused')
    else if (error instanceof EmailTakenError) sendPage(ctx, req, res, error.status, 'address_taken')
    else sendPage(ctx, req, res, error.status, error instanceof TooManyRequestsError ? 'too_many' : 'trouble')
  }
}
