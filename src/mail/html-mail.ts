import { directionOf } from '../core/texts/phrase-book'
import { type Html, html } from '../http/html/html'
import type { Locale } from '../http/locale'

export interface HtmlMail {
  locale: Locale
  title: string
  /** The paragraphs before the link. `after` contains the paragraphs after the link. */
  before: readonly string[]
  items?: readonly string[]
  /** The code in groups, as the mail shows it. */
  code?: string
  /** Reasons to open the link. */
  why?: readonly string[]
  link?: { url: string; label: string; hint: string }
  after: readonly string[]
  /** The last line, which lets the browser fill in the code. */
  last?: string
}

/**
 * Returns the HTML of a mail: one column of at most 600 px, with tables and inline styles, because every mail program can render them. If a
 * program inverts the light colours, the mail stays readable. Programs with a dark mode get dark colours. The mail loads no external
 * resources.
 */
export function htmlMail({ locale, title, before, items = [], code, why = [], link, after, last }: HtmlMail): string {
  const direction = directionOf(locale)
  return html`<!doctype html>
<html lang="${locale}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>${title}</title>
${darkColours}
</head>
<body class="page" style="margin:0;padding:0;background-color:#f4f4f5;-webkit-text-size-adjust:100%">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" style="background-color:#f4f4f5">
<tr><td align="center" style="padding:32px 16px">
<table role="presentation" class="card" width="600" cellpadding="0" cellspacing="0" border="0" style="width:100%;max-width:600px;background-color:#ffffff;border-radius:8px">
<tr><td class="words" style="padding:32px 32px 16px;font-family:${fonts};font-size:16px;line-height:24px;color:#27272a;text-align:${direction === 'rtl' ? 'right' : 'left'}">
<h1 style="margin:0 0 24px;font-size:22px;line-height:30px;font-weight:bold">${title}</h1>
${before.map(paragraph)}${items.length > 0 ? itemList(items) : null}${code === undefined ? null : codeBlock(code)}${why.map(paragraph)}${link ? linkBlock(link) : null}${after.map(paragraph)}${last === undefined ? null : paragraph(last)}</td></tr>
</table>
</td></tr>
</table>
</body>
</html>
`.markup
}

const fonts = "-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"

/** The only CSS rules that cannot be inline. If a program drops these rules, the program shows the light colours. */
const darkColours = html`<style>
@media (prefers-color-scheme: dark) {
.page { background-color: #18181b !important; }
.card { background-color: #27272a !important; }
.words { color: #f4f4f5 !important; }
.link { color: #93c5fd !important; }
}
</style>`

function paragraph(words: string): Html {
  return html`<p style="margin:0 0 16px">${words}</p>
`
}

function itemList(items: readonly string[]): Html {
  return html`<ul style="margin:0 0 16px;padding:0 24px">
${items.map((item) => html`<li style="margin:0 0 4px">${item}</li>`)}
</ul>
`
}

/** Returns the code as plain text in two groups, so that a screen reader reads each group. */
function codeBlock(code: string): Html {
  return html`<p style="margin:0 0 24px;font-size:28px;line-height:36px;font-weight:bold;font-variant-numeric:tabular-nums">${code}</p>
`
}

function linkBlock({ url, label, hint }: NonNullable<HtmlMail['link']>): Html {
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:24px 0">
<tr><td bgcolor="#1d4ed8" style="background-color:#1d4ed8;border-radius:6px">
<a href="${url}" style="display:inline-block;padding:12px 24px;font-family:${fonts};font-size:16px;line-height:24px;font-weight:bold;color:#ffffff;text-decoration:none">${label}</a>
</td></tr>
</table>
<p style="margin:0 0 4px;font-size:14px;line-height:20px">${hint}</p>
<p style="margin:0 0 24px;font-size:14px;line-height:20px;word-break:break-all"><a class="link" href="${url}" style="color:#1d4ed8">${url}</a></p>
`
}
