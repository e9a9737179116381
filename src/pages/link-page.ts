import type { ErrorRequestHandler, Request, RequestHandler } from 'express'
import type { AuthContext } from '../context'
import { EmailLinkForbiddenError, EmailTakenError, InvalidTokenError, TooManyRequestsError, ValidationError } from '../errors'
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
  before: readonly RequestHandler[]
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
export function linkPage(ctx: AuthContext, { path, before, form, done, look, redeem, sharesPath }: LinkPage): Route[] {
  const onError = pageErrors(ctx)
  return [
    {
      method: 'GET',
      path,
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
      before,
      ...(sharesPath && { when: isForm }),
      handle: async (req, res) => {
        const fields = await readForm(req, res)
        try {
          await redeem(tokenOf(req), fields, localeOf(req, ctx.settings.defaultLocale))
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
