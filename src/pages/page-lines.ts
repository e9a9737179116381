import type { ErrorRequestHandler, Request, Response } from 'express'
import type { AuthContext } from '../context'
import { DeletionPendingError, TooManyRequestsError, UnsupportedMediaTypeError, ValidationError } from '../core/errors'
import { readRefusal, setRefusalHeaders } from '../http/error-envelope'
import { card, emptyForm, type FormState, form, html } from '../http/html/document'
import { type Reader, readerOf } from '../http/html/reader'
import { type Page, showPage } from '../http/html/send-page'
import { isForm } from '../http/input'
import { queryValues } from '../http/locale'
import { readReturnTo } from '../http/return-to'
import type { Route } from '../http/routes'
import { refuseCrossSite } from '../http/same-site'
import { sendRedirect, sendSeeOther } from '../http/send'
import { countRequest, routeRateLimit } from '../rate-limits/rate-limiter'
import { type Explaining, FormFault, readSent, refusedForm, statusOf, tooManySentence, unreadableForm } from './form-fault'
import { messagePage } from './message-page'
import type { Fields, PageSite, Visit } from './page-site'
import { signInAddress, withoutBearer } from './signed-in'

/** The browser loads the target with GET. */
export interface GoOn {
  readonly to: string
  /** Default 303. */
  readonly status?: 302
}

export interface PageDefinition extends Explaining {
  readonly path: string
  readonly summary: string
  /** A redirect if there is nothing to show. */
  show(visit: Visit, state: FormState): Promise<Page | GoOn> | Page | GoOn
  /** If it throws, the page shows the form again with the error. Undefined: no form. */
  post?(visit: Visit, fields: Fields): Promise<Page | GoOn>
  /** Another route handles requests to this path that do not send a form. */
  readonly sharesPath?: boolean
  /** The rate limit of page forms does not apply. */
  readonly isUnlimited?: boolean
}

/** Redirects before a page is shown or a form is handled. */
export class Elsewhere extends Error {
  readonly goOn: GoOn

  constructor(goOn: GoOn) {
    super(goOn.to)
    this.goOn = goOn
  }
}

export function pageRouteSets(site: PageSite, page: PageDefinition): Route[] {
  const { path, summary, post, sharesPath = false } = page
  const onError = brokenPage(site)
  const get: Route = {
    method: 'GET',
    path,
    describes: { summary, answers: [], isPage: true },
    before: [routeRateLimit(site.ctx, viewsOf(page))],
    handle: leading(site, async (req, res) => {
      const visit = visitOf(site, req, res, queryValues(req, 'return_to'))
      answer(visit, await page.show(visit, emptyForm))
    }),
    onError,
  }
  if (!post) return [get]
  const sent = formRoute(site, { ...page, post })
  return sharesPath ? [get, sent] : [get, sent, { ...sent, when: (req) => !isForm(req), handle: refuseOtherContent }]
}

/** The form of a page that another path shows. Another route handles requests that do not send a form. */
export function formRoute(site: PageSite, page: PageWithForm): Route {
  return {
    method: 'POST',
    path: page.path,
    describes: { summary: page.summary, answers: [], isPage: true },
    when: isForm,
    handle: leading(site, (req, res) => takeForm(site, page, req, res)),
    onError: brokenPage(site),
  }
}

/** The name of the rate limit. A form that is shown again counts as a view. */
function viewsOf({ path }: PageDefinition): string {
  return `page${path.replaceAll(/[/-]/g, '_')}`
}

type Handle = (req: Request, res: Response) => Promise<void>

function leading({ ctx }: PageSite, handle: Handle): Handle {
  return async (req, res) => {
    try {
      await handle(req, res)
    } catch (thrown) {
      if (thrown instanceof Elsewhere) goOn(res, thrown.goOn)
      else if (thrown instanceof BadReturnTo) showBadReturnTo(ctx, res, readerOf(ctx, req))
      else throw thrown
    }
  }
}

/** @param returnTo the values of `return_to` in the query or the form @throws BadReturnTo if `return_to` is not allowed */
function visitOf(site: PageSite, req: Request, res: Response, returnTo: readonly string[]): Visit {
  const { ctx, bind } = site
  return { ctx, site, req, res, reader: readerOf(ctx, req), ask: bind(withoutBearer(req), res), returnTo: readBack(site, returnTo) }
}

function refuseOtherContent(): void {
  throw new UnsupportedMediaTypeError()
}

