import type { ErrorRequestHandler, Request, RequestHandler } from 'express'
import Joi from 'joi'
import type { AuthContext } from '../context'
import { EmailLinkForbiddenError, EmailTakenError, InvalidTokenError, TooManyRequestsError, ValidationError } from '../errors'
import type { Answer, Refusal } from '../http/description'
import { readRefusal, setRefusalHeaders } from '../http/error-envelope'
import { isForm, readForm } from '../http/json-body'
import { type Locale, localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import type { PageName } from '../page-templates'
import { refusedPassword, refusedPasswordTexts } from './page-texts'
import { sendPage } from './send-page'

/** A mailed link as a person meets it: a form at the link's own address, and what comes of it. */
export interface LinkPage {
  /** Ends in `/:token`. */
  path: string
  summary: string
  before: readonly RequestHandler[]
  /** Beyond a link that may not be used. */
  refuses?: readonly Refusal[]
  /** Of the form; none unless said. */
  fields?: Joi.ObjectSchema
  form: PageName
  done: PageName
  /** Throws what redeeming would throw, and spends nothing: mail scanners open links. */
  look(token: string): Promise<void>
  /** `fields`: what the form sent. `locale`: the reader's. */
  redeem(token: string, fields: unknown, locale: Locale): Promise<void>
  /** JSON on the same path is another line's. */
  sharesPath?: boolean
}

/** GET shows the form and changes nothing; its POST redeems the link and answers with a page, without cookie or token. */
export function linkPage(
  ctx: AuthContext,
  { path, summary, before, form, fields, refuses = [], done, look, redeem, sharesPath }: LinkPage,
): Route[] {
  const onError = pageErrors(ctx)
  const pageRefusals = { refuses: [EmailLinkForbiddenError, ...refuses], refusals: 'page' } as const
  return [
    {
      method: 'GET',
      path,
      describes: {
        summary: `${summary}: the page behind the mailed link`,
        answers: [page('The form. Nothing has changed.'), notValid],
        ...pageRefusals,
      },
      before,
      handle: async (req, res) => {
        await look(tokenOf(req))
        sendPage(ctx, req, res, 200, form)
      },
      onError,
    },
    {
      method: 'POST',
      path,
      describes: {
        summary,
        form: fields ?? Joi.object({}),
        answers: [page('Done.'), { ...notValid, description: 'The form again; or the link is not valid any more.' }],
        ...pageRefusals,
      },
      before,
      ...(sharesPath && { when: isForm }),
      handle: async (req, res) => {
        const sent = await readForm(req, res)
        try {
          await redeem(tokenOf(req), sent, localeOf(req, ctx.settings.defaultLocale))
        } catch (error) {
          if (!(error instanceof ValidationError)) throw error
          // The link is alive: the policy is asked before it is spent.
          return sendPage(ctx, req, res, 400, form, { problem: (locale) => problemOf(error, locale) })
        }
        sendPage(ctx, req, res, 200, done)
      },
      onError,
    },
  ]
}

/** In the place of 401. */
const notValid: Answer = { status: 400, description: 'The link is not valid any more.', isPage: true }

function page(description: string): Answer {
  return { status: 200, description, isPage: true }
}

function tokenOf(req: Request): string {
  return String(req.params['token'])
}

function problemOf({ details }: ValidationError, locale: Locale): string {
  const rule = String(details['rule'])
  const text = Object.hasOwn(refusedPasswordTexts, rule) ? refusedPasswordTexts[rule] : undefined
  return (text ?? refusedPassword)[locale].replace('{min}', String(details['min']))
}

/** A person sees a page, whatever went wrong; the code is for the log. */
function pageErrors(ctx: AuthContext): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    // What is no form is no person's: it gets the envelope.
    if (res.headersSent || (req.method === 'POST' && !isForm(req))) return next(thrown)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    if (error instanceof InvalidTokenError) sendPage(ctx, req, res, 400, 'link_invalid')
    else if (error instanceof EmailLinkForbiddenError) sendPage(ctx, req, res, 403, 'link_refused')
    else if (error instanceof EmailTakenError) sendPage(ctx, req, res, error.status, 'address_taken')
    else sendPage(ctx, req, res, error.status, error instanceof TooManyRequestsError ? 'too_many' : 'trouble')
  }
}
