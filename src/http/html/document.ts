import escapeHtml from 'escape-html'
import { directionOf } from '../../core/texts/phrase-book'
import type { Theme } from '../../core/theme/theme'
import type { Reader } from './reader'

/** Escaped markup. */
export class Html {
  readonly markup: string

  constructor(markup: string) {
    this.markup = markup
  }

  toString(): string {
    return this.markup
  }
}

type TemplatePart = Html | string | number | null | readonly (Html | string)[]

/** Escapes values for text and quoted attributes, so always quote attributes. `Html` stays unchanged, `null` becomes empty. */
export function html(literals: TemplateStringsArray, ...values: readonly TemplatePart[]): Html {
  let [markup = '', ...rest] = literals
  for (const [index, literal] of rest.entries()) markup += markupOf(values[index] ?? null) + literal
  return new Html(markup)
}

function markupOf(value: TemplatePart): string {
  if (value === null) return ''
  if (value instanceof Html) return value.markup
  return typeof value === 'object' ? value.map(markupOf).join('') : escapeHtml(String(value))
}

export type Part = Html | null

interface FieldInput {
  readonly name: string
  /** Default: the name. Must differ if two forms of a page have a field of one name. */
  readonly id?: string
  readonly label: string
  /** Default `text`. A password field never shows its old value again. */
  readonly type?: 'text' | 'email' | 'password'
  /** A value of the HTML standard, such as `current-password`. */
  readonly autocomplete: string
  readonly hint?: string
  readonly value?: string
  readonly isOptional?: boolean
  /** Gets the focus if no field has an error. */
  readonly isFirst?: boolean
  readonly isCode?: boolean
  /** The code was correct and another field has an error, so the form keeps the code. */
  readonly keepsCode?: boolean
  readonly isDigits?: boolean
}

export function field(reader: Reader, state: FormState, input: FieldInput): Html {
  const {
    name,
    id = name,
    label,
    type = 'text',
    autocomplete,
    hint,
    value = '',
    isOptional = false,
    isCode = false,
    keepsCode = false,
  } = input
  const fault = state.faults[name] ?? null
  const described = [hint === undefined ? null : `${id}-hint`, fault === null ? null : `${id}-fault`].filter((id) => id !== null)
  const isSecret = type === 'password'
  const filled = isSecret || (isCode && !keepsCode) ? '' : (state.values[name] ?? value)
  const box = html`<input id="${id}" name="${name}" type="${type}"${filled === '' ? null : html` value="${filled}"`} autocomplete="${autocomplete}"${isOptional ? null : html` required`}${looksOf(input)}${
    described.length === 0 ? null : html` aria-describedby="${described.join(' ')}"`
  }${fault === null ? null : html` aria-invalid="true"`}${hasFocus(state, input) ? html` autofocus` : null}>`
  return html`<div class="field${isCode ? ' code' : ''}">
<label for="${id}">${label}${isOptional ? html` <small>(${reader.text('layout.optional')})</small>` : null}</label>
${hint === undefined ? null : html`<p class="hint" id="${id}-hint">${hint}</p>`}${isSecret ? html`<div class="secret">${box}</div>` : box}
${fault === null ? null : html`<p class="fault" role="alert" id="${id}-fault">${fault}</p>`}</div>
`
}

function looksOf({ type, isCode, isDigits }: FieldInput): Part {
  if (isDigits) return html` inputmode="numeric" autocorrect="off" spellcheck="false"`
  if (isCode) return html` inputmode="text" autocapitalize="characters" autocorrect="off" spellcheck="false"`
  return type === 'email' ? html` autocapitalize="none" spellcheck="false"` : null
}

/** The first field with an error gets the focus, or else the one with `isFirst`. If the whole form has an error, `problem` gets it. */
function hasFocus({ faults, problem }: FormState, { name, isFirst = false }: FieldInput): boolean {
  const [wrong] = Object.keys(faults)
  if (wrong !== undefined) return wrong === name
  return isFirst && problem === null
}

interface CheckboxInput extends Pick<FieldInput, 'name' | 'id' | 'label'> {
  readonly isChecked: boolean
}

export function checkbox(state: FormState, { name, id = name, label, isChecked }: CheckboxInput): Html {
  const isOn = Object.keys(state.values).length === 0 ? isChecked : state.values[name] === 'on'
  return html`<div class="check"><input type="checkbox" id="${id}" name="${name}" value="on"${isOn ? html` checked` : null}><label for="${id}">${label}</label></div>
`
}

/** Null for a null value. */
export function hidden(name: string, value: string | null): Part {
  return value === null ? null : html`<input type="hidden" name="${name}" value="${value}">`
}

interface FormInput {
  /** Undefined: the URL of the page. */
  readonly action?: string
  readonly fields: readonly Part[]
  readonly button: string
  readonly mark?: Part
  readonly look?: 'danger' | 'second' | 'plain'
  readonly name?: readonly [name: string, value: string]
  readonly after?: readonly Part[]
  /** For the page's script. */
  readonly attributes?: Part
}

