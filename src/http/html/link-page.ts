import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express'
import {
  CsrfValidationFailedError,
  EmailLinkForbiddenError,
  EmailLoginInvalidError,
  EmailTakenError,
  InvalidCredentialsError,
  InvalidTokenError,
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
import type { PageContext } from './reader'
import { readerOf } from './reader'
import { sendPage } from './send-page'

/** The page of a mailed link: a form at the URL of the link, and the page after the form. */
export interface LinkPage {
  /** A path that ends in `/:token`. */
  path: string
  summary: string
  before: readonly RequestHandler[]
  /** Errors of the page, besides the errors of an invalid link. */
  refuses?: readonly Refusal[]
  form: LinkPageName
  done: LinkPageName
  /** Returns the data for the form. Throws the same errors as `redeem`, but does not use the link, because mail scanners open links too. */
  look(token: string, visit: LinkVisit): Promise<FormNeeds>
  /** Redeems the link. Returns the page after the form, or null for the page `done`. */
  redeem(click: LinkClick): Promise<PageAfter | null>
  /** True if another route handles JSON on the same path. */
  sharesPath?: boolean
  /** Origins to which the form may redirect. */
  formTargets?: readonly string[]
}

/** The response after a form: a page with a list of texts, or the token for the page where the person chooses a new password. */
export type PageAfter =
  | { readonly page: LinkPageName; readonly items?: readonly string[]; readonly hasLoginLink?: boolean }
  | { readonly resetToken: string }
  /** A function that sends the response itself. */
  | { readonly answer: () => void }

/** A request that opens a link. */
export interface LinkVisit {
  /** The language of the person who reads the page. */
  readonly locale: Locale
  readonly req: Request
}

/** A request that sends the form. */
export interface LinkClick extends LinkVisit {
  readonly token: string
  /** The values of the form. */
  readonly fields: unknown
  readonly res: Response
}

/** The data that a form asks for and shows, besides the button. */
export interface FormNeeds {
  readonly password?: PageInput['password']
  readonly items?: readonly string[]
  /** The reason why the form cannot succeed. */
  readonly problem?: TextKey
  /** False: the page has no link to the login page. Default true. */
  readonly hasLoginLink?: boolean
}

/**
 * Returns the routes of a link page. GET shows the form and changes nothing. POST redeems the link and responds with a page. A page sets no
 * cookie, and contains no access token and no refresh token.
 */
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
          if (!(error instanceof ValidationError) && !isWrongPassword(error)) throw error
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

/**
 * Returns true if the account's password in the form is wrong. Also returns true if the form needs the password and the password is
 * missing.
 */
function isWrongPassword(error: unknown): error is UnauthorizedError {
  return error instanceof InvalidCredentialsError || (error instanceof UnauthorizedError && error.code === UnauthorizedError.code)
}

function tokenOf(req: Request): string {
  return String(req.params['token'])
}

/**
 * Returns why the form failed. A problem that the person cannot fix comes first. A broken rule of the new password comes second. A wrong
 * old password comes third.
 */
function whyOf(ctx: PageContext, locale: Locale, error: ValidationError | UnauthorizedError, problem?: TextKey): string {
  if (problem === undefined && error instanceof ValidationError) return ctx.texts.read(locale, error.explains ?? anyRefusal)
  return ctx.texts.say(locale, problem ?? 'confirm.wrong_password')
}

/** Responds to every error with a page. The log contains the error code. */
function pageErrors(ctx: PageContext): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    // A POST request that does not send a form gets the JSON error envelope.
    if (res.headersSent || (req.method === 'POST' && !isForm(req))) return next(thrown)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    if (error instanceof CsrfValidationFailedError)
      return sendPage(ctx, req, res, 403, 'trouble', { problem: readerOf(ctx, req).text('problem.other_site') })
    if (error instanceof InvalidTokenError || error instanceof EmailLoginInvalidError) sendPage(ctx, req, res, 400, 'link_invalid')
    else if (error instanceof EmailLinkForbiddenError) sendPage(ctx, req, res, 403, 'link_refused')
    else if (error instanceof EmailTakenError) sendPage(ctx, req, res, error.status, 'address_taken')
    else sendPage(ctx, req, res, error.status, error instanceof TooManyRequestsError ? 'too_many' : 'trouble')
  }
}
