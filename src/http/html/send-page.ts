import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { LinkPageName, PageInput } from '../../core/templates'
import { sendHtml } from '../send'
import { linkPageBody } from './link-page-body'
import type { PageContext } from './page-context'
import { readerOf } from './reader'
import { referrerPolicyOf, renderHostTemplate, showPage } from './show-page'

export interface PageExtras {
  /** The reason why the form is shown again. */
  problem?: string | null
  challenge?: PageInput['challenge']
  items?: readonly string[]
  password?: PageInput['password']
  /** False: the page has no link to the login page. Default true. */
  hasLoginLink?: boolean
  /** Origins to which the form may redirect. */
  formTargets?: readonly string[]
}

/**
 * Responds with a page in the reader's language. If the host has its own page, sends that page. The function sets no cookie, and the page
 * contains no access token and no refresh token.
 */
export function sendPage(
  ctx: PageContext,
  req: Request,
  res: Response,
  status: number,
  page: LinkPageName,
  { problem = null, challenge = null, items = [], password = null, hasLoginLink = true, formTargets = [] }: PageExtras = {},
): void {
  const reader = readerOf(ctx, req)
  const styleNonce = randomBytes(16).toString('base64')
  const loginUrl = hasLoginLink ? ctx.settings.loginUrl : null
  const input: PageInput = { page, locale: reader.lang, problem, items, loginUrl, challenge, password, styleNonce }
  const own = ownPage(ctx, input)
  if (own !== null) return void sendHtml(res, status, own, { styleNonce, formTargets, referrerPolicy: referrerPolicyOf(ctx) })
  const title = reader.text(`link.${page}.title`)
  const isRefused = input.problem !== null
  // A page has links to its other languages if the browser can request the page again with GET.
  const hasLanguages = req.method !== 'POST'
  showPage(ctx, res, reader, { page, title, body: linkPageBody(reader, input), status, isRefused, hasLanguages, formTargets })
}

function ownPage(ctx: PageContext, input: PageInput): string | null {
  const template = ctx.templates.pages?.[input.page]
  return template ? renderHostTemplate(ctx, input.page, () => template(input)) : null
}