export function form({ action, fields, button, mark = null, look, name, after = [], attributes = null }: FormInput): Html {
  return html`<form method="post"${action === undefined ? null : html` action="${action}"`}${attributes}>
${fields.filter((part) => part !== null)}<button type="submit"${look === undefined ? null : html` class="${look}"`}${name ? html` name="${name[0]}" value="${name[1]}"` : null}>${mark}${button}</button>
${after.filter((part) => part !== null)}</form>
`
}

/** Screen readers announce the error. If no field has the focus, the error gets it. */
export function problem({ problem, faults }: FormState): Part {
  if (problem === null) return null
  const hasFocus = Object.keys(faults).length === 0
  return html`<p class="problem" role="alert" tabindex="-1"${hasFocus ? html` autofocus` : null}>${problem}</p>
`
}

export function notice(text: string | null): Part {
  return text === null
    ? null
    : html`<p class="notice" role="status">${text}</p>
`
}

/** Sends no referrer, because the page's URL may contain a token. */
export function linkButton(href: string, label: string, look: 'first' | 'second' = 'first', mark: Part = null): Html {
  return html`<a class="button${look === 'second' ? ' second' : ''}" href="${href}" referrerpolicy="no-referrer">${mark}${label}</a>
`
}

/** In UTC. The script replaces the text by the time in the browser's time zone. */
export function time(reader: Reader, at: Date): Html {
  return html`<time datetime="${at.toISOString()}">${formatIn(reader.lang).format(at)} ${reader.text('layout.utc')}</time>`
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** Making a format needs more CPU time than the rest of a page. */
function formatIn(lang: string): Intl.DateTimeFormat {
  const format = formats.get(lang) ?? new Intl.DateTimeFormat(lang, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })
  formats.set(lang, format)
  return format
}

/** The first card contains the title. */
export function card(...parts: readonly Part[]): Html {
  return html`<section class="card">
${parts.filter((part) => part !== null)}</section>
`
}

/** Separates two ways to do the same action. */
export function or(reader: Reader): Html {
  return html`<p class="or">${reader.text('login.or')}</p>
`
}

/** The values never contain a secret, so a person types a password again. */
export interface FormState {
  readonly values: Readonly<Record<string, string>>
  readonly faults: Readonly<Record<string, string>>
  readonly problem: string | null
}

export const emptyForm: FormState = Object.freeze({ values: {}, faults: {}, problem: null })

export interface NamedUser {
  readonly email: string
  readonly name: string | null
}

interface DocumentParts {
  readonly title: string
  readonly body: Html
  readonly navigation: Part
  readonly user: NamedUser | null
  /** A form had errors. The title then starts with a word about the error. */
  readonly isRefused: boolean
  readonly head: Html
  readonly languages: readonly Language[]
}

type Language = readonly [tag: string, name: string]

export function document(reader: Reader, theme: Theme, parts: DocumentParts): string {
  const { title, head, navigation, body, user, isRefused, languages } = parts
  const presented = isRefused ? reader.text('layout.error', { title }) : title
  return html`<!doctype html>
<html lang="${reader.lang}" dir="${directionOf(reader.lang)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${theme.name === '' ? presented : `${presented} · ${theme.name}`}</title>
${head}</head>
<body data-show="${reader.text('field.show')}" data-show-label="${reader.text('field.show_label')}">
<a class="skip" href="#content">${reader.text('layout.skip')}</a>
<header class="top">${brand(theme)}${user && signedIn(reader, user)}</header>
<main id="content" tabindex="-1" class="${navigation === null ? 'single' : 'area'}">
${navigation}${navigation === null ? body : html`<div>${body}</div>`}</main>
${foot(reader, theme, languages)}</body>
</html>
`.markup
}

/** Without a referrer, because the page's URL may contain a token. */
export function assets({ style, script, logoUrl }: Theme): Html {
  return html`<link rel="icon" href="${logoUrl ?? 'data:,'}">
<link rel="stylesheet" href="${style.path}" referrerpolicy="no-referrer">
<script src="${script.path}" defer referrerpolicy="no-referrer"></script>
`
}

function brand({ name, logoUrl, homeUrl }: Theme): Html {
  // No alt text, because the name is beside the image.
  const inside = html`${logoUrl === null ? null : html`<img src="${logoUrl}" alt="">`}<span>${name}</span>`
  return homeUrl === null
    ? html`<span class="brand">${inside}</span>`
    : html`<a class="brand" href="${homeUrl}" referrerpolicy="no-referrer">${inside}</a>`
}

function signedIn(reader: Reader, { email }: NamedUser): Html {
  return html`<div class="who"><span>${email}</span><form method="post" action="${reader.href('/logout')}"><button type="submit" class="plain">${reader.text('sign_out.button')}</button></form></div>`
}

function foot(reader: Reader, { supportUrl }: Theme, languages: readonly Language[]): Html {
  const links = languages.map(([lang, name]) =>
    lang === reader.lang
      ? html`<span lang="${lang}">${name}</span>`
      : html`<a lang="${lang}" hreflang="${lang}" href="${reader.here(lang)}" referrerpolicy="no-referrer">${name}</a>`,
  )
  return html`<footer class="foot">${links}${supportUrl === null ? null : html`<a href="${supportUrl}" referrerpolicy="no-referrer">${reader.text('layout.support')}</a>`}</footer>
`
}