/** After an error, shows the form again, with every value except secrets. @throws TooManyRequestsError for too many views */
async function takeForm(site: PageSite, page: PageWithForm, req: Request, res: Response): Promise<void> {
  let visit = visitOf(site, req, res, [])
  let fields: Fields = {}
  try {
    refuseCrossSite(site.ctx, req)
    const sent = await readSent(req, res)
    fields = sent.fields
    const { return_to: back = '' } = fields
    visit = visitOf(site, req, res, back === '' ? [] : [back])
    if (!page.isUnlimited) await countRequest(site.ctx, `form_of_${viewsOf(page)}`, req)
    if (sent.unreadable.length > 0) return await showAgain(page, visit, unreadableForm(visit.reader, fields, sent.unreadable), 400)
    answer(visit, await page.post(visit, fields))
  } catch (thrown) {
    if (res.headersSent || thrown instanceof Elsewhere || thrown instanceof BadReturnTo) throw thrown
    await showRefusal(page, visit, thrown, fields)
  }
}

type PageWithForm = PageDefinition & Required<Pick<PageDefinition, 'post'>>

async function showRefusal(page: PageDefinition, visit: Visit, thrown: unknown, fields: Fields): Promise<void> {
  const { ctx, req, res, reader } = visit
  if (thrown instanceof FormFault) return showAgain(page, visit, refusedForm(reader, thrown, fields), 400)
  const error = readRefusal(ctx.logger, req, thrown)
  if (error instanceof DeletionPendingError && 'restore_token' in error.details) return showPage(ctx, res, reader, wayBack(reader, error))
  if (error.status !== 401) setRefusalHeaders(res, error)
  await showAgain(page, visit, refusedForm(reader, error, fields, page), statusOf(error))
}

/** A right login of a closed account: the button of this page brings it back. */
function wayBack(reader: Reader, { details }: DeletionPendingError): Page {
  const { deletes_at: at, restore_token: token } = details as { deletes_at: string; restore_token: string } // as `stateRefusal` made them
  const date = new Intl.DateTimeFormat(reader.lang, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(at))
  const title = reader.text('link.account_restore.title')
  const body = card(
    html`<h1>${title}</h1>
<p class="lead">${reader.text('link.account_restore.lead')}</p>
<p>${reader.text('deletion.deletes_at', { date })}</p>
`,
    form({ action: reader.href(`/account/restore/${token}`), fields: [], button: reader.text('link.account_restore.button') }),
  )
  return { page: 'account_restore', title, body, status: 403 }
}

async function showAgain(page: PageDefinition, visit: Visit, state: FormState, status: number): Promise<void> {
  await countRequest(visit.ctx, viewsOf(page), visit.req)
  const outcome = await page.show(visit, state)
  answer(visit, 'to' in outcome ? outcome : { ...outcome, status, isRefused: true })
}

function answer({ ctx, res, reader }: Visit, outcome: Page | GoOn): void {
  if ('to' in outcome) goOn(res, outcome)
  else showPage(ctx, res, reader, outcome)
}

function goOn(res: Response, { to, status }: GoOn): void {
  if (status === 302) sendRedirect(res, to)
  else sendSeeOther(res, to)
}

class BadReturnTo extends Error {}

function readBack({ ctx }: PageSite, values: readonly string[]): string | null {
  try {
    return readReturnTo(ctx.settings, values)
  } catch (error) {
    throw error instanceof ValidationError ? new BadReturnTo() : error
  }
}

function showBadReturnTo(ctx: AuthContext, res: Response, reader: Reader): void {
  const title = reader.text('bad_return.title')
  const go = { href: signInAddress(ctx, reader), label: reader.text('bad_return.button') }
  showPage(ctx, res, reader, {
    page: 'trouble',
    title,
    body: messagePage({ title, lead: reader.text('bad_return.lead'), go }),
    status: 400,
  })
}

/** The log contains the error code. */
function brokenPage({ ctx }: PageSite): ErrorRequestHandler {
  return (thrown, req, res, next) => {
    if (res.headersSent || thrown instanceof UnsupportedMediaTypeError) return next(thrown)
    const reader = readerOf(ctx, req)
    const error = readRefusal(ctx.logger, req, thrown)
    if (error.status !== 401) setRefusalHeaders(res, error)
    const tooMany = error instanceof TooManyRequestsError ? tooManySentence(reader, error) : null
    const name = tooMany !== null ? 'link.too_many' : error.status === 503 ? 'busy' : 'trouble'
    const title = reader.text(`${name}.title`)
    showPage(ctx, res, reader, {
      page: tooMany === null ? 'trouble' : 'too_many',
      title,
      body: messagePage({ title, lead: tooMany ?? reader.text(`${name}.lead`) }),
      status: statusOf(error),
    })
  }
}
