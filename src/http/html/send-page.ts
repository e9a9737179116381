import { randomBytes } from 'node:crypto'
import type { Request, Response } from 'express'
import { describeError } from '../../core/logger'
import { type AreaPageInput, areaPageNames, type LayoutInput, type LinkPageName, type PageInput, type PageName } from '../../core/templates'
import { type TextKey, texts } from '../../core/texts/phrase-book'
import type { CaptchaSources } from '../captcha'
import { sendHtml } from '../send'
import {
  assets,
  card,
  document,
  emptyForm,
  type FormState,
  field,
  form,
  Html,
  hidden,
  html,
  linkButton,
  type NamedUser,
  type Part,
  problem as problemPart,
} from './document'
import { passkeyForm } from './passkey-form'
import { type PageContext, type Reader, readerOf } from './reader'
import { trustCheckbox } from './trust-checkbox'

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
  /** Default false: the page works without the script. With `pagesEnabled`, every page has it. */
  readonly needsScript?: boolean
  readonly formTargets?: readonly string[]
  /** Of a captcha: its scripts may run, and it may load from these sources. */
  readonly nonce?: string
  readonly sources?: CaptchaSources
}

/** With the host's templates for layout and body, or else in the built-in design. */
export function showPage(ctx: PageContext, res: Response, reader: Reader, page: Page): void {
  const { title, navigation = null, user = null, status = 200, isRefused = false, hasLanguages = true } = page
  const nonce = page.nonce ?? randomBytes(16).toString('base64')
  const head = headOf(ctx, nonce)
  const parts = { page: page.page, title, lang: reader.lang, body: page.body.markup, user, nonce }
  const body = html`${ownBody(ctx, parts) ?? page.body}${inlineScript(ctx, page, nonce)}`
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

/** At the end of the body, because an inline script cannot wait for the rest of the page. */
function inlineScript({ settings, theme }: PageContext, { needsScript = false }: Page, nonce: string): Part {
  if (!needsScript || settings.pagesEnabled) return null
  return html`<script nonce="${nonce}">${new Html(theme.script.text)}</script>
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
function setPageHeaders(ctx: PageContext, res: Response, page: Page, nonce: string): void {
  const { formTargets = [], needsScript = false, sources: more = {} } = page
  const { settings, templates, theme } = ctx
  res.setHeader('Content-Type', 'text/html; charset=utf-8')
  res.setHeader('Referrer-Policy', referrerPolicyOf(ctx))
  const isOwn = templates.layout !== undefined || templates.pages !== undefined
  const nonces = isOwn || page.nonce !== undefined || !settings.pagesEnabled ? [`'nonce-${nonce}'`] : []
  const hasPictures = theme.logoUrl !== null || page.page === 'tasks' // a QR code
  const sources = settings.pagesEnabled ? loading([theme.sources, more], nonces) : loadingNothing(hasPictures, nonces, needsScript)
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

function loading(given: readonly CaptchaSources[], nonces: readonly string[]) {
  const of = (directive: keyof CaptchaSources) => [...new Set(given.flatMap((sources) => sources[directive] ?? []))]
  const onlyIfGiven = (name: string, sources: readonly string[]) => (sources.length > 0 ? [[name, ...sources]] : [])
  return [
    ["style-src 'self'", ...nonces, ...of('styleSrc')],
    ["script-src 'self'", ...nonces, ...of('scriptSrc')],
    ["img-src 'self' data:", ...of('imgSrc')],
    ["connect-src 'self'", ...of('connectSrc')],
    ...onlyIfGiven('font-src', of('fontSrc')),
    ...onlyIfGiven('frame-src', of('frameSrc')),
    ...onlyIfGiven('worker-src', of('workerSrc')),
  ].map((words) => words.join(' '))
}

function loadingNothing(hasPictures: boolean, nonces: readonly string[], needsScript: boolean): string[] {
  const script = needsScript ? [['script-src', ...nonces].join(' ')] : []
  return [['style-src', ...nonces].join(' '), ...script, ...(hasPictures ? ["img-src 'self' data:"] : [])]
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
  passkey?: PageInput['passkey']
  account?: PageInput['account']
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
  {
    problem = null,
    challenge = null,
    items = [],
    password = null,
    passkey = null,
    account = null,
    hasLoginLink = true,
    formTargets = [],
  }: PageExtras = {},
): void {
  const reader = readerOf(ctx, req)
  const styleNonce = randomBytes(16).toString('base64')
  const loginUrl = hasLoginLink ? ctx.settings.loginUrl : null
  const input: PageInput = { page, locale: reader.lang, problem, items, loginUrl, challenge, password, passkey, account, styleNonce }
  const needsScript = passkey !== null
  const own = ownPage(ctx, input)
  if (own !== null) return void sendHtml(res, status, own, { styleNonce, needsScript, formTargets, referrerPolicy: referrerPolicyOf(ctx) })
  const title = reader.text(`link.${page}.title`)
  const isRefused = input.problem !== null
  // A page has links to its other languages if the browser can request the page again with GET.
  const hasLanguages = req.method !== 'POST'
  showPage(ctx, res, reader, { page, title, body: linkPageBody(reader, input), status, isRefused, hasLanguages, needsScript, formTargets })
}

function ownPage(ctx: PageContext, input: PageInput): string | null {
  const template = ctx.templates.pages?.[input.page]
  return template ? renderHostTemplate(ctx, input.page, () => template(input)) : null
}

/** Also the page after a login with a provider. */
function linkPageBody(reader: Reader, input: PageInput): Html {
  const { page, items, loginUrl, problem, account } = input
  const button = account ? reader.text('invitation.use') : textOf(reader, page, 'button')
  const lead = account ? reader.text('invitation.use_lead', { email: account.email }) : reader.text(`link.${page}.lead`)
  return card(
    html`<h1>${reader.text(`link.${page}.title`)}</h1>
<p class="lead">${(button === null && problem) || lead}</p>
`,
    list(textOf(reader, page, 'list'), items),
    button === null
      ? loginLink(reader, loginUrl)
      : input.passkey
        ? passkeyForms(reader, input, input.passkey)
        : linkForm(reader, input, button),
  )
}

/** Only some of the pages have such a text. */
function textOf(reader: Reader, page: LinkPageName, part: 'list' | 'button'): string | null {
  const key = `link.${page}.${part}`
  return Object.hasOwn(texts['en-US'], key) ? reader.text(key as TextKey) : null // texts has the key
}

function list(name: string | null, items: readonly string[]): Part {
  if (items.length === 0) return null
  return html`${name === null ? null : html`<p class="list">${name}</p>`}<ul>${items.map((item) => html`<li>${item}</li>`)}</ul>
`
}

function linkForm(reader: Reader, input: PageInput, button: string): Html {
  const { page, loginUrl, challenge, password, account, problem } = input
  const needsLogin = page === 'email_change' && problem !== null && password === null
  const state = stateOf(input)
  return form({
    ...(challenge && { action: challenge.action }),
    fields: [
      problemPart(state),
      account && hidden('form_of', account.formOf),
      ...(page === 'password_reset' ? newPasswords(reader, state) : []),
      ...(challenge ? challengeFields(reader, state, challenge) : []),
      password && oldPasswordInput(reader, state, password.canSkip),
    ],
    button,
    after: [needsLogin ? loginLink(reader, loginUrl, 'second') : null, password?.canSkip ? forgotButton(reader) : null],
  })
}

/** An empty form is refused, so a click that the person did not mean removes no passkey. */
function passkeyForms(reader: Reader, input: PageInput, passkey: NonNullable<PageInput['passkey']>): Html {
  return html`<p class="lead">${reader.text('link.passkey_lead')}</p>
${problemPart(stateOf(input))}${passkeyForm(reader, { ...passkey, button: reader.text('link.use_passkey') })}${form({
  fields: [],
  button: reader.text('link.without_passkey'),
  name: ['forgot', '1'],
  look: 'second',
})}`
}

function stateOf({ page, challenge, password, problem }: PageInput): FormState {
  if (problem === null) return emptyForm
  const name = page === 'password_reset' ? 'new_password' : challenge ? 'code' : password ? 'password' : null
  return name === null ? { ...emptyForm, problem } : { ...emptyForm, faults: { [name]: problem } }
}

function newPasswords(reader: Reader, state: FormState): Html[] {
  const secret = { type: 'password', autocomplete: 'new-password' } as const
  return [
    field(reader, state, { ...secret, name: 'new_password', label: reader.text('link.new_password'), isFirst: true }),
    field(reader, state, { ...secret, name: 'confirm_password', label: reader.text('link.confirm_password') }),
  ]
}

function challengeFields(reader: Reader, state: FormState, { mfaToken, trustDays = 0 }: NonNullable<PageInput['challenge']>): Part[] {
  return [hidden('mfa_token', mfaToken), codeField(reader, state), trustCheckbox(reader, state, trustDays)]
}

function codeField(reader: Reader, state: FormState): Html {
  return field(reader, state, {
    name: 'code',
    label: reader.text('field.code'),
    autocomplete: 'one-time-code',
    isCode: true,
    isFirst: true,
  })
}

function loginLink(reader: Reader, loginUrl: string | null, look: 'first' | 'second' = 'first'): Part {
  return loginUrl === null ? null : linkButton(loginUrl, reader.text('link.log_in'), look)
}

/** The hint tells people whose account has the password of the sign-up. */
export function oldPasswordInput(reader: Reader, state: FormState, isOfSignup: boolean): Html {
  return field(reader, state, {
    name: 'password',
    label: reader.text('link.password'),
    type: 'password',
    autocomplete: 'current-password',
    isFirst: true,
    ...(isOfSignup && { hint: reader.text('link.chosen_at_signup') }),
  })
}

/** The second button of the form, because the Enter key presses the first. */
export function forgotButton(reader: Reader, label: 'link.forgot' | 'link.without_passkey' = 'link.forgot'): Html {
  return html`<button type="submit" name="forgot" value="1" class="second" formnovalidate>${reader.text(label)}</button>
`
}
