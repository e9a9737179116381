import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import type { AuthContext } from '../context'
import { localeOf } from '../http/locale'
import { sendHtml } from '../http/send'
import { describeError } from '../logger'
import type { PageInput, PageName } from '../page-templates'
import { renderPage } from './page'

export interface PageExtras {
  /** Why the form is shown again. */
  problem?: (locale: PageInput['locale']) => string | null
  challenge?: PageInput['challenge']
  items?: (locale: PageInput['locale']) => readonly string[]
  password?: PageInput['password']
  /** Origins a redirect after the form may lead to. */
  formTargets?: readonly string[]
}

/** Answers with a page in the reader's language: the host's own where it has one. Sets no cookie and holds no token. */
export function sendPage(
  ctx: AuthContext,
  req: Request,
  res: Response,
  status: number,
  page: PageName,
  { problem = () => null, challenge = null, items = () => [], password = null, formTargets = [] }: PageExtras = {},
): void {
  const locale = localeOf(req, ctx.settings.defaultLocale)
  const styleNonce = randomBytes(16).toString('base64')
  const { loginUrl } = ctx.settings
  const input: PageInput = { page, locale, problem: problem(locale), items: items(locale), loginUrl, challenge, password, styleNonce }
  sendHtml(res, status, ownPage(ctx, input) ?? renderPage(input), { styleNonce, formTargets })
}

/** A host's template that fails costs its look, not the page. */
function ownPage(ctx: AuthContext, input: PageInput): string | null {
  try {
    const page: unknown = ctx.templates.pages?.[input.page]?.(input)
    if (page === undefined) return null
    if (typeof page === 'string') return page
    throw new TypeError('A page template must return a string.')
  } catch (error) {
    ctx.logger.error({ page: input.page, error: describeError(error) }, 'doorward: a page template failed; the built-in page is shown')
    return null
  }
}
