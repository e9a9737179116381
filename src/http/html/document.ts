import { directionOf } from '../../core/texts/phrase-book'
import type { Theme } from '../../core/theme/theme'
import type { Part } from './elements'
import { type Html, html } from './elements'
import type { Reader } from './reader'

export interface NamedUser {
  readonly email: string
  readonly name: string | null
}

export interface DocumentParts {
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
