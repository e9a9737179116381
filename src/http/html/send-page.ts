import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import { describeError } from '../../core/logger'
import { type AreaPageInput, areaPageNames, type LayoutInput, type LinkPageName, type PageInput, type PageName } from '../../core/templates'
import type { PageSources } from '../../core/theme/theme'
import { sendHtml } from '../send'
import { assets, document, type NamedUser } from './document'
import type { Part } from './elements'
import { Html, html } from './elements'
import { linkPageBody } from './link-page-body'
import { type PageContext, type Reader, readerOf } from './reader'

export interface Page {
  readonly page: PageName
  readonly title: string
  readonly body: Html
  readonly navigation?: Part
  readonly user?: NamedUser | null
  /** Default 200. */
  readonly status?: number
  readonly isRefused?: boolean
  /** Default true. */
  readonly hasLanguages?: boolean
  readonly formTargets?: readonly string[]
}

/** With the host's templates for layout and body, or else in the built-in design. */
export function showPage(ctx: PageContext, res: Response, reader: Reader, page: Page): void {
  const { title, navigation = null, user = null, status = 200, isRefused = false, hasLanguages = true } = page
  const nonce = randomBytes(16).toString('base64')
  const head = headOf(ctx, nonce)
  const parts = { page: page.page, title, lang: reader.lang, body: page.body.markup, user, nonce }
  const body = ownBody(ctx, parts) ?? page.body
  const laidOut = ownLayout(ctx, { ...parts, head: head.markup, body: `${navigation ?? ''}${body}` })
  const languages = hasLanguages ? ctx.texts.languages.map((lang) => [lang, ctx.texts.say(lang, 'language.name')] as const) : []
  setPageHeaders(ctx, res, page, nonce)
  res.statusCode = status
  res.end(laidOut ?? document(reader, ctx.theme, { title, head, body, navigation, user, isRefused, languages }))
}

/** With `pagesEnabled: false`, only link pages exist. They load no files, so the style is inline. */
function headOf(ctx: PageContext, nonce: string): Html {
  if (ctx.settings.pagesEnabled) return assets(ctx.theme)
  return html`<style nonce="${nonce}">${new Html(ctx.theme.style.text)}</style>
`
}

function ownBody(ctx: PageContext, parts: Omit<AreaPageInput, 'page'> & { page: PageName }): Html | null {
  const name = areaPageNames.find((known) => known === parts.page)
  const template = name && ctx.templates.pages?.[name]
  if (!name || !template) return null
  const body = renderHostTemplate(ctx, name, () => template({ ...parts, page: name }))
  return body === null ? null : new Html(body)
}

function ownLayout(ctx: PageContext, parts: LayoutInput): string | null {
  const { layout } = ctx.templates
  return layout ? renderHostTemplate(ctx, parts.page, () => layout(parts)) : null
}

/** If the template fails, the caller shows the built-in page. */
function renderHostTemplate(ctx: PageContext, page: PageName, write: () => unknown): string | null {
  try {
    const text = write()
    if (typeof text === 'string') return text
    throw new TypeError('A page template must return a string.')
  } catch (error) {
    ctx.logger.error({ page, error: describeError(error) }, 'doorward: a page template failed; the built-in page is shown')
    return null
  }
}

/** With `pagesEnabled`, not `no-referrer`: a browser would then hide the origin of a form (`Origin: null`). */
function referrerPolicyOf({ settings }: PageContext): string {
  return settings.pagesEnabled ? 'same-origin' : 'no-referrer'
}

/** Uses `setHeader`, to replace the headers of the host's middleware. */
function setPageHeaders(ctx: PageContext, res: Response, { formTargets = [] }: Page, nonce: string): void {
  const { settings, templates, theme } = ctx
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.setHeader('Referrer-Policy', referrerPolicyOf(ctx))
  const isOwn = templates.layout !== undefined || templates.pages !== undefined
  const nonces = isOwn || !settings.pagesEnabled ? [`'nonce-${nonce}'`] : []
  const sources = settings.pagesEnabled ? loading(theme.sources, nonces) : loadingNothing(theme.logoUrl !== null, nonces)
  const targets = [...(settings.pagesEnabled ? everyTarget(ctx) : []), ...formTargets]
  const directives = [
    "default-src 'none'",
    ...sources,
    ["form-action 'self'", ...new Set(targets)].join(' '),
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ]
  res.setHeader('Content-Security-Policy', directives.join('; '))
}

function loading({ styleSrc = [], scriptSrc = [], imgSrc = [], fontSrc = [], connectSrc = [] }: PageSources, nonces: readonly string[]) {
  return [
    ["style-src 'self'", ...nonces, ...styleSrc],
    ["script-src 'self'", ...nonces, ...scriptSrc],
    ["img-src 'self' data:", ...imgSrc],
    ["connect-src 'self'", ...connectSrc],
    ...(fontSrc.length > 0 ? [['font-src', ...fontSrc]] : []),
  ].map((words) => words.join(' '))
}

function loadingNothing(hasLogo: boolean, nonces: readonly string[]): string[] {
  return [['style-src', ...nonces].join(' '), ...(hasLogo ? ["img-src 'self' data:"] : [])]
}

/** Browsers apply `form-action` also to redirects. */
function everyTarget({ settings: { oauthSuccessRedirect, loginUrl, trustedOrigins } }: PageContext): string[] {
  const redirects = [oauthSuccessRedirect, loginUrl].filter((url): url is string => url !== null && URL.canParse(url))
  return [...trustedOrigins, ...redirects.map((url) => new URL(url).origin)]
}

interface PageExtras {
  problem?: string | null
  challenge?: PageInput['challenge']
  items?: readonly string[]
  password?: PageInput['password']
  /** Default true. */
  hasLoginLink?: boolean
  formTargets?: readonly string[]
}

/** Prefers the host's own page. Sets no cookie, and the page contains no access token and no refresh token. */
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
